package job

import "context"

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
	// a caller must read it to its end or call Wait, which reads and drops what is left.
	Events() <-chan *Event
	// Wait returns the outcome when the job has ended and every resource of it is released. It may be called while
	// another goroutine reads Events, in which case that goroutine must go on reading.
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

// Host is a connection to the caller's tools.
type Host interface {
	// Close ends the connection; calls in flight fail.
	Close() error
}
