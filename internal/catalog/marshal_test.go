package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/problem"
)

func TestMarshalIsCanonical(t *testing.T) {
	t.Parallel()
	authored := "\ufeff---  \r\n" +
		"x-subagents: [{instructions: \"Look.\\n\\n  Tell.\", description: 'd', budget: {timeoutSec: 2.5, maxTurns: 3}, name: b}, {tools: [], description: d, name: a, instructions: \"x\\n\\ty\\n\", loop: {writer: {maxTokens: 300}, kind: working-memory}}]\r\n" +
		"template: liquid\r\n" +
		"metadata: {zone: 1.10, owner: 'a: b', audience: member, \"#\": yes}\r\n" +
		"deny-command-patterns: ['^rm ', \"a\\tb\"]\r\n" +
		"thinking: max\r\n" +
		"skills: [tone, abc]\r\n" +
		"tools: []\r\n" +
		"description: >\r\n  Reads\r\n  on. # no comment\r\n" +
		"x-loop: {kind: transcript}\r\n" +
		"x-output:\r\n  schema: {type: object, required: [], properties: {b: {type: string}, a: {const: null}, c: {default: True}, d: {const: \"1\"}}}\r\n" +
		"version: 12\r\n" +
		"name: inventory\r\n" +
		"---\r\nBody\r\n"
	pkg, list := ParsePackage(map[string][]byte{"inventory.md": []byte(authored), "skills/counting/SKILL.md": []byte(skill)})
	if list != nil {
		t.Fatalf("findings: %v", list)
	}
	want := `---
name: inventory
version: 12
description: "Reads on. # no comment\n"
tools: []
skills:
  - tone
  - abc
thinking: max
deny-command-patterns:
  - "^rm "
  - "a\tb"
metadata:
  audience: member
  "#": "yes"
  owner: "a: b"
  zone: "1.10"
template: liquid
x-loop:
  kind: transcript
x-subagents:
  - name: b
    description: d
    instructions: |-
      Look.

        Tell.
    budget:
      maxTurns: 3
      timeoutSec: 2.5
  - name: a
    description: d
    instructions: "x\n\ty\n"
    tools: []
    loop:
      kind: working-memory
      writer:
        maxTokens: 300
x-output:
  schema:
    type: object
    required: []
    properties:
      b:
        type: string
      a:
        const: null
      c:
        default: true
      d:
        const: "1"
---
` + "Body\r\n"
	files := pkg.Marshal()
	if diff := cmp.Diff(want, string(files["inventory.md"])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(skill, string(files["skills/counting/SKILL.md"])); diff != "" || len(files) != 2 {
		t.Errorf("%d files, %s", len(files), diff)
	}
	roundTrip(t, pkg)
}

// roundTrip checks that what Marshal writes parses without findings into an equal package with equal bytes.
func roundTrip(t *testing.T, pkg *Package) {
	t.Helper()
	first := pkg.Marshal()
	again, list := ParsePackage(first)
	if list != nil {
		t.Fatalf("the canonical form has findings: %v\n%s", list, first[pkg.Name+".md"])
	}
	if diff := cmp.Diff(first, again.Marshal()); diff != "" {
		t.Fatal(diff)
	}
	options := cmp.Options{
		cmp.AllowUnexported(Package{}, Extension{}, value{}, entry{}, output{}),
		cmp.FilterPath(func(p cmp.Path) bool {
			name := p.Last().String()
			return name == ".marks" || name == ".mark" || name == ".path" || name == ".body" || name == ".comment"
		}, cmp.Ignore()),
	}
	normal := func(p *Package) *Package {
		c := *p
		if len(c.SharedSkills) == 0 {
			c.SharedSkills = nil
		}
		return &c
	}
	if diff := cmp.Diff(normal(pkg), normal(again), options, cmp.Comparer(equalBooleans)); diff != "" {
		t.Fatal(diff)
	}
}

// equalBooleans compares values, for which True and true are one.
func equalBooleans(a, b value) bool {
	if a.kind != b.kind || len(a.items) != len(b.items) || len(a.keys) != len(b.keys) {
		return false
	}
	if a.kind == kindBool && !strings.EqualFold(a.text, b.text) || (a.kind == kindText || a.kind == kindNumber) && a.text != b.text {
		return false
	}
	for i := range a.items {
		if !equalBooleans(a.items[i], b.items[i]) {
			return false
		}
	}
	for i := range a.keys {
		if a.keys[i].text != b.keys[i].text {
			return false
		}
	}
	return true
}

func TestMarshalQuotesEveryHardText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"yes", "null", "True", "1.10", "0x1F", "2026-01-02", "- a", "a: b", "a #b", "a:", "[a]", "{a}", "'a'", "\"a\"", "\\", "*a", "&a", "!a",
		"@a", "`a`", "%a", "a\nb", "a\n", "a\tb", "a\u2028b", "a\u0085b", "a\ufeffb", "a\u200db", "\x01", "\x7f", "\U0001f600", "é", "日本", "~", "---", "...",
		"#a", "a, b", "a]", "<<", "=", "?", "a\r\nb", "\ufffe", "\uffff", "\u00a0a", "\U0010ffff", "\U000e0001",
	} {
		pkg := &Package{
			Name: "inventory", Description: text + "x", Instructions: "b\n", Tools: []string{"read"}, DenyCommandPatterns: []string{"x" + text[:0] + "y"},
			Metadata: map[string]string{text: text},
		}
		files := pkg.Marshal()
		again, list := ParsePackage(files)
		if list != nil {
			t.Errorf("%q: %v\n%s", text, list, files["inventory.md"])
			continue
		}
		if again.Description != pkg.Description || again.Metadata[text] != text {
			t.Errorf("%q came back as %q and %q", text, again.Description, again.Metadata[text])
		}
	}
}

