//go:build linux && !portable

package walk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// handle is an open directory as a bare descriptor: an os.File would cost a
// poller registration and a finalizer for each.
type handle struct {
	fd int
	// plain says that the kernel, or a filter on system calls, has no openat2.
	// Mounts are then told by their device number, dev.
	plain bool
	dev   uint64
}

const (
	dirFlags  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fileFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
)

// openTop opens a directory anew from the one that the caller holds.
func openTop(root *os.Root) (handle, error) {
	f, err := root.Open(".")
	if err != nil {
		return handle{}, err
	}
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return handle{}, err
	}
	var h handle
	var openErr error
	err = conn.Control(func(fd uintptr) {
		from := handle{fd: int(fd)}
		h, openErr = from.openDir(".")
		if openErr == unix.ENOSYS || openErr == unix.EPERM {
			from.plain = true
			var st unix.Stat_t
			if openErr = unix.Fstat(from.fd, &st); openErr == nil {
				from.dev = st.Dev
				h, openErr = from.openDir(".")
			}
		}
	})
	if err == nil {
		err = openErr
	}
	if err != nil {
		return handle{}, fmt.Errorf("cannot open the directory: %w", err)
	}
	return h, nil
}

func (h handle) close() { _ = unix.Close(h.fd) }

// openDir opens a directory that lies in h, never through a link and never
// across a mount.
func (h handle) openDir(name string) (handle, error) {
	fd, err := h.open(name, dirFlags)
	if err != nil {
		return handle{}, err
	}
	next := handle{fd: fd, plain: h.plain, dev: h.dev}
	if h.plain {
		if _, err := h.check(fd); err != nil {
			next.close()
			return handle{}, err
		}
	}
	return next, nil
}

// openFile opens a regular file that lies in h.
func (h handle) openFile(name string) (*File, error) {
	fd, err := h.open(name, fileFlags)
	if err != nil {
		return nil, err
	}
	st, err := h.check(fd)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errChanged
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &File{raw: rawFile{fd}, size: st.Size, left: st.Size}, nil
}

func (h handle) open(name string, flags int) (int, error) {
	for {
		fd, err := h.openOnce(name, flags)
		switch err {
		case unix.EINTR:
			continue
		case unix.EXDEV:
			return fd, errMount
		case unix.ELOOP, unix.ENOTDIR, unix.ENXIO:
			return fd, errChanged
		}
		return fd, err
	}
}

func (h handle) openOnce(name string, flags int) (int, error) {
	if h.plain {
		return unix.Openat(h.fd, name, flags, 0)
	}
	return unix.Openat2(h.fd, name, &unix.OpenHow{
		Flags:   uint64(flags),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
}

// check returns the state of an open file, and an error if it lies on another
// device where only that tells a mount.
func (h handle) check(fd int) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return st, err
	}
	if h.plain && st.Dev != h.dev {
		return st, errMount
	}
	return st, nil
}

// kind asks for the kind of an entry that its directory did not give.
func (h handle) kind(name string) (Kind, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(h.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Unknown, err
	}
	return kindOf(uint8(st.Mode >> 12 & 0xf)), nil
}

// kindOf maps the type byte of a directory record, which is also the type
// nibble of a file mode.
func kindOf(t uint8) Kind {
	switch t {
	case unix.DT_REG:
		return Regular
	case unix.DT_DIR:
		return Directory
	case unix.DT_LNK:
		return Symlink
	case unix.DT_UNKNOWN:
		return Unknown
	}
	return Special
}

// list calls yield for each entry of the directory but "." and "..", until
// yield returns false. The name is valid during the call only.
func (h handle) list(buffer []byte, yield func(name []byte, kind Kind) bool) error {
	for {
		n, err := unix.Getdents(h.fd, buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot list the directory: %w", err)
		}
		if n <= 0 {
			return nil
		}
		if !eachRecord(buffer[:n], yield) {
			return nil
		}
	}
}

// eachRecord takes apart linux_dirent64 records: inode and offset of 8 bytes
// each, record length of 2, type of 1, then the name and a NUL.
func eachRecord(records []byte, yield func(name []byte, kind Kind) bool) bool {
	const lengthAt, typeAt, nameAt = 16, 18, 19
	for len(records) > nameAt {
		length := int(binary.NativeEndian.Uint16(records[lengthAt:]))
		name := records[nameAt:length]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		kind := kindOf(records[typeAt])
		records = records[length:]
		if s := string(name); s == "." || s == ".." {
			continue
		}
		if !yield(name, kind) {
			return false
		}
	}
	return true
}

// rawFile is an open file as a bare descriptor.
type rawFile struct{ fd int }

func (f rawFile) read(p []byte) (int, error) {
	for {
		n, err := unix.Read(f.fd, p)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func (f rawFile) close() error { return unix.Close(f.fd) }
