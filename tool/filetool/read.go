package filetool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

//go:embed read.md
var readDescription string

const readSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "description": "The file, relative to the workspace root"},
		"offset": {"type": "integer", "description": "First line to show, counted from 1 (default 1)"},
		"limit": {"type": "integer", "description": "How many lines to show (default and most: 2000)"}
	},
	"required": ["path"],
	"additionalProperties": false
}`

type readArguments struct {
	Path   string  `json:"path"`
	Offset *number `json:"offset"`
	Limit  *number `json:"limit"`
}

func newRead() tool.Tool {
	return tool.New(tool.Declaration{
		Name:        "read",
		Description: strings.TrimSpace(readDescription),
		InputSchema: json.RawMessage(readSchema),
		Effect:      tool.EffectRead,
		Scripted:    true,
		Boundary:    readingBoundary(),
	}, runRead)
}

// headBytes is how much of a file is looked at to tell what it is.
const headBytes = 8192

func runRead(ctx context.Context, env *tool.Env, a readArguments) tool.Result {
	if ctx.Err() != nil {
		return cancelled()
	}
	f, err := env.Workspace.OpenFile(a.Path)
	if err != nil {
		return failed(err)
	}
	defer f.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return tool.Errorf("%q could not be read", workspace.Escape(f.Display))
	}
	head = head[:n]
	if format := sniffImage(head); format != "" {
		return readImage(env, f, head, format)
	}
	if what := sniffBinary(head); what != "" {
		return describeBinary(f, what)
	}
	return readText(ctx, f, head, a)
}

// describeBinary says what a file is instead of showing it.
func describeBinary(f *workspace.File, what string) tool.Result {
	text := fmt.Sprintf("[This is no text: %s, %s. Its content is not shown.]", what, formatSize(f.Size))
	return tool.Result{Text: text, Summary: workspace.Escape(f.Display) + ", " + what}
}

// readText shows the lines that a asks for.
func readText(ctx context.Context, f *workspace.File, head []byte, a readArguments) tool.Result {
	var remarks notice
	v := &view{first: atLeast(1, a.Offset, 1, "offset", &remarks)}
	asked := atLeast(1, a.Limit, maxLines, "limit", &remarks)
	v.most = min(asked, maxLines)
	text := newTextReader(f, head)
	switch err := v.fill(ctx, text); {
	case ctx.Err() != nil:
		return cancelled()
	case errors.Is(err, errNUL):
		return describeBinary(f, "binary data")
	case err != nil:
		return tool.Errorf("%q could not be read to its end", workspace.Escape(f.Display))
	}
	name := workspace.Escape(f.Display)
	if v.first > max(v.total(), 1) {
		return tool.Errorf("offset %d is beyond the end of %q, which has %s", v.first, name, plural(v.total(), "line"))
	}
	if f.Size == 0 && len(head) == 0 {
		remarks = append(notice{"The file is empty"}, remarks...)
	}
	if v.most < asked && v.cut == cutLines {
		remarks.add("limit %d was taken as %d", asked, int64(maxLines))
	}
	v.describe(&remarks)
	text.describe(&remarks)
	read := tool.SourceRead{Path: name, From: v.first, To: v.last()}
	if v.done && a.Limit == nil {
		read.To = 0
	}
	return tool.Result{
		Text:    remarks.appendTo(string(v.shown)),
		Reads:   []tool.SourceRead{read},
		Summary: fmt.Sprintf("%s, %s from line %d", name, plural(v.lines, "line"), v.first),
	}
}
