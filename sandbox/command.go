package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hozo-run/hozo/problem"
)

// The defaults of Command.
const (
	DefaultTimeout   = 120 * time.Second
	DefaultGrace     = 500 * time.Millisecond
	DefaultWaitDelay = time.Second
)

// Command is a program to be run confined. It is a plain value: it can be started any number of times.
type Command struct {
	// Path is the program, as an absolute path: nothing is looked up in a PATH that a job could have changed.
	Path string
	// Args are the arguments, without the name of the program.
	Args []string
	// Env is the whole environment, see Environment; nil is an empty one.
	Env []string
	// Dir is the working directory, an absolute path.
	Dir string
	// Stdin is the standard input; nil is an empty one. The child gets a copy, the caller closes its own.
	Stdin *os.File
	// Stdout and Stderr are the standard output and error output. What is nil goes to the output of the Result, both in
	// the order in which they were written.
	Stdout, Stderr *os.File
	// OnOutput is called with each piece of output that goes to the Result, as it comes, one call after another. It must
	// not keep the piece. Nil is allowed.
	OnOutput func(piece []byte)
	// Timeout ends the program with all its descendants; zero means DefaultTimeout, negative none.
	Timeout time.Duration
	// Grace is how long the program has between SIGTERM and SIGKILL when it is ended; zero means DefaultGrace, negative
	// none.
	Grace time.Duration
	// WaitDelay is how long output is awaited that something outside of the reach of this process still holds open when
	// the program has ended; zero means DefaultWaitDelay.
	WaitDelay time.Duration
}

// Result is how a command ended. Whatever it left running has been killed by then.
type Result struct {
	// ExitCode is the program's exit code, or 128 and the number of the signal that ended it.
	ExitCode int
	// Signal is the name of that signal, "" if there was none.
	Signal string
	// TimedOut says that Timeout ended the program, Aborted that the context did.
	TimedOut, Aborted bool
	// Output is the end of what was written, see Tail.Kept. It may hold any bytes.
	Output []byte
	// Bytes and Lines count all that was written, Truncated says that Output is not the whole of it.
	Bytes, Lines int64
	Truncated    bool
	// OutputHeld says that something still held the output open when WaitDelay was over.
	OutputHeld bool
	// Duration is from start to end.
	Duration time.Duration
}

// Process is a running command.
type Process struct {
	child     child
	grace     time.Duration
	waitDelay time.Duration
	began     time.Time
	output    *capture

	stop    chan struct{} // closed by Kill
	stopped sync.Once
	done    chan struct{} // closed when result is set
	result  Result
}

// child is what each system provides: a started program, or the helper in front of it.
type child interface {
	// pid is the number of the process that was started.
	pid() int
	// exited is closed when the program has ended and nothing of it is left. status is valid then.
	exited() <-chan struct{}
	status() (code int, signal string)
	// terminate asks the program to end, kill ends it and everything it started. Both may be called at any time.
	terminate()
	kill()
}

// Run starts the command and waits for its end. The error is Start's: a program that fails, or is ended, is a Result.
func (s *Sandbox) Run(ctx context.Context, c Command) (Result, error) {
	p, err := s.Start(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return p.Wait(), nil
}

// Start starts the command; the end of ctx ends it. A command that is not sound is an error of kind Invalid, a program or
// directory that does not exist of kind NotFound, one that may not be run, or an exhausted machine, of kind Unavailable.
func (s *Sandbox) Start(ctx context.Context, c Command) (*Process, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, context.Cause(ctx))
	}
	files, err := c.connect()
	if err != nil {
		return nil, wrap("start "+c.Path, err)
	}
	defer files.closeTheirs()
	began := time.Now()
	running, err := s.spawn(&c, files.stdio)
	if err != nil {
		files.closeOurs()
		return nil, wrap("start "+c.Path, err)
	}
	p := &Process{
		child:     running,
		grace:     orDefault(c.Grace, DefaultGrace),
		waitDelay: orDefault(c.WaitDelay, DefaultWaitDelay),
		began:     began,
		output:    newCapture(files.output, c.OnOutput),
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	go p.watch(ctx, orDefault(c.Timeout, DefaultTimeout))
	return p, nil
}

// orDefault reads a duration whose zero is a default; a negative one stays as it is.
func orDefault(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return d
}

