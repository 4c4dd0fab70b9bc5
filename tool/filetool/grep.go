package filetool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
	"github.com/hozo-run/hozo/workspace/search"
	"github.com/hozo-run/hozo/workspace/walk"
)

//go:embed grep.md
var grepDescription string

const grepSchema = `{
	"type": "object",
	"properties": {
		"pattern": {"type": "string", "description": "Regular expression (RE2), or plain text with literal"},
		"path": {"type": "string", "description": "The directory or file to search, relative to the workspace root (default: the sources)"},
		"glob": {"type": "string", "description": "Search only files that match, such as *.go or cmd/**/*.go; ! in front excludes them"},
		"ignoreCase": {"type": "boolean", "description": "Upper and lower case are the same (default false)"},
		"literal": {"type": "boolean", "description": "The pattern is plain text, not a regular expression (default false)"},
		"context": {"type": "integer", "description": "Lines to show before and after each match (default 0, at most 100)"},
		"limit": {"type": "integer", "description": "How many matching lines to show (default 100)"}
	},
	"required": ["pattern"],
	"additionalProperties": false
}`

type grepArguments struct {
	Pattern    string  `json:"pattern"`
	Path       string  `json:"path"`
	Glob       string  `json:"glob"`
	IgnoreCase bool    `json:"ignoreCase"`
	Literal    bool    `json:"literal"`
	Context    *number `json:"context"`
	Limit      *number `json:"limit"`
}

const (
	// defaultGrepLimit is how many matches are shown unless the model asks for another number.
	defaultGrepLimit = 100
	// maxContext bounds the lines around a match.
	maxContext = 100
)

func newGrep() tool.Tool {
	return tool.New(tool.Declaration{
		Name:        "grep",
		Description: grepDescription,
		InputSchema: json.RawMessage(grepSchema),
		Effect:      tool.EffectRead,
		Scripted:    true,
		Boundary:    readingBoundary(),
	}, runGrep)
}

// grepCall is a call whose arguments have been read.
type grepCall struct {
	pattern *search.Pattern
	glob    *glob // nil for all files
	exclude bool  // glob names the files to leave out
	config  search.Config
	hits    *hitList

	candidates, binaries atomic.Int64 // files looked at, and those of them that hold no text
}

func runGrep(ctx context.Context, env *tool.Env, a grepArguments) tool.Result {
	var remarks notice
	c, err := newGrepCall(a, &remarks)
	if err != nil {
		return tool.Errorf("%v", err)
	}
	dir, err := env.Workspace.OpenDir(a.Path)
	if err == nil {
		defer dir.Close()
		return c.inTree(ctx, dir, a, remarks)
	}
	if e, ok := errors.AsType[*workspace.PathError](err); !ok || e.Code != workspace.CodeNotDirectory {
		return failed(err)
	}
	file, err := env.Workspace.OpenFile(a.Path)
	if err != nil {
		return failed(err)
	}
	defer file.Close()
	return c.inFile(ctx, file, a, remarks)
}

func newGrepCall(a grepArguments, remarks *notice) (*grepCall, error) {
	if a.Pattern == "" {
		return nil, errors.New("the pattern is empty; use find to list files and read to see all lines of one")
	}
	c := &grepCall{}
	var err error
	if c.pattern, err = search.Compile(a.Pattern, search.Options{Literal: a.Literal, IgnoreCase: a.IgnoreCase}); err != nil {
		return nil, err
	}
	if a.Glob != "" {
		text, exclude := strings.CutPrefix(a.Glob, "!")
		if c.glob, err = parseGlob(text, false); err != nil {
			return nil, fmt.Errorf("glob: %w", err)
		}
		c.exclude = exclude
	}
	limit := atLeast(1, a.Limit, defaultGrepLimit, "limit", remarks)
	around := atLeast(0, a.Context, 0, "context", remarks)
	if around > maxContext {
		remarks.add("context %d was taken as %d; use read to see more around a match", around, maxContext)
		around = maxContext
	}
	// One match more than wanted proves that there are more. As a line takes at least four bytes besides its text, no
	// more than maxBytes/4 are ever shown.
	c.config = search.Config{Context: int(around), MaxMatches: int(min(limit, maxBytes)) + 1, MaxText: maxBytes}
	c.hits = &hitList{limit: limit, context: around}
	return c, nil
}

