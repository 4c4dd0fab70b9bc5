package jobproc_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/problem"
)

// safeBuffer is a buffer that several jobs may write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newRuntime(t *testing.T, c jobproc.Config) *jobproc.Runtime {
	t.Helper()
	rt, err := jobproc.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func start(t *testing.T, rt *jobproc.Runtime, spec *job.Spec) *jobproc.Handle {
	t.Helper()
	h, err := rt.Start(t.Context(), spec, job.Ports{})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return h.(*jobproc.Handle)
}

// collect reads every event and the outcome, and checks what every stream must be.
func collect(t *testing.T, h job.Handle) ([]*job.Event, job.Outcome) {
	t.Helper()
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i+1, e.Seq)
		}
		if last := i == len(events)-1; e.Type.Terminal() != last {
			t.Errorf("event %d of %d has type %q", i+1, len(events), e.Type)
		}
	}
	if (outcome.Completed == nil) == (outcome.Failed == nil) {
		t.Errorf("the outcome is %+v; exactly one end must be set", outcome)
	}
	return events, outcome
}

func TestRunsAJobInAChild(t *testing.T) {
	t.Parallel()
	spec := newSpec("answer forty-two")
	spec.Metadata = map[string]json.RawMessage{"note": json.RawMessage(`{"a": "<&>"}`)}
	events, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{}), spec))
	if outcome.Completed == nil || outcome.Completed.Answer != "forty-two" {
		t.Fatalf("outcome: %+v", outcome)
	}
	if d := cmp.Diff(map[string]json.RawMessage{"note": json.RawMessage(`{"a":"<&>"}`)}, events[0].Data.(*job.StartedData).Metadata); d != "" {
		t.Errorf("metadata on job.started (-want +got):\n%s", d)
	}
}

func TestRefusalListsEveryProblemOfTheChild(t *testing.T) {
	t.Parallel()
	_, err := newRuntime(t, jobproc.Config{}).Start(t.Context(), newSpec(""), job.Ports{})
	if problem.KindOf(err) != problem.Invalid {
		t.Fatalf("error %v of kind %q", err, problem.KindOf(err))
	}
	want := problem.List{
		{Code: "required", Pointer: "/task", Message: "the task is empty"},
		{Code: "required", Pointer: "/model/id", Message: "the model is missing"},
	}
	if d := cmp.Diff(want, problem.Of(err)); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func TestErrorOfTheChildKeepsItsKind(t *testing.T) {
	t.Parallel()
	_, err := newRuntime(t, jobproc.Config{}).Start(t.Context(), newSpec("unavailable"), job.Ports{})
	if problem.KindOf(err) != problem.Unavailable || !strings.Contains(err.Error(), "no file descriptors left") {
		t.Errorf("error %v of kind %q", err, problem.KindOf(err))
	}
}

func TestSpecTravelsOnlyOnStandardInput(t *testing.T) {
	t.Parallel()
	_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{}), newSpec("environment")))
	var got struct{ Args, Env []string }
	if err := json.Unmarshal([]byte(outcome.Completed.Answer), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"hozo", "job", "--supervised"}, got.Args); d != "" {
		t.Errorf("arguments (-want +got):\n%s", d)
	}
	if len(got.Env) != 1 || !strings.HasPrefix(got.Env[0], "TMPDIR=") {
		t.Fatalf("environment: %q", got.Env)
	}
	if _, err := os.Stat(strings.TrimPrefix(got.Env[0], "TMPDIR=")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the private directory is still there: %v", err)
	}
}

func TestTraceOfTheContextIsAnArgument(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	h, err := newRuntime(t, jobproc.Config{Arguments: []string{"--quiet"}}).Start(job.WithTrace(t.Context(), trace), newSpec("environment"), job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	_, outcome := collect(t, h)
	var got struct{ Args []string }
	if err := json.Unmarshal([]byte(outcome.Completed.Answer), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"hozo", "job", "--supervised", "--quiet", "--traceparent=" + trace}, got.Args); d != "" {
		t.Errorf("arguments (-want +got):\n%s", d)
	}
}

