package kernel

import (
	"sync"
	"time"

	"github.com/hozo-run/hozo/job"
)

// emitter gives events their order: whoever emits waits until the reader has taken the event, unless the events are being
// discarded. It is safe for concurrent use.
type emitter struct {
	jobID  string
	events chan *job.Event
	// discard is closed when nobody reads any more.
	discard     chan struct{}
	discardOnce sync.Once

	mu  sync.Mutex
	seq int64
	// muted drops what is emitted: an earlier attempt has reported it.
	muted bool
	ended bool
}

func newEmitter(jobID string) *emitter {
	return &emitter{jobID: jobID, events: make(chan *job.Event, 16), discard: make(chan struct{})}
}

func (e *emitter) stopReading() { e.discardOnce.Do(func() { close(e.discard) }) }

func (e *emitter) emit(data job.EventPayload) { e.emitIn("", data) }

// emitIn emits what happened inside of a call.
func (e *emitter) emitIn(parentCallID string, data job.EventPayload) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.muted || e.ended { // a tool that was left behind has nothing to report any more
		return
	}
	e.seq++
	event := job.NewEvent(e.seq, time.Now(), e.jobID, parentCallID, data)
	select {
	case <-e.discard:
	case e.events <- event:
	}
}

// last is the number of the last event.
func (e *emitter) last() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seq
}

// mute drops what is emitted from now on, until unmute.
func (e *emitter) mute() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.muted = true
}

// unmute goes on with the event after seq.
func (e *emitter) unmute(seq int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.muted, e.seq = false, seq
}

// end closes the stream; what is emitted afterwards is dropped.
func (e *emitter) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	close(e.events)
}

const (
	deltaBytes    = 4096
	deltaInterval = 50 * time.Millisecond
)

// deltas joins the pieces of a response's text into few events: the first at once, then one per deltaInterval or
// deltaBytes.
type deltas struct {
	thread    *thread
	turn, try int64

	mu      sync.Mutex
	buffer  []byte
	last    time.Time
	timer   *time.Timer
	emitted bool
	closed  bool
	// held keeps the text back until release: an answer that is still to be judged must be in no event.
	held bool
}

// add takes a piece of text.
func (d *deltas) add(text []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.buffer = append(d.buffer, text...)
	if d.held {
		return
	}
	now := time.Now()
	switch wait := deltaInterval - now.Sub(d.last); {
	case len(d.buffer) >= deltaBytes || wait <= 0:
		d.flush(now)
	case d.timer == nil:
		d.timer = time.AfterFunc(wait, d.tick)
	}
}

func (d *deltas) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = nil
	if !d.closed {
		d.flush(time.Now())
	}
}

func (d *deltas) flush(now time.Time) {
	if len(d.buffer) == 0 {
		return
	}
	d.last = now
	d.emitted = true
	text := string(d.buffer)
	d.buffer = d.buffer[:0]
	d.thread.emit(&job.MessageDeltaData{Turn: d.turn, Try: d.try, Text: text})
}

// close emits what is left and reports whether anything was emitted. Nothing is emitted afterwards.
func (d *deltas) close() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
	if !d.held {
		d.flush(time.Now())
	}
	return d.emitted
}

// release emits the text that was held back.
func (d *deltas) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flush(time.Now())
}
