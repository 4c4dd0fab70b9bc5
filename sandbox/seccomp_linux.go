package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The places of what a filter looks at (struct seccomp_data). An argument is 64 bits wide; the kernel uses the low half
// of those that matter here, which comes first on every machine that nativeArch knows.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArg0   = 16
	offsetArg1   = 24
	offsetArg2   = 32
	offsetArg3   = 40
)

const (
	actionAllow = 0x7fff0000
	actionErrno = 0x00050000
	actionAsk   = 0x7fc00000
)

// nativeArch returns what the kernel calls this architecture, 0 if filters are not written for it.
func nativeArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// absentCalls are system calls that a confined process finds missing: those that do what the filter cannot see (io_uring
// opens sockets), reach keys of other processes, watch directories that may not be listed, or are known for their bugs
// rather than for their use to a command.
func absentCalls() []uint32 {
	return []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_INOTIFY_INIT1, unix.SYS_FANOTIFY_INIT,
	}
}

// supervisedCalls change the mode, the times or the owner of a file.
func supervisedCalls() []uint32 {
	return []uint32{
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_UTIMENSAT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
	}
}

// attributeCalls change what else a file has besides its content, with the errors that programs know from file systems
// without such a thing and go on after.
func attributeCalls() map[uint32]unix.Errno {
	return map[uint32]unix.Errno{
		unix.SYS_SETXATTR: unix.EOPNOTSUPP, unix.SYS_LSETXATTR: unix.EOPNOTSUPP, unix.SYS_FSETXATTR: unix.EOPNOTSUPP,
		unix.SYS_REMOVEXATTR: unix.EOPNOTSUPP, unix.SYS_LREMOVEXATTR: unix.EOPNOTSUPP, unix.SYS_FREMOVEXATTR: unix.EOPNOTSUPP,
		unix.SYS_SETXATTRAT: unix.ENOSYS, unix.SYS_REMOVEXATTRAT: unix.ENOSYS, unix.SYS_FILE_SETATTR: unix.ENOSYS,
		// It takes a mode from where the filter cannot look. Those who call it know older kernels.
		unix.SYS_OPENAT2: unix.ENOSYS,
	}
}

// filter is a program in the kernel's language: each test is followed by its answer, and what passes all tests goes on.
type filter []unix.SockFilter

func (f *filter) add(code uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
}

func (f *filter) load(offset uint32) { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (f *filter) answer(a uint32)    { f.add(unix.BPF_RET|unix.BPF_K, a, 0, 0) }

// ifEqual answers if the loaded value is v.
func (f *filter) ifEqual(v, answer uint32) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, v, 0, 1)
	f.answer(answer)
}

// when runs the instructions of body, which end in an answer, if the loaded value is v.
func (f *filter) when(v uint32, body filter) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, v, 0, uint8(len(body)))
	*f = append(*f, body...)
}

// newFilter returns the filter of a policy. Calls of another architecture are missing altogether, since they have other
// numbers; so are those of the x32 variant.
func newFilter(p *Policy) filter {
	missing := actionErrno | uint32(unix.ENOSYS)
	var f filter
	f.load(offsetArch)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, nativeArch(), 1, 0)
	f.answer(missing)
	f.load(offsetNumber)
	if nativeArch() == unix.AUDIT_ARCH_X86_64 {
		const x32 = 0x40000000
		f.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, x32, 0, 1)
		f.answer(missing)
	}
	for _, number := range absentCalls() {
		f.ifEqual(number, missing)
	}
	for _, number := range oldAbsentCalls() {
		f.ifEqual(number, missing)
	}
	if p.changes != changesFree {
		f.addChanges(p.changes)
	}
	f.when(unix.SYS_SOCKET, socketFilter(p))
	if !p.UnixSockets {
		f.when(unix.SYS_SOCKETPAIR, pairFilter())
	}
	f.answer(actionAllow)
	return f
}

