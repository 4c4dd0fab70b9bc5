package main

import (
	"bufio"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// upServer is a server that a script has started.
type upServer struct{ process *exec.Cmd }

// stop kills the server, as a machine that fails does.
func (u *upServer) stop() {
	if u.process == nil {
		return
	}
	_ = u.process.Process.Kill()
	_ = u.process.Wait() // it was killed
	u.process = nil
}

// serverUpCommand is "serverup [flags…]": it starts hozo up on the working directory and returns when that says that it is
// ready.
func serverUpCommand(ts *testscript.TestScript, neg bool, args []string) {
	server := ts.Value("server").(*upServer)
	if neg || server.process != nil {
		ts.Fatalf("usage: serverup [flags…], once")
	}
	program, err := exec.LookPath("hozo")
	ts.Check(err)
	process := exec.Command(program, append([]string{"up", "--address", "127.0.0.1:0"}, args...)...)
	process.Dir = ts.MkAbs(".")
	process.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TMPDIR=" + ts.Getenv("TMPDIR")}
	out, err := process.StdoutPipe()
	ts.Check(err)
	var log strings.Builder
	process.Stderr = &log
	ts.Check(process.Start())
	server.process = process
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "is ready") {
			return
		}
	}
	_ = process.Wait() // what it said says more
	server.process = nil
	ts.Fatalf("the server is not ready:\n%s", log.String())
}

// serverKillCommand is "serverkill": it kills the server of serverup.
func serverKillCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: serverkill")
	}
	ts.Value("server").(*upServer).stop()
}
