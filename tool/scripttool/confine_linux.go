package scripttool

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// permittedCalls are the system calls that the Go runtime and the engine need once they run: to read and write what is
// open, for memory, threads, clocks and signals. There is none among them that opens, connects, starts or looks at
// anything outside of the process.
func permittedCalls() []uint32 {
	return []uint32{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE,
		unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK,
		unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
		unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRUSAGE,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EVENTFD2, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_CTL,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
		unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_TGKILL, unix.SYS_GETRANDOM,
		unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	}
}

// The places of what a filter looks at (struct seccomp_data), the low half of arguments.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

const (
	permit = 0x7fff0000
	refuse = 0x00050000 // and the number of an error
)

// dropCalls leaves this process, with all its threads, the permitted system calls; others fail. It is a second wall
// behind the sandbox, for the day on which the engine writes where it must not. A kernel or a machine for which there is
// no filter is left at what the sandbox offers.
func dropCalls() error {
	var arch uint32
	switch runtime.GOARCH {
	case "amd64":
		arch = unix.AUDIT_ARCH_X86_64
	case "arm64":
		arch = unix.AUDIT_ARCH_AARCH64
	default:
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no-new-privs: %w", err)
	}
	filter := callFilter(arch)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const (
		modeFilter = 1
		allThreads = 1
	)
	failed, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, modeFilter, allThreads, uintptr(unsafe.Pointer(&program)))
	switch {
	case errors.Is(errno, unix.ENOSYS), errors.Is(errno, unix.EINVAL):
		return nil
	case errno != 0:
		return fmt.Errorf("filter system calls: %w", errno)
	case failed != 0:
		return fmt.Errorf("filter system calls: thread %d has another filter", failed)
	}
	return nil
}

// callFilter writes the filter in the kernel's language.
func callFilter(arch uint32) []unix.SockFilter {
	const (
		load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		same = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		bits = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		give = unix.BPF_RET | unix.BPF_K
	)
	denied := refuse | uint32(unix.EPERM)
	f := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: same, K: arch, Jt: 1},
		{Code: give, K: denied},
		{Code: load, K: offsetNumber},
	}
	for _, number := range permittedCalls() {
		f = append(f, unix.SockFilter{Code: same, K: number, Jf: 1}, unix.SockFilter{Code: give, K: permit})
	}
	// Memory may be mapped, but none that holds a program; threads may be made, but no processes.
	for _, c := range []struct {
		number, argument, mask, set, clear uint32
	}{
		{unix.SYS_MMAP, 2, unix.PROT_EXEC, denied, permit},
		{unix.SYS_MPROTECT, 2, unix.PROT_EXEC, denied, permit},
		{unix.SYS_CLONE, 0, unix.CLONE_THREAD, permit, denied},
	} {
		f = append(f,
			unix.SockFilter{Code: same, K: c.number, Jf: 4},
			unix.SockFilter{Code: load, K: offsetArgs + 8*c.argument},
			unix.SockFilter{Code: bits, K: c.mask, Jf: 1},
			unix.SockFilter{Code: give, K: c.set},
			unix.SockFilter{Code: give, K: c.clear},
		)
	}
	// The C library asks for a newer way to make threads first and takes the older one where it is missing.
	return append(f,
		unix.SockFilter{Code: same, K: unix.SYS_CLONE3, Jf: 1},
		unix.SockFilter{Code: give, K: refuse | uint32(unix.ENOSYS)},
		unix.SockFilter{Code: give, K: denied})
}
