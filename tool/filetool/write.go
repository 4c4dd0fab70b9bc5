package filetool

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

//go:embed write.md
var writeDescription string

const writeSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "description": "The file, relative to the output directory, such as report.md"},
		"content": {"type": "string", "description": "The whole content of the file"}
	},
	"required": ["path", "content"],
	"additionalProperties": false
}`

type writeArguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func newWrite() tool.Tool {
	return tool.New(tool.Declaration{
		Name:        "write",
		Description: strings.TrimSpace(writeDescription),
		InputSchema: json.RawMessage(writeSchema),
		Effect:      tool.EffectWrite,
		Boundary:    writingBoundary("none"),
		Target:      target,
	}, runWrite)
}

func runWrite(ctx context.Context, env *tool.Env, a writeArguments) tool.Result {
	if ctx.Err() != nil {
		return cancelled()
	}
	done, err := env.Workspace.WriteFile(a.Path, []byte(a.Content))
	if err != nil {
		return failed(err)
	}
	verb := "Replaced"
	if done.Created {
		verb = "Created"
	}
	text := fmt.Sprintf("%s %s with %s.", verb, place(env, done), plural(done.Bytes, "byte"))
	return tool.Result{
		Text:    text,
		Summary: fmt.Sprintf("%s, %s", workspace.Escape(done.Path), formatSize(done.Bytes)),
		Outputs: []tool.Output{{Path: done.Path, Bytes: done.Bytes}},
	}
}

// place says where a file landed. Writing paths start at the output directory and reading paths at the workspace root,
// which models mix up: a path that begins with the output directory's own name has made a folder of that name in it.
func place(env *tool.Env, done workspace.Written) string {
	text := fmt.Sprintf("%q in the output directory", done.Path)
	if out := env.Workspace.Layout().Out; strings.HasPrefix(done.Path, out+"/") {
		text += fmt.Sprintf(" (paths start there, so this is in a folder %s/ within it; %q would be at its top)",
			out, strings.TrimPrefix(done.Path, out+"/"))
	}
	if done.Readable != "" {
		text += fmt.Sprintf(" (for reading: %q)", done.Readable)
	}
	return text
}

// target returns the file that a call of write or edit replaces.
func target(arguments json.RawMessage) string {
	var a struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(arguments, &a) != nil {
		return ""
	}
	return a.Path
}
