package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// gatedJob plants an agent whose command ends when the file src/gate is there.
func gatedJob(t *testing.T) string {
	t.Helper()
	return plant(t, map[string]string{"agent.md": agentFile, "src/a.txt": "hello\n", "script.yaml": `responses:
  - parts: [{call: {name: write, arguments: {path: notes.md, content: "half\n"}}}]
  - parts: [{call: {name: shell, arguments: {command: "while [ ! -e gate ]; do sleep 0.01; done; echo open"}}}]
  - text: "Done: {{ lastResult }}"
`})
}

// journaled starts a job with a journal and returns it with its standard error, read up to where its command runs.
func journaled(t *testing.T, dir string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	command := hozo(t, dir, nil, "run", "agent.md", "Go.", "--script", "script.yaml", "--workspace", "src", "--out", "out", "--journal", "run.journal",
		"--events", "events")
	if err := syscall.Mkfifo(filepath.Join(dir, "events"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	events, err := os.Open(filepath.Join(dir, "events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { events.Close() })
	lines := bufio.NewReader(events)
	await(t, lines, `"tool":"shell"`)
	go io.Copy(io.Discard, lines)
	return command, bufio.NewReader(log)
}

// await reads lines until one holds the text.
func await(t *testing.T, lines *bufio.Reader, text string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("the stream ended without %q: %v", text, err)
		}
	}
}

// ends waits for a command with the rest of its log.
func ends(t *testing.T, command *exec.Cmd, log *bufio.Reader) (int, string) {
	t.Helper()
	rest, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err == nil {
		return 0, string(rest)
	}
	return command.ProcessState.ExitCode(), string(rest)
}

func signalTo(t *testing.T, command *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := command.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestASignalSuspendsAJobWithAJournal(t *testing.T) {
	t.Parallel()
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			dir := gatedJob(t)
			command, log := journaled(t, dir)
			signalTo(t, command, s)
			await(t, log, "suspending the job as soon as its calls have answered; once more aborts it")
			if err := os.WriteFile(filepath.Join(dir, "src", "gate"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if code, rest := ends(t, command, log); code != 8 || !strings.Contains(rest, "go on with: hozo resume run.journal\n") {
				t.Fatalf("exit code %d:\n%s", code, rest)
			}
			// The rest of the job may be done elsewhere, where the output directory has its name.
			moved := filepath.Join(dir, "moved")
			if err := os.MkdirAll(moved, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "src"), filepath.Join(moved, "src")); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
				t.Fatal(err)
			}
			_, stderr, code := finished(t, hozo(t, dir, nil, "resume", "run.journal", "--workspace", "moved/src", "--out", "moved/elsewhere"))
			if code != 2 || !strings.Contains(stderr, `knows its output directory as "out"`) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			stdout, stderr, code := finished(t, hozo(t, dir, nil, "resume", "run.journal", "--workspace", "moved/src", "--out", "moved/out"))
			if code != 0 || stdout != "Done: open\n" || !strings.Contains(stderr, "resumed in turn 3, attempt 2") {
				t.Errorf("exit code %d, answer %q:\n%s", code, stdout, stderr)
			}
			if text, err := os.ReadFile(filepath.Join(moved, "out", "notes.md")); err != nil || string(text) != "half\n" {
				t.Errorf("notes.md is %q, %v", text, err)
			}
		})
	}
}

func TestTheSecondSignalAbortsAJobWithAJournal(t *testing.T) {
	t.Parallel()
	dir := gatedJob(t)
	command, log := journaled(t, dir)
	signalTo(t, command, os.Interrupt)
	await(t, log, "suspending the job")
	signalTo(t, command, os.Interrupt)
	if code, rest := ends(t, command, log); code != 130 || !strings.Contains(rest, "failed: aborted") {
		t.Fatalf("exit code %d:\n%s", code, rest)
	}
	if _, stderr, code := finished(t, hozo(t, dir, nil, "resume", "run.journal")); code != 2 || !strings.Contains(stderr, "already ended as failed: aborted") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestAJournalInUseIsNotResumed(t *testing.T) {
	t.Parallel()
	dir := gatedJob(t)
	command, log := journaled(t, dir)
	_, stderr, code := finished(t, hozo(t, dir, nil, "resume", "run.journal"))
	if code != 2 || !strings.Contains(stderr, "in use by process ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "gate"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, rest := ends(t, command, log); code != 0 {
		t.Errorf("exit code %d:\n%s", code, rest)
	}
}
