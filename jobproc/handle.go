package jobproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// Handle is a job in a child process. It implements job.Handle and adds Kill.
type Handle struct {
	process *process
	scratch scratch
	host    *lentHost
	journal *lentJournal
	logs    *logPump
	grace   time.Duration

	events    chan *job.Event
	taken     atomic.Bool // Events was called
	discarded chan struct{}
	discard   sync.Once

	lines    chan []byte   // to the child's input
	orders   chan []byte   // likewise, and before them: one abort and one detach
	deaf     chan struct{} // closed when the child takes no more
	gone     chan struct{} // closed when the child is gone
	aborting chan string   // holds the cause of the first Abort
	killing  chan struct{}
	kill     sync.Once
	// detaching is closed by the first Detach.
	detaching chan struct{}
	detach    sync.Once
	started   chan struct{} // the child has answered with its first event
	ended     chan struct{} // the child has no more to say and should exit
	broken    chan struct{} // the child broke the protocol and must go
	done      chan struct{} // everything is released

	// waiting says that a reader, not the child, is what the job waits for.
	waiting atomic.Bool
	// verdict is why this side ended the child, nil if it did not. The first one counts.
	verdict atomic.Pointer[verdict]

	// The fields below belong to the goroutine that reads the child's output.
	output  lineReader
	specID  string
	resume  *job.Resume
	begun   bool
	jobID   string
	seq     int64
	outputs []string
	outcome job.Outcome // read by others after done
}

// verdict is an end that the parent decided on.
type verdict struct {
	reason        job.Reason
	code, message string
}

func newHandle(r *Runtime, spec *job.Spec, p *process, s scratch, host *lentHost, journal *lentJournal) *Handle {
	h := &Handle{
		process:   p,
		scratch:   s,
		host:      host,
		journal:   journal,
		logs:      startLogs(p.stderr, r.logs, NewRedactor(spec)),
		grace:     r.grace,
		events:    make(chan *job.Event),
		discarded: make(chan struct{}),
		lines:     make(chan []byte),
		orders:    make(chan []byte, 2),
		deaf:      make(chan struct{}),
		gone:      make(chan struct{}),
		aborting:  make(chan string, 1),
		killing:   make(chan struct{}),
		detaching: make(chan struct{}),
		started:   make(chan struct{}),
		ended:     make(chan struct{}),
		broken:    make(chan struct{}),
		done:      make(chan struct{}),
		output:    lineReader{source: bufio.NewReaderSize(p.stdout, 32<<10), limit: maxEventBytes},
		specID:    spec.ID,
		resume:    spec.Resume,
	}
	if spec.Resume != nil {
		h.seq = spec.Resume.NextSeq - 1
	}
	go h.feed()
	return h
}

// Events implements job.Handle.
func (h *Handle) Events() <-chan *job.Event {
	h.taken.Store(true)
	return h.events
}

// Discard implements job.Handle.
func (h *Handle) Discard() { h.discard.Do(func() { close(h.discarded) }) }

// Wait implements job.Handle. The child is reaped and its private directory removed when it returns.
func (h *Handle) Wait() job.Outcome {
	if !h.taken.Load() {
		h.Discard()
	}
	<-h.done
	return h.outcome
}

// Abort implements job.Handle. A child that does not end within the grace time is killed.
func (h *Handle) Abort(cause string) {
	select {
	case h.aborting <- cause:
	default:
	}
}

// Detach implements job.Handle.
func (h *Handle) Detach() { h.detach.Do(func() { close(h.detaching) }) }

// Kill ends the child and all its processes at once; a job that had no outcome yet ends as aborted. Calls after the first
// do nothing.
func (h *Handle) Kill() { h.kill.Do(func() { close(h.killing) }) }

// PID returns the process id of the child, for logs and tests.
func (h *Handle) PID() int { return h.process.pid }

// feed writes lines to the child until it is gone or takes no more.
func (h *Handle) feed() {
	defer close(h.deaf)
	for {
		var line []byte
		select {
		case line = <-h.orders:
		default:
			select {
			case line = <-h.orders:
			case line = <-h.lines:
			case <-h.gone:
				return
			}
		}
		if _, err := h.process.stdin.Write(line); err != nil {
			return // the child is gone, or is going; its output says how
		}
	}
}

// send gives the child a line and waits until it can be written, or never will be.
func (h *Handle) send(line []byte) {
	select {
	case h.lines <- line:
	case <-h.deaf:
	}
}

// watch ends a child that does not answer within its patience, and one that does not end by itself. It runs until the
// child is gone.
func (h *Handle) watch(ctx context.Context, patience, limit time.Duration) {
	clock := time.NewTimer(patience)
	defer clock.Stop()
	late := fmt.Sprintf("the job process did not answer within %v and was killed", patience)
	var deadline <-chan time.Time
	cancelled, aborting, detaching, killing := ctx.Done(), h.aborting, h.detaching, h.killing
	started, ended, broken := h.started, h.ended, h.broken
	for {
		select {
		case <-h.process.exited:
			return
		case <-cancelled:
			cancelled = nil
			h.Abort(context.Cause(ctx).Error())
		case cause := <-aborting:
			aborting = nil
			h.decide(job.ReasonAborted, job.CodeAborted, cause)
			h.orders <- encodeAbort(cause) // it has room for the one abort and the one detach
			deadline = time.After(h.grace)
		case <-detaching:
			detaching = nil
			if h.journal != nil {
				h.orders <- encodeDetach()
			}
		case <-started:
			started = nil
			late = "the job process did not end at its time limit and was killed"
			clock.Reset(limit + h.grace)
		case <-ended:
			ended = nil
			deadline = time.After(h.grace)
		case <-clock.C:
			if h.waiting.Load() || h.journal.busy() {
				clock.Reset(h.grace) // the child may have been in time
				continue
			}
			h.decide(job.ReasonTimeout, job.CodeTimeout, late)
			h.process.kill()
		case <-deadline:
			h.process.kill()
		case <-broken:
			broken = nil
			h.process.kill()
		case <-killing:
			killing = nil
			h.decide(job.ReasonAborted, job.CodeAborted, "the job was killed")
			h.process.kill()
		}
	}
}

