package jobtest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

func exerciseStream(t *testing.T, setup Setup) {
	t.Run("begins with what the job is", func(t *testing.T) {
		t.Parallel()
		spec := newSpec(t, answers)
		spec.Metadata = map[string]json.RawMessage{"ticket": json.RawMessage(`{"id": 12}`)}
		spec.Notices = []job.Notice{{Code: "first", Message: "one"}, {Code: "second", Message: "two"}}
		spec.History = earlier()
		events, _ := collect(t, start(t.Context(), t, setup, spec))
		started, ok := events[0].Data.(*job.StartedData)
		if !ok {
			t.Fatalf("the first event has data of type %T", events[0].Data)
		}
		if started.Definition != spec.Agent.Digest() || started.Spec != spec.Digest() {
			t.Error("the digests are not those of the agent and the spec")
		}
		if started.Agent != (job.AgentTag{ID: "counter", Version: "7"}) || started.Model.Provider != "test" || started.Model.ID != "actor" {
			t.Errorf("job.started names other things: %+v", started)
		}
		if len(started.Tools) != 0 {
			t.Errorf("tools were offered to an agent with none: %v", started.Tools)
		}
		if diff := cmp.Diff(encoded(t, spec.Metadata), encoded(t, started.Metadata)); diff != "" {
			t.Errorf("metadata was not echoed (-spec +event):\n%s", diff)
		}
		for i, want := range spec.Notices {
			if got, ok := events[i+1].Data.(*job.Notice); !ok || *got != want {
				t.Errorf("event %d is %s, want the notice %q", i+2, events[i+1].Line(), want.Code)
			}
		}
		if events[0].JobID != spec.ID {
			t.Errorf("the events are of job %q, not %q", events[0].JobID, spec.ID)
		}
	})
	t.Run("deltas join to the answer", func(t *testing.T) {
		t.Parallel()
		events, outcome := collect(t, start(t.Context(), t, setup, newSpec(t, answers)))
		var text strings.Builder
		for _, delta := range ofType[job.MessageDeltaData](events) {
			text.WriteString(delta.Text)
		}
		messages := ofType[job.MessageData](events)
		if len(messages) != 1 || !messages[0].Final || messages[0].Text != text.String() || outcome.Completed.Answer != text.String() {
			t.Errorf("deltas %q, messages %+v, answer %+v", text.String(), messages, outcome.Completed)
		}
		if len(ofType[job.UsageData](events)) != 1 {
			t.Error("one request must have one usage event")
		}
	})
	t.Run("each call has one result", func(t *testing.T) {
		t.Parallel()
		events, outcome := collect(t, start(t.Context(), t, setup, newSpec(t, wanders)))
		var calls, results []string
		for _, call := range ofType[job.ToolCallData](events) {
			calls = append(calls, call.CallID)
			if call.Allowed || call.Reason == "" {
				t.Errorf("call %s of a tool that does not exist is allowed", call.CallID)
			}
		}
		for _, result := range ofType[job.ToolResultData](events) {
			results = append(results, result.CallID)
		}
		want := []string{"1.0", "2.0", "2.1"}
		if diff := cmp.Diff([][]string{want, want}, [][]string{calls, results}); diff != "" {
			t.Errorf("calls and results (-want +got):\n%s", diff)
		}
		if outcome.Completed == nil || outcome.Usage.Turns != 3 {
			t.Errorf("outcome %+v", outcome)
		}
	})
	t.Run("a job without id gets one", func(t *testing.T) {
		t.Parallel()
		ids := map[string]bool{}
		for range 2 {
			spec := newSpec(t, answers)
			spec.ID = ""
			events, _ := collect(t, start(t.Context(), t, setup, spec))
			ids[events[0].JobID] = true
		}
		if len(ids) != 2 {
			t.Errorf("two jobs have the ids %v", ids)
		}
	})
}

