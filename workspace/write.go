package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// MaxEditBytes is the size of the largest file that EditFile and ReadOutput hold in memory.
const MaxEditBytes = 8 << 20

// Written describes a file that was written.
type Written struct {
	// Path is relative to the output directory, with slashes.
	Path string
	// Bytes is its size.
	Bytes int64
	// Created says that there was no such file before.
	Created bool
	// Readable is the path under which reading tools find it, "" if the output directory is not readable.
	Readable string
}

// WriteFile creates or replaces a file below the output directory, where a relative path starts. Missing directories are
// made. The file appears whole or not at all: data goes to a temporary file in the same directory, which then takes the
// name. A replaced file keeps its permissions. Links, directories, special files and files with a second name are refused.
// The error is a *PathError; after it the file is as it was.
func (w *Workspace) WriteFile(p string, data []byte) (Written, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	t, err := w.target(p, true)
	if err != nil {
		return Written{}, err
	}
	defer t.close()
	return w.replace(p, t, data)
}

// EditFile replaces a file below the output directory by what edit makes of its content, under the same rules as
// WriteFile. Writes and other edits wait meanwhile. An error of edit is returned as it is and leaves the file as it was;
// any other error is a *PathError.
func (w *Workspace) EditFile(p string, edit func(before []byte) (after []byte, err error)) (Written, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	t, err := w.target(p, false)
	if err != nil {
		return Written{}, err
	}
	defer t.close()
	before, err := w.content(p, t)
	if err != nil {
		return Written{}, err
	}
	after, err := edit(before)
	if err != nil {
		return Written{}, err
	}
	return w.replace(p, t, after)
}

// ReadOutput returns the content of a file below the output directory, whether that is readable or not. The file is
// subject to the rules of EditFile.
func (w *Workspace) ReadOutput(p string) ([]byte, error) {
	t, err := w.target(p, false)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return w.content(p, t)
}

// target is a name in an opened directory. Holding the directory keeps all steps of a write in one place, even if
// somebody swaps a directory on the way for a link.
type target struct {
	spot
	dir  *os.Root
	name string
	// stat is the file that has the name now, nil if none.
	stat fs.FileInfo
}

func (t *target) close() { t.dir.Close() }

// target finds what a writing tool named and applies the rules for existing files. create makes missing directories;
// without it a missing file is an error.
func (w *Workspace) target(p string, create bool) (*target, error) {
	rel, refused := w.locateOutput(p)
	if refused != nil {
		return nil, refused
	}
	if rel == "." || strings.HasSuffix(p, "/") {
		return nil, fail(CodeIsDirectory, p, "this names a directory; give the path of a file")
	}
	if create {
		if err := checkNewName(p, rel); err != nil {
			return nil, err
		}
	}
	s := spot{w.out, rel}
	dirName := filepath.Dir(rel)
	if create && dirName != "." {
		if err := w.out.root.MkdirAll(dirName, 0o755); err != nil {
			return nil, w.explainOutput(p, s, err)
		}
	}
	dir, err := w.out.root.OpenRoot(throughDir(dirName))
	if err != nil {
		return nil, w.explainOutput(p, s, err)
	}
	t := &target{spot: s, dir: dir, name: filepath.Base(rel)}
	t.stat, err = dir.Lstat(t.name)
	switch {
	case err == nil:
		err = checkReplaceable(p, t.stat)
	case errors.Is(err, fs.ErrNotExist) && create:
		return t, nil
	}
	if err != nil {
		t.close()
		return nil, w.explainOutput(p, s, err)
	}
	return t, nil
}

// checkReplaceable refuses what must not be written to. Replacing a name could not change a link's target or a hard
// link's other name, but the model would take the write for a change of both.
func checkReplaceable(p string, stat fs.FileInfo) error {
	switch mode := stat.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return fail(CodeIsLink, p, "this is a link; files are not written through links, choose another name")
	case !mode.IsRegular():
		return checkRegular(p, stat)
	}
	if sys, ok := stat.Sys().(*syscall.Stat_t); ok && uint64(sys.Nlink) > 1 {
		return fail(CodeHardLink, p, "this file has another name elsewhere (a hard link) and is not changed; choose another name")
	}
	return nil
}

