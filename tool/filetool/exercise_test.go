package filetool_test

import (
	"testing"

	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/tool/tooltest"
)

func TestEveryFileToolPassesTheSuite(t *testing.T) {
	setups := map[string]tooltest.Setup{
		"read": {Arguments: func(path string) map[string]any { return map[string]any{"path": path} }},
		"ls":   {Arguments: func(path string) map[string]any { return map[string]any{"path": path} }, Lists: true},
		"grep": {Arguments: func(path string) map[string]any { return map[string]any{"path": path, "pattern": tooltest.Canary} }, Lists: true},
		"find": {Arguments: func(path string) map[string]any { return map[string]any{"path": path, "pattern": "*"} }, Lists: true},
		"write": {Arguments: func(path string) map[string]any {
			return map[string]any{"path": path, "content": "written"}
		}},
		"edit": {Arguments: func(path string) map[string]any {
			return map[string]any{"path": path, "edits": []map[string]any{{"oldText": tooltest.Canary, "newText": "edited"}}}
		}},
	}
	for _, tl := range filetool.Tools() {
		setup, ok := setups[tl.Name]
		if !ok {
			t.Errorf("no setup for tool %q", tl.Name)
			continue
		}
		t.Run(tl.Name, func(t *testing.T) { tooltest.Exercise(t, tl, setup) })
	}
}