func exerciseEnd(t *testing.T, setup Setup) {
	t.Run("completed", func(t *testing.T) {
		t.Parallel()
		_, outcome := collect(t, start(t.Context(), t, setup, newSpec(t, answers)))
		if outcome.Completed == nil || outcome.ExitCode() != 0 {
			t.Errorf("outcome %+v", outcome.Failed)
		}
	})
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		_, outcome := collect(t, start(t.Context(), t, setup, newSpec(t, refuses)))
		wantFailed(t, outcome, job.ReasonError, job.CodeProviderAuth, 1)
	})
	t.Run("out of turns", func(t *testing.T) {
		t.Parallel()
		spec, turns := newSpec(t, wanders), int64(2)
		spec.Limits.MaxTurns = &turns
		events, outcome := collect(t, start(t.Context(), t, setup, spec))
		wantFailed(t, outcome, job.ReasonMaxTurns, job.CodeMaxTurns, 7)
		if n := len(ofType[job.UsageData](events)); n != 2 {
			t.Errorf("%d requests for a limit of 2 turns", n)
		}
	})
	t.Run("out of time", func(t *testing.T) {
		t.Parallel()
		spec, off := newSpec(t, stalls), 0.0
		spec.Limits.TimeoutSec, spec.Limits.IdleTimeoutSec = 0.05, &off
		_, outcome := collect(t, start(t.Context(), t, setup, spec))
		wantFailed(t, outcome, job.ReasonTimeout, job.CodeTimeout, 7)
	})
}

func exerciseAbort(t *testing.T, setup Setup) {
	t.Run("while the model is silent", func(t *testing.T) {
		t.Parallel()
		handle := start(t.Context(), t, setup, newSpec(t, stalls))
		var events []*job.Event
		for e := range handle.Events() {
			if events = append(events, e); e.Type == job.EventStarted {
				handle.Abort("nobody needs it any more")
				handle.Abort("a second cause")
			}
		}
		outcome := handle.Wait()
		checkStream(t, events)
		checkOutcome(t, events, outcome)
		failed := wantFailed(t, outcome, job.ReasonAborted, job.CodeAborted, 130)
		if !strings.Contains(failed.Message, "nobody needs it any more") || strings.Contains(failed.Message, "second") {
			t.Errorf("the message %q does not give the first cause", failed.Message)
		}
	})
	t.Run("before any event is read", func(t *testing.T) {
		t.Parallel()
		handle := start(t.Context(), t, setup, newSpec(t, stalls))
		handle.Abort("at once")
		_, outcome := collect(t, handle)
		wantFailed(t, outcome, job.ReasonAborted, job.CodeAborted, 130)
	})
	t.Run("after the end", func(t *testing.T) {
		t.Parallel()
		handle := start(t.Context(), t, setup, newSpec(t, answers))
		_, before := collect(t, handle)
		handle.Abort("too late")
		if diff := cmp.Diff(before, handle.Wait()); diff != "" {
			t.Errorf("the outcome changed:\n%s", diff)
		}
	})
	t.Run("by the context", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		handle := start(ctx, t, setup, newSpec(t, stalls))
		cancel(errors.New("the service shuts down"))
		_, outcome := collect(t, handle)
		if failed := wantFailed(t, outcome, job.ReasonAborted, job.CodeAborted, 130); !strings.Contains(failed.Message, "the service shuts down") {
			t.Errorf("the message %q does not give the cause", failed.Message)
		}
	})
	t.Run("by a context that had ended before", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("too late"))
		_, outcome := collect(t, start(ctx, t, setup, newSpec(t, stalls)))
		wantFailed(t, outcome, job.ReasonAborted, job.CodeAborted, 130)
	})
}

