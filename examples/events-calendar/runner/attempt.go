package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"

	"github.com/hozo-run/hozo/examples/events-calendar/calendar"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

// attempt is what the runner can do to a run that goes on. It may be aborted before it has begun.
type attempt struct {
	mu       sync.Mutex
	handle   job.Handle
	cause    string // why it is aborted, "" if it is not
	detached bool
}

func (a *attempt) abort(cause string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cause = cause
	if a.handle != nil {
		a.handle.Abort(cause)
	}
}

func (a *attempt) detach() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.detached = true
	if a.handle != nil {
		a.handle.Detach()
	}
}

// begun hands the attempt its job, with what was asked of it before.
func (a *attempt) begun(h job.Handle) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handle = h
	if a.cause != "" {
		h.Abort(a.cause)
	}
	if a.detached {
		h.Detach()
	}
}

func (a *attempt) aborted() (cause string, yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cause, a.cause != ""
}

// attempt takes a run from where it is to its end. An error means that the store failed.
func (r *Runner) attempt(ctx context.Context, id string, a *attempt) error {
	record, err := r.config.Runs.Find(ctx, id)
	if err != nil || record.Status.Ended() {
		return err
	}
	if cause, yes := a.aborted(); yes && record.Status == run.Queued {
		return r.finish(ctx, id, failed(job.ReasonAborted, job.CodeAborted, cause), nil)
	}
	spec, err := r.spec(ctx, &record)
	if err != nil {
		return r.finish(ctx, id, failed(job.ReasonError, job.CodeInternal, problemText(err)), nil)
	}
	before, err := r.config.Runs.Steps(ctx, id)
	if err != nil {
		return err
	}
	notebook := noted(before)
	outcome, err := r.execute(ctx, spec, record, before, notebook, a)
	if err != nil {
		return err
	}
	if outcome.Suspended != nil {
		return nil // the next process takes it up
	}
	return r.finish(ctx, id, outcome, notebook.Drafts())
}

// noted returns a notebook with what the attempts before have noted: their calls are not made again.
func noted(before []run.Step) *memory.Notebook {
	n := &memory.Notebook{}
	for _, s := range before {
		var d memory.Draft
		if s.Tool == memory.NoteTool && s.Status == "ok" && json.Unmarshal(s.Arguments, &d) == nil {
			_ = n.Note(s.CallID, d) // the notebook of the attempt that made the call had room for it
		}
	}
	return n
}

func failed(reason job.Reason, code, message string) job.Outcome {
	return job.Outcome{Failed: &job.FailedData{Reason: reason, Code: code, Message: message}}
}

// spec returns the document of the attempt and marks the run as running.
func (r *Runner) spec(ctx context.Context, record *run.Run) (*job.Spec, error) {
	var p prepared
	if record.Status == run.Running {
		spec, err := r.again(ctx, *record)
		if err != nil {
			return nil, err
		}
		if spec == nil {
			return nil, errors.New("the process that worked on the run was lost before it had begun")
		}
		p = prepared{spec: spec, prompts: record.Prompts, applied: record.Applied}
	} else {
		fresh, err := r.prepare(ctx, *record)
		if err != nil {
			return nil, err
		}
		p = *fresh
	}
	changed, err := r.config.Runs.Change(ctx, record.ID, func(c *run.Run) {
		if c.StartedAt == nil {
			now := r.config.Now().UTC()
			c.StartedAt = &now
		}
		c.Status, c.Prompts, c.Attempt = run.Running, p.prompts, c.Attempt+1
		c.Applied = append([]memory.Lesson{}, p.applied...)
	})
	*record = changed
	return p.spec, err
}

// execute runs the job to its end and keeps what it reports.
func (r *Runner) execute(ctx context.Context, spec *job.Spec, record run.Run, before []run.Step, notebook *memory.Notebook, a *attempt) (job.Outcome, error) {
	near, far := net.Pipe()
	scope := memory.WithNotebook(calendar.WithScope(ctx, calendar.Scope{Approve: record.Mode == run.Auto}), notebook)
	connection, err := r.host.Connect(scope, far, hostserver.Run{ID: spec.ID, Tools: lent(r.config.Agent)})
	if err != nil {
		return job.Outcome{}, errors.Join(err, near.Close())
	}
	defer connection.Close()
	journal := r.config.Runs.Journal(ctx, record.ID)
	recorder := newRecorder(r.config.Runs, record.ID, before)
	journal.OnFrame = recorder.frame
	handle, err := r.config.Runtime.Start(ctx, spec, job.Ports{Host: near, Journal: journal})
	if err != nil {
		return failed(job.ReasonError, "job-refused", problemText(err)), nil
	}
	a.begun(handle)
	for event := range handle.Events() {
		err := recorder.event(ctx, event)
		if err == nil {
			journal.Stored(event.Seq)
			continue
		}
		journal.Close(err)
		handle.Abort("the run cannot be recorded")
	}
	outcome := handle.Wait()
	if err := recorder.failed(); err != nil {
		return outcome, fmt.Errorf("record the run: %w", err)
	}
	return outcome, nil
}

// removeDirectories removes what the job had on disk; the agent writes no files, so nothing of worth is there.
func (r *Runner) removeDirectories(id string) {
	if err := os.RemoveAll(filepath.Join(r.config.Dir, id)); err != nil {
		r.config.Log.Warn("the directories of a run stay", "run", id, "error", err)
	}
}
