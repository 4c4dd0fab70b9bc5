package scripttool

import (
	"encoding/json"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool/filetool"
)

func TestX(t *testing.T) {
	var specs []llm.ToolSpec
	for _, f := range filetool.Tools() {
		if f.Scripted {
			specs = append(specs, llm.ToolSpec{Name: f.Name, Description: f.Description, InputSchema: f.InputSchema})
		}
	}
	specs = append(specs, llm.ToolSpec{Name: "mcp__a__do-it", Description: "Does it */ evil.\n\nMore text.", InputSchema: json.RawMessage(`{"type":"object","$defs":{"Q":{"type":"object","properties":{"q":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/Q"}}}}},"properties":{"x":true,"q":{"$ref":"#/$defs/Q","description":"d","default":1},"mode":{"enum":["a","b"]},"u":{"anyOf":[{"type":"string"},{"type":"null"}]},"l":{"type":["array","null"],"items":{"anyOf":[{"type":"string"},{"type":"integer"}]}}},"required":["q"]}`)})
	text := describe(specs)
	t.Logf("%d\n%s", len(text), text)
}
