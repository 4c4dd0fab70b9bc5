package jobproc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// Child is the job process's side of the protocol.
type Child struct {
	// Runtime runs the job in this process.
	Runtime job.Runtime
	// In and Out are the standard input and output.
	In  io.Reader
	Out io.Writer
	// Host is what OpenHost made of the descriptor that the parent handed down, nil if it handed none.
	Host job.Host
	// Journal is what OpenJournal made of another one, nil if the job has no journal.
	Journal io.Writer
	// Grace is how long the job may take to end when the parent is gone, before End is called; zero means DefaultGrace.
	Grace time.Duration
	// End ends this process and everything it started; nil sends SIGKILL to the process group if this process leads one,
	// and exits otherwise.
	End func()
}

// Serve reads a spec, runs it and returns the exit code for the process. When ctx ends the job is aborted.
func (c Child) Serve(ctx context.Context) int {
	lines := lineReader{source: bufio.NewReaderSize(c.In, 32<<10), limit: maxMessageBytes}
	spec, err := readSpec(&lines)
	if err != nil {
		return c.refuse(err)
	}
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	o := &orders{abort: abort, journal: newChildJournal(c.Journal), started: make(chan struct{}), ended: make(chan struct{})}
	defer close(o.ended)
	go c.obey(&lines, o)
	ports := job.Ports{Host: c.Host}
	if o.journal != nil {
		ports.Journal = o.journal
	}
	h, err := c.Runtime.Start(ctx, spec, ports)
	if err != nil {
		return c.refuse(err)
	}
	o.handle = h
	close(o.started)
	outcome, err := WriteEvents(c.Out, h)
	if err != nil {
		return 1 // nobody reads any more
	}
	return outcome.ExitCode()
}

func (c Child) refuse(err error) int {
	if err := WriteRefusal(c.Out, err); err != nil {
		return 1
	}
	return job.ExitInvalidSpec
}

// readSpec reads the first line, which carries the spec.
func readSpec(lines *lineReader) (*job.Spec, error) {
	line, err := lines.next()
	if err != nil {
		return nil, protocolError("no spec came: %v", err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.Type != messageSpec {
		return nil, protocolError("the first line must be a message of type %q", messageSpec)
	}
	// The parent encoded this from the type itself, so only a field that is not ours needs to be noticed here: the checks
	// are the runtime's, and its answer is then the same as in the parent's own process.
	decoder := json.NewDecoder(bytes.NewReader(m.Spec))
	decoder.DisallowUnknownFields()
	spec := new(job.Spec)
	if err := decoder.Decode(spec); err != nil {
		return nil, protocolError("the spec does not decode: %v", err)
	}
	return spec, nil
}

func protocolError(format string, args ...any) error {
	return &problem.Error{Kind: problem.Invalid, Problems: problem.List{{Code: "protocol", Message: fmt.Sprintf(format, args...)}}}
}

// orders is what the parent's messages act on.
type orders struct {
	abort   context.CancelCauseFunc
	journal *childJournal // nil without one
	// started is closed when handle is set; it never is if the job is refused. ended is closed with Serve.
	started, ended chan struct{}
	handle         job.Handle
}

// whenStarted calls f with the job as soon as there is one.
func (o *orders) whenStarted(f func(job.Handle)) {
	select {
	case <-o.started:
		f(o.handle)
	case <-o.ended:
	}
}

// obey does what the parent says. The end of the input means that there is no parent any more, and so nobody for whom
// the job could run.
func (c Child) obey(lines *lineReader, o *orders) {
	for {
		line, err := lines.next()
		if err != nil {
			o.abort(errors.New("the parent process is gone"))
			o.journal.parentGone()
			o.whenStarted(job.Handle.Discard)
			c.endAfterGrace(o.ended)
			return
		}
		m, err := parseMessage(line)
		switch {
		case err != nil:
			o.abort(errors.New("the parent process sent a line that is no message"))
		case m.Type == messageAbort:
			o.abort(errors.New(m.Cause))
		case o.journal != nil:
			o.keep(m)
		default:
			o.abort(unknownMessage(m.Type))
		}
	}
}

// keep does what the messages of a job with a journal say.
func (o *orders) keep(m message) {
	switch m.Type {
	case messageFrame:
		o.journal.earlier.add(m.Frame)
	case messageEnd:
		o.journal.earlier.end(nil)
	case messageAck:
		var failed error
		if m.Error != "" {
			failed = errors.New(m.Error)
		}
		o.journal.acknowledge(m.N, failed)
	case messageDetach:
		// The start may have to read frames that come after this.
		go o.whenStarted(job.Handle.Detach)
	default:
		o.abort(unknownMessage(m.Type))
	}
}

func unknownMessage(kind string) error {
	return fmt.Errorf("the parent process sent a message of type %q, which this version does not know or the job has no use for", kind)
}

func (c Child) endAfterGrace(ended <-chan struct{}) {
	grace := c.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		if c.End != nil {
			c.End()
			return
		}
		endGroup()
	}
}

// endGroup kills this process's group. A process that leads none, because something else than this package started it,
// must not kill its neighbours.
func endGroup() {
	if syscall.Getpgrp() == os.Getpid() {
		// It cannot fail: the group has at least this process, which does not see the result.
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
	os.Exit(1)
}

// ErrReaderGone is the error of WriteEvents when the stream could not be written.
var ErrReaderGone = errors.New("the reader of the events is gone")

// WriteEvents writes every event of h to w as JSON Lines and returns the outcome when the job has ended. Lines that are
// ready together are written together. If w fails the job is aborted, the rest is dropped, and the error wraps
// ErrReaderGone.
func WriteEvents(w io.Writer, h job.Handle) (job.Outcome, error) {
	out := bufio.NewWriterSize(w, 16<<10)
	events := h.Events()
	for e := range events {
		err := writeLine(out, e.Line())
		for more := true; more && err == nil; {
			select {
			case next, ok := <-events:
				if more = ok; ok {
					err = writeLine(out, next.Line())
				}
			default:
				more = false
			}
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			h.Abort("the reader of the events is gone")
			h.Discard()
			return h.Wait(), fmt.Errorf("%w: %w", ErrReaderGone, err)
		}
	}
	return h.Wait(), nil
}

func writeLine(w *bufio.Writer, line []byte) error {
	if _, err := w.Write(line); err != nil {
		return err
	}
	return w.WriteByte('\n')
}