// addChanges adds what is done about calls that change files in ways that Landlock does not know.
func (f *filter) addChanges(c changes) {
	reply := actionErrno | uint32(unix.EPERM)
	if c == changesAsked {
		reply = actionAsk
	}
	for _, number := range append(supervisedCalls(), oldSupervisedCalls()...) {
		f.ifEqual(number, reply)
	}
	for _, calls := range []map[uint32]unix.Errno{attributeCalls(), oldAttributeCalls()} {
		for number, errno := range calls {
			f.ifEqual(number, actionErrno|uint32(errno))
		}
	}
	f.when(unix.SYS_IOCTL, flagsFilter())
	f.when(unix.SYS_FCNTL, leaseFilter())
	f.when(unix.SYS_OPENAT, creationFilter(offsetArg2, offsetArg3))
	f.when(unix.SYS_MKNODAT, modeFilter(offsetArg2))
	f.addOldCreations()
}

// flagsFilter refuses to change the flags of a file, as a file system without them does.
func flagsFilter() filter {
	var f filter
	f.load(offsetArg1)
	f.ifEqual(unix.FS_IOC_SETFLAGS, actionErrno|uint32(unix.ENOTTY))
	f.ifEqual(setExtendedFlags, actionErrno|uint32(unix.ENOTTY))
	f.answer(actionAllow)
	return f
}

// leaseFilter refuses leases, with which whoever may read a file can hold up those who write to it.
func leaseFilter() filter {
	const setLease = 1024 // F_SETLEASE
	var f filter
	f.load(offsetArg1)
	f.ifEqual(setLease, actionErrno|uint32(unix.EINVAL))
	f.answer(actionAllow)
	return f
}

// setExtendedFlags is FS_IOC_FSSETXATTR.
const setExtendedFlags = 0x401c5820

// creationFilter refuses to make a file that takes on the rights of its owner. Without these flags there is no mode.
func creationFilter(flags, mode uint32) filter {
	const temporary = unix.O_TMPFILE &^ unix.O_DIRECTORY
	body := modeFilter(mode)
	var f filter
	f.load(flags)
	f.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, unix.O_CREAT|temporary, 1, 0)
	f.answer(actionAllow)
	return append(f, body...)
}

// modeFilter refuses such a mode.
func modeFilter(mode uint32) filter {
	var f filter
	f.load(mode)
	f.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, unix.S_ISUID|unix.S_ISGID, 0, 1)
	f.answer(actionErrno | uint32(unix.EPERM))
	f.answer(actionAllow)
	return f
}

// socketFilter permits the families that the policy permits.
func socketFilter(p *Policy) filter {
	var families []uint32
	if p.Network {
		families = append(families, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	}
	if p.UnixSockets {
		families = append(families, unix.AF_UNIX)
	}
	var f filter
	f.load(offsetArg0)
	for _, family := range families {
		f.ifEqual(family, actionAllow)
	}
	f.answer(actionErrno | uint32(unix.EACCES))
	return f
}

// pairFilter permits pairs of sockets that are connected for good. One of datagrams could be turned to any other socket.
func pairFilter() filter {
	const kind = 0xf // the rest of the type are flags
	var f filter
	f.load(offsetArg1)
	f.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, kind, 0, 0)
	f.ifEqual(unix.SOCK_STREAM, actionAllow)
	f.ifEqual(unix.SOCK_SEQPACKET, actionAllow)
	f.answer(actionErrno | uint32(unix.EACCES))
	return f
}

// apply puts the filter on the calling thread and on everything that it starts. The thread must have no-new-privs.
func (f filter) apply() error {
	if _, errno := f.install(0); errno != 0 {
		return fmt.Errorf("seccomp: apply the filter: %w", errno)
	}
	return nil
}

// listen is apply for a filter that asks. It returns the descriptor on which the questions come.
func (f filter) listen() (int, error) {
	fd, errno := f.install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if errno != 0 {
		return -1, fmt.Errorf("seccomp: apply the filter: %w", errno)
	}
	return fd, nil
}

func (f filter) install(flags uintptr) (int, unix.Errno) {
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	return int(fd), errno
}
