package runner

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/hozo-run/hozo/job"

	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

// recorder keeps what a job reports: events as they are, and what people ask for most as a view of its own: steps,
// documents, what was degraded. Events come from one goroutine and frames from another. The first failure is kept, and
// nothing is recorded after it.
type recorder struct {
	runs *run.Store
	id   string

	mu     sync.Mutex
	broken error
	steps  map[string]run.Step
	// before are the numbers of the steps that earlier attempts have kept, by call.
	before map[string]int64
	// counted are the calls of the agent itself.
	counted map[string]bool
}

// newRecorder returns the recorder of an attempt. before are the steps of the attempts before it.
func newRecorder(runs *run.Store, id string, before []run.Step) *recorder {
	r := &recorder{runs: runs, id: id, steps: map[string]run.Step{}, before: map[string]int64{}, counted: map[string]bool{}}
	for _, s := range before {
		r.before[s.CallID] = s.N
		if s.ParentCallID == "" {
			r.counted[s.CallID] = true
		}
	}
	return r
}

func (r *recorder) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// event keeps one event.
func (r *recorder) event(ctx context.Context, e *job.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == nil {
		r.broken = r.runs.AddEvent(ctx, e)
	}
	if r.broken == nil {
		r.broken = r.view(ctx, e)
	}
	return r.broken
}

// frame keeps the whole arguments and the whole answer of a call, which events do not have.
func (r *recorder) frame(ctx context.Context, f job.Frame) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	switch f.Type {
	case job.FrameCallStarted:
		var d job.CallStartedFrame
		if r.broken = json.Unmarshal(f.Data, &d); r.broken == nil {
			r.broken = r.step(ctx, d.CallID, func(s *run.Step) { s.Arguments = d.Arguments })
		}
	case job.FrameCallFinished:
		var d job.CallFinishedFrame
		if r.broken = json.Unmarshal(f.Data, &d); r.broken == nil {
			r.broken = r.step(ctx, d.CallID, func(s *run.Step) { s.Output = d.Text })
		}
	}
	return r.broken
}

func (r *recorder) view(ctx context.Context, e *job.Event) error {
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
		if d.CallID == "" {
			return nil // a reply without a call: the document tells of it
		}
		return r.step(ctx, d.CallID, func(s *run.Step) { s.Objective = d.Objective })
	case *job.MemoryUpdatedData:
		return r.remembered(ctx, e, d)
	case *job.Notice:
		if degrades(d.Code) {
			_, err := r.runs.Change(ctx, r.id, func(c *run.Run) {
				if !slices.Contains(c.Degraded, *d) { // each attempt says it again
					c.Degraded = append(c.Degraded, *d)
				}
			})
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
		s.ParentCallID, s.Tool, s.Status = e.ParentCallID, d.Tool, status
		if s.Arguments == nil {
			s.Arguments = d.Input
		}
	})
	if err != nil || e.ParentCallID != "" {
		return err
	}
	r.counted[d.CallID] = true
	_, err = r.runs.Change(ctx, r.id, func(c *run.Run) { c.Steps = int64(len(r.counted)) })
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
	s, known := r.steps[callID]
	if n := r.before[callID]; !known && n > 0 {
		var err error
		if s, err = r.runs.Step(ctx, r.id, n); err != nil {
			return err
		}
	}
	s.CallID = callID
	change(&s)
	r.steps[callID] = s
	return r.runs.PutStep(ctx, r.id, s)
}
