package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Thread is a confined thread of this process, for whoever starts a process with pipes, arguments and an end of their
// own. What is started on it is confined as the policy says, but for namespaces; of the limits, those of processes and
// memory hold for all of it together if a control group can be made. With a parent-death signal it lives no longer than
// the thread. Commands are for a Sandbox.
type Thread struct{ starter starter }

// OpenThread makes a thread. Errors are those of Open. Whoever opens a thread closes it.
func OpenThread(p Policy) (*Thread, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	t := &Thread{}
	p.showsGroup = true
	if p.Limits.Processes < 0 && p.Limits.MemoryBytes < 0 {
		p.without |= layerCgroup // a group would bound nothing
	}
	if err := t.starter.openThread(&p, nil); err != nil {
		return nil, wrap("open a confined thread", err)
	}
	return t, nil
}

// Start starts a command on the thread, which may take turns with other callers. It adds to the environment of a command
// that has one, so that the process can report what bounds it.
func (t *Thread) Start(c *exec.Cmd) error {
	if group := t.starter.confined.group; group != nil {
		if c.SysProcAttr == nil {
			c.SysProcAttr = &syscall.SysProcAttr{}
		}
		group.begin(c.SysProcAttr)
		if c.Env != nil {
			c.Env = append(c.Env, groupVariable+"="+group.dirs[0])
		}
	}
	return t.starter.do(c.Start)
}

// Close ends the thread, and with it what was started on it with a parent-death signal. Nothing is started afterwards. It
// is called once.
func (t *Thread) Close() { t.starter.close() }

// ConfineSelf confines the whole process, as a job process does for itself: files, sockets and capabilities as the policy
// says, and then Harden. A process with threads cannot do that to itself, so this function starts the program again, in
// the same process and with the same arguments, standard files and environment; it returns in that second life, where
// Confined is true. It must come before anything that should not happen twice, and before anything is read.
//
// The process keeps its own entry of /proc and its own program. The layers that this machine lacks are left out; Probe
// reports them afterwards as before. An error means that the process goes on as it was.
func ConfineSelf(p Policy) error {
	if Confined() {
		return Harden()
	}
	if err := p.Check(); err != nil {
		return err
	}
	executable, err := os.Executable()
	if err != nil {
		return wrap("find the running program", err)
	}
	p.Read = append([]string{executable, "/proc/self"}, p.Read...)
	p.without |= layerCgroup
	confined, err := prepare(&p)
	if err != nil {
		return wrap("confine this process", err)
	}
	failed := make(chan error)
	onThreadOfItsOwn(func() {
		err := confined.enter()
		if err == nil {
			args := append([]string{confinedName}, os.Args[1:]...)
			err = fmt.Errorf("start %s again: %w", executable, syscall.Exec(executable, args, os.Environ()))
		}
		failed <- err
	})
	err = <-failed
	confined.close()
	return wrap("confine this process", err)
}

// Harden protects this process from its children and from others of its account: its memory and environment cannot be
// read by them, it leaves no core dump, and no descriptor but the standard ones is inherited, unless it is passed on by
// name. It is for job processes, and may be called more than once.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return wrap("make this process undumpable", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return wrap("forbid core dumps", err)
	}
	closeOnExec()
	return nil
}

// closeOnExec marks all descriptors but the standard ones. Go marks those that it opens; this is about those that this
// process was started with.
func closeOnExec() {
	const first = 3
	if unix.CloseRange(first, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Kernels before 5.11 do one at a time. Inherited descriptors have small numbers.
	for fd := first; fd < 1024; fd++ {
		unix.CloseOnExec(fd)
	}
}

// do runs a function on the thread.
func (s *starter) do(do func() error) error {
	result := make(chan error)
	select {
	case s.requests <- func() { result <- do() }:
		return <-result
	case <-s.over:
		return errClosed
	}
}

// jobPaths are what a job process needs to read besides: where a shim hunts survivors it has to find them.
func jobPaths() []string {
	if namespaces().available {
		return nil
	}
	return []string{"/proc"}
}
