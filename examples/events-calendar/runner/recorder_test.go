package runner

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

func openRuns(t *testing.T, id string) *run.Store {
	t.Helper()
	db, err := database.Open(t.Context(), filepath.Join(t.TempDir(), "events.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	runs, err := run.Open(t.Context(), run.Config{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := runs.Create(t.Context(), run.Run{ID: id}, run.Key{}); err != nil {
		t.Fatal(err)
	}
	return runs
}

// tell gives a recorder events, numbered from seq on.
func tell(t *testing.T, r *recorder, seq int64, events ...any) {
	t.Helper()
	for i, data := range events {
		kinds := map[bool]job.EventType{true: job.EventNotice, false: job.EventToolCall}
		_, notice := data.(*job.Notice)
		if err := r.event(t.Context(), &job.Event{Seq: seq + int64(i), JobID: "run_a", Type: kinds[notice], Data: data}); err != nil {
			t.Fatal(err)
		}
	}
}

func finished(t *testing.T, callID, text string) job.Frame {
	t.Helper()
	data, err := json.Marshal(job.CallFinishedFrame{CallID: callID, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return job.Frame{V: job.FrameVersion, Type: job.FrameCallFinished, Data: data}
}

func TestAnAttemptGoesOnWithTheStepsOfTheOneBefore(t *testing.T) {
	t.Parallel()
	runs := openRuns(t, "run_a")
	first := newRecorder(runs, "run_a", nil)
	missing := &job.Notice{Code: "mcp-unavailable", Message: "refused"}
	tell(t, first, 1, missing, &job.ToolCallData{CallID: "1.0", Tool: "query_events", Input: json.RawMessage(`{"text":"cut…"}`), Allowed: true},
		&job.ToolResultData{CallID: "1.0", Tool: "query_events", Success: true, DurationMS: 7})
	if err := first.frame(t.Context(), finished(t, "1.0", "the whole answer")); err != nil {
		t.Fatal(err)
	}

	before, err := runs.Steps(t.Context(), "run_a")
	if err != nil {
		t.Fatal(err)
	}
	second := newRecorder(runs, "run_a", before)
	tell(t, second, 4, missing, &job.StepRecordedData{Step: 1, CallID: "1.0", Objective: "look"},
		&job.ToolCallData{CallID: "2.0", Tool: "finish", Input: json.RawMessage(`{}`), Code: "blocked"},
		&job.StepRecordedData{Step: 3, Tool: "", Status: "none"})

	step, err := runs.Step(t.Context(), "run_a", 1)
	want := run.Step{N: 1, CallID: "1.0", Objective: "look", Tool: "query_events", Arguments: json.RawMessage(`{"text":"cut…"}`), Status: "ok",
		Output: "the whole answer", OutputBytes: 16, DurationMS: 7}
	if diff := cmp.Diff(want, step); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	record, err := runs.Find(t.Context(), "run_a")
	if err != nil || record.Steps != 2 || len(record.Degraded) != 1 {
		t.Errorf("the run is %+v (%v)", record, err)
	}
}

func TestNothingIsRecordedAfterAFailure(t *testing.T) {
	t.Parallel()
	runs := openRuns(t, "run_a")
	r := newRecorder(runs, "run_a", nil)
	broken := job.Frame{V: job.FrameVersion, Type: job.FrameCallFinished, Data: json.RawMessage(`[]`)}
	if err := r.frame(t.Context(), broken); err == nil || r.failed() == nil {
		t.Fatal("a frame that cannot be read was recorded")
	}
	if err := r.event(t.Context(), &job.Event{Seq: 1, JobID: "run_a", Type: job.EventNotice, Data: &job.Notice{}}); err == nil {
		t.Error("an event was recorded after the failure")
	}
	if last, err := runs.LastSeq(t.Context(), "run_a"); err != nil || last != 0 {
		t.Errorf("the store has event %d (%v)", last, err)
	}
}

func TestStatusesFollowFromOutcomes(t *testing.T) {
	t.Parallel()
	for reason, want := range map[job.Reason]run.Status{"": run.Completed, job.ReasonError: run.Failed, job.ReasonTimeout: run.Stopped, job.ReasonMaxTurns: run.Stopped,
		job.ReasonBudget: run.Stopped, job.ReasonContextOverflow: run.Stopped, job.ReasonLoop: run.Stopped, job.ReasonAborted: run.Aborted} {
		o := job.Outcome{Completed: &job.CompletedData{Answer: "done"}}
		if reason != "" {
			o = failed(reason, "code", "message")
		}
		var r run.Run
		settle(&r, o)
		if r.Status != want || (r.Failure == nil) != (want == run.Completed) {
			t.Errorf("%q gives %+v", reason, r)
		}
	}
	var lost run.Run
	settle(&lost, job.Outcome{Lost: &job.Lost{}})
	if lost.Status != run.Failed || lost.Failure.Code != job.CodeProcessLost {
		t.Errorf("a lost process gives %+v", lost)
	}
}