func (c *Command) check() error {
	var problems problem.List
	for _, f := range []struct{ field, path string }{{"/path", c.Path}, {"/dir", c.Dir}} {
		if !filepath.IsAbs(f.path) {
			problems.AddHint("invalid-path", f.field, "give it from the root", "%q is no absolute path", f.path)
		}
	}
	return problems.Err("start a confined process")
}

// wrap gives an error of the system its kind.
func wrap(op string, err error) error {
	kind := problem.Unavailable
	if errors.Is(err, os.ErrNotExist) {
		kind = problem.NotFound
	}
	return &problem.Error{Kind: kind, Op: op, Err: err}
}

// stdio are the files of a child before it starts.
type stdio struct {
	stdio  [3]*os.File
	output *os.File // our end of the pipe; nil if nothing is captured
	theirs []*os.File
}

// connect opens what the command leaves open: an empty input, and one pipe for all output, which keeps its order.
func (c *Command) connect() (*stdio, error) {
	s := &stdio{stdio: [3]*os.File{c.Stdin, c.Stdout, c.Stderr}}
	if c.Stdin == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		s.stdio[0] = null
		s.theirs = append(s.theirs, null)
	}
	if c.Stdout != nil && c.Stderr != nil {
		return s, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		s.closeTheirs()
		return nil, err
	}
	s.output = r
	s.theirs = append(s.theirs, w)
	for i := 1; i < 3; i++ {
		if s.stdio[i] == nil {
			s.stdio[i] = w
		}
	}
	return s, nil
}

func (s *stdio) closeTheirs() {
	for _, f := range s.theirs {
		f.Close()
	}
	s.theirs = nil
}

func (s *stdio) closeOurs() {
	if s.output != nil {
		s.output.Close()
	}
}

// PID returns the number of the process that was started, for a report. It may be gone already.
func (p *Process) PID() int { return p.child.pid() }

// Kill ends the program and all its descendants at once. It returns without waiting and may be called more than once.
func (p *Process) Kill() { p.stopped.Do(func() { close(p.stop) }) }

// Wait waits until the program has ended, nothing of it is left and its output is read.
func (p *Process) Wait() Result {
	<-p.done
	return p.result
}

// Done is closed when Wait would return at once.
func (p *Process) Done() <-chan struct{} { return p.done }

// watch ends the program when its time is over or nobody wants it any more, and collects what is left of it.
func (p *Process) watch(ctx context.Context, timeout time.Duration) {
	defer close(p.done)
	var over <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-p.child.exited():
	case <-over:
		p.result.TimedOut = true
		p.end()
	case <-ctx.Done():
		p.result.Aborted = true
		p.end()
	case <-p.stop:
		p.result.Aborted = true
		p.child.kill()
		<-p.child.exited()
	}
	p.result.Duration = time.Since(p.began)
	p.result.ExitCode, p.result.Signal = p.child.status()
	p.output.finish(p.waitDelay, &p.result)
}

// end asks first and then does not ask. It returns when nothing is left.
func (p *Process) end() {
	if p.grace > 0 {
		p.child.terminate()
		timer := time.NewTimer(p.grace)
		defer timer.Stop()
		select {
		case <-p.child.exited():
			return
		case <-p.stop:
		case <-timer.C:
		}
	}
	p.child.kill()
	<-p.child.exited()
}

// capture reads the output of a command into a Tail.
type capture struct {
	from *os.File
	tail Tail
	done chan struct{}
}

func newCapture(from *os.File, each func([]byte)) *capture {
	c := &capture{from: from, done: make(chan struct{})}
	if from == nil {
		close(c.done)
		return c
	}
	go c.read(each)
	return c
}

func (c *capture) read(each func([]byte)) {
	defer close(c.done)
	buffer := make([]byte, 32<<10)
	for {
		n, err := c.from.Read(buffer)
		if n > 0 {
			_, _ = c.tail.Write(buffer[:n]) // it never fails
			if each != nil {
				each(buffer[:n])
			}
		}
		if err != nil {
			return
		}
	}
}

// finish waits for the end of the output, but no longer than delay, and fills in the result.
func (c *capture) finish(delay time.Duration, r *Result) {
	if c.from == nil {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		r.OutputHeld = true
	}
	// Closing ends a reading that still waits.
	c.from.Close()
	<-c.done
	r.Output, r.Bytes, r.Lines = c.tail.Kept(), c.tail.Bytes(), c.tail.Lines()
	r.Truncated = int64(len(r.Output)) < r.Bytes
}

var _ io.Writer = (*Tail)(nil)
