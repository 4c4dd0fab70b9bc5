// Package jobtest is the suite that every job.Runtime passes, whether it runs jobs in this process or in another one. It
// states what callers may rely on: the shape of the event stream, how it relates to the outcome, what a refusal is, how a
// job ends when it is told to, and how it goes on from its journal. The jobs of the suite are played by the scripted
// provider and have no tools, so a runtime needs no more than that adapter and a file system to pass.
package jobtest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// Setup says what to test.
type Setup struct {
	// New returns the runtime under test, with an adapter for job.APIScripted. It is called once for each test of the
	// suite; the tests run in parallel.
	New func() job.Runtime
}

// Exercise runs the suite.
func Exercise(t *testing.T, setup Setup) {
	t.Helper()
	t.Run("stream", func(t *testing.T) { t.Parallel(); exerciseStream(t, setup) })
	t.Run("end", func(t *testing.T) { t.Parallel(); exerciseEnd(t, setup) })
	t.Run("abort", func(t *testing.T) { t.Parallel(); exerciseAbort(t, setup) })
	t.Run("handle", func(t *testing.T) { t.Parallel(); exerciseHandle(t, setup) })
	t.Run("journal", func(t *testing.T) { t.Parallel(); exerciseJournal(t, setup) })
	t.Run("refusal", func(t *testing.T) { t.Parallel(); exerciseRefusal(t, setup) })
}

// The scripts of the suite, in the format of the scripted provider.
const (
	answers = `{"responses": [{"text": "Twelve files, all of them small.", "chunkBytes": 3}]}`
	// stalls says a word and then nothing until the request is given up.
	stalls = `{"responses": [{"text": "Let me see, that is a long list", "chunkBytes": 4, "stall": {"afterDeltas": 1}}]}`
	// refuses fails in a way that is never retried.
	refuses = `{"responses": [{"error": {"class": "auth", "status": 401, "message": "no such key"}}]}`
	// wanders calls a tool that does not exist, with other arguments each time.
	wanders = `{"responses": [
		{"parts": [{"text": "First."}, {"call": {"name": "teleport", "arguments": {"to": "a"}}}]},
		{"parts": [{"call": {"name": "teleport", "arguments": {"to": "b"}}}, {"call": {"name": "teleport", "arguments": {"to": "c"}}}]},
		{"text": "I cannot."}]}`
)

// newSpec returns a spec without tools whose model plays script, with directories of its own.
func newSpec(t *testing.T, script string) *job.Spec {
	t.Helper()
	dir := t.TempDir()
	source, out := filepath.Join(dir, "source"), filepath.Join(dir, "out")
	for _, d := range []string{source, out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &job.Spec{
		APIVersion: job.APIVersion,
		ID:         "job-1",
		Agent:      job.Definition{ID: "counter", Version: "7", Instructions: "Count.", Tools: []string{}},
		Task:       "How many files are there?",
		Model:      job.ModelRef{Provider: "test", ID: "actor"},
		Providers:  map[string]job.ProviderConfig{"test": {API: job.APIScripted, Script: json.RawMessage(script)}},
		Workspace:  job.Workspace{Root: dir, ReadOnly: []string{source}, OutDir: out},
		Limits:     job.Limits{TimeoutSec: 60},
	}
}

// start starts a job and makes sure that it has ended when the test does.
func start(ctx context.Context, t *testing.T, setup Setup, spec *job.Spec) job.Handle {
	t.Helper()
	handle, err := setup.New().Start(ctx, spec, job.Ports{})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		handle.Abort("the test is over")
		handle.Discard()
		handle.Wait()
	})
	return handle
}

// collect reads a stream to its end and checks what holds for every stream.
func collect(t *testing.T, handle job.Handle) ([]*job.Event, job.Outcome) {
	t.Helper()
	var events []*job.Event
	for e := range handle.Events() {
		events = append(events, e)
	}
	outcome := handle.Wait()
	checkStream(t, events)
	checkOutcome(t, events, outcome)
	return events, outcome
}

