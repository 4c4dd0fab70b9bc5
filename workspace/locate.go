package workspace

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxPath is the longest path accepted, in bytes.
const maxPath = 4096

// spot is a candidate for what a path means: a name below an opened entry.
type spot struct {
	entry *entry
	// rel is relative to the entry, clean and with the system's separators; "." is the entry itself.
	rel string
}

func (s spot) display() string { return s.entry.join(s.rel) }

// checkText refuses texts that are no usable path whatever the directories hold.
func checkText(p string) *PathError {
	switch {
	case p == "":
		return fail(CodeBadPath, p, "the path is empty")
	case len(p) > maxPath:
		return fail(CodeTooLong, p[:64]+"…", "the path has more than 4096 bytes")
	case strings.ContainsRune(p, 0):
		return fail(CodeBadPath, p, "the path holds a NUL byte")
	case p == "~" || strings.HasPrefix(p, "~/"):
		return fail(CodeBadPath, p, "there is no home directory here; use a path relative to the workspace")
	case strings.HasPrefix(p, "file:"):
		return fail(CodeBadPath, p, "use a plain path, not a URL")
	case isWindowsPath(p):
		return fail(CodeBadPath, p, "drive letters and \\\\server paths do not exist here; use a path relative to the workspace, with slashes")
	}
	return nil
}

func isWindowsPath(p string) bool {
	if strings.HasPrefix(p, `\\`) {
		return true
	}
	letter := len(p) >= 3 && (p[0]|0x20) >= 'a' && (p[0]|0x20) <= 'z'
	return letter && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

// locate turns the path of a reading tool into candidates, the most likely first. It touches no disk. A relative path
// starts at the workspace root; an absolute one counts only below a listed entry. The display of an entry outside of the
// workspace root is accepted as well, since that is what models are shown.
func (w *Workspace) locate(p string) ([]spot, *PathError) {
	if err := checkText(p); err != nil {
		return nil, err
	}
	spots := w.locateByPlace(p)
	if !filepath.IsAbs(p) {
		spots = append(spots, w.locateByName(p)...)
	}
	if len(spots) == 0 {
		return nil, w.outside(p)
	}
	return spots, nil
}

// locateByPlace returns the entries that hold p by its place in the file tree, the innermost first.
func (w *Workspace) locateByPlace(p string) []spot {
	var spots []spot
	for _, target := range w.targets(p) {
		for _, e := range w.entries {
			for _, dir := range []string{e.abs, e.real} {
				if rel, ok := below(dir, target); ok && (e.file == "" || rel == ".") {
					spots = appendSpot(spots, spot{e, rel})
				}
			}
		}
	}
	slices.SortStableFunc(spots, func(a, b spot) int { return cmp.Compare(len(b.entry.real), len(a.entry.real)) })
	return spots
}

// targets returns p as clean absolute paths: from the workspace root as configured and with its links resolved.
func (w *Workspace) targets(p string) []string {
	target := filepath.Clean(p)
	if !filepath.IsAbs(p) {
		target = filepath.Join(w.root, p)
	}
	targets := []string{target}
	if rel, ok := below(w.root, target); ok && w.realRoot != w.root {
		targets = append(targets, filepath.Join(w.realRoot, rel))
	} else if !filepath.IsAbs(p) && w.realRoot != w.root {
		targets = append(targets, filepath.Join(w.realRoot, p))
	}
	return targets
}

// locateByName returns the entries outside of the workspace root whose display begins p.
func (w *Workspace) locateByName(p string) []spot {
	var spots []spot
	clean := filepath.Clean(p)
	for _, e := range w.entries {
		if !e.outside {
			continue
		}
		if rel, ok := below(e.display, clean); ok && (e.file == "" || rel == ".") {
			spots = append(spots, spot{e, rel})
		}
	}
	return spots
}

func appendSpot(spots []spot, s spot) []spot {
	if slices.Contains(spots, s) {
		return spots
	}
	return append(spots, s)
}

// locateOutput turns the path of a writing tool into a clean name below the output directory. A relative path starts
// there, an absolute one must lie below it.
func (w *Workspace) locateOutput(p string) (string, *PathError) {
	if err := checkText(p); err != nil {
		return "", err
	}
	if filepath.IsAbs(p) {
		clean := filepath.Clean(p)
		for _, dir := range []string{w.out.abs, w.out.real} {
			if rel, ok := below(dir, clean); ok {
				return rel, nil
			}
		}
		return "", w.outsideOutput(p)
	}
	rel := filepath.Clean(p)
	if !filepath.IsLocal(rel) {
		return "", w.outsideOutput(p)
	}
	return rel, nil
}

// checkNewName refuses names that nobody would want to find in an output directory. Existing names are not judged.
func checkNewName(p, rel string) *PathError {
	if strings.Contains(rel, `\`) {
		return fail(CodeBadPath, p, "a file name with a backslash cannot be created; separate folders with /")
	}
	if name := Escape(rel); strings.Contains(name, `\`) {
		return fail(CodeBadPath, p, "a file name with control characters, invisible characters or blanks at its end cannot be created")
	}
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if len(part) > 255 {
			return fail(CodeTooLong, p, "a name in the path has more than 255 bytes")
		}
	}
	return nil
}

func numbered(base string, n int) string { return base + "-" + strconv.Itoa(n) }
