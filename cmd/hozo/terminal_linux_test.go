package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a new terminal of 100 columns.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	var number int
	raw, err := ours.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(raw.Control(func(fd uintptr) {
		unlock := unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		err = errors.Join(unlock, err, unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}))
	}), err)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// onTerminal runs the program with a terminal for its three streams and returns what it wrote. When the terminal shows
// trigger, keys are typed.
func onTerminal(t *testing.T, c *exec.Cmd, trigger, keys string) (string, int) {
	t.Helper()
	ours, theirs := openTerminal(t)
	c.Stdin, c.Stdout, c.Stderr = theirs, theirs, theirs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	var shown bytes.Buffer
	piece := make([]byte, 4096)
	for {
		n, err := ours.Read(piece)
		shown.Write(piece[:n])
		if keys != "" && strings.Contains(shown.String(), trigger) {
			if _, err := io.WriteString(ours, keys); err != nil {
				t.Fatal(err)
			}
			keys = ""
		}
		if err != nil {
			break // EIO: the last process with the terminal has ended
		}
	}
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](c.Wait()); ok {
		code = exit.ExitCode()
	}
	return shown.String(), code
}

const evilScript = `responses:
  - parts:
      - text: "Let me\e]0;title\a see."
      - call: {name: read, arguments: {path: a.txt}}
  - text: "The answer\e[2J."
`

func terminalRun(t *testing.T, script string, env ...string) *exec.Cmd {
	t.Helper()
	dir := plant(t, map[string]string{"agent.md": agentFile, "src/a.txt": "hello", "script.yaml": script})
	return hozo(t, dir, env, "run", "agent.md", "Go.", "--script", "script.yaml", "--workspace", "src", "--out", "out")
}

func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env             []string
		colours, status bool
	}{
		"colours":         {[]string{"TERM=xterm"}, true, true},
		"NO_COLOR":        {[]string{"TERM=xterm", "NO_COLOR=1"}, false, true},
		"a dumb terminal": {[]string{"TERM=dumb"}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown, code := onTerminal(t, terminalRun(t, evilScript, test.env...), "", "")
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
			for _, want := range []string{"a script, no language model", `Let me\x1b]0;title\x07 see.`, "read: ", "completed", `The answer\x1b[2J.`} {
				if !strings.Contains(shown, want) {
					t.Errorf("%q is not shown in %q", want, shown)
				}
			}
			rest := strings.ReplaceAll(shown, "\r\x1b[2K", "")
			if (rest != shown) != test.status || strings.Contains(shown, "· turn 1 ·") != test.status {
				t.Errorf("status line: %q", shown)
			}
			plain := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "").Replace(rest)
			if (plain != rest) != test.colours {
				t.Errorf("colours: %q", shown)
			}
			if strings.Contains(plain, "\x1b") {
				t.Errorf("a foreign control sequence is left: %q", plain)
			}
			for _, drawn := range strings.Split(shown, "\r\x1b[2K") {
				line, _, _ := strings.Cut(strings.TrimPrefix(drawn, "\x1b[2m"), "\x1b")
				if strings.Contains(line, "· turn") && !strings.Contains(line, "\n") && utf8.RuneCountInString(line) > 99 {
					t.Errorf("the status line does not fit: %q", line)
				}
			}
		})
	}
}

func TestSmokeRunCtrlCOnATerminal(t *testing.T) {
	t.Parallel()
	const stalls = "responses:\n  - {text: Let me see., chunkBytes: 3, stall: {afterDeltas: 1}}\n"
	shown, code := onTerminal(t, terminalRun(t, stalls, "TERM=xterm"), "waiting for the script", "\x03")
	if code != 130 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(shown, "aborting the job; once more kills it") || !strings.Contains(shown, "failed: aborted: ") || !strings.Contains(shown, "cost: none") {
		t.Errorf("shown: %q", shown)
	}
}
