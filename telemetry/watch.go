package telemetry

import (
	"sync"

	"github.com/hozo-run/hozo/job"
)

// Watch returns a handle like h whose events are recorded on their way to the reader, in a Trace that the job was started
// with. Events that the reader discards are recorded all the same. Redact takes credentials out of a text; nil takes
// nothing out. The handle of a nil Exporter is h itself.
func (e *Exporter) Watch(h job.Handle, t Trace, redact func(string) string) job.Handle {
	if e == nil {
		return h
	}
	return &watched{Handle: h, recorder: e.NewRecorder(t, redact), events: make(chan *job.Event), discard: make(chan struct{}),
		done: make(chan struct{})}
}

// watched is a job whose events pass a recorder.
type watched struct {
	job.Handle
	recorder *Recorder
	events   chan *job.Event
	discard  chan struct{}
	done     chan struct{}

	start, stop sync.Once
}

// Events implements job.Handle.
func (w *watched) Events() <-chan *job.Event {
	w.relay()
	return w.events
}

// Discard implements job.Handle.
func (w *watched) Discard() {
	w.stop.Do(func() { close(w.discard) })
	w.relay()
}

// Wait implements job.Handle.
func (w *watched) Wait() job.Outcome {
	w.start.Do(func() { // Events was never called
		w.stop.Do(func() { close(w.discard) })
		go w.pass()
	})
	outcome := w.Handle.Wait()
	<-w.done
	return outcome
}

func (w *watched) relay() { w.start.Do(func() { go w.pass() }) }

func (w *watched) pass() {
	defer close(w.done)
	defer close(w.events)
	for event := range w.Handle.Events() {
		w.recorder.Observe(event)
		select {
		case w.events <- event:
		case <-w.discard:
		}
	}
	w.recorder.abandon()
}
