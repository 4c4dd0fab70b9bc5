package job

import (
	"context"
	"io"
	"iter"
)

// Runtime runs jobs. kernel runs them in this process, jobproc each in a child process.
type Runtime interface {
	// Start checks the spec, reports every problem at once (a *problem.Error of kind Invalid; no event stream exists
	// then) or starts the job and returns its handle. The spec is not changed and must not be changed until the job has
	// ended. When ctx ends, the job ends as aborted with the context's cause as message.
	Start(ctx context.Context, spec *Spec, ports Ports) (Handle, error)
}

// Handle is a job that was started.
type Handle interface {
	// Events is the stream of the job, closed after the terminal event. It has one reader, which back-pressures the job:
	// whoever calls Events reads it to its end or calls Discard.
	Events() <-chan *Event
	// Discard drops the events that nobody has read; the job goes on. Calls after the first do nothing.
	Discard()
	// Wait returns the outcome when the job has ended and every resource of it is released. If Events was never called,
	// Wait discards the events. It may be called by several goroutines.
	Wait() Outcome
	// Abort ends the job as aborted, with cause as message. It returns at once; calls after the first do nothing.
	Abort(cause string)
	// Detach ends the attempt so that the job can go on elsewhere: it is suspended, without waits, as soon as the calls in
	// flight have answered and the journal has everything. A request to a model is given up. It returns at once. A job
	// without a journal goes on.
	Detach()
}

// Ports are what the caller lends to a job. Both may be nil.
type Ports struct {
	Journal Journal
	Host    Host
}

// Journal takes the private record of a job and gives back what earlier attempts recorded. It is used by one goroutine at
// a time.
type Journal interface {
	// Earlier yields the frames of the earlier attempts, encoded as they were appended, in order. It is called once, before
	// the first Append, and only if Spec.Resume is set.
	Earlier() iter.Seq2[[]byte, error]
	// Append adds a frame, a JSON object on one line without its end; it must not be changed afterwards. The channel gives
	// one value when this frame and all before it are stored, or cannot be; it is nil if there is nothing to wait for. The
	// runtime waits before a call that does more than read, before the next request to a model, and before the end.
	Append(frame []byte) (stored <-chan error, err error)
}

// Host is the job's end of a connection to an MCP server that offers the tools of Spec.Host and Spec.Checks: a socket, or
// anything else that carries bytes both ways, as net.Pipe does. The job takes it over: it is closed when the job has ended
// and when Start fails. A Read or Write that waits must return when Close is called.
type Host interface {
	io.ReadWriteCloser
}
