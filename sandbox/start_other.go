//go:build !linux

package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// starter has nothing to prepare here.
type starter struct{}

func (*starter) open(*Policy) error { return nil }
func (*starter) close()             {}

// direct is a program that this process has started, with a process group of its own and nothing more.
type direct struct {
	process *os.Process
	gone    chan struct{}
	state   *os.ProcessState
}

// start starts the command. What the policy refuses is not refused here; Probe says so.
func (*starter) start(_ *Policy, c *Command, stdio [3]*os.File) (child, error) {
	env := c.Env
	if env == nil {
		env = []string{} // the standard library would pass on this process's own
	}
	process, err := os.StartProcess(c.Path, append([]string{c.Path}, c.Args...), &os.ProcAttr{
		Dir: c.Dir, Env: env, Files: stdio[:], Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, err
	}
	d := &direct{process: process, gone: make(chan struct{})}
	go func() {
		defer close(d.gone)
		if d.state, err = process.Wait(); err != nil {
			d.state = &os.ProcessState{}
		}
		d.signalGroup(syscall.SIGKILL)
	}()
	return d, nil
}

// signalGroup reaches the program and what it started, except for what has left its group.
func (d *direct) signalGroup(s syscall.Signal) {
	_ = syscall.Kill(-d.process.Pid, s) // the only error is that nothing is left
}

func (d *direct) pid() int                { return d.process.Pid }
func (d *direct) exited() <-chan struct{} { return d.gone }
func (d *direct) terminate()              { d.signalGroup(syscall.SIGTERM) }
func (d *direct) kill()                   { d.signalGroup(syscall.SIGKILL) }

func (d *direct) status() (int, string) {
	status, ok := d.state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return -1, ""
	case status.Signaled():
		return 128 + int(status.Signal()), status.Signal().String()
	}
	return status.ExitStatus(), ""
}

// probe is honest: none of the protections exists here.
func probe() Report {
	const fix = "run hozo on Linux, in a container or a virtual machine, for jobs with process tools"
	missing := func(name, title, effect string) Protection {
		return Protection{Name: name, Title: title, Essential: true, Evidence: "hozo has no such layer on " + runtime.GOOS, Effect: effect, Fix: fix}
	}
	protections := []Protection{
		missing(ProtectionLandlock, "files", "commands read and write every file that this account may; the file tools stay inside the workspace"),
		missing(ProtectionNamespaces, "processes and network", "commands have the network of this account, and a process that leaves its group outlives its command"),
		missing(ProtectionSeccomp, "sockets", "commands can connect to services of this machine"),
		missing(ProtectionProcesses, "number of processes", "a fork bomb is only bounded by what bounds this account"),
		missing(ProtectionLimits, "memory and file size", "a command can use up memory and disk until its timeout"),
	}
	return Report{Level: level(protections), System: runtime.GOOS, Protections: protections}
}

// Shim does nothing here: no command is started behind a helper.
func Shim() int {
	fmt.Fprintf(os.Stderr, "hozo %s is started by hozo itself on Linux and by nobody else\n", ShimArgument)
	return 2
}
