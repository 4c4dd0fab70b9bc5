package scripttool

import (
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

func TestDeclaration(t *testing.T) {
	t.Parallel()
	codemode := New(Options{})
	if err := codemode.SchemaProblem(); err != nil {
		t.Error(err)
	}
	if codemode.Effect != tool.EffectRead || codemode.Scripted || codemode.Span != "hozo.codemode" {
		t.Errorf("effect %s, scripted %t, span %s", codemode.Effect, codemode.Scripted, codemode.Span)
	}
	const limits = "Limits: 120 seconds in all, 500 calls, 8 at a time, 64 MB of memory, 8000 tokens of result."
	if !strings.Contains(codemode.Description, limits) {
		t.Errorf("the limits are not those of:\n%s", codemode.Description)
	}
	other := New(Options{Limits: Limits{Time: 5 * time.Second, Calls: 2}})
	if text := other.Describe([]llm.ToolSpec{}); !strings.Contains(text, "Limits: 5 seconds in all, 2 calls, 8 at a time") {
		t.Errorf("the limits of the operator are missing in:\n%s", text)
	}
}