// inTree searches the files below a directory.
func (c *grepCall) inTree(ctx context.Context, dir *workspace.Dir, a grepArguments, remarks notice) tool.Result {
	c.hits.display = dir.Display
	visitor := func() walk.Visitor[fileHits] { return &textVisitor{call: c} }
	report, err := walk.Walk(ctx, searchConfig(dir), visitor, c.hits.add)
	switch {
	case ctx.Err() != nil:
		return cancelled()
	case err != nil:
		return tool.Errorf("%q could not be searched: %v", workspace.Escape(dir.Display), err)
	}
	if c.hits.matches == 0 {
		switch {
		case c.candidates.Load() == 0 && c.glob != nil:
			remarks.add("No file matches the glob, which is relative to %q", workspace.Escape(dir.Display))
		case c.binaries.Load() > 0:
			remarks.add("Not searched, as they hold no text: %s", plural(c.binaries.Load(), "file"))
		}
	}
	return c.result(a, remarks, report)
}

// inFile searches one file, whatever rules or glob say about it.
func (c *grepCall) inFile(ctx context.Context, file *workspace.File, a grepArguments, remarks notice) tool.Result {
	name := workspace.Escape(file.Display)
	timed, stop := context.WithTimeout(ctx, maxSearchTime)
	defer stop()
	// A file that grows while it is read ends where it did when it was opened.
	found, err := c.pattern.NewSearcher(c.config).Search(timed, io.LimitReader(file, file.Size))
	switch {
	case ctx.Err() != nil:
		return cancelled()
	case err != nil && timed.Err() != nil:
		remarks.add("The search is incomplete: it was stopped after %s", maxSearchTime)
	case err != nil:
		return tool.Errorf("%q could not be read to its end", name)
	case found.Binary:
		return tool.Result{Text: fmt.Sprintf("[%q holds no text and was not searched.]", name), Summary: name + ", not searched"}
	}
	if c.glob != nil {
		remarks.add("glob was not applied, as path names a file")
	}
	c.hits.display = file.Display
	c.hits.add(fileHits{found: found})
	return c.result(a, remarks, walk.Report{})
}

func (c *grepCall) result(a grepArguments, remarks notice, report walk.Report) tool.Result {
	text := c.hits.text.String()
	if c.hits.matches == 0 && !c.hits.full {
		text = "No matches found."
	}
	c.hits.describe(&remarks)
	describeWalk(report, &remarks)
	summary := fmt.Sprintf("%q: %d matches", a.Pattern, c.hits.matches)
	if c.hits.matches == 1 {
		summary = fmt.Sprintf("%q: 1 match", a.Pattern)
	}
	return tool.Result{Text: remarks.appendTo(text), Summary: summary, Reads: c.hits.reads}
}

// textVisitor searches the files that one worker meets.
type textVisitor struct {
	call     *grepCall
	searcher *search.Searcher // made for the first file
}

// Want implements walk.Visitor: regular files that the glob does not leave out.
func (v *textVisitor) Want(path []byte, kind walk.Kind) bool {
	if kind != walk.Regular {
		return false
	}
	return v.call.glob == nil || v.call.glob.match(path) != v.call.exclude
}

// Visit implements walk.Visitor.
func (v *textVisitor) Visit(ctx context.Context, e *walk.Entry) (fileHits, int) {
	file, ok := e.Open()
	if !ok {
		return fileHits{}, 0
	}
	defer file.Close()
	if v.searcher == nil {
		v.searcher = v.call.pattern.NewSearcher(v.call.config)
	}
	v.call.candidates.Add(1)
	found, err := v.searcher.Search(ctx, file)
	if err != nil && ctx.Err() == nil {
		e.Fail(err)
	}
	if found.Binary {
		v.call.binaries.Add(1)
	}
	if len(found.Lines) == 0 {
		return fileHits{}, 0
	}
	size := 0
	for _, l := range found.Lines {
		const overhead = 64 // of keeping a line
		size += overhead + len(l.Text)
	}
	return fileHits{rel: e.Path(), found: found}, size
}
