package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/hozo-run/hozo/job"
)

// run is one job being run; it is the job.Handle as well. Its goroutine owns every field below the line.
type run struct {
	*emitter
	rt     *Runtime
	spec   *job.Spec
	plan   *plan
	ctx    context.Context
	cancel context.CancelCauseFunc
	caller context.Context
	// detaching ends when the attempt has to.
	detaching context.Context
	detach    context.CancelFunc
	ports     job.Ports
	spans     spanIDs
	read      atomic.Bool
	done      chan struct{}
	process   processes
	// limit is the clock of the job's time limit.
	limit *time.Timer
	// outcome is set before done is closed.
	outcome job.Outcome
	// ------
	record record
	// quiet says that the events are muted until speakUp.
	quiet bool
	// replay collects what a replay finds, nil for a job that runs.
	replay *ReplayReport
	root   *span
	// top is the thread of the job's agent, nil before it begins.
	top     *thread
	outputs map[string]bool
	files   outFiles
	// granted are the tools of which a call was approved, used the waits whose decision was taken.
	granted, used map[string]bool
	// told are the notices that an earlier attempt has reported.
	told []job.Notice
	// delegated counts the calls of subagents.
	delegated int
	lent      []Lent
	judges    []Judge
	// observers see what the job reads.
	observers []Observer
	// estimated says that the reader was told about estimated usage.
	estimated bool
}

var _ job.Handle = (*run)(nil)

func newRun(ctx context.Context, rt *Runtime, spec *job.Spec, p *plan) *run {
	r := &run{emitter: newEmitter(p.id), rt: rt, spec: spec, plan: p, caller: ctx, done: make(chan struct{}),
		outputs: make(map[string]bool), files: outFiles{}, granted: make(map[string]bool), used: make(map[string]bool)}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.detaching, r.detach = context.WithCancel(context.Background())
	r.record.events = r.emitter
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
	r.limit = time.AfterFunc(seconds(r.spec.Limits.TimeoutSec), r.timeUp)
	end, stopped := r.guarded()
	r.limit.Stop()
	unlink()
	r.cancel(nil)
	r.detach()
	r.record.close()
	r.giveBack()
	if err := errors.Join(r.closeProcesses(), r.plan.workspace.Close()); err != nil {
		r.emit(&job.Notice{Code: "clean-up", Message: "not everything could be cleaned up: " + err.Error()})
	}
	r.finish(end, stopped)
}

// timeUp ends a job whose time is over.
func (r *run) timeUp() {
	r.cancel(stopf(job.ReasonTimeout, job.CodeTimeout, "stopped after the time limit of %g s", r.spec.Limits.TimeoutSec))
}

// guarded runs the loop and turns a panic of it into the end of this job alone.
func (r *run) guarded() (end endOfLoop, stopped *stop) {
	defer func() {
		if fault := recover(); fault != nil {
			stopped = stopf(job.ReasonError, job.CodeInternal, "internal fault: %v", fault)
			stopped.details = map[string]any{"stack": string(debug.Stack())}
		}
	}()
	if stopped := r.startRecord(); stopped != nil {
		return endOfLoop{}, stopped
	}
	borrowed := r.borrow()
	if stopped := r.start(); stopped != nil {
		return endOfLoop{}, stopped
	}
	if borrowed != nil {
		return endOfLoop{}, borrowed
	}
	return r.work()
}

// work runs the agent of the job.
func (r *run) work() (endOfLoop, *stop) {
	agent := r.plan.agent
	r.top = &thread{run: r, agent: agent, ctx: r.ctx, around: r.root, ledger: &ledger{maxCost: r.spec.Limits.MaxCostUSD}}
	if stopped := r.top.openThread(r.plan.dialog); stopped != nil {
		return endOfLoop{}, stopped
	}
	if stopped := r.firstCheckpoint(); stopped != nil {
		return endOfLoop{}, stopped
	}
	return r.top.loop()
}

// start reports the beginning of the job.
func (r *run) start() *stop {
	spec, a := r.spec, r.plan.agent
	r.emit(&job.StartedData{
		Runtime:    r.rt.config.Version,
		Agent:      job.AgentTag{ID: spec.Agent.ID, Version: spec.Agent.Version},
		Model:      job.ModelTag{Provider: spec.Model.Provider, ID: spec.Model.ID, Thinking: a.thinking, Simulated: a.model.Simulated},
		Tools:      a.tools.Names(),
		Definition: spec.Agent.Digest(),
		Spec:       spec.Digest(),
		Metadata:   spec.Metadata,
	})
	for i := range spec.Notices {
		r.emit(&spec.Notices[i])
	}
	for i := range r.plan.notices {
		r.emit(&r.plan.notices[i])
	}
	r.root = r.startSpan(nil, job.SpanJob, map[string]any{
		"agent": spec.Agent.ID, "agentVersion": spec.Agent.Version, "model": spec.Model.ID, "tools": a.tools.Len(),
	})
	r.observeSpec()
	return r.recordSpec()
}

// causeOf returns the stop that ended ctx.
func causeOf(ctx context.Context) *stop {
	if s, ok := context.Cause(ctx).(*stop); ok {
		return s
	}
	return stopf(job.ReasonAborted, job.CodeAborted, "aborted: %v", context.Cause(ctx))
}

// finish emits the end of the job, or of the attempt, and releases whoever waits for it.
func (r *run) finish(end endOfLoop, stopped *stop) {
	total := job.TotalUsage{}
	if r.top != nil {
		total = r.top.ledger.total
	}
	outputs := slices.Sorted(maps.Keys(r.outputs))
	if outputs == nil {
		outputs = []string{}
	}
	if r.root != nil {
		r.root.end(stopped == nil, map[string]any{"turns": total.Turns, "requests": total.Requests, "outputs": len(outputs),
			"costMicroUsd": int64(total.CostMicroUSD)})
	}
	r.outcome.Usage = total
	if stopped == nil {
		stopped = r.complete(&job.CompletedData{Summary: cut(end.answer, summaryBytes), Answer: end.answer, Output: end.output, Outputs: outputs})
	}
	switch {
	case stopped == nil:
	case stopped.suspended != nil:
		r.outcome.Suspended = stopped.suspended
	default:
		r.fail(stopped, outputs)
	}
	r.speakUp()
	r.emit(r.outcome.End())
	r.end()
	close(r.done)
}

// complete records a job that succeeded. It returns the stop of one whose end cannot be recorded.
func (r *run) complete(data *job.CompletedData) *stop {
	stopped := r.record.log(job.FrameOutcome, &job.OutcomeFrame{Completed: data, Usage: r.outcome.Usage})
	if stopped == nil {
		stopped = r.record.settle()
	}
	if stopped == nil {
		r.outcome.Completed = data
	}
	return stopped
}

// fail records a job that did not succeed. Where even that fails, the reader of the events still hears of it.
func (r *run) fail(stopped *stop, outputs []string) {
	data := &job.FailedData{Reason: stopped.reason, Code: stopped.code, Message: r.redact(stopped.message), Outputs: outputs}
	if details := stopped.encodedDetails(); details != nil {
		data.Details = json.RawMessage(r.redact(string(details)))
	}
	r.outcome.Failed = data
	if stopped.code == job.CodeJournalDiverged || r.record.log(job.FrameOutcome, &job.OutcomeFrame{Failed: data, Usage: r.outcome.Usage}) != nil {
		return
	}
	if lost := r.record.settle(); lost != nil {
		data.Message += "; " + lost.message
	}
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
		secrets := p.Keys()
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
