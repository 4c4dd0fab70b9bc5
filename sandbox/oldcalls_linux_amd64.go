package sandbox

import "golang.org/x/sys/unix"

// This architecture has older forms of some calls, which younger ones lack.

const (
	callChmod  = unix.SYS_CHMOD
	callChown  = unix.SYS_CHOWN
	callLchown = unix.SYS_LCHOWN
)

func oldSupervisedCalls() []uint32 { return []uint32{callChmod, callChown, callLchown} }

func oldAbsentCalls() []uint32 { return []uint32{unix.SYS_INOTIFY_INIT} }

// oldAttributeCalls holds old ways to set times too: the C library does it in the young way.
func oldAttributeCalls() map[uint32]unix.Errno {
	return map[uint32]unix.Errno{
		unix.SYS_UTIME: unix.ENOSYS, unix.SYS_UTIMES: unix.ENOSYS, unix.SYS_FUTIMESAT: unix.ENOSYS,
	}
}

func (f *filter) addOldCreations() {
	f.when(unix.SYS_OPEN, creationFilter(offsetArg1, offsetArg2))
	f.when(unix.SYS_CREAT, modeFilter(offsetArg1))
	f.when(unix.SYS_MKNOD, modeFilter(offsetArg1))
}