func checkStream(t *testing.T, events []*job.Event) {
	t.Helper()
	if len(events) < 2 {
		t.Fatalf("the stream has %d events", len(events))
	}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i+1, e.Seq)
		}
		if first := e.Type == job.EventStarted; first != (i == 0) {
			t.Errorf("event %d is %s", i+1, e.Type)
		}
		if last := i == len(events)-1; e.Type.Terminal() != last {
			t.Errorf("event %d of %d is %s", i+1, len(events), e.Type)
		}
		if e.JobID == "" || e.JobID != events[0].JobID {
			t.Errorf("event %d is of job %q, the first is of %q", e.Seq, e.JobID, events[0].JobID)
		}
		if i > 0 && e.At.Before(events[i-1].At) {
			t.Errorf("event %d happened before the one ahead of it", e.Seq)
		}
		if payload, ok := e.Data.(job.EventPayload); !ok || payload.EventType() != e.Type {
			t.Errorf("event %d of type %s has data of type %T", e.Seq, e.Type, e.Data)
		}
		read, err := job.ParseEvent(e.Line())
		if err != nil {
			t.Fatalf("event %d cannot be read back: %v", e.Seq, err)
		}
		if read.Seq != e.Seq || !read.At.Equal(e.At) || read.JobID != e.JobID || read.Type != e.Type || read.ParentCallID != e.ParentCallID {
			t.Errorf("event %d is encoded as another one: %s", e.Seq, e.Line())
		}
	}
}

// checkOutcome compares the outcome with the terminal event and the last usage.
func checkOutcome(t *testing.T, events []*job.Event, outcome job.Outcome) {
	t.Helper()
	if (outcome.Completed == nil) == (outcome.Failed == nil) {
		t.Fatalf("the outcome must have exactly one end: %+v", outcome)
	}
	var end any = outcome.Completed
	if outcome.Failed != nil {
		end = outcome.Failed
	}
	if diff := cmp.Diff(encoded(t, events[len(events)-1].Data), encoded(t, end)); diff != "" {
		t.Errorf("the outcome differs from the terminal event (-event +outcome):\n%s", diff)
	}
	var total job.TotalUsage
	for _, e := range events {
		if usage, ok := e.Data.(*job.UsageData); ok {
			total = usage.Total
		}
	}
	if diff := cmp.Diff(total.Tokens, outcome.Usage.Tokens); diff != "" {
		t.Errorf("the outcome's tokens differ from the last usage event (-event +outcome):\n%s", diff)
	}
}

// encoded is the form of a value as JSON, which does not tell nil from empty where the contract does not.
func encoded(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

// ofType returns the data of every event with data of type D.
func ofType[D any](events []*job.Event) []*D {
	var found []*D
	for _, e := range events {
		if data, ok := e.Data.(*D); ok {
			found = append(found, data)
		}
	}
	return found
}

// wantFailed checks an outcome that is no success.
func wantFailed(t *testing.T, outcome job.Outcome, reason job.Reason, code string, exit int) *job.FailedData {
	t.Helper()
	if outcome.Failed == nil {
		t.Fatalf("the job completed, want reason %q", reason)
	}
	if outcome.Failed.Reason != reason || outcome.Failed.Code != code {
		t.Errorf("failed as %s/%s, want %s/%s: %s", outcome.Failed.Reason, outcome.Failed.Code, reason, code, outcome.Failed.Message)
	}
	if got := outcome.ExitCode(); got != exit {
		t.Errorf("exit code %d, want %d", got, exit)
	}
	if outcome.Failed.Message == "" {
		t.Error("the failure has no message")
	}
	return outcome.Failed
}

// earlier is an exchange before the task.
func earlier() []llm.Message {
	return []llm.Message{llm.UserText("Hello."), {Role: llm.RoleAssistant, Parts: []llm.Part{llm.TextPart("Hello. What shall I count?")}}}
}