func TestTmpDirOfTheSpecIsUsedAndKept(t *testing.T) {
	t.Parallel()
	spec := newSpec("environment")
	spec.Workspace.TmpDir = filepath.Join(t.TempDir(), "tmp")
	if err := os.Mkdir(spec.Workspace.TmpDir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{}), spec))
	if !strings.Contains(outcome.Completed.Answer, `"TMPDIR=`+spec.Workspace.TmpDir) {
		t.Errorf("environment: %s", outcome.Completed.Answer)
	}
	if _, err := os.Stat(spec.Workspace.TmpDir); err != nil {
		t.Errorf("the caller's directory was removed: %v", err)
	}
}

func TestAbortEndsTheJobWithItsCause(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{}), newSpec("wait"))
	h.Abort("enough")
	h.Abort("a second cause")
	_, outcome := collect(t, h)
	if f := outcome.Failed; f == nil || f.Reason != job.ReasonAborted || f.Message != "enough" {
		t.Errorf("outcome: %+v", outcome)
	}
}

func TestEndOfContextAbortsWithItsCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	h, err := newRuntime(t, jobproc.Config{}).Start(ctx, newSpec("wait"), job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	cancel(errors.New("the shop closes"))
	_, outcome := collect(t, h)
	if f := outcome.Failed; f == nil || f.Reason != job.ReasonAborted || f.Message != "the shop closes" {
		t.Errorf("outcome: %+v", outcome)
	}
}

func TestJobThatFinishesDuringAnAbortKeepsItsOwnEnd(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{}), newSpec("late"))
	h.Abort("too late")
	_, outcome := collect(t, h)
	if outcome.Completed == nil || outcome.Completed.Answer != "in time after all" {
		t.Errorf("outcome: %+v", outcome)
	}
}

func TestChildThatDoesNotAnswerIsKilled(t *testing.T) {
	t.Parallel()
	soon := jobproc.Config{Grace: 20 * time.Millisecond}
	patient := jobproc.Config{Grace: time.Hour}
	tests := map[string]struct {
		config jobproc.Config
		task   string
		limit  float64
		end    func(*jobproc.Handle)
		want   job.FailedData
	}{
		"abort": {soon, "deaf", 600, func(h *jobproc.Handle) { h.Abort("enough") },
			job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted, Message: "enough"}},
		"time limit": {soon, "deaf", 0.02, func(*jobproc.Handle) {},
			job.FailedData{Reason: job.ReasonTimeout, Code: job.CodeTimeout, Message: "the job process did not end at its time limit and was killed"}},
		"kill": {patient, "deaf", 600, (*jobproc.Handle).Kill,
			job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted, Message: "the job was killed"}},
		"kill during an abort": {patient, "deaf", 600, func(h *jobproc.Handle) { h.Abort("enough"); h.Kill(); h.Kill() },
			job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(test.task)
			spec.Limits.TimeoutSec = test.limit
			h := start(t, newRuntime(t, test.config), spec)
			test.end(h)
			_, outcome := collect(t, h)
			f := outcome.Failed
			if f == nil || f.Reason != test.want.Reason || f.Code != test.want.Code || test.want.Message != "" && f.Message != test.want.Message {
				t.Fatalf("outcome: %+v", f)
			}
			var details struct{ Signal string }
			if err := json.Unmarshal(f.Details, &details); err != nil || details.Signal != "killed" {
				t.Errorf("details %s: %v", f.Details, err)
			}
		})
	}
}

func TestChildThatLingersAfterItsEndIsKilled(t *testing.T) {
	t.Parallel()
	_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{Grace: 20 * time.Millisecond}), newSpec("linger")))
	if outcome.Completed == nil || outcome.Completed.Answer != "done" {
		t.Errorf("outcome: %+v", outcome)
	}
}

func TestBrokenProtocolIsALostProcessWithItsCause(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"garbage":      "line 2 of the job process: parse event: invalid character",
		"gap":          "the job process sent event 3 after event 1",
		"repeat":       "the job process sent event 1 after event 1",
		"stranger":     "event 2 of the job process is of another job",
		"late-refusal": "line 2 of the job process: parse event: seq is missing",
		"oversize":     "a line is longer than its limit of 16777216 bytes",
		"half":         "the job process ended in the middle of a line: exit status 0",
		"exit":         "the job process ended without a result: exit status 7",
		"suicide":      "the job process ended without a result: signal: killed",
	}
	for task, want := range tests {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{Grace: time.Hour}), newSpec(task)))
			f := outcome.Failed
			if f == nil || f.Reason != job.ReasonError || f.Code != job.CodeProcessLost || !strings.Contains(f.Message, want) {
				t.Errorf("outcome: %+v, want message %q", f, want)
			}
		})
	}
}

