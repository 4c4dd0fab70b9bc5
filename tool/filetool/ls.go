package filetool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

//go:embed ls.md
var listDescription string

const listSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "description": "The directory, relative to the workspace root (default: the root)"},
		"limit": {"type": "integer", "description": "How many names to show (default 500)"}
	},
	"additionalProperties": false
}`

type listArguments struct {
	Path  string  `json:"path"`
	Limit *number `json:"limit"`
}

// defaultListLimit is how many names are shown unless the model asks for another number.
const defaultListLimit = 500

func newList() tool.Tool {
	return tool.New(tool.Declaration{
		Name:        "ls",
		Description: strings.TrimSpace(listDescription),
		InputSchema: json.RawMessage(listSchema),
		Effect:      tool.EffectRead,
		Scripted:    true,
		Boundary:    readingBoundary(),
	}, runList)
}

func runList(ctx context.Context, env *tool.Env, a listArguments) tool.Result {
	if ctx.Err() != nil {
		return cancelled()
	}
	if a.Path == "" {
		a.Path = "."
	}
	if entries := env.Workspace.ReadableBelow(a.Path); entries != nil {
		return listEntries(a.Path, entries)
	}
	dir, err := env.Workspace.OpenDir(a.Path)
	if err != nil {
		return failed(err)
	}
	defer dir.Close()
	var remarks notice
	limit := atLeast(1, a.Limit, defaultListLimit, "limit", &remarks)
	names, total, err := smallest(ctx, dir, int(min(limit, maxBytes/2)))
	switch {
	case ctx.Err() != nil:
		return cancelled()
	case err != nil:
		return tool.Errorf("%q could not be listed: %v", workspace.Escape(dir.Display), cause(err))
	}
	text, shown := listText(dir, names)
	switch {
	case total == 0:
		text = "(empty directory)"
	case shown < len(names):
		remarks.add("The first %d of %d names, cut at 50 KB. Use find with a pattern to narrow it down", shown, total)
	case shown < total:
		remarks.add("The first %d of %d names. Use limit=%d for more, or find with a pattern", shown, total, min(2*limit, int64(total)))
	}
	return tool.Result{
		Text:    remarks.appendTo(text),
		Summary: fmt.Sprintf("%s, %s", workspace.Escape(dir.Display), plural(int64(total), "name")),
	}
}

// cause returns err without the path that an error of the operating system carries, which is none of the model's.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// listEntries lists a directory that is not readable itself but leads to what is.
func listEntries(p string, entries []workspace.Entry) tool.Result {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(workspace.Escape(e.Path))
		if e.Dir {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	remarks := notice{"This is what may be read here"}
	return tool.Result{
		Text:    remarks.appendTo(b.String()),
		Summary: fmt.Sprintf("%s, %s", workspace.Escape(p), plural(int64(len(entries)), "name")),
	}
}

// listed is a name of a directory with its sort key.
type listed struct{ key, name string }

func compareListed(a, b listed) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.name, b.name))
}

// smallest returns the first most names of the directory in order, without regard to case, and how many there are. It
// holds little more than twice as many, however large the directory is. Only the names are read: the types are looked up
// for those that are shown.
func smallest(ctx context.Context, dir *workspace.Dir, most int) (names []listed, total int, err error) {
	bound := "" // the key that a further name must not exceed, once most names are known
	for ctx.Err() == nil {
		batch, err := dir.File.Readdirnames(1024)
		total += len(batch)
		for _, name := range batch {
			if key := strings.ToLower(name); bound == "" || key <= bound {
				names = append(names, listed{key, name})
			}
		}
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return nil, 0, err
		}
		if len(names) > 2*most+1024 || ended {
			slices.SortFunc(names, compareListed)
			if len(names) >= most {
				clear(names[most:])
				names = names[:most]
				bound = names[most-1].key
			}
		}
		if ended {
			break
		}
	}
	return names, total, nil
}

// listText writes one name a line and returns how many fit.
func listText(dir *workspace.Dir, names []listed) (text string, shown int) {
	var b strings.Builder
	for _, n := range names {
		line := workspace.Escape(n.name) + mark(dir, n.name)
		if b.Len()+len(line)+1 > maxBytes {
			break
		}
		b.WriteString(line)
		b.WriteByte('\n')
		shown++
	}
	return b.String(), shown
}

// mark returns what follows a name: a slash for a directory, and words for what is neither that nor a file.
func mark(dir *workspace.Dir, name string) string {
	stat, err := dir.Root.Lstat(name)
	switch {
	case err != nil: // it went meanwhile
		return ""
	case stat.IsDir():
		return "/"
	case stat.Mode().IsRegular():
		return ""
	case stat.Mode()&fs.ModeSymlink == 0:
		return " (" + workspace.Kind(stat.Mode()) + ")"
	}
	mode, err := dir.Follow(name)
	if err == nil {
		if mode.IsDir() {
			return "/ (link to a directory)"
		}
		return " (link to a " + workspace.Kind(mode) + ")"
	}
	refused, ok := errors.AsType[*workspace.PathError](err)
	switch {
	case !ok:
		return " (link)"
	case refused.Code == workspace.CodeNotFound:
		return " (broken link)"
	case refused.Code == workspace.CodeLinkLoop:
		return " (link to itself)"
	case refused.Code == workspace.CodeAbsoluteLink:
		return " (link with an absolute target, not followed)"
	}
	return " (link that leads out, not followed)"
}
