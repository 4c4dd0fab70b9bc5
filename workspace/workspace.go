// Package workspace confines the file access of a job to its directories: the read-only roots and the one output
// directory. Every path that a model gives is resolved by the operating system below a directory that was opened when
// the job began (os.Root), never by comparing path strings, so that links and renames made meanwhile cannot lead out.
// Only regular files are opened. This is path confinement, not a sandbox: it does not bind processes.
//
// A path is handled in three moves. The path rules turn the model's text into candidates (an opened directory and a name
// below it) without touching the disk. The candidates are opened through os.Root. A failure is explained in words for a
// model, looking no further than the opened directories, and never naming a place outside of them.
package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// GuideName is the name of a read-only file that agents are told to read first.
const GuideName = "WORKSPACE.md"

// Config names the directories of a job. Paths are absolute or relative to the working directory of the process. They
// come from whoever starts the job and are trusted: links in them are followed.
type Config struct {
	// Root is where a relative path of a reading tool starts. It is not readable by itself.
	Root string
	// ReadOnly lists what may be read: the first entry is a directory, the others are directories or regular files.
	ReadOnly []string
	// OutDir is the only directory in which files are written.
	OutDir string
	// TmpDir is for processes; no file tool reaches it. Empty means none.
	TmpDir string
}

// Workspace is an opened Config. Its methods may be used by several goroutines at once.
type Workspace struct {
	// root and realRoot are where relative paths start: as configured, and with links resolved.
	root, realRoot string
	// tmp is the directory for temporary files with links resolved, "" for none.
	tmp string
	// made is the directory for temporary files that was named later, see UseTmp.
	made    atomic.Pointer[string]
	entries []*entry
	out     *entry
	// escapes is the error with which os.Root refuses a path that leaves it; it has no exported name.
	escapes error
	// writing makes writes and edits take turns, so that an edit never works on a file that is being replaced.
	writing sync.Mutex
}

// entry is one directory or file that may be reached, held open.
type entry struct {
	// abs and real are its path as configured and with links resolved; both are only compared, never opened.
	abs, real string
	// display is how models see it: relative to the workspace root where it is below that, else a name of its own.
	display string
	// outside says that it is not below the workspace root, so that its display is no path relative to it.
	outside bool
	// root is the directory, or the directory that holds the file.
	root *os.Root
	// file is the exact name of a file entry in root, "" for a directory.
	file string
}

// Open checks c as Check does and opens every directory of it. The error is a *problem.Error with all findings where c is
// wrong. The caller closes the Workspace when the job has ended.
func Open(c Config) (*Workspace, error) {
	if err := Check(c).Err("open workspace"); err != nil {
		return nil, err
	}
	w := &Workspace{}
	if err := w.open(c); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Workspace) open(c Config) error {
	var err error
	if w.root, w.realRoot, err = resolve(c.Root); err != nil {
		return err
	}
	for _, name := range c.ReadOnly {
		e, err := w.openEntry(name)
		if err != nil {
			return err
		}
		w.entries = append(w.entries, e)
	}
	if w.out, err = w.openEntry(c.OutDir); err != nil {
		return err
	}
	if c.TmpDir != "" {
		if _, w.tmp, err = resolve(c.TmpDir); err != nil {
			return err
		}
	}
	w.nameOutsiders()
	_, err = w.out.root.Lstat("..")
	if escape, ok := errors.AsType[*fs.PathError](err); ok {
		w.escapes = escape.Err
	}
	return nil
}

// openEntry opens a configured directory or file. Check has looked at it before, so a failure here is a race or a lack
// of rights.
func (w *Workspace) openEntry(name string) (*entry, error) {
	abs, real, err := resolve(name)
	if err != nil {
		return nil, err
	}
	stat, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	e := &entry{abs: abs, real: real}
	dir := real
	if !stat.IsDir() {
		dir, e.file = filepath.Dir(real), filepath.Base(real)
	}
	if e.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	e.display, e.outside = w.displayOf(e)
	return e, nil
}

// displayOf returns the path of an entry relative to the workspace root. For an entry outside it returns the entry's base
// name and true.
func (w *Workspace) displayOf(e *entry) (string, bool) {
	for _, pair := range [][2]string{{w.root, e.abs}, {w.realRoot, e.real}, {w.realRoot, e.abs}, {w.root, e.real}} {
		if rel, ok := below(pair[0], pair[1]); ok {
			return filepath.ToSlash(rel), false
		}
	}
	base := filepath.Base(e.abs)
	if base == string(filepath.Separator) {
		base = "filesystem"
	}
	return base, true
}

// nameOutsiders makes the displays of entries outside of the workspace root distinct, so that each can be used as a path.
func (w *Workspace) nameOutsiders() {
	taken := map[string]bool{}
	for _, e := range w.entries {
		if !e.outside {
			taken[e.display] = true
		}
	}
	for _, e := range w.entries {
		if !e.outside {
			continue
		}
		base := e.display
		for n := 2; taken[e.display]; n++ {
			e.display = numbered(base, n)
		}
		taken[e.display] = true
	}
	if w.out.outside {
		for _, e := range w.entries {
			if e.real == w.out.real {
				w.out.display = e.display
			}
		}
	}
}

// Close closes every directory. Files opened before stay usable.
func (w *Workspace) Close() error {
	var errs []error
	for _, e := range append(w.entries, w.out) {
		if e != nil && e.root != nil {
			errs = append(errs, e.root.Close())
		}
	}
	return errors.Join(errs...)
}

// resolve returns name as an absolute path, and the same with links resolved.
func resolve(name string) (abs, real string, err error) {
	if abs, err = filepath.Abs(name); err != nil {
		return "", "", err
	}
	real, err = filepath.EvalSymlinks(abs)
	return abs, real, err
}

// below returns the path of target relative to dir, "." if they are the same, if target is dir or below it by name. Both
// are absolute and clean.
func below(dir, target string) (string, bool) {
	if dir == target {
		return ".", true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.CutPrefix(target, dir)
}

// join returns the display of rel, a slash path below e.
func (e *entry) join(rel string) string {
	if e.file != "" {
		return e.display
	}
	return path.Join(e.display, filepath.ToSlash(rel))
}

// inRoot returns the name in e.root for rel, which is relative to the entry.
func (e *entry) inRoot(rel string) string {
	if e.file != "" {
		return e.file
	}
	return rel
}
