package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ways are the two ways in which a command is started, by the layers that are off.
func ways() map[string]layer {
	return map[string]layer{"namespaces": 0, "shim": layerNamespaces}
}

var markNumber atomic.Int64

// mark is a number of seconds that no other process of this machine sleeps.
func mark() string {
	return fmt.Sprintf("9%07d%03d", os.Getpid(), markNumber.Add(1))
}

// sleepers returns the processes that sleep for so long.
func sleepers(mark string) []int {
	var found []int
	for _, pid := range processes() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.HasPrefix(line, []byte("sleep\x00"+mark)) {
			found = append(found, pid)
		}
	}
	return found
}

// hostile are the processes that a command leaves behind in order to survive it. They announce themselves; their number
// follows the script.
func hostile(mark string) (string, int) {
	return strings.ReplaceAll(`
trap '' TERM HUP INT
sleep MARK &
(setsid sleep MARK &)
(sleep MARK & exec true)
(setsid bash -c 'trap "" TERM; (setsid sleep MARK &) ; sleep MARK' &)
nohup sleep MARK >/dev/null 2>&1 &
(setsid setsid sleep MARK </dev/null >/dev/null 2>&1 &)
bash -c 'trap "" TERM HUP; sleep MARK & sleep MARK' &
(bash -c 'while :; do (setsid bash -c "trap : TERM; read -t 0.01 <> <(:); :" &) ; read -t 0.01 <> <(:); done' &)
(setsid bash -c 'while :; do sleep MARK & wait $!; done' &)
disown -a
`, "MARK", mark), 10
}

// TestSmokeLimitsOfTimeEndTheWholeTree: a second after its start, with nothing left of it.
func TestSmokeLimitsOfTimeEndTheWholeTree(t *testing.T) {
	t.Parallel()
	for way, off := range ways() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			number := mark()
			s := open(t, Policy{without: off})
			c := bash("/", "(setsid sleep "+number+" &); sleep "+number+" & echo hi; sleep "+number)
			c.Timeout = time.Second
			r := run(t, s, c)
			if string(r.Output) != "hi\n" {
				t.Errorf("output: %q", r.Output)
			}
			if !r.TimedOut || r.Duration < time.Second || r.Duration > 3*time.Second {
				t.Errorf("timed out: %t, after %s", r.TimedOut, r.Duration)
			}
			if left := sleepers(number); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

func TestHostileProcessesDoNotSurvive(t *testing.T) {
	t.Parallel()
	for way, off := range ways() {
		for name, end := range map[string]func(context.CancelFunc, *Process, *Sandbox){
			"abort": func(cancel context.CancelFunc, _ *Process, _ *Sandbox) { cancel() },
			"kill":  func(_ context.CancelFunc, p *Process, _ *Sandbox) { p.Kill() },
			"close": func(_ context.CancelFunc, _ *Process, s *Sandbox) { s.Close() },
		} {
			t.Run(way+"/"+name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				number := mark()
				script, count := hostile(number)
				s := open(t, Policy{without: off})
				c := bash("/", script+"\nwhile :; do :; done")
				c.Timeout, c.Grace = -1, 20*time.Millisecond
				p, err := s.Start(ctx, c)
				if err != nil {
					t.Fatal(err)
				}
				awaitSleepers(t, number, count-1)
				end(cancel, p, s)
				p.Wait()
				if left := sleepers(number); len(left) > 0 {
					t.Errorf("processes %v are left", left)
				}
			})
		}
	}
}

// awaitSleepers waits until so many processes are there. There is no event to wait for: they are made to be unknown.
func awaitSleepers(t *testing.T, mark string, n int) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for range 10_000 {
		if len(sleepers(mark)) >= n {
			return
		}
		<-ticker.C
	}
	t.Fatalf("only %d of %d processes came up", len(sleepers(mark)), n)
}

