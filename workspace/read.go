package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is a regular file open for reading.
type File struct {
	*os.File
	// Display is how models and events name it: relative to the workspace root, or beginning with the name of a read-only
	// entry that lies elsewhere; with slashes, never absolute, not escaped.
	Display string
	// Size is its size in bytes when it was opened; it may grow meanwhile.
	Size int64
}

// Dir is a directory open for reading.
type Dir struct {
	// Root reaches what is below it and nothing else.
	Root *os.Root
	// File is the directory itself, for listing it. Its Name is not for models.
	File *os.File
	// Display is how models name it, as in File; "." is the workspace root. The display of an entry below is
	// path.Join(Display, name).
	Display string

	workspace *Workspace
	spot      spot
}

// Close closes the directory. What was opened below it stays usable.
func (d *Dir) Close() error {
	err := d.Root.Close()
	if err2 := d.File.Close(); err == nil {
		err = err2
	}
	return err
}

// Entry returns the root of the read-only entry that the directory lies in, and the path from there to the directory, with
// slashes; "." is the entry itself. A search needs it for the ignore rules of the directories above. The workspace closes
// the root.
func (d *Dir) Entry() (root *os.Root, rel string) {
	return d.spot.entry.root, filepath.ToSlash(d.spot.rel)
}

// Follow returns the type of what the link name in the directory leads to. Links that leave the read-only entry of the
// directory are not followed; that and any other failure is a *PathError.
func (d *Dir) Follow(name string) (fs.FileMode, error) {
	s := spot{d.spot.entry, filepath.Join(d.spot.rel, name)}
	stat, err := s.entry.root.Stat(s.rel)
	if err != nil {
		return 0, d.workspace.explain(s.display(), s, err)
	}
	return stat.Mode(), nil
}

// OpenFile opens the regular file that a reading tool named. A relative path starts at the workspace root, an absolute one
// must lie below a read-only entry. Links are followed inside of their entry. It never waits for another process and opens
// nothing but regular files. The error is a *PathError.
func (w *Workspace) OpenFile(p string) (*File, error) {
	var file *File
	err := w.each(p, func(s spot) error {
		var err error
		file, err = s.openFile(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// OpenDir opens the directory that a reading tool named; "" is the first read-only entry, where a search without a path
// looks. So is "." if the workspace root itself may not be read. The error is a *PathError.
func (w *Workspace) OpenDir(p string) (*Dir, error) {
	if p == "" || w.isClosedRoot(p) {
		s := spot{w.entries[0], "."}
		dir, err := w.openDir(p, s)
		if err != nil {
			return nil, w.explain(s.display(), s, err)
		}
		return dir, nil
	}
	var dir *Dir
	err := w.each(p, func(s spot) error {
		var err error
		dir, err = w.openDir(p, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return dir, nil
}

// each calls open for the candidates of p until one is there. A path that leads nowhere is tried once more with escapes
// undone, so that a name can be given as it was shown. The error is that of the first candidate.
func (w *Workspace) each(p string, open func(spot) error) error {
	err := w.try(p, open)
	if err == nil || err.Code != CodeNotFound && err.Code != CodeOutside {
		return asError(err)
	}
	if plain, ok := unescape(p); ok && plain != p {
		if w.try(plain, open) == nil {
			return nil
		}
	}
	return err
}

func asError(err *PathError) error {
	if err == nil {
		return nil
	}
	return err
}

func (w *Workspace) try(p string, open func(spot) error) *PathError {
	spots, refused := w.locate(p)
	if refused != nil {
		return refused
	}
	var first *PathError
	for _, s := range spots {
		err := open(s)
		if err == nil {
			return nil
		}
		if first == nil {
			first = w.explain(p, s, err)
		}
	}
	return first
}

// openFile looks before it opens, so that no special file is touched, and again afterwards, since the name may have been
// given to something else in between. O_NONBLOCK keeps a pipe that slipped in from holding the call.
func (s spot) openFile(p string) (*File, error) {
	name := s.entry.inRoot(s.rel)
	before, err := s.look(name)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(p, before); err != nil {
		return nil, err
	}
	f, err := s.entry.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil {
		if refused := checkRegular(p, after); refused != nil {
			err = refused
		} else if s.entry.file != "" && !os.SameFile(before, after) {
			err = fail(CodeNotFound, p, "the file was replaced while it was opened; try again")
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{File: f, Display: s.display(), Size: after.Size()}, nil
}

// look returns what name is. A file entry must be the very file: a link put in its place could lead to its neighbours.
func (s spot) look(name string) (fs.FileInfo, error) {
	if s.entry.file != "" {
		return s.entry.root.Lstat(name)
	}
	return s.entry.root.Stat(name)
}

// openDir opens name/. so that the last element is reached through a directory: a pipe put in its place is refused by the
// system instead of waited for.
func (w *Workspace) openDir(p string, s spot) (*Dir, error) {
	if s.entry.file != "" {
		return nil, fail(CodeNotDirectory, p, "this is a file, not a directory")
	}
	stat, err := s.entry.root.Stat(s.rel)
	if err != nil {
		return nil, err
	}
	if !stat.IsDir() {
		return nil, fail(CodeNotDirectory, p, "this is a %s, not a directory", Kind(stat.Mode()))
	}
	root, err := s.entry.root.OpenRoot(throughDir(s.rel))
	if err != nil {
		return nil, err
	}
	f, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	return &Dir{Root: root, File: f, Display: s.display(), workspace: w, spot: s}, nil
}

// throughDir returns name with a last element ".", which can only be reached if name is a directory.
func throughDir(name string) string { return name + string(filepath.Separator) + "." }

func checkRegular(p string, stat fs.FileInfo) error {
	switch mode := stat.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return fail(CodeIsDirectory, p, "this is a directory, not a file")
	default:
		return fail(CodeNotRegular, p, "this is a %s; only regular files are opened", Kind(mode))
	}
}

// Kind names the type of a file in words.
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}
