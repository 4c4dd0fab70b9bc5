package telemetry_test

import (
	"testing"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/telemetry"
)

// playedJob is a job.Handle whose events are given.
type playedJob struct {
	events chan *job.Event
	done   chan struct{}
}

func play(all *events) *playedJob {
	p := &playedJob{events: make(chan *job.Event), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer close(p.events)
		for _, event := range all.all {
			p.events <- event
		}
	}()
	return p
}

func (p *playedJob) Events() <-chan *job.Event { return p.events }
func (p *playedJob) Discard()                  {}
func (p *playedJob) Abort(string)              {}
func (p *playedJob) Detach()                   {}
func (p *playedJob) Wait() job.Outcome {
	<-p.done
	return job.Outcome{}
}

func TestWatchedJobIsRecordedHoweverItIsRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		read func(job.Handle) int
		want int
	}{
		"to the end": {func(h job.Handle) int {
			n := 0
			for range h.Events() {
				n++
			}
			return n
		}, len(wholeJob().all)},
		"not at all": {func(job.Handle) int { return 0 }, 0},
		"discarded": {func(h job.Handle) int {
			<-h.Events()
			h.Discard()
			h.Discard()
			return 1
		}, 1},
		"discarded at once": {func(h job.Handle) int { h.Discard(); return 0 }, 0},
	} {
		r := newReceiver(t, nil)
		e := opened(t, r.with(), nil)
		h := e.Watch(play(wholeJob()), telemetry.NewTrace(""), nil)
		if n := tc.read(h); n != tc.want {
			t.Errorf("%s: %d events, want %d", name, n, tc.want)
		}
		h.Wait()
		e.Close()
		if n := len(r.spans(t)); n != 11 {
			t.Errorf("%s: %d spans, want 11", name, n)
		}
	}
}

func TestStreamWithoutAnEndEndsTheJob(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	e := opened(t, r.with(), nil)
	h := e.Watch(play(newEvents().add(&job.MessageDeltaData{Turn: 1, Try: 1})), telemetry.NewTrace(""), nil)
	h.Wait()
	e.Close()
	if s := named(t, r.spans(t), "invoke_agent reader"); s.status != 2 || s.message != "_OTHER" {
		t.Errorf("status %d %q", s.status, s.message)
	}
}
