package jobproc_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
)

// watchPID returns a function that blocks until the process has ended. The process need not be a child.
func watchPID(t *testing.T, pid int) (awaitEnd func()) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
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

func TestSmokeRunReportsAKilledChild(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{}), newSpec("partial"))
	events := h.Events()
	for e := range events {
		if e.Type == job.EventUsage {
			break
		}
	}
	if err := syscall.Kill(h.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var last *job.Event
	for e := range events {
		last = e
	}
	outcome := h.Wait()
	want := &job.FailedData{
		Reason:  job.ReasonError,
		Code:    job.CodeProcessLost,
		Message: "the job process ended without a result: signal: killed",
		Outputs: []string{"a.md", "b.md"},
	}
	got := *outcome.Failed
	details := string(got.Details)
	got.Details = nil
	if d := cmp.Diff(want, &got); d != "" {
		t.Errorf("outcome (-want +got):\n%s", d)
	}
	if !strings.HasPrefix(details, `{"exitCode":-1,"signal":"killed"`) {
		t.Errorf("details: %s", details)
	}
	if outcome.Usage.Requests != 7 || outcome.Usage.CostMicroUSD != 42 {
		t.Errorf("usage: %+v", outcome.Usage)
	}
	if last.Seq != 6 || last.Type != job.EventFailed || last.JobID != "job-1" {
		t.Errorf("last event: %s", last.Line())
	}
}

func TestSmokeCredentialsAreNotInTheReportOfALostChild(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{Grace: 1}), newSpec("partial"))
	var last *job.Event
	for e := range h.Events() {
		if e.Type == job.EventUsage {
			h.Kill()
		}
		last = e
	}
	h.Wait()
	if line := string(last.Line()); strings.Contains(line, "canary") || !strings.Contains(line, `"code":"aborted"`) {
		t.Errorf("last event: %s", line)
	}
}

func TestSmokeCredentialsAreNotInProc(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{}), newSpec("wait"))
	for _, name := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", h.PID(), name))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 || strings.Contains(string(text), "canary") {
			t.Errorf("%s: %q", name, text)
		}
	}
	h.Abort("done")
	h.Wait()
}

func TestKilledParentTakesItsChildAlong(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Args = []string{"hozo", "parent"}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(bufio.NewReader(out), &pid); err != nil {
		t.Fatal(err)
	}
	awaitEnd := watchPID(t, pid)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitEnd()
	if err := parent.Wait(); err == nil {
		t.Error("the parent was not killed")
	}
}

func TestEndOfInputEndsAChildThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Args = []string{"hozo", "job", "--supervised"}
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, `{"type":"spec","spec":{"id":"job-1","task":"tree"}}`)
	lines := bufio.NewScanner(out)
	lines.Scan() // job.started
	lines.Scan()
	e, err := job.ParseEvent(lines.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	ends := watchAll(t, e.Data.(*job.MessageData).Text)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for _, awaitEnd := range ends {
		awaitEnd()
	}
	if err := child.Wait(); err == nil {
		t.Error("the child ended well")
	}
}

func watchAll(t *testing.T, pids string) []func() {
	t.Helper()
	var ends []func()
	for text := range strings.FieldsSeq(pids) {
		var pid int
		if _, err := fmt.Sscan(text, &pid); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, watchPID(t, pid))
	}
	if len(ends) != 3 {
		t.Fatalf("%d processes in %q", len(ends), pids)
	}
	return ends
}

func TestNoProcessOfAKilledJobIsLeft(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{Grace: 1}), newSpec("tree"))
	events := h.Events()
	<-events
	ends := watchAll(t, (<-events).Data.(*job.MessageData).Text)
	h.Abort("enough")
	h.Discard()
	if outcome := h.Wait(); outcome.Failed == nil || outcome.Failed.Reason != job.ReasonAborted {
		t.Errorf("outcome: %+v", outcome)
	}
	for _, awaitEnd := range ends {
		awaitEnd()
	}
}

func TestNoProcessOfACompletedJobIsLeft(t *testing.T) {
	t.Parallel()
	_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{}), newSpec("tree end")))
	for text := range strings.FieldsSeq(outcome.Completed.Answer) {
		var pid int
		if _, err := fmt.Sscan(text, &pid); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue // gone and reaped
		}
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		watchPID(t, pid)()
	}
}

func TestChildOutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, jobproc.Config{})
	started := make(chan job.Handle)
	go func() {
		// The thread dies with this goroutine, which never unlocks it.
		runtime.LockOSThread()
		h, err := rt.Start(t.Context(), newSpec("wait"), job.Ports{})
		if err != nil {
			t.Error(err)
			close(started)
			return
		}
		started <- h
	}()
	h, ok := <-started
	if !ok {
		return
	}
	h.Abort("enough")
	if f := h.Wait().Failed; f == nil || f.Code != job.CodeAborted || f.Message != "enough" || f.Details != nil {
		t.Errorf("outcome: %+v", f)
	}
}
