package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test binary the program "hozo" of the scripts, the job process that hozo run starts, and what
// crashPrograms names.
func TestMain(m *testing.M) {
	sandboxExec(os.Args)
	codemodeChild(os.Args)
	programs := crashPrograms()
	programs["hozo"] = main
	testscript.Main(m, programs)
}

// The scripts in testdata/script are the program as its users see it. Those whose names begin with job_ or run_ are part
// of the upgrade gate.

func TestScript(t *testing.T) {
	runScripts(t, func(name string) bool { return !gated(name, "job_", "run_") })
}

func TestSmokeRunScript(t *testing.T) {
	runScripts(t, func(name string) bool { return gated(name, "job_", "run_") })
}

func gated(name string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(filepath.Base(name), prefix) {
			return true
		}
	}
	return false
}

func runScripts(t *testing.T, choose func(name string) bool) {
	t.Parallel()
	all, err := filepath.Glob("../../testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, file := range all {
		if choose(file) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		t.Fatal("no scripts")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODULE", root)
			e.Values["pipes"] = &pipes{}
			e.Defer(e.Values["pipes"].(*pipes).close)
			e.Values["server"] = &upServer{}
			e.Defer(e.Values["server"].(*upServer).stop)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":       codeCommand,
			"mkfifo":     mkfifoCommand,
			"receive":    receiveCommand,
			"serverkill": serverKillCommand,
			"serverup":   serverUpCommand,
			"terminate":  terminateCommand,
		},
		Condition: func(name string) (bool, error) {
			if program, ok := strings.CutPrefix(name, "has:"); ok {
				_, err := exec.LookPath(program)
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
	})
}

// codeCommand is "code N program args…": it runs the program and checks its exit code.
func codeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// mkfifoCommand is "mkfifo file".
func mkfifoCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mkfifo file")
	}
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o600))
}

// receiveCommand is "receive fifo pattern": it reads lines from a named pipe until one fits. The pipe stays open, so that
// its writer does not notice.
func receiveCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: receive fifo pattern")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	lines, err := ts.Value("pipes").(*pipes).open(ts.MkAbs(args[0]))
	ts.Check(err)
	for {
		line, err := lines.ReadString('\n')
		if pattern.MatchString(line) {
			return
		}
		if err != nil {
			ts.Fatalf("the stream ended without a line that fits %s: %v", args[1], err)
		}
	}
}

// terminateCommand is "terminate": it sends SIGTERM to the background program started last.
func terminateCommand(ts *testscript.TestScript, neg bool, args []string) {
	running := ts.BackgroundCmds()
	if neg || len(args) != 0 || len(running) == 0 {
		ts.Fatalf("usage: terminate")
	}
	ts.Check(running[len(running)-1].Process.Signal(syscall.SIGTERM))
}

// pipes are the named pipes that a script reads from.
type pipes struct {
	files   []*os.File
	readers map[string]*bufio.Reader
}

func (p *pipes) open(name string) (*bufio.Reader, error) {
	if r, ok := p.readers[name]; ok {
		return r, nil
	}
	f, err := openPipe(name)
	if err != nil {
		return nil, err
	}
	if p.readers == nil {
		p.readers = map[string]*bufio.Reader{}
	}
	p.files = append(p.files, f)
	p.readers[name] = bufio.NewReader(f)
	return p.readers[name], nil
}

// openPipe opens a named pipe for reading, which lasts until somebody writes to it: for ever, if the program that should
// has failed.
func openPipe(name string) (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	opened := make(chan result, 1)
	go func() {
		f, err := os.Open(name)
		opened <- result{f, err}
	}()
	select {
	case r := <-opened:
		return r.file, r.err
	case <-time.After(20 * time.Second):
		return nil, fmt.Errorf("nobody has opened %s for writing", name)
	}
}

func (p *pipes) close() {
	for _, f := range p.files {
		_, _ = io.Copy(io.Discard, f)
		f.Close()
	}
}
