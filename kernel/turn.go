package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

const (
	// maxTries is how often one turn asks the model, counting the first time.
	maxTries = 4
	// maxEmptyTries is how often an empty answer is accepted in one turn before the job fails.
	maxEmptyTries = 2
	// firstWait is the wait before the second try; each further wait is three times as long. maxWait is the longest wait
	// that a provider may ask for.
	firstWait = 500 * time.Millisecond
	maxWait   = 60 * time.Second
)

// exchange is a request to a model that is made until it has a usable response.
type exchange struct {
	dialog  llm.Dialog
	model   *llm.Model
	purpose llm.Purpose
	// label names the requests in events: with the number of the try behind it.
	label string
	gauge *gauge
	// maxOutput is the longest answer to ask for, 0 for no bound.
	maxOutput int64
	// silent keeps the text out of the events: it is not what the agent says.
	silent bool
	// tries counts the requests made so far.
	tries int64
	// patience is how many requests may fail, 0 for maxTries.
	patience int
}

// own is the exchange of a turn in the thread's own dialog.
func (t *thread) own() *exchange {
	return &exchange{dialog: t.dialog, model: &t.opening.Model, purpose: t.purpose(), label: fmt.Sprint(t.turn), gauge: &t.gauge,
		maxOutput: t.agent.maxOutput}
}

// fault is why a try failed, and what the job ends with if it is not tried again.
type fault struct {
	end       *stop
	retryable bool
	// class is for the retry span; wait is what the provider asks for, 0 if it does not.
	class string
	wait  time.Duration
	empty bool
}

// detailCut marks the stop of a job whose answer had begun when the window was full.
const detailCut = "answerCut"

// classDetached is the class of a request that was given up because the attempt had to end; it is made again later.
const classDetached = "detached"

// respond asks the model until it has a usable response. It retries what may pass by itself, within the limits of the
// turn and of the job; the request is the same each time.
func (t *thread) respond(ex *exchange, parent *span) (llm.Response, *stop) {
	empty, failed := 0, 0
	for try := ex.tries + 1; ; try++ {
		if ended := t.rest(); ended != nil {
			return llm.Response{}, ended
		}
		space, refused := t.ledger.beforeRequest(ex.gauge, ex.model.Price, ex.maxOutput)
		if refused != nil {
			return llm.Response{}, refused
		}
		if ex.tries = try; !ex.silent {
			t.tries = try
		}
		response, f, stopped := t.try(ex, try, space)
		if stopped != nil || f == nil {
			return response, stopped
		}
		if f.class == classDetached {
			continue
		}
		failed++
		t.ledger.fail()
		if f.empty {
			empty++
		}
		if over := t.ledger.overspent(); over != nil {
			return llm.Response{}, over
		}
		if !f.retryable || failed == cmp.Or(ex.patience, maxTries) || empty == maxEmptyTries {
			return llm.Response{}, f.end
		}
		if ended := t.pause(ex, try, failed, f, parent); ended != nil {
			return llm.Response{}, ended
		}
	}
}

// try makes one request, or takes its end from the journal, and books it.
func (t *thread) try(ex *exchange, try int64, space room) (llm.Response, *fault, *stop) {
	t.ledger.request()
	call := llm.Call{MaxOutputTokens: space.tokens, Purpose: ex.purpose}
	made, stopped := t.recallRequest(ex, try, call)
	if stopped != nil {
		return llm.Response{}, nil, stopped
	}
	if made == nil {
		if made, stopped = t.request(ex, try, call, space); stopped != nil {
			return llm.Response{}, nil, stopped
		}
	}
	if made.fault == nil && !ex.silent {
		t.ledger.total.Turns++
	}
	t.book(ex, try, made)
	if made.fault != nil && made.emitted {
		t.emit(&job.MessageDiscardedData{Turn: t.turn, Try: try, Why: made.fault.class})
	}
	return made.response, made.fault, nil
}

// made is a request that has ended.
type made struct {
	response llm.Response
	fault    *fault
	start    time.Time
	took     time.Duration
	// received counts the bytes of all deltas.
	received int
	// emitted says that text of it is in the events.
	emitted bool
}

// request sends one request, judges what came back and records it.
func (t *thread) request(ex *exchange, try int64, call llm.Call, space room) (*made, *stop) {
	if stopped := t.run.record.settle(); stopped != nil {
		return nil, stopped
	}
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	defer t.run.onDetach(func() { cancel(errDetached) })()
	s := t.newStream(ex, try, cancel)
	m := &made{start: time.Now()}
	response, err := ex.dialog.Stream(ctx, call, s.sink)
	t.run.record.compact(&response)
	m.response, m.took, m.received = response, time.Since(m.start), s.received
	m.emitted = s.close()
	m.fault = t.judge(ex, response, err, space)
	if m.fault == nil && !ex.silent {
		t.held = &s.deltas
	}
	return m, t.recordRequest(ex, try, call, m)
}

