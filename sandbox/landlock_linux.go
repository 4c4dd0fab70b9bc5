package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What Landlock knows at each version of its interface. A right that the kernel does not know is left out of the rules,
// and Probe tells which version this kernel has.
const (
	abiRefer  = 2  // files may be moved between directories, which version 1 always refuses
	abiTCP    = 4  // TCP
	abiScope  = 6  // signals and abstract sockets of other processes
	abiSocket = 9  // sockets with a path
	abiUDP    = 10 // UDP
)

const (
	rightsRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

	rightsWrite = rightsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK

	// rightsOfFiles are those that mean something for a single file; others are refused in a rule for one.
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// landlockABI returns the version of the kernel's Landlock interface; 0 if there is none.
var landlockABI = sync.OnceValue(func() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
})

// handledFiles are the rights that the kernel takes away unless a rule gives them.
func handledFiles(abi int, p *Policy) uint64 {
	rights := uint64(1<<13 - 1) // all of version 1
	for i, since := range []int{abiRefer, 3, 5} {
		if abi >= since {
			rights |= 1 << (13 + i)
		}
	}
	if abi >= abiSocket && !p.UnixSockets {
		rights |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	return rights
}

// ruleset is a set of Landlock rules that a thread can put on itself, any number of threads one after another, also in
// another process that is given the file.
type ruleset struct {
	file   *os.File
	rights uint64 // that rules can give
}

// newRuleset writes down what p permits.
func newRuleset(p *Policy) (*ruleset, error) {
	abi := landlockABI()
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handledFiles(abi, p)}
	// The size tells the kernel which fields there are; an older one refuses a field that it does not know.
	size := unsafe.Offsetof(attr.Handled_access_net)
	if abi >= abiTCP {
		size = unsafe.Offsetof(attr.Scoped)
		if !p.Network {
			attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
			if abi >= abiUDP {
				attr.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP
			}
		}
	}
	if abi >= abiScope {
		size = unsafe.Offsetof(attr.Quiet_access_fs)
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
		if !p.UnixSockets {
			attr.Scoped |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		}
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, fmt.Errorf("landlock: create the rules: %w", errno)
	}
	unix.CloseOnExec(int(fd))
	r := &ruleset{file: os.NewFile(fd, "rules"), rights: attr.Handled_access_fs}
	if err := r.fill(p); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// fill adds the rules. What the policy names must exist; what the system may have need not.
func (r *ruleset) fill(p *Policy) error {
	for _, path := range systemPaths() {
		if err := r.allow(path, rightsRead); err != nil && !absent(err) {
			return err
		}
	}
	for _, path := range devices() {
		if err := r.allow(path, unix.LANDLOCK_ACCESS_FS_READ_FILE); err != nil && !absent(err) {
			return err
		}
	}
	for _, path := range deviceSinks() {
		if err := r.allow(path, unix.LANDLOCK_ACCESS_FS_WRITE_FILE); err != nil && !absent(err) {
			return err
		}
	}
	for _, path := range p.Read {
		if err := r.allow(path, rightsRead); err != nil {
			return err
		}
	}
	for _, path := range p.Write {
		if err := r.allow(path, rightsWrite); err != nil {
			return err
		}
	}
	return nil
}

// absent reports that a path is not there, or not to be seen by this process, which then has nothing to pass on.
func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR)
}

func (r *ruleset) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.file.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return &os.PathError{Op: "landlock: add a rule for", Path: path, Err: errno}
	}
	return nil
}

// apply puts the rules on the calling thread and on everything that it starts from now on. There is no way back.
func (r *ruleset) apply() error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, r.file.Fd(), 0, 0); errno != 0 {
		return fmt.Errorf("landlock: apply the rules: %w", errno)
	}
	return nil
}

func (r *ruleset) close() { r.file.Close() }
