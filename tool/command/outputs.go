package command

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

const (
	// maxSurveyed bounds the names that are looked at in the output directory, maxDepth how deep.
	maxSurveyed = 100_000
	maxDepth    = 100
	// maxOutputs bounds the outputs of one call.
	maxOutputs = 1000
)

// survey is what the regular files of the output directory looked like at one time.
type survey struct {
	files map[string]state
	// seen counts all names, unread the directories that could not be read.
	seen, unread int
	// partial says that there was more than could be looked at.
	partial bool
	skip    string
}

// state tells one version of a file from another.
type state struct {
	size, modified int64
	inode          uint64
}

// look surveys the directory dir. It follows no links and never leaves dir.
func look(ctx context.Context, dir, skip string) *survey {
	s := &survey{files: map[string]state{}, skip: skip}
	root, err := os.OpenRoot(dir)
	if err != nil {
		s.unread++
		return s
	}
	defer root.Close()
	s.walk(ctx, root, "", 0)
	return s
}

func (s *survey) walk(ctx context.Context, dir *os.Root, at string, depth int) {
	if depth > maxDepth {
		s.partial = true
		return
	}
	list, err := dir.Open(".")
	if err != nil {
		s.unread++
		return
	}
	defer list.Close()
	for !s.partial {
		names, err := list.Readdirnames(1024)
		for _, name := range names {
			if s.seen++; s.seen > maxSurveyed || ctx.Err() != nil {
				s.partial = true
				return
			}
			s.add(ctx, dir, at, name, depth)
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}

func (s *survey) add(ctx context.Context, dir *os.Root, at, name string, depth int) {
	stat, err := dir.Lstat(name)
	if err != nil {
		return // it went meanwhile
	}
	full := path.Join(at, name)
	switch {
	case s.skip != "" && full == s.skip:
	case stat.Mode().IsRegular():
		s.files[full] = stateOf(stat)
	case stat.IsDir():
		below, err := dir.OpenRoot(name)
		if err != nil {
			s.unread++
			return
		}
		defer below.Close()
		s.walk(ctx, below, full, depth+1)
	}
}

func stateOf(stat fs.FileInfo) state {
	s := state{size: stat.Size(), modified: stat.ModTime().UnixNano()}
	if system, ok := stat.Sys().(*syscall.Stat_t); ok {
		s.inode = system.Ino
	}
	return s
}

// changes returns the files that are new or different in after, sorted, and remarks on what is not among them.
func changes(before, after *survey) (outputs []tool.Output, remarks []string) {
	if before.partial || after.partial {
		return nil, []string{fmt.Sprintf("the output directory holds more than %d names, or is more than %d deep: files written by this command are not reported as outputs",
			maxSurveyed, maxDepth)}
	}
	var unnameable []string
	for name, now := range after.files {
		if was, ok := before.files[name]; ok && was == now {
			continue
		}
		if !utf8.ValidString(name) || workspace.Escape(name) != name {
			unnameable = append(unnameable, name)
			continue
		}
		outputs = append(outputs, tool.Output{Path: name, Bytes: now.size})
	}
	slices.SortFunc(outputs, func(a, b tool.Output) int { return cmp.Compare(a.Path, b.Path) })
	if n := len(outputs); n > maxOutputs {
		outputs = outputs[:maxOutputs]
		remarks = append(remarks, fmt.Sprintf("the first %d of %d written files are reported as outputs", maxOutputs, n))
	}
	if len(unnameable) > 0 {
		slices.Sort(unnameable)
		remarks = append(remarks, fmt.Sprintf("%s not reported as outputs, such as \"%s\": their names hold invisible characters, backslashes or bytes that are no text; rename them",
			count(len(unnameable), "written file is", "written files are"), workspace.Escape(unnameable[0])))
	}
	if after.unread > 0 {
		remarks = append(remarks, fmt.Sprintf("%s in the output directory cannot be read: what is in there is not reported",
			count(after.unread, "directory", "directories")))
	}
	return outputs, remarks
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
