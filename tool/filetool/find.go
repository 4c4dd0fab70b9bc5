package filetool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
	"github.com/hozo-run/hozo/workspace/walk"
)

//go:embed find.md
var findDescription string

const findSchema = `{
	"type": "object",
	"properties": {
		"pattern": {"type": "string", "description": "The name to find, such as *.go or cmd/**/*.go"},
		"path": {"type": "string", "description": "The directory to search, relative to the workspace root (default: the sources)"},
		"limit": {"type": "integer", "description": "How many paths to show (default 1000)"},
		"details": {"type": "boolean", "description": "Add the size and the number of lines of each file (default false)"}
	},
	"required": ["pattern"],
	"additionalProperties": false
}`

type findArguments struct {
	Pattern string  `json:"pattern"`
	Path    string  `json:"path"`
	Limit   *number `json:"limit"`
	Details bool    `json:"details"`
}

// defaultFindLimit is how many paths are shown unless the model asks for another number.
const defaultFindLimit = 1000

// maxSearchTime ends a search of a tree that is too slow to go through, such as one on a network. What was found by then is
// shown.
const maxSearchTime = 20 * time.Second

func newFind() tool.Tool {
	return tool.New(tool.Declaration{
		Name:        "find",
		Description: findDescription,
		InputSchema: json.RawMessage(findSchema),
		Effect:      tool.EffectRead,
		Scripted:    true,
		Boundary:    readingBoundary(),
	}, runFind)
}

func runFind(ctx context.Context, env *tool.Env, a findArguments) tool.Result {
	pattern, err := parseGlob(a.Pattern, true)
	if err != nil {
		return tool.Errorf("%v", err)
	}
	dir, err := env.Workspace.OpenDir(a.Path)
	if err != nil {
		return failed(err)
	}
	defer dir.Close()
	var remarks notice
	list := &pathList{display: dir.Display, limit: atLeast(1, a.Limit, defaultFindLimit, "limit", &remarks)}
	visitor := func() walk.Visitor[foundPath] {
		v := nameVisitor{pattern: pattern}
		if a.Details {
			v.counter = &lineCounter{}
		}
		return v
	}
	report, err := walk.Walk(ctx, searchConfig(dir), visitor, list.add)
	switch {
	case ctx.Err() != nil:
		return cancelled()
	case err != nil:
		return tool.Errorf("%q could not be searched: %v", workspace.Escape(dir.Display), err)
	}
	text := list.text.String()
	if list.shown == 0 {
		text = "No files found."
	}
	list.describe(&remarks)
	describeWalk(report, &remarks)
	return tool.Result{Text: remarks.appendTo(text), Summary: fmt.Sprintf("%q: %s", a.Pattern, plural(list.shown, "path"))}
}

// searchConfig starts a walk at a directory of the workspace, under the ignore rules of the directories above it.
func searchConfig(dir *workspace.Dir) walk.Config {
	top, rel := dir.Entry()
	c := walk.Config{Dir: dir.Root, MaxTime: maxSearchTime}
	if rel != "." {
		c.Path, c.Ignore = rel, walk.Above(top, rel)
	}
	return c
}

// nameVisitor takes the entries whose path matches a pattern.
type nameVisitor struct {
	pattern *glob
	counter *lineCounter // nil without details
}

// foundPath is an entry that matches.
type foundPath struct {
	// rel is its path from the directory searched, with a slash at the end of a directory.
	rel string
	// detail is what stands behind the path.
	detail string
}

// Want implements walk.Visitor.
func (v nameVisitor) Want(path []byte, _ walk.Kind) bool {
	return len(path) > 0 && v.pattern.match(path)
}

// Visit implements walk.Visitor. Directories get a slash.
func (v nameVisitor) Visit(ctx context.Context, e *walk.Entry) (foundPath, int) {
	found := foundPath{rel: e.Path()}
	switch {
	case e.Kind() == walk.Directory:
		found.rel += "/"
	case v.counter != nil && e.Kind() == walk.Regular:
		found.detail = v.counter.describe(ctx, e)
	}
	return found, len(found.rel) + len(found.detail)
}

// pathList collects the paths of a result.
type pathList struct {
	display string // of the directory searched
	limit   int64
	text    strings.Builder
	shown   int64
	more    bool // there is at least one beyond the limit
	full    bool // the next one does not fit
}

// add takes the next path and reports whether there may be more.
func (l *pathList) add(found foundPath) bool {
	if l.shown == l.limit {
		l.more = true
		return false
	}
	rel, isDir := strings.CutSuffix(found.rel, "/")
	line := workspace.Escape(shownPath(l.display, rel))
	if isDir {
		line += "/"
	}
	line += found.detail
	if l.text.Len()+len(line)+1 > maxBytes {
		l.full = true
		return false
	}
	l.text.WriteString(line)
	l.text.WriteByte('\n')
	l.shown++
	return true
}

func (l *pathList) describe(remarks *notice) {
	switch {
	case l.full:
		remarks.add("The first %s, cut at 50 KB. Use a narrower pattern or path", plural(l.shown, "path"))
	case l.more:
		remarks.add("The first %s, there are more. Use limit=%d for more, or a narrower pattern or path", plural(l.shown, "path"), doubled(l.limit))
	}
}

// doubled suggests a larger limit.
func doubled(limit int64) int64 {
	const most = 1 << 40
	return min(2*limit, most)
}

// describeWalk says what a search has left out against its will.
func describeWalk(r walk.Report, remarks *notice) {
	for _, reason := range r.Partial {
		remarks.add("The search is incomplete: %s; search a smaller directory", reason)
	}
	if r.Mounts > 0 {
		remarks.add("Left out: %s, which the search does not enter", plural(int64(r.Mounts), "mount point"))
	}
	if r.Unreadable > 0 {
		first := r.Problems[0]
		remarks.add("Could not be read: %d of the files and directories, such as %q (%v)", r.Unreadable, workspace.Escape(cmp.Or(first.Path, ".")), first.Err)
	}
}
