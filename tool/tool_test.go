package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

var closed = tool.Boundary{Reads: "none", Writes: "none", Network: "none", Processes: "none", Secrets: "none"}

func declare(name, schema string, commands ...string) tool.Declaration {
	return tool.Declaration{Name: name, Description: "For tests.", InputSchema: json.RawMessage(schema), Effect: tool.EffectRead,
		Boundary: closed, CommandArguments: commands}
}

func made(d tool.Declaration) tool.Tool {
	return tool.New(d, func(_ context.Context, _ *tool.Env, a map[string]any) tool.Result {
		text, err := json.Marshal(a)
		if err != nil {
			return tool.Errorf("%v", err)
		}
		return tool.Result{Text: string(text)}
	})
}

const schema = `{"type":"object","additionalProperties":false,"required":["path"],"properties":{
	"path":{"type":"string"},"limit":{"type":"integer","minimum":1},"all":{"type":"boolean"},"ratio":{"type":"number"},
	"edits":{"type":"array","items":{"$ref":"#/$defs/edit"}},"mode":{"enum":["a","b"]},
	"either":{"anyOf":[{"type":"object"},{"type":"string"}]}},
	"$defs":{"edit":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}}`

func TestArgumentsAreBentWhereNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"fitting bytes stay":                {`{"path": "a", "limit": 5.0}`, `{"path": "a", "limit": 5.0}`},
		"numeric string for an integer":     {`{"path":"a","limit":"5"}`, `{"limit":5,"path":"a"}`},
		"number for a string":               {`{"path":12}`, `{"path":"12"}`},
		"large number for a string":         {`{"path":12345678901234567890}`, `{"path":"12345678901234567890"}`},
		"boolean as text":                   {`{"path":"a","all":"true"}`, `{"all":true,"path":"a"}`},
		"null for an optional property":     {`{"path":"a","limit":null}`, `{"path":"a"}`},
		"JSON text for an array":            {`{"path":"a","edits":"[{\"n\":1}]"}`, `{"edits":[{"n":1}],"path":"a"}`},
		"one item for an array":             {`{"path":"a","edits":{"n":"2"}}`, `{"edits":[{"n":2}],"path":"a"}`},
		"JSON text of one item":             {`{"path":"a","edits":"{\"n\":1}"}`, `{"edits":[{"n":1}],"path":"a"}`},
		"a text that looks like JSON stays": {`{"path":"[label]: {\"a\":1} more"}`, `{"path":"[label]: {\"a\":1} more"}`},
		"an alternative that fits stays":    {`{"path":"a","either":"{}"}`, `{"path":"a","either":"{}"}`},
		"a twenty-digit integer stays":      {`{"path":"a","limit":12345678901234567890}`, `{"path":"a","limit":12345678901234567890}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := made(declare("read", schema))
			got, err := read.PrepareArguments(json.RawMessage(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArgumentsThatDoNotFitAreNamedByPlaceAndKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"missing":                {`{}`, "arguments: missing: path"},
		"unknown":                {`{"path":"a","paht":1}`, "arguments: unknown: paht"},
		"all faults at once":     {`{"limit":0,"all":"maybe"}`, "all: is string, must be boolean\narguments: missing: path\nlimit: must be at least 1"},
		"a fraction":             {`{"path":"a","limit":1.5}`, "limit: is number, must be integer"},
		"a boolean is no number": {`{"path":"a","limit":true}`, "limit: is boolean, must be integer"},
		"no list of words":       {`{"path":"a","mode":"sk-secret"}`, `mode: must be one of ["a","b"]`},
		"nested":                 {`{"path":"a","edits":[{"n":1},{}]}`, "edits.1: missing: n"},
		"key twice":              {`{"path":"a","path":"b"}`, `the arguments hold the key "path" twice`},
		"null where required":    {`{"path":null}`, "path: is null, must be string"},
		"no JSON":                {`{"path":`, "the arguments are not valid JSON at byte 8"},
		"other case of a key":    {`{"path":"a","Path":"b"}`, "arguments: unknown: Path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := made(declare("read", schema))
			_, err := read.PrepareArguments(json.RawMessage(c.in))
			if err == nil || err.Error() != c.want {
				t.Errorf("error = %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "sk-secret") {
				t.Error("the error quotes a value")
			}
		})
	}
}

func TestSchemaReferencesStayInside(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"file:///etc/passwd", "http://127.0.0.1/s", "other.json"} {
		broken := made(declare("read", `{"type":"object","properties":{"a":{"$ref":"`+ref+`"}}}`))
		if err := broken.SchemaProblem(); err == nil {
			t.Errorf("a reference to %s was followed", ref)
		}
	}
	recursive := made(declare("read", `{"type":"object","properties":{"a":{"$ref":"#"}}}`))
	if err := recursive.SchemaProblem(); err != nil {
		t.Fatal(err)
	}
	if _, err := recursive.PrepareArguments(json.RawMessage(`{"a":{"a":"{}"}}`)); err != nil {
		t.Errorf("recursive schema: %v", err)
	}
}

func TestAToolWithoutACompleteBoundaryIsNotRegistered(t *testing.T) {
	t.Parallel()
	whole := made(declare("read", schema))
	for name, spoil := range map[string]func(*tool.Boundary){
		"reads": func(b *tool.Boundary) { b.Reads = "" }, "writes": func(b *tool.Boundary) { b.Writes = "" },
		"network": func(b *tool.Boundary) { b.Network = "" }, "processes": func(b *tool.Boundary) { b.Processes = "" },
		"secrets": func(b *tool.Boundary) { b.Secrets = "" },
	} {
		open := whole
		spoil(&open.Boundary)
		if _, err := tool.NewRegistry(open); err == nil {
			t.Errorf("a tool without %s was registered", name)
		}
	}
	if _, err := tool.NewRegistry(whole, whole); err == nil {
		t.Error("a second tool of one name was registered")
	}
	for _, name := range []string{"", "Read", "1x", "re-ad", "рead", strings.Repeat("a", 65), "a.b"} {
		renamed := whole
		renamed.Name = name
		if _, err := tool.NewRegistry(renamed); err == nil {
			t.Errorf("the name %q was registered", name)
		}
	}
}

func TestSelectKeepsTheOrderOfTheRegistryAndNamesEveryUnknownTool(t *testing.T) {
	t.Parallel()
	r, err := tool.NewRegistry(made(declare("read", schema)), made(declare("ls", schema)), made(declare("write", schema)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ allow, want []string }{
		"absent": {nil, []string{"read", "ls", "write"}}, "empty": {[]string{}, []string{}}, "some": {[]string{"write", "read"}, []string{"read", "write"}},
	} {
		set, problems := r.Select(c.allow, nil)
		if diff := cmp.Diff(c.want, set.Names()); diff != "" || len(problems) > 0 {
			t.Errorf("%s: %s %v", name, diff, problems)
		}
	}
	_, problems := r.Select([]string{"glob", "read", "bash", "read", "mcp__a__b"}, func(name string) bool { return strings.HasPrefix(name, "mcp__") })
	if len(problems) != 3 || !problems.Has("unknown-tool", "/agent/tools/0") || !problems.Has("unknown-tool", "/agent/tools/2") ||
		!problems.Has("duplicate-tool", "/agent/tools/3") {
		t.Errorf("problems = %v", problems)
	}
}

func TestDenyPatternsMatchNormalisedForms(t *testing.T) {
	t.Parallel()
	deny, err := tool.NewDenials([]string{`rm -rf`, `^git push`, `(?i)drop table`})
	if err != nil {
		t.Fatal(err)
	}
	shell := made(declare("shell", `{"type":"object"}`, "command"))
	git := made(declare("git", `{"type":"object"}`, "command"))
	for _, c := range []struct {
		tool    *tool.Tool
		command string
		blocked bool
	}{
		{&shell, "rm -rf /", true}, {&shell, "rm\t\t -rf  x", true}, {&shell, "true;\nrm -rf x", true}, {&shell, `r''m -rf x`, true},
		{&shell, `\rm -rf x`, true}, {&shell, `"rm" -rf x`, true}, {&shell, "echo hello", false}, {&git, "push origin", true},
		{&git, "git  push origin", true}, {&git, "log", false}, {&shell, "Drop Table x", true},
		// What a pattern cannot see: it is a guard rail, and the boundary lies elsewhere.
		{&shell, "$(echo rm) -rf x", false}, {&shell, "find . -delete", false},
	} {
		arguments, err := json.Marshal(map[string]string{"command": c.command})
		if err != nil {
			t.Fatal(err)
		}
		if got := deny.Blocks(c.tool, arguments) != ""; got != c.blocked {
			t.Errorf("%s %q: blocked = %v", c.tool.Name, c.command, got)
		}
	}
	if other := made(declare("note", `{"type":"object"}`)); deny.Blocks(&other, json.RawMessage(`{"command":"rm -rf"}`)) != "" {
		t.Error("an argument that is no command was matched")
	}
}

func FuzzPrepareArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"path":"a"}`, `{"path":1,"limit":"x","edits":"[{}]"}`, `[`, `{"a":{"a":{}}}`, `null`} {
		f.Add(seed)
	}
	read := made(declare("read", schema))
	f.Fuzz(func(t *testing.T, in string) {
		got, err := read.PrepareArguments(json.RawMessage(in))
		if err != nil {
			return
		}
		again, err := read.PrepareArguments(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%q became %q, which became %q, %v", in, got, again, err)
		}
	})
}

