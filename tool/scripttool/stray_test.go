package scripttool

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// strayArgument starts this test binary as a child whose engine has been taken over: it does what no script can ask for.
const strayArgument = "stray-child"

// stray confines itself as a child does, without a sandbox around it, unless it is told to stay open; then it tries to get
// out and tells what worked.
func stray(dir string, open bool) int {
	if !open {
		if err := confine(&order{}); err != nil {
			os.Stdout.WriteString(err.Error())
			return 1
		}
	}
	attempts := map[string]func() error{
		"open a file":      func() error { return closing(os.Open("/etc/hosts")) },
		"list a directory": func() error { _, err := os.ReadDir("/"); return err },
		"look at itself":   func() error { return closing(os.Open("/proc/self/environ")) },
		"write a file":     func() error { return os.WriteFile(filepath.Join(dir, "stray"), []byte("x"), 0o600) },
		"connect": func() error {
			c, err := net.Dial("udp", "127.0.0.1:53")
			return closing(c, err)
		},
		"listen": func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			return closing(l, err)
		},
		"start a program": func() error { return exec.Command("/bin/true").Run() },
		"signal a parent": func() error { p, _ := os.FindProcess(os.Getppid()); return p.Signal(syscall.Signal(0)) },
	}
	worked := []string{}
	for name, attempt := range attempts {
		if attempt() == nil {
			worked = append(worked, name)
		}
	}
	// Memory, threads and the garbage collector must still work.
	done := make(chan []byte)
	for range 8 {
		go func() { runtime.LockOSThread(); done <- make([]byte, 1<<20) }()
	}
	for range 8 {
		<-done
	}
	runtime.GC()
	slices.Sort(worked)
	if json.NewEncoder(os.Stdout).Encode(worked) != nil {
		return 1
	}
	return 0
}

// closing closes what was opened, and passes the error on.
func closing(c interface{ Close() error }, err error) error {
	if err == nil {
		err = c.Close()
	}
	return err
}

// TestTheSecondWall shows what holds where the sandbox does not: a child whose engine is in foreign hands has no system
// call to get out with.
func TestTheSecondWall(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("there is no filter of system calls here; the sandbox's report says so")
	}
	for mode, want := range map[string]string{
		"confined": "[]\n",
		// Without the wall all of it works, or it would show nothing.
		"open": `["connect","list a directory","listen","look at itself","open a file","signal a parent","start a program","write a file"]` + "\n",
	} {
		out, err := exec.Command(os.Args[0], strayArgument, t.TempDir(), mode).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %v\n%swant %s", mode, err, out, want)
		}
	}
}
