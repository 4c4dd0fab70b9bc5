package mcptool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/tool/mcptool"
)

// listed decodes a schema as the SDK does.
func listed(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// doubling is a schema whose references double at each of n levels.
func doubling(n int) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{%s,"d%d":{"type":"object"}}}`, strings.Join(defs, ","), n)
}

func nested(n int) string {
	return strings.Repeat(`{"type":"object","properties":{"a":`, n) + "{}" + strings.Repeat("}}", n)
}

func TestSchemasPassThroughUnlessTheyCannot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"nothing but a type":                   {`{"type":"object"}`, `{"properties":{},"type":"object"}`},
		"no type":                              {`{}`, `{"properties":{},"type":"object"}`},
		"references to definitions":            {`{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"}},"$defs":{"Q":{"type":"string"}}}`, ""},
		"an alternative of object and text":    {`{"type":"object","properties":{"q":{"anyOf":[{"$ref":"#/$defs/Q"},{"type":"string"}]}},"$defs":{"Q":{"type":"object"}}}`, ""},
		"a tree":                               {`{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"properties":{"left":{"$ref":"#/$defs/N"},"right":{"$ref":"#/$defs/N"}}}}}`, ""},
		"the root in itself":                   {`{"type":"object","properties":{"n":{"$ref":"#"}}}`, ""},
		"a ring of properties":                 {`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"properties":{"a":{"$ref":"#/$defs/a"}}}}}`, ""},
		"words beside a reference":             {`{"type":"object","properties":{"q":{"$ref":"#/$defs/X","default":1,"description":"d"}},"$defs":{"X":{}}}`, ""},
		"boolean nodes":                        {`{"type":"object","properties":{"x":true,"y":false},"additionalProperties":false}`, ""},
		"enum and default":                     {`{"type":"object","properties":{"x":{"default":"a","enum":["a","b"]}}}`, ""},
		"an old dialect":                       {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"x":{"$ref":"#/definitions/x"}},"definitions":{"x":{"type":"string"}}}`, ""},
		"a property called pattern":            {`{"type":"object","properties":{"pattern":{"type":"string"},"$ref":{"type":"string"}}}`, ""},
		"a pattern that looks around":          {`{"type":"object","properties":{"x":{"type":"string","pattern":"^(?=a)","minLength":1}}}`, `{"properties":{"x":{"description":"Must match the regular expression \"^(?=a)\".","minLength":1,"type":"string"}},"type":"object"}`},
		"names that match a look-around":       {`{"type":"object","patternProperties":{"^(?!x)":{},"^y":{}}}`, `{"description":"There are rules for properties whose names match the regular expression \"^(?!x)\".","patternProperties":{"^y":{}},"properties":{},"type":"object"}`},
		"hidden characters in a description":   {`{"type":"object","properties":{"x":{"description":"a\u202eb\u200bc\udb40\udc41"}}}`, `{"properties":{"x":{"description":"abc"}},"type":"object"}`},
		"a description among the properties":   {`{"type":"object","properties":{"description":{"type":"string","description":"a\u200b"}}}`, `{"properties":{"description":{"description":"a","type":"string"}},"type":"object"}`},
		"eleven levels that double":            {doubling(11), ""},
		"a schema of twenty nested properties": {nested(20), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mcptool.FitSchema(listed(t, c.in))
			if err != nil {
				t.Fatal(err)
			}
			want := listed(t, c.in)
			if c.want != "" {
				want = listed(t, c.want)
			}
			root := want.(map[string]any)
			root["type"] = "object"
			if root["properties"] == nil {
				root["properties"] = map[string]any{}
			}
			if diff := cmp.Diff(want, listed(t, got)); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
			tools := `[{"name":"look","inputSchema":` + c.in + `,"annotations":{"readOnlyHint":true}}]`
			if s, notices := connect(t, one(listen(t, &fake{tools: tools}))); len(s.Tools()) != 1 {
				t.Errorf("the tool is hidden: %v", notices)
			}
		})
	}
}

// TestABadSchemaHidesItsToolOnly covers schemas that cannot be used: the others of the server stay.
func TestABadSchemaHidesItsToolOnly(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"no object":                 `{"type":"string"}`,
		"a list":                    `[]`,
		"no schema":                 `null`,
		"broken":                    `{"type":"object","properties":{"a":{"type":"nonsense"}}}`,
		"a remote reference":        `{"type":"object","properties":{"a":{"$ref":"http://169.254.169.254/schema.json"}}}`,
		"a file":                    `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`,
		"a missing definition":      `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`,
		"a ring of references":      `{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"forty levels that double":  doubling(40),
		"a hundred levels":          nested(100),
		"a hundred kilobytes":       `{"type":"object","description":"` + strings.Repeat("x", 100<<10) + `"}`,
		"hidden name of a property": `{"type":"object","properties":{"a\u200b":{}}}`,
		"hidden text in a value":    `{"type":"object","properties":{"a":{"enum":["\udb40\udc41"]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := `[{"name":"bad","inputSchema":` + in + `,"annotations":{"readOnlyHint":true}},{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`
			s, notices := connect(t, one(listen(t, &fake{tools: tools})))
			if diff := cmp.Diff([]string{"mcp__docs__look"}, names(s)); diff != "" {
				t.Error(diff)
			}
			if len(notices) != 1 || notices[0].Code != "mcp-tool-withheld" || !strings.Contains(notices[0].Message, `"bad"`) || len(notices[0].Message) > 500 {
				t.Errorf("notices = %v", notices)
			}
		})
	}
}

func TestArgumentsAreFittedToTheServersSchema(t *testing.T) {
	t.Parallel()
	tools := `[{"name":"look","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"q":{"anyOf":[{"$ref":"#/$defs/Q"},{"type":"string"}]}},
		"required":["n"],"$defs":{"Q":{"type":"object","properties":{"d":{"type":"integer"}}}}},"annotations":{"readOnlyHint":true}}]`
	s, _ := connect(t, one(listen(t, &fake{tools: tools})))
	look := find(t, s, "mcp__docs__look")
	for in, want := range map[string]string{`{"n":"7"}`: `{"n":7}`, `{"n":7,"q":{"d":1}}`: `{"n":7,"q":{"d":1}}`, `{"n":7,"q":"text"}`: `{"n":7,"q":"text"}`} {
		if got, err := look.PrepareArguments(json.RawMessage(in)); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v", in, got, err)
		}
	}
	if _, err := look.PrepareArguments(json.RawMessage(`{}`)); err == nil {
		t.Error("a missing argument passes")
	}
}

func FuzzFitSchema(f *testing.F) {
	for _, seed := range []string{`{}`, `{"type":"object","properties":{"a":{"$ref":"#"}}}`, doubling(5), nested(5), `{"patternProperties":{"(":1}}`, `{"$defs":[],"allOf":{}}`, `[]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		once, err := mcptool.FitSchema(v)
		if err != nil {
			return
		}
		again, err := mcptool.FitSchema(listed(t, once))
		if err != nil || again != once {
			t.Errorf("%s became %s and then %s, %v", text, once, again, err)
		}
	})
}
