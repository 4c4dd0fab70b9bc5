//go:build !linux

package jobproc

import "syscall"

// pairOfSockets returns two connected sockets that no other process inherits. Where that takes two steps, no process may
// be started between them.
func pairOfSockets() ([2]int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	return fds, err
}
