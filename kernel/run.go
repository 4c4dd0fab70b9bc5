package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// run is one job being run; it is the job.Handle as well. Its goroutine owns every field below the line.
type run struct {
	*emitter
	rt      *Runtime
	spec    *job.Spec
	plan    *plan
	ctx     context.Context
	cancel  context.CancelCauseFunc
	caller  context.Context
	ports   job.Ports
	spans   spanIDs
	read    atomic.Bool
	done    chan struct{}
	process processes
	// outcome is set before done is closed.
	outcome job.Outcome
	// ------
	root    *span
	ledger  ledger
	repeats repeats
	outputs map[string]bool
	lent    []Lent
	judges  []Judge
	// held is the text of the last response, which may be held back until a judge has seen it.
	held *deltas
	// observers see what the job reads.
	observers []Observer
	// estimated says that the reader was told about estimated usage.
	estimated bool
}

var _ job.Handle = (*run)(nil)

func newRun(ctx context.Context, rt *Runtime, spec *job.Spec, p *plan) *run {
	r := &run{emitter: newEmitter(p.id), rt: rt, spec: spec, plan: p, caller: ctx, done: make(chan struct{}),
		outputs: make(map[string]bool)}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.ledger = ledger{price: p.model.Price, maxCost: spec.Limits.MaxCostUSD, window: p.model.ContextWindow}
	return r
}

// Events implements job.Handle.
func (r *run) Events() <-chan *job.Event {
	r.read.Store(true)
	return r.events
}

// Discard implements job.Handle.
func (r *run) Discard() { r.stopReading() }

// Wait implements job.Handle.
func (r *run) Wait() job.Outcome {
	if !r.read.Load() {
		r.stopReading()
	}
	<-r.done
	return r.outcome
}

// Abort implements job.Handle.
func (r *run) Abort(cause string) {
	if cause == "" {
		cause = "aborted by the caller"
	}
	r.cancel(stopf(job.ReasonAborted, job.CodeAborted, "%s", cause))
}

// execute runs the job to its end. It is the job's goroutine.
func (r *run) execute() {
	unlink := context.AfterFunc(r.caller, func() { r.Abort(context.Cause(r.caller).Error()) })
	limit := time.AfterFunc(seconds(r.spec.Limits.TimeoutSec), func() {
		r.cancel(stopf(job.ReasonTimeout, job.CodeTimeout, "stopped after the time limit of %g s", r.spec.Limits.TimeoutSec))
	})
	answer, stopped := r.guarded()
	limit.Stop()
	unlink()
	r.cancel(nil)
	r.giveBack()
	if err := errors.Join(r.closeProcesses(), r.plan.workspace.Close()); err != nil {
		r.emit(&job.Notice{Code: "clean-up", Message: "not everything could be cleaned up: " + err.Error()})
	}
	r.finish(answer, stopped)
}

// guarded runs the loop and turns a panic of it into the end of this job alone.
func (r *run) guarded() (answer string, stopped *stop) {
	defer func() {
		if fault := recover(); fault != nil {
			stopped = stopf(job.ReasonError, job.CodeInternal, "internal fault: %v", fault)
			stopped.details = map[string]any{"stack": string(debug.Stack())}
		}
	}()
	prepared := r.prepareTools()
	r.start()
	if prepared != nil {
		return "", prepared
	}
	return r.loop()
}

// prepareTools connects what the job borrows and opens the dialog if that had to wait for it.
func (r *run) prepareTools() *stop {
	if r.plan.dialog != nil {
		return nil
	}
	if stopped := r.borrow(); stopped != nil {
		return stopped
	}
	var problems problem.List
	if r.rt.open(r.spec, r.plan, &problems); len(problems) > 0 {
		return stopf(job.ReasonError, job.CodeProviderRefused, "%v", problems.Err("open the dialog"))
	}
	return nil
}

func (r *run) start() {
	spec, p := r.spec, r.plan
	r.emit(&job.StartedData{
		Runtime:    r.rt.config.Version,
		Agent:      job.AgentTag{ID: spec.Agent.ID, Version: spec.Agent.Version},
		Model:      job.ModelTag{Provider: spec.Model.Provider, ID: spec.Model.ID, Thinking: p.thinking, Simulated: p.model.Simulated},
		Tools:      p.tools.Names(),
		Definition: spec.Agent.Digest(),
		Spec:       spec.Digest(),
		Metadata:   spec.Metadata,
	})
	for i := range spec.Notices {
		r.emit(&spec.Notices[i])
	}
	for i := range p.notices {
		r.emit(&p.notices[i])
	}
	r.root = r.startSpan(nil, job.SpanJob, map[string]any{
		"agent": spec.Agent.ID, "agentVersion": spec.Agent.Version, "model": spec.Model.ID, "tools": p.tools.Len(),
	})
	r.ledger.addPrompt(p.promptBytes)
	r.observeSpec()
}

// ended returns the stop of a job that was aborted or ran out of time, nil for one that may go on.
func (r *run) ended() *stop {
	if r.ctx.Err() == nil {
		return nil
	}
	return causeOf(r.ctx)
}

// causeOf returns the stop that ended ctx.
func causeOf(ctx context.Context) *stop {
	if s, ok := context.Cause(ctx).(*stop); ok {
		return s
	}
	return stopf(job.ReasonAborted, job.CodeAborted, "aborted: %v", context.Cause(ctx))
}

// finish emits the end of the job and releases whoever waits for it.
func (r *run) finish(answer string, stopped *stop) {
	outputs := make([]string, 0, len(r.outputs))
	for path := range r.outputs {
		outputs = append(outputs, path)
	}
	slices.Sort(outputs)
	if r.root != nil {
		total := r.ledger.total
		r.root.end(stopped == nil, map[string]any{"turns": total.Turns, "requests": total.Requests, "outputs": len(outputs),
			"costMicroUsd": int64(total.CostMicroUSD)})
	}
	r.outcome.Usage = r.ledger.total
	if stopped == nil {
		done := &job.CompletedData{Summary: cut(answer, summaryBytes), Answer: answer, Outputs: outputs}
		r.outcome.Completed = done
		r.emit(done)
	} else {
		failed := &job.FailedData{Reason: stopped.reason, Code: stopped.code, Message: r.redact(stopped.message), Outputs: outputs}
		if len(stopped.details) > 0 {
			details, err := json.Marshal(stopped.details)
			if err != nil {
				details = []byte(`{}`)
			}
			failed.Details = json.RawMessage(r.redact(string(details)))
		}
		r.outcome.Failed = failed
		r.emit(failed)
	}
	r.end()
	close(r.done)
}

// summaryBytes bounds CompletedData.Summary.
const summaryBytes = 4096

// cut returns at most limit bytes of text, ending at a rune border.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// redact removes credentials from a text that may quote a provider. Adapters keep them out already; this is the second
// line.
func (r *run) redact(text string) string {
	for _, p := range r.spec.Providers {
		secrets := []string{p.APIKey}
		for _, value := range p.Headers {
			secrets = append(secrets, value)
		}
		for _, secret := range secrets {
			if len(secret) >= 4 {
				text = strings.ReplaceAll(text, secret, "[redacted]")
			}
		}
	}
	return text
}

// describeCount writes a number with its noun, as in "1 line" and "2 lines".
func describeCount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Detach implements job.Handle.
func (r *run) Detach() {}
