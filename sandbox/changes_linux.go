package sandbox

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What changes can be.
const (
	// changesFree leaves them as they are, for processes of this program itself.
	changesFree changes = iota
	// changesRefused refuses them all, where nothing may be written or nobody can be asked.
	changesRefused
	// changesAsked has a supervisor make those of modes, times and owners, and refuses the others.
	changesAsked
)

// changesFor returns what is possible for a command of this policy.
func changesFor(p *Policy) changes {
	if len(p.Write) > 0 && supervising() {
		return changesAsked
	}
	return changesRefused
}

// supervising reports whether this process can be asked and can then do it: a filter takes one listener, an older kernel
// none, and the system call filter of a container may lack what a supervisor needs.
var supervising = sync.OnceValue(func() bool {
	text := [1]byte{1}
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return false
	}
	unix.Close(fd)
	if readProcess(os.Getpid(), uint64(uintptr(unsafe.Pointer(&text[0]))), make([]byte, 1)) != 1 {
		return false
	}
	done := make(chan bool)
	onThreadOfItsOwn(func() { done <- listening() })
	return <-done
})

// listening reports whether the calling thread gets a listener. It has a filter afterwards.
func listening() bool {
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false
	}
	var f filter
	f.answer(actionAllow)
	fd, errno := f.install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if errno != 0 {
		return false
	}
	unix.Close(fd)
	return true
}

// supervisor makes the changes that a confined process asks for, if the file lies below one of the roots. It never lets
// the call of the process itself go on: the process could have put another path in place of the one that was looked at.
type supervisor struct {
	listener *os.File
	roots    []*os.File
	done     chan struct{} // closed when it uses nothing any more
}

// openRoots opens what may be changed, without a right to read it.
func openRoots(paths []string) ([]*os.File, error) {
	var roots []*os.File
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			closeAll(roots)
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		roots = append(roots, os.NewFile(uintptr(fd), path))
	}
	return roots, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// supervise answers what comes in on a listener until the supervisor is closed. The roots remain the caller's, who closes
// them afterwards.
func supervise(listener int, roots []*os.File) (*supervisor, error) {
	if err := unix.SetNonblock(listener, true); err != nil {
		unix.Close(listener)
		return nil, err
	}
	s := &supervisor{listener: os.NewFile(uintptr(listener), "listener"), roots: roots, done: make(chan struct{})}
	connection, err := s.listener.SyscallConn()
	if err != nil {
		s.listener.Close()
		return nil, err
	}
	go func() {
		defer close(s.done)
		defer s.listener.Close() // then nobody waits for an answer: the kernel says that the call is missing
		// The error is that the listener was closed.
		_ = connection.Read(func(fd uintptr) bool { return s.attend(int(fd)) })
	}()
	return s, nil
}

// close ends the supervisor; nil has none.
func (s *supervisor) close() {
	if s != nil {
		s.listener.Close() // the only error is that it is closed
		<-s.done
	}
}

// attend answers all that waits. It returns true when nobody is left who could ask.
func (s *supervisor) attend(listener int) (over bool) {
	for {
		ready := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err == nil && n == 0:
			return false
		case err != nil || ready[0].Revents&unix.POLLIN == 0:
			return true
		}
		var q question
		if control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&q)) != 0 {
			continue // whoever asked is gone
		}
		a := answer{id: q.id, err: -int32(s.decide(listener, &q))}
		_ = control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a)) // the only error is that nobody waits any more
	}
}

// question and answer are what the kernel exchanges with a supervisor (struct seccomp_notif and seccomp_notif_resp).
type question struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	pointer    uint64
	args       [6]uint64
}

type answer struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

func control(fd int, request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
	return errno
}

// decide makes the change of a question, or returns why not.
func (s *supervisor) decide(listener int, q *question) unix.Errno {
	c, err := q.change()
	if err != nil {
		return errnoOf(err)
	}
	fd, err := c.open()
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(fd)
	// The number may have come to name another process while it was used. If the question still waits, it has not.
	if control(listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&q.id)) != 0 {
		return unix.ESRCH
	}
	if !s.contains(fd) {
		return unix.EPERM
	}
	return errnoOf(c.apply(fd))
}

// errnoOf returns the number that the process gets to see, 0 for no error.
func errnoOf(err error) unix.Errno {
	errno, ok := errors.AsType[unix.Errno](err)
	if err != nil && !ok {
		return unix.EPERM
	}
	return errno
}

// contains reports whether an open file lies below a root. Nothing can be moved or linked into a root from elsewhere, so
// what lies there may be changed, whatever happens to its name meanwhile.
func (s *supervisor) contains(fd int) bool {
	path, err := os.Readlink(ownDescriptor(fd))
	if err != nil {
		return false
	}
	for _, root := range s.roots {
		dir, err := os.Readlink(ownDescriptor(int(root.Fd())))
		if err == nil && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")) {
			return true
		}
	}
	return false
}

func ownDescriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// change is a wish of a confined process: another mode, other times or another owner for one file.
type change struct {
	pid  int
	dir  int    // a descriptor of the process, or AT_FDCWD
	path string // "" means dir itself
	stay bool   // do not follow a link at the end of path
	make func(file string) error
	mode uint32 // 0 if that is not what changes
}