func TestEndOfACommandIsTheEndOfItsBackground(t *testing.T) {
	t.Parallel()
	for way, off := range ways() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			number := mark()
			script, _ := hostile(number)
			s := open(t, Policy{without: off})
			c := bash("/", script+"\necho done; exit 5")
			r := run(t, s, c)
			if r.ExitCode != 5 || !bytes.Contains(r.Output, []byte("done\n")) || r.TimedOut || r.OutputHeld {
				t.Errorf("result: %+v", r)
			}
			if left := sleepers(number); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

// TestKilledProcessTakesItsCommandsAlong kills the process that runs commands, and, where there is a shim, that one.
func TestKilledProcessTakesItsCommandsAlong(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for way := range ways() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			number := mark()
			script, count := hostile(number)
			parent := exec.Command(self, "parent", way, script+"\necho up; while :; do :; done")
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
				t.Fatalf("%q, %v", line, err)
			}
			awaitSleepers(t, number, count-1)
			var ends []func()
			for _, pid := range sleepers(number) {
				ends = append(ends, watchPID(t, pid))
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait() // it was killed
			for _, awaitEnd := range ends {
				awaitEnd()
			}
		})
	}
}

// watchPID returns a function that waits until the process has ended. It need not be a child.
func watchPID(t *testing.T, pid int) (awaitEnd func()) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return func() {}
	}
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	return func() {
		t.Helper()
		defer unix.Close(fd)
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				t.Fatal(err)
			case n == 0:
				t.Fatalf("process %d is still there after 20 s", pid)
			}
			return
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for way, off := range ways() {
		s := open(t, Policy{without: off})
		for script, want := range map[string]Result{
			"exit 0":                             {},
			"exit 7":                             {ExitCode: 7},
			"exit 300":                           {ExitCode: 44},
			"no-such-program":                    {ExitCode: 127},
			"sh -c 'kill -9 $$'; exit $?":        {ExitCode: 137},
			"ulimit -c unlimited 2>/dev/null":    {ExitCode: 1},
			"exec perl -e 'kill SEGV => $$'":     {ExitCode: 0}, // the first process of a namespace ignores what others send
			"perl -e 'kill SEGV => $$'; exit $?": {ExitCode: 139},
		} {
			if strings.HasPrefix(script, "exec perl") {
				if way == "shim" || !namespaces().available {
					want = Result{ExitCode: 139, Signal: "SIGSEGV"}
				}
			}
			r := run(t, s, bash("/", script))
			if r.ExitCode != want.ExitCode || r.Signal != want.Signal {
				t.Errorf("%s, %s: exit code %d, signal %q: %s", way, script, r.ExitCode, r.Signal, r.Output)
			}
		}
	}
}

// TestShimThatIsKilledIsNoticed: without namespaces a command can do that where signals are not kept inside.
func TestShimThatIsKilledIsNoticed(t *testing.T) {
	t.Parallel()
	s := open(t, Policy{without: layerNamespaces | layerLandlock | layerCapabilities | layerCgroup})
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := bash("/", "read go; kill -9 $PPID; while :; do :; done")
	c.Stdin = in
	p, err := s.Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	if _, err := feed.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	feed.Close()
	r := p.Wait()
	if r.ExitCode != 137 || r.Signal != "SIGKILL" {
		t.Errorf("result: %+v", r)
	}
}

func TestSandboxThatIsClosedStartsNothing(t *testing.T) {
	t.Parallel()
	s := open(t, Policy{})
	s.Close()
	s.Close()
	if _, err := s.Run(context.Background(), bash("/", ":")); !errors.Is(err, errClosed) {
		t.Errorf("error: %v", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("nobody wants it")
	cancel(reason)
	if _, err := open(t, Policy{}).Run(ctx, bash("/", ":")); !errors.Is(err, reason) {
		t.Errorf("error: %v", err)
	}
}

func TestManyCommandsAtTheSameTime(t *testing.T) {
	t.Parallel()
	for way, off := range ways() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := open(t, Policy{without: off})
			results := make(chan string)
			for i := range 8 {
				go func() {
					r, err := s.Run(context.Background(), bash("/", "echo "+strconv.Itoa(i)))
					results <- fmt.Sprint(strings.TrimSpace(string(r.Output)) == strconv.Itoa(i), r.ExitCode, err)
				}()
			}
			for range 8 {
				if got := <-results; got != "true 0 <nil>" {
					t.Error(got)
				}
			}
		})
	}
}
