package runner

import (
	"context"
	"strings"
	"sync"

	"github.com/hozo-run/hozo/job"

	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

// recorder keeps what a job reports: events as they are, and what people ask for most as a view of its own: steps,
// documents, what was degraded. It is used by one goroutine for events and one for frames.
type recorder struct {
	runs   *run.Store
	id     string
	broken error

	mu    sync.Mutex
	steps map[string]run.Step
	count int64
}

func newRecorder(runs *run.Store, id string, steps int64) *recorder {
	return &recorder{runs: runs, id: id, steps: map[string]run.Step{}, count: steps}
}

// event keeps one event.
func (r *recorder) event(ctx context.Context, e *job.Event) error {
	if r.broken != nil {
		return r.broken
	}
	if err := r.runs.AddEvent(ctx, e); err != nil {
		return err
	}
	switch d := e.Data.(type) {
	case *job.ToolCallData:
		return r.called(ctx, e, d)
	case *job.ToolResultData:
		return r.step(ctx, d.CallID, func(s *run.Step) {
			s.DurationMS = d.DurationMS
			if s.Status == "running" {
				s.Status = map[bool]string{true: "ok", false: "error"}[d.Success]
			}
		})
	case *job.StepRecordedData:
		return r.step(ctx, d.CallID, func(s *run.Step) { s.Objective = d.Objective })
	case *job.MemoryUpdatedData:
		return r.remembered(ctx, e, d)
	case *job.Notice:
		if degrades(d.Code) {
			_, err := r.runs.Change(ctx, r.id, func(c *run.Run) { c.Degraded = append(c.Degraded, *d) })
			return err
		}
	case *job.UsageData:
		_, err := r.runs.Change(ctx, r.id, func(c *run.Run) { c.Usage = d.Total })
		return err
	}
	return nil
}

// degrades reports whether a notice says that the run does without something.
func degrades(code string) bool {
	switch code {
	case "host-lost", "prompt-fallback", "memory-unavailable", "budget-unpriced":
		return true
	}
	return strings.HasPrefix(code, "mcp-")
}

func (r *recorder) called(ctx context.Context, e *job.Event, d *job.ToolCallData) error {
	status := "running"
	if !d.Allowed {
		status = "blocked"
	}
	err := r.step(ctx, d.CallID, func(s *run.Step) {
		*s = run.Step{CallID: d.CallID, ParentCallID: e.ParentCallID, Tool: d.Tool, Arguments: d.Input, Status: status}
	})
	if err != nil || e.ParentCallID != "" {
		return err
	}
	r.count++
	_, err = r.runs.Change(ctx, r.id, func(c *run.Run) { c.Steps = r.count })
	return err
}

// remembered keeps the document of the agent itself; those of subagents are in the events.
func (r *recorder) remembered(ctx context.Context, e *job.Event, d *job.MemoryUpdatedData) error {
	if e.ParentCallID != "" {
		return nil
	}
	return r.runs.PutDocument(ctx, r.id, run.Document{Step: d.Step, Mode: d.Mode, Document: d.Document})
}

// step changes the step of a call.
func (r *recorder) step(ctx context.Context, callID string, change func(*run.Step)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.steps[callID]
	s.CallID = callID
	change(&s)
	r.steps[callID] = s
	return r.runs.PutStep(ctx, r.id, s)
}
