//go:build !linux

package jobproc

import "syscall"

// childAttributes gives the child a process group of its own. There is no parent-death signal here: the child notices the
// end of its input.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit returns false: there is no portable way to wait for a process without reaping it.
func awaitExit(int) bool { return false }