func exerciseHandle(t *testing.T, setup Setup) {
	t.Run("several may wait", func(t *testing.T) {
		t.Parallel()
		handle := start(t.Context(), t, setup, newSpec(t, answers))
		handle.Events() // from here on, waiting drops nothing
		outcomes := make([]job.Outcome, 4)
		var waiting sync.WaitGroup
		for i := range outcomes {
			waiting.Go(func() { outcomes[i] = handle.Wait() })
		}
		_, last := collect(t, handle)
		waiting.Wait()
		for _, outcome := range outcomes {
			if diff := cmp.Diff(last, outcome); diff != "" {
				t.Errorf("two callers of Wait got different outcomes:\n%s", diff)
			}
		}
	})
	t.Run("waiting needs no reader", func(t *testing.T) {
		t.Parallel()
		handle := start(t.Context(), t, setup, newSpec(t, wanders))
		if outcome := handle.Wait(); outcome.Completed == nil {
			t.Errorf("outcome %+v", outcome.Failed)
		}
		for range handle.Events() {
			t.Log("an event that Wait had not dropped yet")
		}
	})
	t.Run("a reader may leave", func(t *testing.T) {
		t.Parallel()
		handle := start(t.Context(), t, setup, newSpec(t, wanders))
		<-handle.Events()
		handle.Discard()
		handle.Discard()
		if outcome := handle.Wait(); outcome.Completed == nil {
			t.Errorf("outcome %+v", outcome.Failed)
		}
	})
	t.Run("jobs do not meet", func(t *testing.T) {
		t.Parallel()
		runtime := setup.New()
		stalled, err := runtime.Start(t.Context(), newSpec(t, stalls), job.Ports{})
		if err != nil {
			t.Fatal(err)
		}
		other, err := runtime.Start(t.Context(), newSpec(t, answers), job.Ports{})
		if err != nil {
			t.Fatal(err)
		}
		if _, outcome := collect(t, other); outcome.Completed == nil {
			t.Errorf("outcome %+v", outcome.Failed)
		}
		stalled.Abort("enough")
		_, outcome := collect(t, stalled)
		wantFailed(t, outcome, job.ReasonAborted, job.CodeAborted, 130)
	})
	t.Run("the spec is left as it was", func(t *testing.T) {
		t.Parallel()
		spec := newSpec(t, answers)
		spec.ID = ""
		before := encoded(t, spec)
		collect(t, start(t.Context(), t, setup, spec))
		if diff := cmp.Diff(before, encoded(t, spec)); diff != "" {
			t.Errorf("the runtime changed the spec:\n%s", diff)
		}
	})
}

func exerciseRefusal(t *testing.T, setup Setup) {
	cases := map[string]struct {
		change func(*job.Spec)
		want   []string
	}{
		"one fault":       {func(s *job.Spec) { s.Task = " " }, []string{"/task"}},
		"faults together": {func(s *job.Spec) { s.Task, s.Agent.ID, s.Limits.TimeoutSec = "", "", -1 }, []string{"/agent/id", "/limits/timeoutSec", "/task"}},
		"unknown tool and meaning": {func(s *job.Spec) { s.Agent.Tools, s.Agent.Thinking = []string{"teleport"}, "huge" },
			[]string{"/agent/thinking", "/agent/tools/0"}},
		"directory that is missing": {func(s *job.Spec) { s.Workspace.OutDir += "-missing" }, []string{"/workspace/outDir"}},
		"resume without a journal":  {func(s *job.Spec) { s.Resume = &job.Resume{Attempt: 2, NextSeq: 1} }, []string{"/resume"}},
		"unknown provider":          {func(s *job.Spec) { s.Model.Provider = "other" }, []string{"/model/provider"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(t, answers)
			c.change(spec)
			handle, err := setup.New().Start(t.Context(), spec, job.Ports{})
			if handle != nil {
				handle.Abort("must not have started")
				handle.Wait()
				t.Error("a refused job has a handle")
			}
			if kind := problem.KindOf(err); kind != problem.Invalid {
				t.Fatalf("the error has kind %q: %v", kind, err)
			}
			places := map[string]bool{}
			for _, p := range problem.Of(err) {
				places[p.Pointer] = true
			}
			want := map[string]bool{}
			for _, place := range c.want {
				want[place] = true
			}
			if diff := cmp.Diff(want, places); diff != "" {
				t.Errorf("places with problems (-want +got):\n%s", diff)
			}
		})
	}
}
