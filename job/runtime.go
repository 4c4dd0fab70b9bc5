package job

import (
	"context"
	"io"
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
}

// Ports are what the caller lends to a job. Both may be nil.
type Ports struct {
	Journal Journal
	Host    Host
}

// Journal takes the private record of a job.
type Journal interface {
	// Append adds a frame. The returned channel is closed when the frame is stored; a nil channel means that there is
	// nothing to wait for.
	Append(frame []byte) (stored <-chan struct{}, err error)
}

// Host is the job's end of a connection to an MCP server that offers the tools of Spec.Host and Spec.Checks: a socket, or
// anything else that carries bytes both ways, as net.Pipe does. The job takes it over: it is closed when the job has ended
// and when Start fails. A Read or Write that waits must return when Close is called.
type Host interface {
	io.ReadWriteCloser
}