// change reads the arguments of the call.
func (q *question) change() (*change, error) {
	c := &change{pid: int(q.pid), dir: int(int32(q.args[0]))}
	path, rest, flags := q.args[1], q.args[2:], uint64(0)
	switch q.number {
	case unix.SYS_FCHMOD, unix.SYS_FCHOWN:
		path, rest, flags = 0, q.args[1:], unix.AT_EMPTY_PATH
	case callChmod, callChown, callLchown:
		c.dir, path, rest = unix.AT_FDCWD, q.args[0], q.args[1:]
	case unix.SYS_FCHMODAT2, unix.SYS_UTIMENSAT:
		flags = q.args[3]
	case unix.SYS_FCHOWNAT:
		flags = q.args[4]
	}
	if err := c.setMaker(q.number, rest); err != nil {
		return nil, err
	}
	if q.number == unix.SYS_UTIMENSAT && path == 0 {
		flags |= unix.AT_EMPTY_PATH
	}
	c.stay = flags&unix.AT_SYMLINK_NOFOLLOW != 0 || q.number == callLchown
	if path != 0 {
		var err error
		if c.path, err = readText(c.pid, path); err != nil {
			return nil, err
		}
	}
	switch {
	case flags&unix.AT_EMPTY_PATH != 0 || c.path != "":
		return c, nil
	case path == 0:
		return nil, unix.EFAULT
	}
	return nil, unix.ENOENT
}

// setMaker says what is to be made of a file, from the arguments that follow its name.
func (c *change) setMaker(number int32, args []uint64) error {
	switch number {
	case callChmod, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2:
		c.mode = uint32(args[0]) & 0o7777
		c.make = func(file string) error { return unix.Fchmodat(unix.AT_FDCWD, file, c.mode, 0) }
	case unix.SYS_UTIMENSAT:
		times, err := c.readTimes(args[0])
		c.make = func(file string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, file, times, 0) }
		return err
	case callChown, callLchown, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT:
		// Programs of the superuser give files to the superuser; nobody can give one to somebody else.
		owner, group := int(int32(args[0])), int(int32(args[1]))
		if owner != -1 && owner != os.Geteuid() || group != -1 && group != os.Getegid() {
			return unix.EPERM
		}
		c.make = func(file string) error { return unix.Fchownat(unix.AT_FDCWD, file, owner, group, 0) }
	default:
		return unix.EPERM
	}
	return nil
}

// readTimes reads two times, which are the present where there are none.
func (c *change) readTimes(address uint64) ([]unix.Timespec, error) {
	if address == 0 {
		return nil, nil
	}
	times := make([]unix.Timespec, 2)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&times[0])), 2*unsafe.Sizeof(times[0]))
	if readProcess(c.pid, address, raw) < len(raw) {
		return nil, unix.EFAULT
	}
	return times, nil
}

// readText reads the path at an address of a process.
func readText(pid int, address uint64) (string, error) {
	const smallestPage = 4096
	text := make([]byte, 0, unix.PathMax)
	for len(text) < unix.PathMax {
		at := address + uint64(len(text))
		// A piece does not go beyond a page: the next one need not be there.
		piece := text[len(text):min(unix.PathMax, len(text)+smallestPage-int(at%smallestPage))]
		n := readProcess(pid, at, piece)
		if end := bytes.IndexByte(piece[:n], 0); end >= 0 {
			return string(text[:len(text)+end]), nil
		}
		if n < len(piece) {
			return "", unix.EFAULT
		}
		text = text[:len(text)+n]
	}
	return "", unix.ENAMETOOLONG
}

// readProcess returns how many bytes it could read.
func readProcess(pid int, address uint64, into []byte) int {
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, 0)
	if err != nil {
		return 0
	}
	return n
}

// open finds the file as the process would, without a right to its content.
func (c *change) open() (int, error) {
	for _, prefix := range []string{"/proc/self/fd/", "/dev/fd/"} {
		// What the C library makes of calls that older kernels lack.
		if number, found := strings.CutPrefix(c.path, prefix); found {
			fd, err := strconv.Atoi(number)
			if err != nil {
				return -1, unix.ENOENT
			}
			return c.place(fd)
		}
	}
	base := unix.AT_FDCWD
	if !strings.HasPrefix(c.path, "/") {
		fd, err := c.place(c.dir)
		if err != nil || c.path == "" {
			return fd, err
		}
		defer unix.Close(fd)
		base = fd
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if c.stay {
		how.Flags |= unix.O_NOFOLLOW
	}
	return unix.Openat2(base, c.path, &how)
}

// place opens what the process has at one of its descriptors, or its working directory.
func (c *change) place(fd int) (int, error) {
	name := "/cwd"
	if fd != unix.AT_FDCWD {
		name = "/fd/" + strconv.Itoa(fd)
	}
	mine, err := unix.Open("/proc/"+strconv.Itoa(c.pid)+name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return -1, unix.EBADF
	}
	return mine, err
}

// apply makes the change. This process may hold capabilities that the other one lacks, so the owner is looked at here. A
// program that takes on the rights of its owner would be a present for other accounts of the machine.
func (c *change) apply(fd int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if int(stat.Uid) != os.Geteuid() {
		return unix.EPERM
	}
	if c.mode&(unix.S_ISUID|unix.S_ISGID) != 0 && stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.EPERM
	}
	return c.make(ownDescriptor(fd))
}
