package walk

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hozo-run/hozo/workspace/ignore"
)

// dirRef is an open directory that several jobs use. It closes when the last of
// them lets go. A nil dirRef stands for the holder of the top directory.
type dirRef struct {
	handle handle
	refs   atomic.Int32
}

func (d *dirRef) retain() {
	if d != nil {
		d.refs.Add(1)
	}
}

func (d *dirRef) release() {
	if d != nil && d.refs.Add(-1) == 0 {
		d.handle.close()
	}
}

// topDir is the directory at which the walk starts, and how reading it failed.
type topDir struct {
	ref *dirRef
	err error
}

// item is one entry. Its name lies in the arena of the listing, since a million
// small strings would cost several times as much memory.
type item struct {
	offset uint32
	length uint16
	kind   Kind
	wanted bool
}

// dirContent is what reading a directory yields: its entries in order, and the
// rules that hold in it.
type dirContent struct {
	top   *topDir // set in the one listing that holds the top directory
	path  string  // from the directory that ignore rules are relative to
	level *ignore.Level
	depth int
	arena []byte
	items []item
}

func (c *dirContent) name(i item) []byte {
	return c.arena[i.offset : int(i.offset)+int(i.length)]
}

// add appends an entry and reports whether the arena could take it.
func (c *dirContent) add(name []byte, kind Kind) bool {
	const arenaLimit = 1 << 30
	if len(c.arena)+len(name) > arenaLimit {
		return false
	}
	c.items = append(c.items, item{offset: uint32(len(c.arena)), length: uint16(len(name)), kind: kind})
	c.arena = append(c.arena, name...)
	return true
}

func (c *dirContent) sort() {
	slices.SortFunc(c.items, func(a, b item) int { return bytes.Compare(c.name(a), c.name(b)) })
}

// before reports whether the next entry of c comes before the entries of o in
// path order. The cursor of c does not matter: its entries lie all on the same
// side of the other directory, or are its parent's later entries.
func (c *dirContent) before(o *dirContent) bool {
	return comparePaths(c.path, o.path) < 0 && !isParent(c.path, o.path)
}

// isParent reports whether the path inner lies below outer.
func isParent(outer, inner string) bool {
	return outer == "" || len(inner) > len(outer) && inner[len(outer)] == '/' && strings.HasPrefix(inner, outer)
}

// comparePaths orders paths element by element, which is the order of bytes
// with the slash before all others.
func comparePaths(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] {
			continue
		}
		if a[i] == '/' || b[i] != '/' && a[i] < b[i] {
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}

// join appends a name to a directory path.
func join(buf []byte, dir string, name []byte) []byte {
	buf = append(buf[:0], dir...)
	if dir != "" && len(name) > 0 {
		buf = append(buf, '/')
	}
	return append(buf, name...)
}
