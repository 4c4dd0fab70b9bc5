package kernel

import (
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

// fault is why a try failed, and what the job ends with if it is not tried again.
type fault struct {
	end       *stop
	retryable bool
	// class is for the retry span; wait is what the provider asks for, 0 if it does not.
	class string
	wait  time.Duration
	empty bool
}

// respond asks the model until it has a usable response. It retries what may pass by itself, within the limits of the
// turn and of the job; the request is the same each time.
func (r *run) respond(turn int64, parent *span) (llm.Response, *stop) {
	empty := 0
	for try := int64(1); ; try++ {
		if ended := r.ended(); ended != nil {
			return llm.Response{}, ended
		}
		space, refused := r.ledger.beforeRequest(r.plan.maxOutput)
		if refused != nil {
			return llm.Response{}, refused
		}
		response, f := r.try(turn, try, space)
		if f == nil {
			return response, nil
		}
		r.ledger.failures++
		if f.empty {
			empty++
		}
		if over := r.ledger.overspent(); over != nil {
			return llm.Response{}, over
		}
		if !f.retryable || try == maxTries || empty == maxEmptyTries {
			return llm.Response{}, f.end
		}
		if ended := r.pause(turn, try, f, parent); ended != nil {
			return llm.Response{}, ended
		}
	}
}

// try sends one request and judges what came back.
func (r *run) try(turn, try int64, space room) (llm.Response, *fault) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	r.ledger.total.Requests++
	s := r.newStream(turn, try, cancel)
	start := time.Now()
	response, err := r.plan.dialog.Stream(ctx, llm.Call{MaxOutputTokens: space.tokens, Purpose: llm.PurposeTurn}, s.sink)
	emitted := s.close()
	f := r.judge(response, err, space)
	if f == nil {
		r.ledger.total.Turns++
		r.held = &s.deltas
	}
	r.book(turn, try, response, request{start, time.Since(start), s.received}, f)
	if f != nil && emitted {
		r.emit(&job.MessageDiscardedData{Turn: turn, Try: try, Why: f.class})
	}
	return response, f
}

// judge decides whether a response can be used.
func (r *run) judge(response llm.Response, err error, space room) *fault {
	if err != nil {
		return r.judgeError(err)
	}
	window, prompt := r.plan.model.ContextWindow, response.Usage.Prompt()
	switch {
	case response.Stop == llm.StopLength && window > 0 && response.Usage.Output == 0 && prompt*100 >= window*99,
		response.Stop != llm.StopLength && window > 0 && prompt > window:
		return &fault{class: string(llm.ClassContextOverflow), end: overflow("the prompt of %d tokens fills the model's window of %d", prompt, window)}
	case response.Stop == llm.StopLength && space.by == job.ReasonBudget:
		return &fault{class: "budget", end: stopf(job.ReasonBudget, job.CodeBudget,
			"stopped: the answer was cut at %d tokens, which is all that the money limit left", space.tokens)}
	case response.Stop == llm.StopLength && space.by == job.ReasonContextOverflow:
		return &fault{class: string(llm.ClassContextOverflow), end: overflow(
			"the answer was cut at %d tokens, which is all that the prompt left of the window of %d", space.tokens, window)}
	case response.Stop == llm.StopLength:
		return &fault{class: "output-limit", end: stopf(job.ReasonError, job.CodeOutputLimit,
			"the answer was cut at the output limit (%s)", outputLimit(space.tokens, response.Usage.Output))}
	case len(response.Message.ToolCalls()) == 0 && strings.TrimSpace(response.Message.Text()) == "":
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

func (r *run) judgeError(err error) *fault {
	if s, ok := errors.AsType[*stop](err); ok {
		return &fault{end: s, class: string(s.reason)}
	}
	if errors.Is(err, errStalled) {
		return &fault{retryable: true, class: "stalled", end: stopf(job.ReasonTimeout, job.CodeStalled,
			"the model made no progress for %g s", r.idleTimeout().Seconds())}
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
func (r *run) pause(turn, try int64, f *fault, parent *span) *stop {
	wait := f.wait
	if wait == 0 && !f.empty {
		wait = firstWait
		for range try - 1 {
			wait *= 3
		}
		wait -= time.Duration(r.rt.config.Jitter() * float64(wait) / 4)
	}
	sp := r.startSpan(parent, job.SpanRetry, map[string]any{"turn": turn, "try": try, "class": f.class, "waitMs": wait.Milliseconds()})
	if r.rt.config.Wait(r.ctx, wait) != nil {
		sp.end(false, nil)
		return r.ended()
	}
	sp.end(true, nil)
	return nil
}
