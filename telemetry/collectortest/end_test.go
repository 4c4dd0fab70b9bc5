package collectortest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// stalled is a model that says half of something and then nothing.
const stalled = `{"responses": [{"text": "half of an answer", "chunkBytes": 4, "stall": {"afterDeltas": 2}}]}`

// started starts the program and returns when its job has said something.
func started(t *testing.T, env []string, stdin []byte, args ...string) (command *exec.Cmd, finish func() string) {
	t.Helper()
	command = exec.Command(program(t), args...)
	command.Env = append([]string{"TMPDIR=" + t.TempDir()}, env...)
	command.Stdin = bytes.NewReader(stdin)
	var log bytes.Buffer
	command.Stderr = &log
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.Contains(lines.Text(), `"message.delta"`) {
	}
	return command, func() string {
		for lines.Scan() {
		}
		_ = command.Wait() // the job did not succeed, and so the program has an exit code
		return log.String()
	}
}

// checkEnded expects a job and its turn that ended with a status.
func checkEnded(t *testing.T, all taken, log, code string, interrupted bool) {
	t.Helper()
	if len(all.spans) < 2 {
		t.Fatalf("spans %q\n%s", all.tree(), log)
	}
	for _, s := range all.spans {
		if s.Status().Code() != 2 || s.EndTimestamp() < s.StartTimestamp() {
			t.Errorf("%s ended with status %s", s.Name(), s.Status().Code())
		}
		if strings.HasPrefix(s.Name(), "invoke_agent") {
			_, cut := s.Attributes().Get("hozo.interrupted")
			if s.Status().Message() != code || cut != interrupted {
				t.Errorf("%s ended with %q, interrupted %t", s.Name(), s.Status().Message(), cut)
			}
		}
	}
	all.span(t, "turn")
}

func TestAbortedJobEndsItsSpans(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	command, finish := started(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address}, document(t, stalled, nil), "job")
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	log := finish()
	all, _ := c.end(t)
	checkEnded(t, all, log, "aborted", false)
}

func TestKilledJobProcessEndsItsSpans(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the job process is found by /proc")
	}
	c := startCollector(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"agent.md": "---\nname: agent\ndescription: Works.\n---\nAnswer.\n", "script.json": stalled} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command, finish := started(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address}, nil, "run", filepath.Join(dir, "agent.md"), "Look.", "--json",
		"--script", filepath.Join(dir, "script.json"), "--workspace", t.TempDir(), "--out", filepath.Join(t.TempDir(), "out"))
	kill(t, command.Process.Pid)
	log := finish()
	all, _ := c.end(t)
	checkEnded(t, all, log, "process-lost", true)
}

// kill kills the children of a process.
func kill(t *testing.T, parent int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range strings.Fields(string(data)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	if killed == 0 {
		t.Fatal("there is no job process")
	}
}
