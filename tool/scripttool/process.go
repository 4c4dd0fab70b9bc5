package scripttool

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/hozo-run/hozo/sandbox"
)

// process is a started child with its pipes.
type process struct {
	sandbox *sandbox.Sandbox
	running *sandbox.Process
	in, out *os.File
}

// startProcess starts a child that lives no longer than ctx. Whoever starts one calls finish.
func startProcess(ctx context.Context, o *Options) (*process, error) {
	program := o.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find the running program: %w", err)
		}
	}
	// Of the whole machine the child gets its own program, and what it takes to start it.
	s, err := sandbox.Open(sandbox.Policy{Read: []string{program}, Shim: o.Program, Limits: sandbox.Limits{
		Processes: 64, OpenFiles: 64, FileBytes: 1, MemoryBytes: addressBytes, CPUSeconds: cpuSeconds(o.Limits.Time),
	}})
	if err != nil {
		return nil, err
	}
	p := &process{sandbox: s}
	if err := p.start(ctx, program); err != nil {
		s.Close()
		return nil, err
	}
	return p, nil
}

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
	p.in, p.out = in, out
	p.running, err = p.sandbox.Start(ctx, sandbox.Command{
		Path: program, Args: []string{ChildArgument}, Dir: "/", Stdin: theirIn, Stdout: theirOut,
		// The context has the deadline, and a child has nothing to put in order before it ends.
		Timeout: -1, Grace: -1,
	})
	if err != nil {
		in.Close()
		out.Close()
		return err
	}
	go func() {
		<-p.running.Done()
		// What it said is in the pipe. Should something else hold the other end, nobody waits for that.
		_ = out.SetReadDeadline(time.Now().Add(time.Second))
	}()
	return nil
}

// finish ends the child, releases what belongs to it and returns how it ended.
func (p *process) finish() sandbox.Result {
	p.running.Kill()
	ended := p.running.Wait()
	p.in.Close()
	p.out.Close()
	p.sandbox.Close()
	return ended
}

// cpuSeconds is a bound for the processor time of a child that outlives its parent's attention. The engine is one thread;
// the Go runtime beside it uses others now and then.
func cpuSeconds(limit time.Duration) int64 { return 2*int64(limit/time.Second) + 2 }
