package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// starter is the confined thread of a Sandbox, or where a shim stands in front of each command, what shims are given.
type starter struct {
	confined *confinement
	rules    *ruleset    // for shims; nil: no Landlock
	roots    []*os.File  // what commands may write; nil if nothing of it is changed by a supervisor
	requests chan func() // run on the thread, one after another
	over     chan struct{}
}

func (s *starter) open(p *Policy) error {
	closeOnExec()
	var err error
	if p.changes = changesFor(p); p.changes == changesAsked {
		if s.roots, err = openRoots(p.Write); err != nil {
			return err
		}
	}
	if isolates(p) && traces(p) {
		err = s.openThread(p, nil)
	} else if !p.Unconfined && p.uses(layerLandlock) && landlockABI() > 0 {
		s.rules, err = newRuleset(p)
	}
	if err != nil {
		closeAll(s.roots)
	}
	return err
}

// openThread makes the confined thread. The rules of files are made of the policy unless they are given.
func (s *starter) openThread(p *Policy, given *ruleset) error {
	s.requests, s.over = make(chan func()), make(chan struct{})
	confined, err := prepare(p)
	if err != nil {
		return err
	}
	if given != nil {
		confined.rules = given
	}
	confined.roots = s.roots
	entered := make(chan error)
	onThreadOfItsOwn(func() {
		err := confined.enter()
		entered <- err
		if err == nil {
			s.serve()
		}
	})
	if err := <-entered; err != nil {
		confined.close()
		return err
	}
	s.confined = confined
	return nil
}

// isolates and traces say what a command of this policy is started with; without one of them a shim does its work.
func isolates(p *Policy) bool { return p.uses(layerNamespaces) && namespaces().available }
func traces(p *Policy) bool   { return p.uses(layerTracing) && tracing() }

// serve runs requests until the sandbox is closed. The thread ends with it, and so does, by its parent-death signal,
// whatever it has started.
func (s *starter) serve() {
	for {
		select {
		case do := <-s.requests:
			do()
		case <-s.over:
			return
		}
	}
}

// close ends the thread. Nothing that it has started runs any more.
func (s *starter) close() {
	if s.confined != nil {
		close(s.over)
		s.confined.close()
		s.confined = nil
	}
	if s.rules != nil {
		s.rules.close()
	}
	closeAll(s.roots)
}

// start starts the command in the best way this machine has.
func (s *starter) start(p *Policy, c *Command, stdio [3]*os.File) (child, error) {
	if s.confined == nil {
		return s.startBehindShim(p, c, stdio)
	}
	return s.startDirect(p, c, stdio)
}

// direct is a program that this process has started itself.
type direct struct {
	process *os.Process
	gone    chan struct{}
	state   *os.ProcessState
}

// startDirect starts the program from the confined thread.
func (s *starter) startDirect(p *Policy, c *Command, stdio [3]*os.File) (child, error) {
	attributes := &syscall.SysProcAttr{
		Cloneflags: cloneFlags(p),
		// A session of its own has no terminal, and its processes form one group.
		Setsid:    true,
		Pdeathsig: syscall.SIGKILL,
		Ptrace:    traces(p),
	}
	s.confined.group.begin(attributes)
	limits, err := limitsNow(p)
	if err != nil {
		return nil, err
	}
	d := &direct{gone: make(chan struct{})}
	if err := s.do(func() error { return d.start(c, stdio, attributes, limits) }); err != nil {
		return nil, err
	}
	go d.await()
	return d, nil
}

// limitsNow returns the limits of a command that starts now. Outside of a user namespace of its own the kernel counts all
// processes of this account, so that limit is what there is now and so many more.
func limitsNow(p *Policy) (Limits, error) {
	limits := p.Limits.withDefaults()
	if limits.Processes < 0 || isolates(p) {
		return limits, nil
	}
	there, err := countTasks(os.Getuid())
	if err != nil {
		return limits, fmt.Errorf("count processes: %w", err)
	}
	limits.Processes += there
	return limits, nil
}

