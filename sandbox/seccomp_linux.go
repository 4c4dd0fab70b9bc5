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
)

const (
	actionAllow = 0x7fff0000
	actionErrno = 0x00050000
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
// opens sockets), reach keys of other processes, or are known for their bugs rather than for their use to a command.
func absentCalls() []uint32 {
	return []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
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
	f.when(unix.SYS_SOCKET, socketFilter(p))
	if !p.UnixSockets {
		f.when(unix.SYS_SOCKETPAIR, pairFilter())
	}
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
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	const modeFilter = 1
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, modeFilter, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("seccomp: apply the filter: %w", errno)
	}
	return nil
}
