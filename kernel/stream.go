package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// errStalled is the cause of a request that made no progress for too long.
var errStalled = errors.New("the model made no progress")

// stream watches one response as it arrives: it emits the text, and it cuts a response that stalls or floods.
type stream struct {
	deltas deltas
	flood  flood
	// received counts the bytes of all deltas, to estimate the usage of a response that was cut.
	received int
	idle     *time.Timer
	limit    time.Duration
}

// newStream starts the idle clock; progress of the model sets it back, and close stops it.
func (r *run) newStream(turn, try int64, cancel context.CancelCauseFunc) *stream {
	s := &stream{deltas: deltas{emitter: r.emitter, turn: turn, try: try, held: len(r.judges) > 0}, limit: r.idleTimeout()}
	if s.limit > 0 {
		s.idle = time.AfterFunc(s.limit, func() { cancel(errStalled) })
	}
	return s
}

func (r *run) idleTimeout() time.Duration {
	if limit := r.spec.Limits.IdleTimeoutSec; limit != nil {
		return seconds(*limit)
	}
	return seconds(job.DefaultIdleTimeoutSec)
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
	if d.Kind == llm.DeltaText {
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
