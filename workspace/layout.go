package workspace

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// Entry is a readable directory or file as models see it.
type Entry struct {
	// Path is relative to the workspace root, or a name of its own for what lies elsewhere; reading tools accept it.
	Path string
	// Dir says that it is a directory.
	Dir bool
}

// Layout describes the directories of a job for the prompt. It holds no absolute path.
type Layout struct {
	// Readable are the read-only entries in their order; a search without a path looks in the first one.
	Readable []Entry
	// Out is the output directory as reading tools would name it.
	Out string
	// OutReadable says that outputs may be read back: the output directory is a read-only entry too.
	OutReadable bool
	// Guide is the path of the file entry named WORKSPACE.md, "" if there is none.
	Guide string
}

// Layout returns the layout. It depends on the configured paths only, not on what the directories hold.
func (w *Workspace) Layout() Layout {
	l := Layout{Out: w.out.display, OutReadable: w.outEntry() != nil}
	for _, e := range w.entries {
		l.Readable = append(l.Readable, Entry{Path: e.display, Dir: e.file == ""})
		if l.Guide == "" && e.file != "" && filepath.Base(e.abs) == GuideName {
			l.Guide = e.display
		}
	}
	return l
}

// outEntry returns the read-only entry through which the output directory can be read, nil if there is none.
func (w *Workspace) outEntry() *entry {
	for _, e := range w.entries {
		if e.real == w.out.real {
			return e
		}
	}
	return nil
}

// ReadableBelow returns the names by which the readable entries below the directory p are reached, sorted, if p is a
// directory on the way to them that may not be read itself, such as the workspace root; "" is that root. It returns nil
// for any other path.
func (w *Workspace) ReadableBelow(p string) []Entry {
	if p == "" {
		p = "."
	}
	if checkText(p) != nil || len(w.locateByPlace(p)) > 0 {
		return nil
	}
	var found []Entry
	for _, target := range w.targets(p) {
		if _, inside := below(w.root, target); !inside {
			if _, inside = below(w.realRoot, target); !inside {
				continue
			}
		}
		for _, e := range w.entries {
			for _, at := range []string{e.abs, e.real} {
				if rel, ok := below(target, at); ok {
					found = append(found, firstPart(e, rel))
				}
			}
			if e.outside && (target == w.root || target == w.realRoot) {
				found = append(found, Entry{Path: e.display, Dir: e.file == ""})
			}
		}
	}
	slices.SortFunc(found, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return slices.Compact(found)
}

// firstPart returns the first element of rel, which leads to e.
func firstPart(e *entry, rel string) Entry {
	name, _, deeper := strings.Cut(rel, string(filepath.Separator))
	return Entry{Path: name, Dir: deeper || e.file == ""}
}

// isClosedRoot reports whether p is the workspace root and that is not readable itself.
func (w *Workspace) isClosedRoot(p string) bool {
	if checkText(p) != nil || len(w.locateByPlace(p)) > 0 {
		return false
	}
	for _, target := range w.targets(p) {
		if target == w.root || target == w.realRoot {
			return true
		}
	}
	return false
}
