//go:build unix && (!linux || portable)

package walk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// handle is an open directory. An os.Root follows links as long as they stay
// inside, so every open is checked against what the directory itself says
// about the name.
type handle struct{ root *os.Root }

// openTop opens a directory anew from the one that the caller holds.
func openTop(root *os.Root) (handle, error) {
	r, err := root.OpenRoot(".")
	if err != nil {
		return handle{}, fmt.Errorf("cannot open the directory: %w", err)
	}
	return handle{r}, nil
}

func (h handle) close() { _ = h.root.Close() }

// openDir opens a directory that lies in h, never through a link and never
// across a mount.
func (h handle) openDir(name string) (handle, error) {
	before, err := h.lstat(name, fs.ModeDir)
	if err != nil {
		return handle{}, err
	}
	r, err := h.root.OpenRoot(name)
	if err != nil {
		return handle{}, err
	}
	after, err := r.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errChanged
	}
	if err != nil {
		_ = r.Close()
		return handle{}, err
	}
	return handle{r}, nil
}

// openFile opens a regular file that lies in h.
func (h handle) openFile(name string) (*File, error) {
	before, err := h.lstat(name, 0)
	if err != nil {
		return nil, err
	}
	f, err := h.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && (!os.SameFile(before, after) || !after.Mode().IsRegular()) {
		err = errChanged
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &File{raw: rawFile{f}, size: after.Size(), left: after.Size()}, nil
}

// lstat returns the state of an entry if it has the wanted type and lies on the
// device of its directory.
func (h handle) lstat(name string, want fs.FileMode) (fs.FileInfo, error) {
	info, err := h.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() != want {
		return nil, errChanged
	}
	here, err := h.root.Stat(".")
	if err != nil {
		return nil, err
	}
	if device(info) != device(here) {
		return nil, errMount
	}
	return info, nil
}

func device(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}

// kind asks for the kind of an entry that its directory did not give.
func (h handle) kind(name string) (Kind, error) {
	info, err := h.root.Lstat(name)
	if err != nil {
		return Unknown, err
	}
	return kindOf(info.Mode()), nil
}

func kindOf(mode fs.FileMode) Kind {
	switch mode.Type() {
	case 0:
		return Regular
	case fs.ModeDir:
		return Directory
	case fs.ModeSymlink:
		return Symlink
	}
	return Special
}

// list calls yield for each entry of the directory, until yield returns false.
// The name is valid during the call only.
func (h handle) list(_ []byte, yield func(name []byte, kind Kind) bool) error {
	f, err := h.root.Open(".")
	if err != nil {
		return fmt.Errorf("cannot list the directory: %w", err)
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(256)
		for _, e := range entries {
			if !yield([]byte(e.Name()), kindOf(e.Type())) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot list the directory: %w", err)
		}
	}
}

// rawFile is an open file.
type rawFile struct{ f *os.File }

func (r rawFile) read(p []byte) (int, error) {
	n, err := r.f.Read(p)
	if errors.Is(err, io.EOF) {
		return 0, nil
	}
	return n, err
}

func (r rawFile) close() error { return r.f.Close() }