func TestProcessThatNeverStartsItsJobIsAnError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config jobproc.Config
		want   string
	}{
		"stillborn": {jobproc.Config{}, "exit status 66; its log ends in: cannot start: [redacted]"},
		"mute":      {jobproc.Config{StartTimeout: 10 * time.Millisecond}, "did not answer within 10ms and was killed"},
		"foreign":   {jobproc.Config{}, "broke its protocol"},
		"no-start":  {jobproc.Config{}, `began with an event of type "message"`},
	}
	for task, test := range tests {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			_, err := newRuntime(t, test.config).Start(t.Context(), newSpec(task), job.Ports{})
			if problem.KindOf(err) != problem.Unavailable || !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("error: %v, want %q", err, test.want)
			}
		})
	}
}

func TestCancelledStartEndsTheProcess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("never mind"))
	_, err := newRuntime(t, jobproc.Config{Grace: 10 * time.Millisecond}).Start(ctx, newSpec("mute"), job.Ports{})
	if problem.KindOf(err) != problem.Unavailable || !strings.Contains(fmt.Sprint(err), "never mind") {
		t.Errorf("error: %v", err)
	}
}

func TestMissingProgramIsAnError(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, jobproc.Config{Executable: filepath.Join(t.TempDir(), "missing")})
	_, err := rt.Start(t.Context(), newSpec("answer"), job.Ports{})
	if problem.KindOf(err) != problem.Unavailable || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error: %v", err)
	}
}

func TestSlowReaderHoldsTheChildBackAndGetsEverything(t *testing.T) {
	t.Parallel()
	const n = 2000 // two megabytes, far more than pipes hold
	spec := newSpec(fmt.Sprintf("count %d", n))
	h := start(t, newRuntime(t, jobproc.Config{Grace: time.Hour}), spec)
	events := h.Events()
	<-events
	exited := make(chan job.Outcome, 1)
	go func() { exited <- h.Wait() }()
	select {
	case <-exited:
		t.Fatal("the job ended although nobody read its events")
	default:
	}
	count := 1
	for range events {
		count++
	}
	if outcome := <-exited; count != n+2 || outcome.Completed == nil {
		t.Errorf("%d events, want %d; outcome %+v", count, n+2, outcome)
	}
}

func TestDiscardLetsTheJobGoOn(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{}), newSpec("count 2000"))
	<-h.Events()
	h.Discard()
	h.Discard()
	if outcome := h.Wait(); outcome.Completed == nil {
		t.Errorf("outcome: %+v", outcome)
	}
}

func TestWaitAloneDiscardsTheEvents(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{}), newSpec("count 2000"))
	if outcome := h.Wait(); outcome.Completed == nil {
		t.Errorf("outcome: %+v", outcome)
	}
}

func TestSmokeCredentialsAreTakenOutOfLogs(t *testing.T) {
	t.Parallel()
	var logs safeBuffer
	_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{Logs: &logs}), newSpec("log")))
	if outcome.Completed == nil {
		t.Fatalf("outcome: %+v", outcome)
	}
	lines := strings.Split(logs.String(), "\n")
	if lines[0] != "key [redacted]" {
		t.Errorf("first line: %q", lines[0])
	}
	if want := strings.Repeat("y", 100); !strings.Contains(lines[1], want) || !strings.HasSuffix(lines[1], " [cut]") {
		t.Errorf("second line: %.40q…%q", lines[1], lines[1][max(0, len(lines[1])-40):])
	}
	if strings.Contains(logs.String(), "sk-") {
		t.Error("a part of the key is in the log")
	}
}

func TestLogsAreBounded(t *testing.T) {
	t.Parallel()
	var logs safeBuffer
	_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{Logs: &logs}), newSpec("flood")))
	if outcome.Completed == nil {
		t.Fatalf("outcome: %+v", outcome)
	}
	if text := logs.String(); len(text) > 1<<20+200 || !strings.HasSuffix(text, "the rest is dropped\n") {
		t.Errorf("%d bytes of log, ending in %q", len(text), text[max(0, len(text)-80):])
	}
}

