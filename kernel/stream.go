package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/hozo-run/hozo/llm"
)

// errStalled is the cause of a request that made no progress for too long.
var errStalled = errors.New("the model made no progress")

// stream watches one response as it arrives: it emits the text, and it cuts a response that stalls or floods.
type stream struct {
	deltas deltas
	silent bool
	flood  flood
	// received counts the bytes of all deltas, to estimate the usage of a response that was cut.
	received int
	idle     *time.Timer
	limit    time.Duration
}

// newStream starts the idle clock; progress of the model sets it back, and close stops it.
func (t *thread) newStream(ex *exchange, try int64, cancel context.CancelCauseFunc) *stream {
	s := &stream{silent: ex.silent, limit: t.idleTimeout(),
		deltas: deltas{thread: t, turn: t.turn, try: try, held: t.call == nil && len(t.run.judges) > 0}}
	if s.limit > 0 {
		s.idle = time.AfterFunc(s.limit, func() { cancel(errStalled) })
	}
	return s
}

// sink implements llm.Sink.
func (s *stream) sink(d llm.Delta) error {
	if s.idle != nil {
		s.idle.Reset(s.limit)
	}
	s.received += len(d.Text)
	if stopped := s.flood.add(d); stopped != nil {
		return stopped
	}
	if d.Kind == llm.DeltaText && !s.silent {
		s.deltas.add(d.Text)
	}
	return nil
}

// close ends the watch and reports whether any text was emitted.
func (s *stream) close() (emitted bool) {
	if s.idle != nil {
		s.idle.Stop()
	}
	return s.deltas.close()
}
