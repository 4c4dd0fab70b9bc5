package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hozo-run/hozo/problem"
)

// writable and searchable are the access(2) modes W_OK and X_OK, which are the same on every system we build for.
const (
	searchable = 0x1
	writable   = 0x2
	readable   = 0x4
)

// Check reports everything that is wrong with c, with pointers into the workspace field of a job spec. It looks at the
// directories as they are now and opens nothing for long.
func Check(c Config) problem.List {
	var l problem.List
	checkDir(&l, "/workspace/root", "workspace root", c.Root)
	out := checkDir(&l, "/workspace/outDir", "output directory", c.OutDir)
	if out != nil && syscall.Access(out.real, writable|searchable) != nil {
		l.AddHint("not-writable", "/workspace/outDir", "let this user write there, or name another directory",
			"the output directory %q is not writable", c.OutDir)
	}
	var tmp *checked
	if c.TmpDir != "" {
		tmp = checkDir(&l, "/workspace/tmpDir", "temporary directory", c.TmpDir)
	}
	if len(c.ReadOnly) == 0 {
		l.AddHint("required", "/workspace/readOnly", "list at least the directory with the sources to read",
			"nothing is readable: the list is empty")
	}
	var seen []*checked
	for i, name := range c.ReadOnly {
		pointer := fmt.Sprintf("/workspace/readOnly/%d", i)
		entry := checkEntry(&l, pointer, i, name)
		if entry == nil {
			continue
		}
		for _, other := range seen {
			if os.SameFile(entry.stat, other.stat) {
				l.AddHint("duplicate-entry", pointer, "remove one of them", "%q is the same as entry %d", name, other.index)
				break
			}
		}
		seen = append(seen, entry)
		checkOverlap(&l, pointer, entry, out)
		checkScratch(&l, entry, out, tmp)
	}
	return l
}

// checked is a configured path that exists.
type checked struct {
	index int
	real  string
	stat  fs.FileInfo
}

// look resolves name and adds a finding if there is nothing usable.
func look(l *problem.List, pointer, what, name string) *checked {
	if name == "" {
		l.Add("required", pointer, "the %s is not given", what)
		return nil
	}
	_, real, err := resolve(name)
	var stat fs.FileInfo
	if err == nil {
		stat, err = os.Stat(real)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.AddHint("missing-directory", pointer, "create it before the job starts, or correct the path",
			"the %s %q does not exist", what, name)
		return nil
	case err != nil:
		l.Add("unreadable", pointer, "the %s %q cannot be used: %v", what, name, bare(err))
		return nil
	}
	return &checked{real: real, stat: stat}
}

func checkDir(l *problem.List, pointer, what, name string) *checked {
	found := look(l, pointer, what, name)
	if found == nil {
		return nil
	}
	if !found.stat.IsDir() {
		l.Add("not-a-directory", pointer, "the %s %q is not a directory", what, name)
		return nil
	}
	return found
}

func checkEntry(l *problem.List, pointer string, index int, name string) *checked {
	found := look(l, pointer, "read-only entry", name)
	if found == nil {
		return nil
	}
	found.index = index
	mode := found.stat.Mode()
	switch {
	case index == 0 && !mode.IsDir():
		l.AddHint("not-a-directory", pointer, "put the directory with the sources first; files may follow it",
			"the first read-only entry %q is not a directory", name)
		return nil
	case !mode.IsDir() && !mode.IsRegular():
		l.Add("not-a-regular-file", pointer, "the read-only entry %q is neither a directory nor a regular file", name)
		return nil
	case mode.IsDir() && syscall.Access(found.real, readable|searchable) != nil,
		mode.IsRegular() && syscall.Access(found.real, readable) != nil:
		l.Add("unreadable", pointer, "the read-only entry %q cannot be read by this user", name)
		return nil
	}
	return found
}

// checkOverlap refuses an output directory through which a read-only entry could be changed. An entry that is the output
// directory itself lets the agent read its own output; as entry 0 it would make the sources writable.
func checkOverlap(l *problem.List, pointer string, entry, out *checked) {
	if out == nil {
		return
	}
	switch {
	case os.SameFile(entry.stat, out.stat):
		if entry.index == 0 {
			l.AddHint("overlap", "/workspace/outDir", "choose another directory; list it as a further entry to make outputs readable",
				"the output directory is the first read-only entry, so that the sources could be written to")
		}
	case isAbove(entry, out):
		l.AddHint("overlap", "/workspace/outDir", "choose a directory beside it",
			"the output directory is inside the read-only entry %d", entry.index)
	case isAbove(out, entry):
		l.AddHint("overlap", pointer, "choose an output directory that does not hold it",
			"the read-only entry is inside the output directory")
	}
}

// checkScratch refuses a temporary directory through which processes could change a read-only entry. An entry that is the
// output directory may be changed anyway.
func checkScratch(l *problem.List, entry, out, tmp *checked) {
	if tmp == nil || out != nil && os.SameFile(entry.stat, out.stat) {
		return
	}
	if os.SameFile(entry.stat, tmp.stat) || isAbove(tmp, entry) {
		l.AddHint("overlap", "/workspace/tmpDir", "choose another directory, or leave it out for a private one",
			"the temporary directory is or holds the read-only entry %d, which processes could then change", entry.index)
	}
}

// isAbove reports whether upper holds lower, at any depth. Directories are compared by identity and not by name, so that
// links, bind mounts and file systems that ignore case are seen through.
func isAbove(upper, lower *checked) bool {
	if !upper.stat.IsDir() {
		return false
	}
	for dir := lower.real; ; {
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
		if stat, err := os.Stat(dir); err == nil && os.SameFile(stat, upper.stat) {
			return true
		}
	}
}

// bare returns the cause of err without the path that the operating system's errors carry.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
