package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hozo-run/hozo/job"
)

// jobProcess returns the number of the job process that works in dir.
func jobProcess(t *testing.T, dir string) int {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		where, err := os.Readlink(process + "/cwd")
		if err != nil || where != dir {
			continue
		}
		if arguments, err := os.ReadFile(process + "/cmdline"); err == nil && bytes.Contains(arguments, []byte("--supervised")) {
			pid, err := strconv.Atoi(filepath.Base(process))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("no job process was found")
	return 0
}

func TestSmokeRunReportsALostJobProcess(t *testing.T) {
	t.Parallel()
	dir := plant(t, map[string]string{"agent.md": agentFile, "src/a.txt": "hello", "script.yaml": `responses:
  - parts:
      - call: {name: write, arguments: {path: notes.md, content: hello}}
  - {text: Let me see., chunkBytes: 3, stall: {afterDeltas: 1}}
`})
	command := hozo(t, dir, nil, "run", "agent.md", "Go.", "--script", "script.yaml", "--workspace", "src", "--out", "out", "--json")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), `"type":"message.delta"`) {
	}
	if err := syscall.Kill(jobProcess(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the program ended with %v", err)
	}
	e, err := job.ParseEvent([]byte(last))
	if err != nil {
		t.Fatal(err)
	}
	failed, ok := e.Data.(*job.FailedData)
	if !ok || failed.Reason != job.ReasonError || failed.Code != job.CodeProcessLost || len(failed.Outputs) != 1 || failed.Outputs[0] != "notes.md" {
		t.Errorf("the last event is %s", last)
	}
	var details struct{ Signal string }
	if err := json.Unmarshal(failed.Details, &details); err != nil || details.Signal != "killed" {
		t.Errorf("details %s", failed.Details)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "hozo-job-*")); err != nil || len(left) != 0 {
		t.Errorf("the private directory is left: %v %v", left, err)
	}
}