// explainOutput is explain for the output directory, whose paths start there.
func (w *Workspace) explainOutput(p string, s spot, err error) *PathError {
	if e, ok := errors.AsType[*PathError](err); ok {
		return e
	}
	cause := bare(err)
	switch {
	case w.escapes != nil && errors.Is(cause, w.escapes):
		return fail(CodeLinkOut, p, "a directory of this path is a link that leads out of the output directory; choose another path")
	case errors.Is(cause, fs.ErrNotExist) && s.entry.removed():
		return fail(CodeNotFound, p, "the output directory was removed or renamed while the job ran")
	case errors.Is(cause, fs.ErrNotExist):
		e := fail(CodeNotFound, p, "there is no such file in the output directory")
		if dir, name, _ := s.entry.firstMissing(s.rel); name != "" {
			if similar := s.entry.similar(dir, name); similar != "" {
				e.Message += fmt.Sprintf("; did you mean %s?", Escape(filepath.ToSlash(filepath.Join(dir, similar))))
			}
		}
		return e
	case errors.Is(cause, syscall.ENOTDIR), errors.Is(cause, fs.ErrExist):
		return fail(CodeNotDirectory, p, "a part of the path is a file, not a directory")
	case errors.Is(cause, syscall.ELOOP):
		return fail(CodeLinkLoop, p, "a directory of this path is a link that leads back to itself")
	}
	return explainSystem(p, cause)
}

// removed reports whether the directory of e, which stays open, is no longer where it was.
func (e *entry) removed() bool {
	_, err := os.Stat(e.real)
	return errors.Is(err, fs.ErrNotExist)
}

// content reads the whole file of t.
func (w *Workspace) content(p string, t *target) ([]byte, error) {
	f, err := t.dir.OpenFile(t.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, w.explainOutput(p, t.spot, err)
	}
	defer f.Close()
	stat, err := f.Stat()
	switch {
	case err != nil:
		return nil, w.explainOutput(p, t.spot, err)
	case !os.SameFile(stat, t.stat):
		return nil, fail(CodeNotFound, p, "the file was replaced while it was opened; try again")
	case stat.Size() > MaxEditBytes:
		return nil, fail(CodeTooLarge, p, "the file has %d bytes; files of more than %d bytes cannot be edited, write a new one instead",
			stat.Size(), int64(MaxEditBytes))
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxEditBytes+1))
	if err != nil {
		return nil, w.explainOutput(p, t.spot, err)
	}
	if len(data) > MaxEditBytes {
		return nil, fail(CodeTooLarge, p, "the file grew beyond %d bytes while it was read", int64(MaxEditBytes))
	}
	return data, nil
}

// replace puts data under the name of t in one step.
func (w *Workspace) replace(p string, t *target, data []byte) (Written, error) {
	temp, err := t.writeTemp(data)
	if err == nil {
		if err = t.dir.Rename(temp, t.name); err != nil {
			t.dir.Remove(temp)
		}
	}
	if err != nil {
		return Written{}, w.explainOutput(p, t.spot, err)
	}
	done := Written{Path: filepath.ToSlash(t.rel), Bytes: int64(len(data)), Created: t.stat == nil}
	if e := w.outEntry(); e != nil {
		done.Readable = e.join(t.rel)
	}
	return done, nil
}

// writeTemp writes data to a new file beside the target and returns its name. On failure no file is left.
func (t *target) writeTemp(data []byte) (string, error) {
	name, f, err := t.createTemp()
	if err != nil {
		return "", err
	}
	if t.stat != nil {
		err = f.Chmod(t.stat.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err != nil {
		t.dir.Remove(name)
		return "", err
	}
	return name, nil
}

// createTemp makes a new file that nothing else had. The name begins with a dot so that an unlucky listing shows what it
// is.
func (t *target) createTemp() (string, *os.File, error) {
	for try := 0; ; try++ {
		name := fmt.Sprintf(".hozo-%016x.tmp", rand.Uint64())
		f, err := t.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) && try < 100 {
			continue
		}
		return name, f, err
	}
}