// start runs on the confined thread.
func (d *direct) start(c *Command, stdio [3]*os.File, attributes *syscall.SysProcAttr, limits Limits) error {
	process, err := os.StartProcess(c.Path, append([]string{c.Path}, c.Args...), &os.ProcAttr{
		Dir: c.Dir, Env: nonNil(c.Env), Files: stdio[:], Sys: attributes,
	})
	if err != nil {
		return err
	}
	d.process = process
	if err := bind(process.Pid, limits, attributes.Ptrace); err != nil {
		_ = process.Kill()
		_, _ = process.Wait()
		return err
	}
	return nil
}

// nonNil returns an empty environment for none: the standard library would pass on this process's own.
func nonNil(env []string) []string {
	if env == nil {
		return []string{}
	}
	return env
}

func cloneFlags(p *Policy) uintptr {
	if !isolates(p) {
		return 0
	}
	// No identities are mapped into the new user namespace: nothing needs them there, and files keep their owners.
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWIPC)
	if !p.Network && !p.Unconfined {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// bind sets the limits of a program before it has run its first instruction, and lets it go. Where processes may not be
// traced it is already running, with the limits of the shim that started it.
func bind(pid int, limits Limits, traced bool) error {
	if traced {
		if stopped, err := awaitStop(pid); err != nil || !stopped {
			return err // a program that has ended needs no limits
		}
	}
	if err := setLimits(pid, limits); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return err
	}
	if traced {
		if err := unix.PtraceDetach(pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("let the process go: %w", err)
		}
	}
	return nil
}

// awaitStop waits until the process stops at its first instruction; false says that it ended instead. It is left to be
// waited for.
func awaitStop(pid int) (bool, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("wait for the start: %w", err)
		}
		const trapped = 4 // CLD_TRAPPED
		return info.Code == trapped, nil
	}
}

func setLimits(pid int, l Limits) error {
	for _, limit := range []struct {
		name     string
		resource int
		value    int64
	}{
		{"core", unix.RLIMIT_CORE, 0},
		{"processes", unix.RLIMIT_NPROC, l.Processes},
		{"memory", unix.RLIMIT_AS, l.MemoryBytes},
		{"file size", unix.RLIMIT_FSIZE, l.FileBytes},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"processor time", unix.RLIMIT_CPU, l.CPUSeconds},
	} {
		if limit.value < 0 {
			continue
		}
		if err := setLimit(pid, limit.resource, uint64(limit.value)); err != nil {
			return fmt.Errorf("set the limit of %s: %w", limit.name, err)
		}
	}
	return nil
}

// setLimit never raises what is already lower.
func setLimit(pid, resource int, value uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
		return err
	}
	value = min(value, old.Max)
	return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
}

// await reaps the program. With it the kernel has ended everything else in its namespace.
func (d *direct) await() {
	state, err := d.process.Wait()
	if err != nil {
		state = &os.ProcessState{}
	}
	d.state = state
	close(d.gone)
}

func (d *direct) pid() int                { return d.process.Pid }
func (d *direct) exited() <-chan struct{} { return d.gone }

func (d *direct) status() (int, string) { return exitStatus(d.state) }

// exitStatus returns the exit code as a shell gives it.
func exitStatus(state *os.ProcessState) (int, string) {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return -1, ""
	case status.Signaled():
		return 128 + int(status.Signal()), unix.SignalName(status.Signal())
	}
	return status.ExitStatus(), ""
}

// terminate asks the whole process group. The leader cannot have been replaced: it is reaped by await only, and its group
// keeps its number while a member lives.
func (d *direct) terminate() {
	select {
	case <-d.gone:
	default:
		_ = syscall.Kill(-d.process.Pid, syscall.SIGTERM) // the only error is that nothing is left
	}
}

// kill ends the first process of the namespace and thereby all others.
func (d *direct) kill() {
	_ = d.process.Kill() // the only error is that it has ended
}