func (h *Handle) decide(reason job.Reason, code, message string) {
	h.verdict.CompareAndSwap(nil, &verdict{reason: reason, code: code, message: message})
}

// relay passes the child's events on, adds the terminal one if the child does not send it, and releases everything.
func (h *Handle) relay(e *job.Event) {
	var fault error
	for {
		h.note(e)
		h.deliver(e)
		if e.Type.Terminal() || e.Type == job.EventSuspended {
			break
		}
		if e, fault = h.next(); fault != nil {
			break
		}
	}
	if broken := h.finish(fault); broken != nil {
		fault = broken
	}
	h.conclude(fault)
	close(h.events)
	if err := h.release(); err != nil {
		h.logs.print(err.Error())
	}
	close(h.done)
}

// conclude gives a job its outcome if its child did not.
func (h *Handle) conclude(fault error) {
	if o := h.outcome; o.Completed != nil || o.Failed != nil || o.Suspended != nil {
		return
	}
	if h.journal != nil && h.verdict.Load() == nil {
		h.outcome.Lost = h.missing(fault)
		return
	}
	e := job.NewEvent(h.seq+1, time.Now(), h.jobID, "", h.lost(fault))
	h.note(e)
	h.deliver(e)
	if h.journal == nil {
		return
	}
	if err := h.journal.close(job.OutcomeFrame{Failed: h.outcome.Failed, Usage: h.outcome.Usage}, h.seq); err != nil {
		h.logs.print(err.Error())
	}
}

// next reads one event. It is io.EOF when the child has closed its output, and any other error if the child broke the
// protocol; the refusal of a spec is its *problem.Error.
func (h *Handle) next() (*job.Event, error) {
	line, err := h.output.next()
	if err != nil {
		return nil, err
	}
	e, err := job.ParseEvent(line)
	if err != nil {
		if refused, ok := parseRefusal(line); ok && !h.begun {
			return nil, refused
		}
		return nil, fmt.Errorf("line %d of the job process: %w", h.seq+1, err)
	}
	switch {
	case e.Seq != h.seq+1:
		return nil, fmt.Errorf("the job process sent event %d after event %d", e.Seq, h.seq)
	case !h.begun && !h.mayBeginWith(e.Type):
		return nil, fmt.Errorf("the job process began with an event of type %q", e.Type)
	case !h.begun && h.specID != "" && e.JobID != h.specID, h.begun && e.JobID != h.jobID:
		return nil, fmt.Errorf("event %d of the job process is of another job", e.Seq)
	}
	return e, nil
}

// mayBeginWith reports whether an attempt may begin with an event of this type. One that goes on from a journal may fail
// before it is resumed, and one whose predecessors recorded nothing starts.
func (h *Handle) mayBeginWith(t job.EventType) bool {
	return t == job.EventStarted || h.resume != nil && (t == job.EventResumed || t == job.EventFailed)
}

// note keeps what the outcome, or a terminal event of our own, will need.
func (h *Handle) note(e *job.Event) {
	h.seq, h.jobID, h.begun = e.Seq, e.JobID, true
	switch d := e.Data.(type) {
	case *job.OutputData:
		if at, known := slices.BinarySearch(h.outputs, d.Path); !known {
			h.outputs = slices.Insert(h.outputs, at, d.Path)
		}
	case *job.UsageData:
		h.outcome.Usage = d.Total
	case *job.CompletedData:
		h.outcome.Completed = d
	case *job.FailedData:
		h.outcome.Failed = d
	case *job.SuspendedData:
		h.outcome.Suspended = d
	}
}

func (h *Handle) deliver(e *job.Event) {
	h.waiting.Store(true)
	select {
	case h.events <- e:
	case <-h.discarded:
	}
	h.waiting.Store(false)
	if h.journal != nil {
		h.journal.events.reach(e.Seq)
	}
}

// finish sees the child to its end: at once if it broke the protocol, in its own time otherwise. The error is a fault in
// the child's journal.
func (h *Handle) finish(fault error) error {
	if fault != nil && !errors.Is(fault, io.EOF) {
		close(h.broken)
	}
	close(h.ended)
	// Whatever still comes is of no use, but must not keep the child from ending.
	_, _ = io.Copy(io.Discard, h.output.source)
	<-h.process.exited
	<-h.logs.done
	return h.journal.finish()
}

// refuse sees a child to its end that did not start the job, and says why.
func (h *Handle) refuse(ctx context.Context, err error) error {
	if _, refused := errors.AsType[*problem.Error](err); refused {
		_ = h.finish(io.EOF) // the refusal says more than a frame could
	} else {
		if broken := h.finish(err); broken != nil {
			err = broken
		}
		err = h.stillborn(ctx, err)
	}
	close(h.events)
	if failed := h.release(); failed != nil {
		h.logs.print(failed.Error())
	}
	close(h.done)
	return err
}

// release gives back what the job held, except its outcome. It is called once, when the child is gone.
func (h *Handle) release() error {
	<-h.process.exited
	close(h.gone)
	<-h.deaf
	h.process.release()
	h.host.end()
	h.journal.end()
	return h.scratch.remove()
}
