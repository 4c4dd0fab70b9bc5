package scripttool

import (
	"os"
	"runtime"
	"syscall"

	"github.com/hozo-run/hozo/sandbox"
)

// confine is what the child does to itself before it looks at the script. The parent has confined it already, as far as
// the machine can; here it also gives up what it needed to start, and what a machine without a sandbox can still bound.
func confine(o *order) error {
	if err := sandbox.Harden(); err != nil {
		return err
	}
	limits := map[int]int64{syscall.RLIMIT_FSIZE: 0}
	if o.DataBytes > 0 {
		limits[syscall.RLIMIT_DATA] = o.DataBytes
	}
	if o.CPUSeconds > 0 {
		limits[syscall.RLIMIT_CPU] = o.CPUSeconds
	}
	for resource, value := range limits {
		if err := lower(resource, uint64(value)); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return dropCalls()
}

// lower sets a limit, unless there is a lower one.
func lower(resource int, value uint64) error {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(resource, &old); err != nil {
		return err
	}
	if uint64(old.Max) < value {
		return nil
	}
	var limit syscall.Rlimit
	limit.Cur, limit.Max = value, value
	return syscall.Setrlimit(resource, &limit)
}

// growth returns a function that reports whether this process has used at least half of so many bytes of memory since.
func growth(bytes int64) func() bool {
	before := usage()
	return func() bool {
		now := usage()
		faults := (now.Minflt - before.Minflt) * int64(os.Getpagesize())
		resident := now.Maxrss - before.Maxrss
		if runtime.GOOS != "darwin" {
			resident <<= 10 // all others count kilobytes
		}
		return max(faults, resident) >= bytes/2
	}
}

func usage() syscall.Rusage {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // zeros, if it should fail, claim nothing
	return used
}
