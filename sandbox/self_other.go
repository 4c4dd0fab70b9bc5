//go:build !linux

package sandbox

import (
	"os/exec"
	"syscall"
)

// Thread starts processes. There is nothing to confine them with here, as Probe says.
type Thread struct{}

// OpenThread returns a thread that confines nothing.
func OpenThread(p Policy) (*Thread, error) { return &Thread{}, p.Check() }

// Start starts the command.
func (*Thread) Start(c *exec.Cmd) error { return c.Start() }

// Close does nothing.
func (*Thread) Close() {}

// ConfineSelf does what can be done here, which is Harden.
func ConfineSelf(p Policy) error {
	if err := p.Check(); err != nil {
		return err
	}
	return Harden()
}

// Harden forbids core dumps and marks the descriptors that this process was started with as not to be inherited.
func Harden() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return wrap("forbid core dumps", err)
	}
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
	return nil
}

func jobPaths() []string { return nil }
