package main

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// cores returns two processors that this process may use: one for the provider, one for what is measured. It reports false
// where there is only one.
func cores() (provider, subject int, ok bool) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, 0, false
	}
	var found []int
	for i := 0; i < 1024 && len(found) < 2; i++ {
		if set.IsSet(i) {
			found = append(found, i)
		}
	}
	if len(found) < 2 {
		return 0, 0, false
	}
	return found[0], found[1], true
}

// pinned calls start on a thread that may run on one core only. A process inherits that from the thread that starts it.
func pinned(core int, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	return errors.Join(start(), unix.SchedSetaffinity(0, &before))
}
