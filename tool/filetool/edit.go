package filetool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

//go:embed edit.md
var editDescription string

// editSchema leaves edits optional because some models send a single edit as oldText and newText beside the path.
const editSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "description": "The file, relative to the output directory"},
		"edits": {
			"type": "array",
			"description": "The replacements to make (required)",
			"items": {
				"type": "object",
				"properties": {
					"oldText": {"type": "string", "description": "Text that occurs exactly once in the file"},
					"newText": {"type": "string", "description": "Text that takes its place"}
				},
				"required": ["oldText", "newText"]
			}
		},
		"oldText": {"type": "string", "description": "Short form for a single edit; prefer edits"},
		"newText": {"type": "string", "description": "Short form for a single edit; prefer edits"}
	},
	"required": ["path"],
	"additionalProperties": false
}`

type editArguments struct {
	Path    string        `json:"path"`
	Edits   []replacement `json:"edits"`
	OldText *string       `json:"oldText"`
	NewText *string       `json:"newText"`
}

// replacement is one edit as the model asked for it.
type replacement struct {
	Old string `json:"oldText"`
	New string `json:"newText"`
}

func newEdit() tool.Tool {
	return tool.New(tool.Declaration{
		Name:        "edit",
		Description: strings.TrimSpace(editDescription),
		InputSchema: json.RawMessage(editSchema),
		Effect:      tool.EffectWrite,
		Target:      target,
		Boundary:    writingBoundary("the file to be changed, in the output directory"),
	}, runEdit)
}

func runEdit(ctx context.Context, env *tool.Env, a editArguments) tool.Result {
	if ctx.Err() != nil {
		return cancelled()
	}
	edits, err := a.replacements()
	if err != nil {
		return tool.Errorf("%v", err)
	}
	var made *edited
	done, err := env.Workspace.EditFile(a.Path, func(before []byte) ([]byte, error) {
		made, err = applyEdits(before, edits)
		if err != nil {
			return nil, err
		}
		return made.after, nil
	})
	if refused, ok := errors.AsType[*editError](err); ok {
		return tool.Errorf("%q was not changed: %v", workspace.Escape(a.Path), refused)
	}
	if err != nil {
		return failed(err)
	}
	return tool.Result{
		Text:    describeEdit(env, done, made),
		Summary: fmt.Sprintf("%s, %s", workspace.Escape(done.Path), plural(int64(len(edits)), "block")),
		Outputs: []tool.Output{{Path: done.Path, Bytes: done.Bytes}},
	}
}

// replacements returns the edits of either form.
func (a editArguments) replacements() ([]replacement, error) {
	edits := a.Edits
	switch {
	case a.OldText != nil && a.NewText != nil:
		edits = append(edits, replacement{Old: *a.OldText, New: *a.NewText})
	case a.OldText != nil || a.NewText != nil:
		return nil, errors.New("oldText and newText belong together; give both, best as an item of edits")
	}
	if len(edits) == 0 {
		return nil, errors.New("edits is empty; give at least one item with oldText and newText")
	}
	return edits, nil
}

func describeEdit(env *tool.Env, done workspace.Written, made *edited) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Replaced %s in %s.\n", plural(int64(len(made.changes)), "block"), place(env, done))
	for _, c := range made.changes {
		if c.fuzzy {
			fmt.Fprintf(&b, "Block %d did not match exactly; it matched line %d when typographic quotes and dashes, letter width and "+
				"blanks at line ends are disregarded. Check the result.\n", c.index+1, c.line)
		}
	}
	b.WriteByte('\n')
	b.WriteString(made.diff())
	return b.String()
}
