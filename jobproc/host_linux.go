package jobproc

import "golang.org/x/sys/unix"

// pairOfSockets returns two connected sockets that no other process inherits.
func pairOfSockets() ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}
