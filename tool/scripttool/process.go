package scripttool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/hozo-run/hozo/sandbox"
)

// process is a started child with its pipes.
type process struct {
	thread  *sandbox.Thread
	command *exec.Cmd
	in, out *os.File
	words   sandbox.Tail // what it says on its standard error
	// done is closed when it has ended.
	done chan struct{}
}

// startProcess starts a child that lives no longer than ctx. Whoever starts one calls finish.
//
// It is started from a confined thread: of the whole machine it gets its own program, and what it takes to start it. It
// gets no namespaces, which cost more than all the rest: before it looks at the script it gives up the system calls that
// they are about, among them those that make processes and sockets (see confine).
func startProcess(ctx context.Context, o *Options) (*process, error) {
	program := o.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find the running program: %w", err)
		}
	}
	// A control group takes longer to make than a child to start; the child bounds itself.
	unbounded := sandbox.Limits{Processes: -1, MemoryBytes: -1}
	thread, err := sandbox.OpenThread(sandbox.Policy{Read: []string{program}, Limits: unbounded})
	if err != nil {
		return nil, err
	}
	p := &process{thread: thread, done: make(chan struct{})}
	if err := p.start(ctx, program); err != nil {
		thread.Close()
		return nil, err
	}
	return p, nil
}

// lingering is how long is waited for the pipes of a child that has ended. Nothing should hold them then.
const lingering = time.Second

func (p *process) start(ctx context.Context, program string) error {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirIn.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	defer theirOut.Close()
	p.command = exec.CommandContext(ctx, program, ChildArgument)
	p.command.Env = []string{} // nil would be that of this process
	p.command.Dir = "/"
	p.command.Stdin, p.command.Stdout, p.command.Stderr = theirIn, theirOut, &p.words
	p.command.SysProcAttr = attributes()
	p.command.WaitDelay = lingering
	if err := p.thread.Start(p.command); err != nil {
		in.Close()
		out.Close()
		return err
	}
	p.in, p.out = in, out
	go func() {
		defer close(p.done)
		_ = p.command.Wait() // how it ended is in the state
		// What it said is in the pipe. Should something else hold the other end, nobody waits for that.
		_ = out.SetReadDeadline(time.Now().Add(lingering))
	}()
	return nil
}

// kill ends the child at once. There is nothing else to end: it can start nothing.
func (p *process) kill() { _ = p.command.Process.Kill() } // it may have ended already

// finish ends the child, releases what belongs to it and returns how it ended.
func (p *process) finish() ending {
	p.kill()
	<-p.done
	p.in.Close()
	p.out.Close()
	p.thread.Close()
	return ending{state: p.command.ProcessState.String(), words: string(p.words.Kept())}
}

// ending is how a child ended.
type ending struct {
	state string
	// words is what it said on its standard error.
	words string
}

// cpuSeconds is a bound for the processor time of a child that outlives its parent's attention. The engine is one thread;
// the Go runtime beside it uses others now and then.
func cpuSeconds(limit time.Duration) int64 { return 2*int64(limit/time.Second) + 2 }