func TestScriptsTakeTheLentToolsThatOnlyRead(t *testing.T) {
	t.Parallel()
	read, ls := made(declare("read", schema)), made(declare("ls", schema))
	read.Scripted = true
	query, update := made(declare("query", schema)), made(declare("update", schema))
	query.Scripted = true
	update.Effect = tool.EffectExternal
	script := made(declare("script", schema))
	script.Describe = func(callees []llm.ToolSpec) string {
		names := make([]string, len(callees))
		for i, c := range callees {
			names[i] = c.Name
		}
		return "Calls " + strings.Join(names, ", ") + "."
	}
	set := func(tools ...tool.Tool) *tool.Set {
		r, err := tool.NewRegistry(tools...)
		if err != nil {
			t.Fatal(err)
		}
		s, _ := r.Select(nil, nil)
		s, err = s.With(query, update)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	with := set(read, ls, script)
	if diff := cmp.Diff([]string{"read", "ls", "script", "update"}, with.Names()); diff != "" {
		t.Errorf("declared with scripts (-want +got):\n%s", diff)
	}
	if got := with.Specs()[2].Description; got != "Calls read, query." {
		t.Errorf("description = %q", got)
	}
	if with.Find("query") != nil || with.FindScripted("query") == nil || with.FindScripted("read") == nil ||
		with.FindScripted("ls") != nil || with.FindScripted("update") != nil {
		t.Error("a script reaches read and query, nothing else; the model does not reach query")
	}
	if diff := cmp.Diff([]string{"read", "ls", "query", "update"}, set(read, ls).Names()); diff != "" {
		t.Errorf("declared without scripts (-want +got):\n%s", diff)
	}
}

func TestAScriptedToolMustOnlyRead(t *testing.T) {
	t.Parallel()
	writes := made(declare("write", schema))
	writes.Effect, writes.Scripted = tool.EffectWrite, true
	if _, err := tool.NewRegistry(writes); err == nil {
		t.Error("a tool that writes was registered for scripts")
	}
}
