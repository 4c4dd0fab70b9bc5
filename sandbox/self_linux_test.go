package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestJobProcessIsConfined looks at a process that confines itself, and at one that is started by a confined thread: both
// must do the same, and both must be able to confine commands further.
func TestSmokeIsolationOfTheJobProcess(t *testing.T) {
	requireAll(t)
	p := newPrison(t)
	me := fmt.Sprint(os.Getpid())
	orders := strings.Join([]string{
		"write " + filepath.Join(p.dir, "new"),
		"read " + filepath.Join(p.outside, "secret"),
		"read " + filepath.Join(p.dir, "link"),
		"read /etc/passwd",
		"read /etc/hosts",
		"write " + filepath.Join(p.outside, "new"),
		"environ " + me + " " + os.Environ()[0],
		"list /proc",
		"signal " + me,
		"capability",
		"tcp " + listenTCP(t),
		"udp " + listenUDP(t),
		"unix " + listenUnix(t, filepath.Join(p.dir, "socket")),
		"report " + ProtectionProcesses,
		"run " + p.dir + " echo inner; echo x > file; chmod 711 file; touch -d @9 file; stat -c '%a,%Y' file; chmod 666 " + filepath.Join(p.outside, "secret") +
			" 2>/dev/null && echo opened; cat /etc/passwd " + filepath.Join(p.outside, "secret") + " 2>/dev/null",
	}, "\n")
	want := map[string]bool{ // what succeeds
		"write " + filepath.Join(p.dir, "new"): true, "read /etc/hosts": true, "tcp": true, "udp": true,
	}
	check := func(t *testing.T, out []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			order, result, _ := strings.Cut(strings.TrimSpace(line), ": ")
			word, _, _ := strings.Cut(order, " ")
			switch {
			case word == "run":
				if result != `1 "inner\n711,9\n"` {
					t.Errorf("a command inside: %s", result)
				}
			case word == "report":
			case word == "signal" && landlockABI() < abiScope:
			case (want[order] || want[word]) != (result == "<nil>"):
				t.Errorf("%s: %s", order, result)
			}
		}
		if n := strings.Count(string(out), "\n"); n != 15 {
			t.Errorf("%d lines:\n%s", n, out)
		}
	}
	t.Run("by itself", func(t *testing.T) {
		c := exec.Command(p.self, "confined", p.dir)
		c.Stdin = strings.NewReader(orders)
		out, err := c.CombinedOutput()
		check(t, out, err)
	})
	t.Run("by its parent", func(t *testing.T) {
		thread, err := OpenThread(JobPolicy([]string{p.self}, []string{p.dir}))
		if err != nil {
			t.Fatal(err)
		}
		defer thread.Close()
		c := exec.Command(p.self, "threaded")
		c.Env = []string{"A=1"}
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		c.Stdin = strings.NewReader(orders)
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		if err := thread.Start(c); err != nil {
			t.Fatal(err)
		}
		err = c.Wait()
		check(t, []byte(out.String()), err)
		if Probe().Has(ProtectionProcesses) && !strings.Contains(out.String(), "report "+ProtectionProcesses+": true ") {
			t.Errorf("the process does not know what bounds it:\n%s", out.String())
		}
	})
}

func TestConfinedThreadLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	thread, err := OpenThread(Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := thread.starter.do(func() error { _, err := os.ReadFile("/etc/passwd"); return err }); err == nil && landlockABI() > 0 {
		t.Error("the thread reads the accounts")
	}
	thread.Close()
	for range 50 {
		done := make(chan error)
		go func() { _, err := os.ReadFile("/etc/passwd"); done <- err }()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestJobProcessHuntsWithoutNamespaces: inside of its own confinement a job process still ends what a command left.
func TestJobProcessHuntsWithoutNamespaces(t *testing.T) {
	t.Parallel()
	p := newPrison(t)
	number := mark()
	policy := JobPolicy([]string{p.self, "/proc"}, []string{p.dir})
	thread, err := OpenThread(policy)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(p.self, "threaded")
	c.Stdin = strings.NewReader("shim " + p.dir + " (setsid sleep " + number + " &); echo inner; exit 4")
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	if err := thread.Start(c); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	thread.Close()
	if !strings.HasSuffix(out.String(), ": 4 \"inner\\n\"\n") {
		t.Errorf("output: %s", out.String())
	}
	if left := sleepers(number); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}
