package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Code says why a path was refused.
type Code string

// The closed set of codes of a PathError.
const (
	// CodeBadPath is a text that is no usable path.
	CodeBadPath Code = "bad-path"
	// CodeTooLong is a path, or a name in it, that is too long.
	CodeTooLong Code = "too-long"
	// CodeOutside is a path that is not below any directory that may be used.
	CodeOutside Code = "outside"
	// CodeNotFound is a path inside where nothing is.
	CodeNotFound Code = "not-found"
	// CodeIsDirectory and CodeNotDirectory are the wrong kind of the two that tools work on.
	CodeIsDirectory  Code = "is-directory"
	CodeNotDirectory Code = "not-directory"
	// CodeNotRegular is a pipe, a socket, a device or another special file.
	CodeNotRegular Code = "not-regular"
	// CodeAbsoluteLink is a link whose absolute target lies inside, so that its target can be used instead.
	CodeAbsoluteLink Code = "absolute-link"
	// CodeLinkOut is a link that leads out.
	CodeLinkOut Code = "link-out"
	// CodeLinkLoop is a link that leads back to itself.
	CodeLinkLoop Code = "link-loop"
	// CodeIsLink is a write to a path that is itself a link.
	CodeIsLink Code = "is-link"
	// CodeHardLink is a write to a file that has a second name somewhere.
	CodeHardLink Code = "hard-link"
	// CodeTooLarge is a file too large for what was asked.
	CodeTooLarge Code = "too-large"
	// CodePermission is a file that the user of this process may not open.
	CodePermission Code = "permission"
	// CodeNoSpace is a write that found no room: a full disk, a quota or a limit on file size.
	CodeNoSpace Code = "no-space"
	// CodeIO is any other failure of the operating system.
	CodeIO Code = "io"
)

// PathError is a refused or failed file access, in words for the model that asked. It never names a place outside of the
// workspace, nor an absolute path that the model did not give itself.
type PathError struct {
	Code Code
	// Path is the path as given, escaped.
	Path string
	// Message says what is wrong with it and what to do instead.
	Message string
}

// Error returns the path in quotes and the message.
func (e *PathError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return `"` + e.Path + `": ` + e.Message
}

func fail(code Code, p, format string, args ...any) *PathError {
	return &PathError{Code: code, Path: Escape(p), Message: fmt.Sprintf(format, args...)}
}

// outside is the refusal of a path below no readable entry.
func (w *Workspace) outside(p string) *PathError {
	for _, target := range w.targets(p) {
		for _, dir := range []string{w.out.abs, w.out.real} {
			if _, ok := below(dir, target); ok {
				return fail(CodeOutside, p, "this is in the output directory, which may be written to but not read")
			}
		}
	}
	e := fail(CodeOutside, p, "this is outside of what may be read (%s)", w.readableList())
	if meant := w.meant(p); meant != "" {
		e.Message += fmt.Sprintf("; did you mean %s?", meant)
	}
	return e
}

func (w *Workspace) outsideOutput(p string) *PathError {
	return fail(CodeOutside, p, "files are written below the output directory only; give a path relative to it, such as \"report.md\"")
}

// readableList names the readable entries for an error, shortened if there are many.
func (w *Workspace) readableList() string {
	const most = 8
	var names []string
	for i, e := range w.entries {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(w.entries)-most))
			break
		}
		name := Escape(e.display)
		if e.file == "" {
			name += "/"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// explain turns a failure to reach rel in root into words. e is the entry that rel is shown below.
func (w *Workspace) explain(p string, s spot, err error) *PathError {
	if e, ok := errors.AsType[*PathError](err); ok {
		return e
	}
	cause := bare(err)
	switch {
	case w.escapes != nil && errors.Is(cause, w.escapes):
		return w.explainLink(p, s)
	case errors.Is(cause, fs.ErrNotExist):
		return w.explainMissing(p, s)
	case errors.Is(cause, syscall.ELOOP):
		return fail(CodeLinkLoop, p, "this is a link that leads back to itself, or too long a chain of links")
	case errors.Is(cause, syscall.ENOTDIR):
		return fail(CodeNotDirectory, p, "a part of the path is a file, not a directory")
	}
	return explainSystem(p, cause)
}

// explainSystem words the causes that have nothing to do with where the path leads.
func explainSystem(p string, cause error) *PathError {
	switch {
	case errors.Is(cause, fs.ErrPermission), errors.Is(cause, syscall.EROFS):
		return fail(CodePermission, p, "the user that the job runs as has no permission for this")
	case errors.Is(cause, syscall.ENAMETOOLONG):
		return fail(CodeTooLong, p, "the path, or a name in it, is too long")
	case errors.Is(cause, syscall.ENOSPC), errors.Is(cause, syscall.EDQUOT), errors.Is(cause, syscall.EFBIG):
		return fail(CodeNoSpace, p, "there is no room for the file (%s); nothing was changed", cause)
	case errors.Is(cause, os.ErrClosed):
		return fail(CodeIO, p, "the job has ended")
	}
	if errno, ok := errors.AsType[syscall.Errno](cause); ok {
		return fail(CodeIO, p, "%s", errno.Error())
	}
	return fail(CodeIO, p, "the operating system refused the access")
}

// explainLink says which link of the path leads out. It reads links below the opened entry and looks at no target.
func (w *Workspace) explainLink(p string, s spot) *PathError {
	link, target := s.entry.firstLinkOut(s.rel)
	if link == "" {
		return fail(CodeLinkOut, p, "this leads out of the directory it is in and is not followed")
	}
	at := Escape(s.entry.join(link))
	absolute := filepath.IsAbs(target)
	if !absolute {
		target = filepath.Join(s.entry.real, filepath.Dir(link), target)
	}
	inside := w.locateByPlace(target)
	switch {
	case len(inside) == 0:
		return fail(CodeLinkOut, p, "%s is a link that leads out of the directories that may be used; it is not followed", at)
	case absolute:
		return fail(CodeAbsoluteLink, p, "%s is a link with an absolute target, which is not followed; use %s instead",
			at, Escape(inside[0].display()))
	}
	return fail(CodeLinkOut, p, "%s is a link that leads out of its directory, which is not followed; use %s instead",
		at, Escape(inside[0].display()))
}

// firstLinkOut follows rel by name and returns the first link that leaves the entry, with its target. Links inside are
// followed a bounded number of times.
func (e *entry) firstLinkOut(rel string) (link, target string) {
	rest := strings.Split(e.inRoot(rel), string(filepath.Separator))
	done := ""
	for steps := 0; len(rest) > 0 && steps < 64; steps++ {
		at := filepath.Join(done, rest[0])
		rest = rest[1:]
		if !filepath.IsLocal(at) {
			return "", ""
		}
		target, err := e.root.Readlink(at)
		if err != nil {
			done = at
			continue
		}
		if filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(at), target)) {
			return at, target
		}
		rest = append(strings.Split(target, string(filepath.Separator)), rest...)
		done = filepath.Dir(at)
	}
	return "", ""
}
