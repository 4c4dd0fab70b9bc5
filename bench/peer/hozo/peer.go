package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hozo-run/hozo/bench/harness"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
)

// peer implements harness.Peer, harness.Auditor and harness.Preparer.
type peer struct {
	dir      string
	runtime  *kernel.Runtime
	stopped  *kernel.Runtime // made by the first Prepare
	reached  chan struct{}
	counters counters
}

var (
	_ harness.Auditor  = (*peer)(nil)
	_ harness.Preparer = (*peer)(nil)
)

type counters struct {
	events, deltas, textBytes, usages, tokens, cost, lineBytes atomic.Int64
}

// New implements harness.Peer. A session is one job; nothing of it exists before its run.
func (p *peer) New(base, model string) (harness.Session, error) {
	return &session{peer: p, spec: newSpec(p.dir, base, model)}, nil
}

type session struct {
	peer *peer
	spec *job.Spec
}

// Run implements harness.Session.
func (s *session) Run(ctx context.Context, prompt string) (string, error) {
	s.spec.Task = prompt
	handle, err := s.peer.runtime.Start(ctx, s.spec, job.Ports{})
	if err != nil {
		return "", err
	}
	s.peer.counters.read(handle.Events())
	outcome := handle.Wait()
	if outcome.Failed != nil {
		return "", fmt.Errorf("%s: %s", outcome.Failed.Code, outcome.Failed.Message)
	}
	return outcome.Completed.Answer, nil
}

// read takes the events of one job.
func (c *counters) read(events <-chan *job.Event) {
	var n, deltas, text, usages, tokens, cost, line int64
	for e := range events {
		n++
		line += int64(len(e.Line()))
		switch d := e.Data.(type) {
		case *job.MessageDeltaData:
			deltas++
			text += int64(len(d.Text))
			harness.CountDelta()
		case *job.UsageData:
			usages++
			tokens += d.Call.Tokens.Total()
			cost += int64(d.Call.CostMicroUSD)
		}
	}
	c.events.Add(n)
	c.deltas.Add(deltas)
	c.textBytes.Add(text)
	c.usages.Add(usages)
	c.tokens.Add(tokens)
	c.cost.Add(cost)
	c.lineBytes.Add(line)
}

// Reset implements harness.Auditor.
func (p *peer) Reset() {
	c := &p.counters
	for _, n := range []*atomic.Int64{&c.events, &c.deltas, &c.textBytes, &c.usages, &c.tokens, &c.cost, &c.lineBytes} {
		n.Store(0)
	}
}

// What fakellm reports for a request, and what it costs at the price of newSpec.
const (
	requestTokens = 120
	requestMicros = 100*3 + 20*15
	pieceBytes    = int64(len("lorem ipsum "))
)

// Audit implements harness.Auditor. A run of t tool calls has 6t+6 events beside the deltas: the start, the end and the
// job's span; for each request the message, its usage and the turn's span; for each call the call, its result and its
// span. Deltas are joined as time allows, so their text is exact and their number is bounded.
func (p *peer) Audit(w harness.Work, requests int64) error {
	c := &p.counters
	deltas := c.deltas.Load()
	var errs []error
	check := func(what string, got, want int64) {
		if got != want {
			errs = append(errs, fmt.Errorf("%s: %d, want %d", what, got, want))
		}
	}
	check("requests", requests, w.Requests())
	check("events without deltas", c.events.Load()-deltas, int64(w.Runs)*int64(6*w.Turns+6))
	check("bytes of text in deltas", c.textBytes.Load(), w.Requests()*int64(w.Pieces)*pieceBytes)
	check("usage events", c.usages.Load(), w.Requests())
	check("tokens", c.tokens.Load(), w.Requests()*requestTokens)
	check("cost in micro-dollars", c.cost.Load(), w.Requests()*requestMicros)
	if deltas < w.Requests() || deltas > w.Requests()*int64(w.Pieces) {
		errs = append(errs, fmt.Errorf("delta events: %d, want %d to %d", deltas, w.Requests(), w.Requests()*int64(w.Pieces)))
	}
	if len(errs) > 0 {
		return fmt.Errorf("the counts are wrong: %w", errors.Join(errs...))
	}
	return nil
}

// Prepare implements harness.Preparer: it starts a job whose adapter is stopped at the first request.
func (p *peer) Prepare(base, model string) (func(), error) {
	if p.stopped == nil {
		p.reached = make(chan struct{})
		var err error
		if p.stopped, err = newRuntime(p.stopAtRequest); err != nil {
			return nil, err
		}
	}
	handle, err := p.stopped.Start(context.Background(), newSpec(p.dir, base, model), job.Ports{})
	if err != nil {
		return nil, err
	}
	<-p.reached
	return func() { handle.Abort("measured"); handle.Wait() }, nil
}

// stopAtRequest wraps an adapter so that a request is encoded but waits, instead of being sent, until its job ends.
func (p *peer) stopAtRequest(next llm.Adapter) llm.Adapter {
	return func(a llm.Account) (llm.Provider, error) {
		provider, err := next(a)
		return stoppedProvider{provider, p.reached}, err
	}
}

type stoppedProvider struct {
	llm.Provider
	reached chan struct{}
}

func (p stoppedProvider) Converse(o llm.Opening) (llm.Dialog, error) {
	dialog, err := p.Provider.Converse(o)
	return stoppedDialog{dialog, p.reached}, err
}

type stoppedDialog struct {
	llm.Dialog
	reached chan struct{}
}

func (c stoppedDialog) Stream(ctx context.Context, _ llm.Call, _ llm.Sink) (llm.Response, error) {
	c.reached <- struct{}{}
	<-ctx.Done()
	return llm.Response{}, context.Cause(ctx)
}