// judge decides whether a response can be used.
func (t *thread) judge(ex *exchange, response llm.Response, err error, space room) *fault {
	if err != nil {
		return t.judgeError(err)
	}
	window, prompt := ex.gauge.window, response.Usage.Prompt()
	switch {
	case response.Stop == llm.StopLength && window > 0 && response.Usage.Output == 0 && prompt*100 >= window*99:
		return &fault{class: string(llm.ClassContextOverflow), end: overflow("the prompt of %d tokens fills the model's window of %d", prompt, window)}
	case response.Stop == llm.StopLength && space.by == job.ReasonBudget:
		return &fault{class: "budget", end: stopf(job.ReasonBudget, job.CodeBudget,
			"stopped: the answer was cut at %d tokens, which is all that the money limit left", space.tokens)}
	case response.Stop == llm.StopLength && (space.by == job.ReasonContextOverflow || window > 0 && response.Usage.Total()*100 >= window*99):
		f := &fault{class: string(llm.ClassContextOverflow), end: overflow(
			"the answer was cut after %d tokens, which is all that the prompt left of the window of %d", response.Usage.Output, window)}
		f.end.details = map[string]any{detailCut: true}
		return f
	case response.Stop == llm.StopLength:
		return &fault{class: "output-limit", end: stopf(job.ReasonError, job.CodeOutputLimit,
			"the answer was cut at the output limit (%s)", outputLimit(space.tokens, response.Usage.Output))}
	case ex.purpose != llm.PurposeWriter && len(response.Message.ToolCalls()) == 0 && strings.TrimSpace(response.Message.Text()) == "":
		return &fault{class: "empty-answer", retryable: true, empty: true, end: stopf(job.ReasonError, job.CodeEmptyAnswer,
			"the model gave neither an answer nor a tool call, %d times", maxEmptyTries)}
	}
	return nil
}

// outputLimit says which limit cut an answer: the one that was asked for, or the provider's own.
func outputLimit(asked, written int64) string {
	if asked > 0 {
		return fmt.Sprintf("%d tokens were asked for at most", asked)
	}
	return fmt.Sprintf("the provider's own, after %d tokens", written)
}

func overflow(format string, args ...any) *stop {
	return stopf(job.ReasonContextOverflow, job.CodeContextOverflow, "the conversation does not fit the model: "+format, args...)
}

func (t *thread) judgeError(err error) *fault {
	if s, ok := errors.AsType[*stop](err); ok {
		return &fault{end: s, class: string(s.reason)}
	}
	if errors.Is(err, errDetached) {
		return &fault{retryable: true, class: classDetached, end: stopf(job.ReasonAborted, job.CodeAborted, "the attempt ended")}
	}
	if errors.Is(err, errStalled) {
		return &fault{retryable: true, class: "stalled", end: stopf(job.ReasonTimeout, job.CodeStalled,
			"the model made no progress for %g s", t.idleTimeout().Seconds())}
	}
	failure, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return &fault{class: "internal", end: stopf(job.ReasonError, job.CodeInternal, "the model request failed: %v", err)}
	}
	f := &fault{class: string(failure.Class), retryable: failure.Retryable(), wait: failure.RetryAfter}
	if failure.Class == llm.ClassContextOverflow {
		f.end = overflow("%s", failure.Message)
		return f
	}
	f.end = stopf(job.ReasonError, codeOf(failure.Class), "%v", failure)
	f.end.details = map[string]any{"class": string(failure.Class)}
	if failure.Status != 0 {
		f.end.details["status"] = failure.Status
	}
	if failure.Code != "" {
		f.end.details["providerCode"] = failure.Code
	}
	if failure.RequestID != "" {
		f.end.details["requestId"] = failure.RequestID
	}
	if f.retryable && f.wait > maxWait {
		f.retryable = false
		f.end.message += "; it asks to wait " + f.wait.String() + ", longer than the " + maxWait.String() + " a job waits"
	}
	return f
}

func codeOf(class llm.Class) string {
	switch class {
	case llm.ClassAuth:
		return job.CodeProviderAuth
	case llm.ClassQuota:
		return job.CodeProviderQuota
	case llm.ClassInvalidRequest:
		return job.CodeProviderRefused
	case llm.ClassRefused:
		return job.CodeAnswerRefused
	case llm.ClassUnknownStop:
		return job.CodeUnknownStop
	}
	return job.CodeProviderFailed
}

// pause waits before the next try and reports the wait as a span. An empty answer is asked for again at once.
func (t *thread) pause(ex *exchange, try int64, failed int, f *fault, parent *span) *stop {
	wait := f.wait
	if wait == 0 && !f.empty {
		wait = firstWait
		for range failed - 1 {
			wait *= 3
		}
		wait -= time.Duration(t.run.rt.config.Jitter() * float64(wait) / 4)
	}
	sp := t.run.startSpan(parent, job.SpanRetry, map[string]any{"turn": t.turn, "try": try, "class": f.class, "waitMs": wait.Milliseconds()})
	if t.run.record.replaying() {
		sp.end(true, nil)
		return nil
	}
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	defer t.run.onDetach(func() { cancel(errDetached) })()
	err := t.run.rt.config.Wait(ctx, wait)
	sp.end(err == nil, nil)
	return t.ended()
}
