package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/tool"
)

func echo(_ context.Context, _ *tool.Env, arguments json.RawMessage) tool.Result {
	return tool.Result{Text: string(arguments)}
}

func TestARawToolGetsFittedArguments(t *testing.T) {
	t.Parallel()
	raw, err := tool.Raw(declare("mcp__docs-1__Get_page", schema), echo)
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := raw.PrepareArguments(json.RawMessage(`{"path":7}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := raw.Run(t.Context(), nil, arguments).Text; got != `{"path":"7"}` {
		t.Errorf("the tool got %s", got)
	}
}

func TestARawToolWithABrokenDeclarationIsRefused(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]tool.Declaration{
		"empty name":      declare("", schema),
		"dotted name":     declare("a.b", schema),
		"foreign letters": declare("rеad", schema),
		"long name":       declare(strings.Repeat("a", 65), schema),
		"no object":       declare("a", `{"type":"string"}`),
		"broken schema":   declare("a", `{"type":"object","properties":{"a":{"type":7}}}`),
		"remote schema":   declare("a", `{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1/s"}}}`),
		"no boundary":     {Name: "a", Description: "a", InputSchema: json.RawMessage(schema), Effect: tool.EffectRead},
	} {
		if _, err := tool.Raw(d, echo); err == nil {
			t.Errorf("%s: the tool was made", name)
		}
	}
}

func TestASetGrowsWithoutShadowing(t *testing.T) {
	t.Parallel()
	r, err := tool.NewRegistry(made(declare("read", schema)))
	if err != nil {
		t.Fatal(err)
	}
	set, _ := r.Select(nil, nil)
	raw := func(name string) tool.Tool {
		made, err := tool.Raw(declare(name, schema), echo)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	grown, err := set.With(raw("mcp__a__x"), raw("mcp__a__y"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"read", "mcp__a__x", "mcp__a__y"}, grown.Names()); diff != "" {
		t.Error(diff)
	}
	if set.Len() != 1 || grown.Find("mcp__a__y") == nil {
		t.Errorf("the first set has %d tools, the second finds %v", set.Len(), grown.Find("mcp__a__y"))
	}
	for name, more := range map[string][]tool.Tool{
		"a kernel tool": {raw("read")}, "twice": {raw("mcp__a__x"), raw("mcp__a__x")}, "nothing in it": {{}},
	} {
		if _, err := set.With(more...); err == nil {
			t.Errorf("%s: the set grew", name)
		}
	}
}