func FuzzPackage(f *testing.F) {
	f.Add([]byte(whole), []byte(skill))
	f.Add([]byte(minimal("tools: []\n")), []byte("---\r\nname: counting\r\ndescription: >-\r\n  a\r\n  b\r\n---\r\nx"))
	f.Add([]byte("\ufeff---\nname: inventory\ndescription: \"\\u2028: #\"\n---\n\n---\n"), []byte(""))
	f.Add([]byte(minimal("metadata: {\"a: b\": '#', 1: ~}\n")), []byte(skill))
	f.Add([]byte(minimal("x-output: {schema: {a: [1, -2.5e3, null, {}, [], [[x]], 'y: z']}}\n")), []byte(skill))
	f.Add([]byte(minimal("a: &a [x]\nb: *a\n<<: *a\n")), []byte("---\nname: &x counting\n"))
	f.Add([]byte("---\nname: inventory\ndescription: Use when: a\n---\nb"), []byte(skill))
	f.Add([]byte(minimal("x-subagents:\n- agent: counting\n  budget: {maxTurns: 2}\n- {name: b, description: d, instructions: \"a\\n b\", tools: [], loop: {kind: transcript}}\n")), []byte(skill))
	f.Add([]byte(minimal("x-subagents: [{agent: counting}]\n")), []byte("---\nname: counting\ndescription: d\nx-subagents: [{agent: counting}]\n---\nb"))
	f.Add([]byte(minimal("x-loop: {kind: working-memory, writer: {model: {id: m}}}\nx-approvals: {b: never, a: always}\nx-tool-errors: {retryOn: [tool-error], maxRetries: 1}\n")), []byte(skill))
	f.Fuzz(func(t *testing.T, agent, local []byte) {
		files := map[string][]byte{"inventory.md": agent, "skills/counting/SKILL.md": local}
		if strings.Contains(string(agent), "agent: counting") {
			files["subagents/counting.md"] = local
		}
		pkg, list := ParsePackage(files)
		if pkg == nil {
			t.Fatal("no package")
		}
		for _, p := range list {
			checkFinding(t, p, files)
		}
		if len(list) > 0 {
			return
		}
		if string(agent[len(agent)-len(pkg.Instructions):]) != pkg.Instructions {
			t.Fatalf("the instructions %q are not the end of the file", pkg.Instructions)
		}
		roundTrip(t, pkg)
		if again, list := ParsePackage(pkg.Marshal()); list != nil || compiled(pkg) != compiled(again) {
			t.Fatalf("the canonical form compiles into another job: %s", cmp.Diff(compiled(pkg), compiled(again)))
		}
		if j, _ := pkg.Compile(); j.Agent.Instructions != pkg.Instructions || j.Agent.ID != "inventory" {
			t.Fatalf("job = %+v", j)
		}
	})
}

// checkFinding checks that a finding names a rule and a place that exists.
func checkFinding(t *testing.T, p problem.Problem, files map[string][]byte) {
	t.Helper()
	if p.Code == "" || p.Message == "" {
		t.Errorf("finding without code or message: %+v", p)
	}
	if content, ok := files[p.Path]; ok && p.Line > strings.Count(string(content), "\n")+2 {
		t.Errorf("finding below the end of the file: %+v", p)
	}
}