func TestSmokeCredentialsHaveNoSpellingThatSurvives(t *testing.T) {
	t.Parallel()
	spec := &job.Spec{
		Providers: map[string]job.ProviderConfig{
			"a": {APIKey: canary, BaseURL: "https://someone:hunter2@example.com/v1?key=q%2Fvalue&x=1"},
			"b": {Headers: map[string]string{"Authorization": "Bearer headertoken", "X-Short": "no"}},
		},
		MCP: &job.MCP{Servers: []job.MCPServer{{Headers: map[string]string{"X-Key": "mcptoken"}}}},
	}
	r := jobproc.NewRedactor(spec)
	html, err := json.Marshal(canary)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"raw":                     canary,
		"JSON":                    string(html),
		"query escape":            url.QueryEscape(canary),
		"path escape":             url.PathEscape(canary),
		"base64":                  base64.StdEncoding.EncodeToString([]byte(canary)),
		"base64 for URLs":         base64.RawURLEncoding.EncodeToString([]byte(canary)),
		"basic authorization":     base64.StdEncoding.EncodeToString([]byte("someone:" + canary)),
		"base64 at offset one":    base64.StdEncoding.EncodeToString([]byte("a" + canary + "b")),
		"base64 at offset two":    base64.StdEncoding.EncodeToString([]byte("ab" + canary)),
		"userinfo":                "https://someone:hunter2@example.com/",
		"query value":             "q/value",
		"query as written":        "key=q%2Fvalue",
		"header":                  "Bearer headertoken",
		"header without a scheme": "headertoken",
		"MCP header":              "mcptoken",
	}
	secrets := []string{canary, "hunter2", "q/value", "q%2Fvalue", "headertoken", "mcptoken", string(html)}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.Redact("before " + text + " after")
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, "[redacted]") {
				t.Errorf("got %q", got)
			}
			for _, s := range secrets {
				if strings.Contains(got, s) {
					t.Errorf("%q is in %q", s, got)
				}
			}
			if strings.HasPrefix(name, "base64") || name == "basic authorization" {
				if kept := len(got) - len("before [redacted] after"); kept > 2*4+len("someone:")*4/3+4 {
					t.Errorf("%d characters of the encoding are left: %q", kept, got)
				}
			}
		})
	}
	if got := r.Redact("no secret here"); got != "no secret here" {
		t.Errorf("a placeholder of two bytes was replaced: %q", got)
	}
}

func TestLargeSpecsAndLargeEventsPass(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("all work and no play\n", 1<<18) // five megabytes, on one line
	_, outcome := collect(t, start(t, newRuntime(t, jobproc.Config{}), newSpec("answer "+text)))
	if outcome.Completed == nil || outcome.Completed.Answer != text {
		t.Errorf("outcome: %.200v", outcome)
	}
}

func TestManyJobsAtOnceDoNotMix(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, jobproc.Config{})
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			spec := newSpec(fmt.Sprintf("answer %d", i))
			spec.ID = fmt.Sprintf("job-%d", i)
			h, err := rt.Start(t.Context(), spec, job.Ports{})
			if err != nil {
				t.Error(err)
				return
			}
			for e := range h.Events() {
				if e.JobID != spec.ID {
					t.Errorf("an event of %s reached %s", e.JobID, spec.ID)
				}
			}
			if outcome := h.Wait(); outcome.Completed == nil || outcome.Completed.Answer != fmt.Sprint(i) {
				t.Errorf("%s: %+v", spec.ID, outcome)
			}
		})
	}
	all.Wait()
}

func TestWaitMayBeCalledBySeveral(t *testing.T) {
	t.Parallel()
	h := start(t, newRuntime(t, jobproc.Config{}), newSpec("answer yes"))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if outcome := h.Wait(); outcome.Completed == nil || outcome.Completed.Answer != "yes" {
				t.Errorf("outcome: %+v", outcome)
			}
		})
	}
	all.Wait()
	h.Abort("too late")
	h.Kill()
}
