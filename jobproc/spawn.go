package jobproc

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hozo-run/hozo/sandbox"
)

// process is a running child with the parent's ends of its three pipes.
type process struct {
	stdin  *os.File
	stdout *drainedPipe
	stderr *drainedPipe
	// exited is closed when the child is gone and reaped and its process group was killed; state is set by then.
	exited chan struct{}
	state  *os.ProcessState
	thread *sandbox.Thread // nil if the child is not confined

	mu     sync.Mutex
	pid    int
	reaped bool // or about to be: pid may belong to another process
}

// spawn starts the child with an environment of its own and waits for nothing.
//
// The goroutine that starts it keeps its thread until the child is gone. A parent-death signal is sent when the thread
// dies that forked, not the process; a thread that some other goroutine may lock and end would take the child with it.
// If there is a confined thread, it starts the child, and is closed with it.
func spawn(executable string, arguments []string, tmpDir string, ports []lent, thread *sandbox.Thread) (*process, error) {
	p := &process{exited: make(chan struct{}), thread: thread}
	command := &exec.Cmd{
		Path:        executable,
		Args:        append([]string{"hozo", "job", "--supervised"}, arguments...),
		Env:         []string{"TMPDIR=" + tmpDir},
		SysProcAttr: childAttributes(),
	}
	theirs, err := p.connect(command)
	if err != nil {
		p.closeThread()
		return nil, err
	}
	for _, port := range ports {
		port.pass(command)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.start(command)
		closeAll(theirs...)
		if err == nil {
			p.pid = command.Process.Pid
		}
		started <- err
		if err == nil {
			p.reap(command)
		}
	}()
	if err := <-started; err != nil {
		p.closeThread()
		closeAll(p.stdin, p.stdout.File, p.stderr.File)
		return nil, err
	}
	for _, port := range ports {
		port.begin()
	}
	return p, nil
}

// lent is a port on its way to a child: a descriptor and the flag that names it.
type lent interface {
	// pass adds both to the command; begin is called when the child has its end.
	pass(command *exec.Cmd)
	begin()
}

func (p *process) start(command *exec.Cmd) error {
	if p.thread != nil {
		return p.thread.Start(command)
	}
	return command.Start()
}

func (p *process) closeThread() {
	if p.thread != nil {
		p.thread.Close()
	}
}

// connect makes the three pipes. The result is the child's ends, to be closed after the start.
func (p *process) connect(command *exec.Cmd) ([]*os.File, error) {
	var files []*os.File
	var failed error
	pipe := func() (r, w *os.File) {
		if failed != nil {
			return nil, nil
		}
		r, w, failed = os.Pipe()
		files = append(files, r, w)
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	if failed != nil {
		closeAll(files...)
		return nil, failed
	}
	command.Stdin, command.Stdout, command.Stderr = inR, outW, errW
	p.stdin, p.stdout, p.stderr = inW, &drainedPipe{File: outR}, &drainedPipe{File: errR}
	return []*os.File{inR, outW, errW}, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// reap waits for the child and kills what it left in its process group, where possible before the group's number can
// belong to anyone else.
func (p *process) reap(command *exec.Cmd) {
	waited := awaitExit(p.pid)
	if waited {
		p.killLast()
	}
	err := command.Wait()
	if !waited {
		p.killLast()
	}
	p.state = command.ProcessState
	if err != nil && p.state == nil {
		p.state = &os.ProcessState{}
	}
	p.stdout.writersGone()
	p.stderr.writersGone()
	p.closeThread()
	close(p.exited)
}

// kill sends SIGKILL to the child and to everything in its process group.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		// The only possible error is that nothing is left to be killed.
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
}

// killLast kills the group for the last time: from here on its number means nothing to us.
func (p *process) killLast() {
	p.kill()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
}

// release closes the parent's ends of the pipes.
func (p *process) release() { closeAll(p.stdin, p.stdout.File, p.stderr.File) }

// drainedPipe is the reading end of a pipe whose writer may leave a descendant behind that holds the other end open:
// once the writer is gone, silence is the end of the stream, and so is more than the pipe can have held.
type drainedPipe struct {
	*os.File
	left atomic.Int64 // what may still be read, if gone
	gone atomic.Bool
}

const (
	// silence is how long a pipe without its writer may say nothing.
	silence = 200 * time.Millisecond
	// largestPipe is more than a pipe holds unless a privileged process enlarges it.
	largestPipe = 1 << 20
)

// writersGone says that nobody who should write is left. What is already in the pipe can still be read.
func (d *drainedPipe) writersGone() {
	d.left.Store(largestPipe)
	d.gone.Store(true)
	// A file that takes no deadlines is read to its end in the ordinary way.
	_ = d.SetReadDeadline(time.Now().Add(silence))
}

// Read implements io.Reader.
func (d *drainedPipe) Read(p []byte) (int, error) {
	n, err := d.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// The deadline may have passed while nobody read, so what is there now still counts.
		_ = d.SetReadDeadline(time.Now().Add(silence))
		if n, err = d.File.Read(p); errors.Is(err, os.ErrDeadlineExceeded) {
			return n, io.EOF
		}
	}
	if d.gone.Load() && d.left.Add(-int64(n)) < 0 {
		return 0, io.EOF
	}
	return n, err
}

// WriteTo hides the method of os.File, which would read past the end that Read finds.
func (d *drainedPipe) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{d})
}
