package scripttool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
)

func spec(name, description, schema string) llm.ToolSpec {
	return llm.ToolSpec{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	got := declarations([]llm.ToolSpec{
		spec("read", "Shows a file.\n\nMore that the model reads elsewhere.", `{"type":"object","properties":{
			"path":{"type":"string","description":"The file"},"limit":{"type":"integer","default":5}},"required":["path"]}`),
		spec("mcp__a__do-it", "Does it.\n\nWith */ care.\u2028More.", `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"boolean"}}}`),
		spec("mcp__a__now", "", `{"type":"object"}`),
	})
	want := `What a script can call:

declare const tools: {
  // Shows a file.
  read(args: {
    path: string; // The file
    limit?: number; // integer, default 5
  }): Promise<string>;
  // Does it.
  //
  // With */ care. More.
  "mcp__a__do-it"(args?: { a?: boolean; b?: string }): Promise<any>;
  mcp__a__now(args?: Record<string, any>): Promise<any>;
};`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := declarations(nil); got != "This agent has no tools that a script could call." {
		t.Errorf("without tools: %s", got)
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schema, want string }{
		"scalars":              {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"},"c":{"type":"null"}},"required":["c"]}`, `{ c: null; a?: string; b?: number }`},
		"names":                {`{"type":"object","properties":{"a-b":{"type":"string"},"1":{"type":"string"},"$x":{"type":"string"},"":{"type":"string"}}}`, `{ ""?: string; $x?: string; "1"?: string; "a-b"?: string }`},
		"nothing":              {`{"type":"object","additionalProperties":false}`, `{}`},
		"a map":                {`{"type":"object","additionalProperties":{"type":"number"}}`, `Record<string, number>`},
		"boolean schemas":      {`{"type":"object","properties":{"x":true,"y":false}}`, `{ x?: unknown; y?: never }`},
		"enum and const":       {`{"type":"object","properties":{"e":{"enum":["a",1,null]},"c":{"const":"<k>"}}}`, `{ c?: "<k>"; e?: "a" | 1 | null }`},
		"alternatives":         {`{"type":"object","properties":{"u":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"number"}]},"n":{"type":["array","null"],"items":{"type":"string"}}}}`, `{ n?: Array<string> | null; u?: string | number }`},
		"all of":               {`{"type":"object","properties":{"a":{"allOf":[{"type":"object","properties":{"x":{"type":"string"}}},{"enum":[1,2]}]}}}`, `{ a?: { x?: string } & (1 | 2) }`},
		"reference":            {`{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"}},"$defs":{"Q":{"type":"string"}}}`, `{ q?: string }`},
		"words at a reference": {`{"type":"object","properties":{"q":{"$ref":"#/$defs/Q","description":"d","default":1}},"$defs":{"Q":{"type":"number"}}}`, "{\n    q?: number; // d (default 1)\n  }"},
		"words of a reference": {`{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"}},"$defs":{"Q":{"type":"number","description":"named"}}}`, "{\n    q?: number; // named\n  }"},
		"escaped pointer":      {`{"type":"object","properties":{"q":{"$ref":"#/$defs/a~1b~0"}},"$defs":{"a/b~":{"type":"string"}}}`, `{ q?: string }`},
		"into itself":          {`{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}}}`, `{ n?: { next?: unknown } }`},
		"in a circle":          {`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}`, `{ a?: unknown }`},
		"the root":             {`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{ a?: { a?: unknown } }`},
		"out of the schema":    {`{"type":"object","properties":{"a":{"$ref":"https://example.com/x"},"b":{"$ref":"#/$defs/none"}}}`, `{ a?: unknown; b?: unknown }`},
		"no type":              {`{"type":"object","properties":{"a":{"properties":{"b":{}}},"c":{"items":{"type":"string"}},"d":{"type":"what"}}}`, `{ a?: { b?: unknown }; c?: Array<string>; d?: unknown }`},
		"too many values":      {`{"type":"object","properties":{"e":{"type":"string","enum":[` + strings.Repeat(`"x",`, 40) + `"y"]}}}`, `{ e?: string }`},
		"wrong keywords":       {`{"type":"object","properties":5,"required":"a"}`, anyObject},
		"no schema":            {`7`, "unknown"},
		"no JSON":              {`{`, anyObject},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, argumentsType(json.RawMessage(tc.schema), true)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDoublingReferences writes a schema that would be written 2^40 times.
func TestDoublingReferences(t *testing.T) {
	t.Parallel()
	doubling := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 40 {
		doubling += fmt.Sprintf(`"d%d":{"type":"object","properties":{"l":{"$ref":"#/$defs/d%d"},"r":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	doubling += `"d40":{"type":"string"}}}`
	if got := argumentsType(json.RawMessage(doubling), true); len(got) > maxType || !strings.Contains(got, "unknown") {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
}

// TestDeclarationsAreBounded declares more than fits, in several ways. Every tool that can be named is.
func TestDeclarationsAreBounded(t *testing.T) {
	t.Parallel()
	many := func(n int, description, schema string) []llm.ToolSpec {
		var specs []llm.ToolSpec
		for i := range n {
			specs = append(specs, spec(fmt.Sprintf("mcp__server__tool_%d", i), description, schema))
		}
		return specs
	}
	huge := `{"type":"object","properties":{`
	for i := range 1000 {
		huge += fmt.Sprintf(`"p%d":{"type":"string","description":"d"},`, i)
	}
	huge += `"z":true}}`
	for name, tc := range map[string]struct {
		specs []llm.ToolSpec
		holds string
	}{
		"one long description":   {many(1, strings.Repeat("word ", 1e5), `{"type":"object"}`), " …\n"},
		"one long schema":        {many(1, "Does.", huge), "(args?: Record<string, any>)"},
		"many long descriptions": {many(200, strings.Repeat("word ", 300), `{"type":"object"}`), "tool_199(args?: Record<string, any>)"},
		"many":                   {many(900, strings.Repeat("word ", 300), `{"type":"object"}`), "tool_899(args?: object)"},
		"too many":               {many(5000, "Does.", `{"type":"object"}`), " more.\n};"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := declarations(tc.specs)
			if len(got) > maxDeclarations+200 {
				t.Errorf("%d bytes", len(got))
			}
			if !strings.Contains(got, tc.holds) {
				t.Errorf("%q is missing in: %.300s … %s", tc.holds, got, got[max(0, len(got)-300):])
			}
			if again := declarations(tc.specs); again != got {
				t.Error("other bytes the second time")
			}
		})
	}
}

// FuzzTypes writes types of schemas as servers may send them: none may take long, or much.
func FuzzTypes(f *testing.F) {
	for _, seed := range []string{`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"anyOf":[{"allOf":[true,{"enum":[{}]}]}]}`,
		`{"type":["object","array"],"items":{"$ref":"#/properties/a~1"},"properties":{"a/":{"const":1e9}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		text := declarations([]llm.ToolSpec{{Name: "mcp__a__b", Description: string(schema), InputSchema: schema}})
		if len(text) > maxToolComment+2*maxType+1000+2*len("  // \n")*strings.Count(string(schema), "\n") {
			t.Errorf("%d bytes", len(text))
		}
	})
}
