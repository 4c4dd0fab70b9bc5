//go:build unix

package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock takes a file for this process until it is closed, or fails if another one has it.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
