package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

const whole = `---
name: inventory
version: 3
description: Lists what a repository holds.
tools: [read, grep, mcp__wiki__search]
skills: [tone]
thinking: low
deny-command-patterns:
  - "^rm "
metadata:
  audience: member
  owner: platform
x-budget: {maxTurns: 20, maxCostUsd: 0.5}
---
Look around.

Write a list.
`

const skill = "---\nname: counting\ndescription: How to count.\n---\nCount twice.\n"

// place is the part of a finding that tests compare.
type place struct {
	Code, Path   string
	Line, Column int
}

func places(list problem.List) []place {
	var out []place
	for _, p := range list {
		out = append(out, place{p.Code, p.Path, p.Line, p.Column})
	}
	return out
}

func agentFile(content string) map[string][]byte {
	return map[string][]byte{"inventory.md": []byte(content)}
}

// minimal is a whole agent file with further lines of frontmatter.
func minimal(lines string) string {
	return "---\nname: inventory\ndescription: d\n" + lines + "---\nbody\n"
}

func TestParsePackageReadsEveryKey(t *testing.T) {
	t.Parallel()
	files := agentFile(whole)
	files["skills/counting/SKILL.md"] = []byte(skill)
	pkg, list := ParsePackage(files)
	if list != nil {
		t.Fatalf("findings: %v", list)
	}
	want := Package{
		Name: "inventory", Version: 3, Description: "Lists what a repository holds.", Tools: []string{"read", "grep", "mcp__wiki__search"},
		SharedSkills: []string{"tone"}, Thinking: llm.LevelLow, DenyCommandPatterns: []string{"^rm "}, Audience: AudienceMember,
		Metadata: map[string]string{"owner": "platform"}, Instructions: "Look around.\n\nWrite a list.\n",
		Skills: []Skill{{Name: "counting", Description: "How to count.", Content: "Count twice.\n"}},
	}
	got := *pkg
	got.path, got.marks, got.Extensions, got.body, got.budget = "", nil, nil, mark{}, nil
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Package{}, mark{})); diff != "" {
		t.Error(diff)
	}
	if len(pkg.Extensions) != 1 || pkg.Extensions[0].Key != "x-budget" {
		t.Errorf("extensions = %v", pkg.Extensions)
	}
}

func TestParsePackageKeepsTheBodyByteForByte(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"leading blank line":  "\n\ntext\n",
		"no line end":         "text",
		"CRLF and tabs":       "a\r\n\tb  \r\n",
		"fences inside":       "a\n---\nb\n---\n",
		"trailing blanks":     "a   \n \n\n",
		"a byte order mark":   "a\ufeffb\n",
		"a Liquid expression": "Hello {{ name }} {% if x %}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg, list := ParsePackage(agentFile("---\nname: inventory\ndescription: d\n---\n" + body))
			if list != nil || pkg.Instructions != body {
				t.Errorf("instructions = %q, findings %v; want %q", pkg.Instructions, list, body)
			}
		})
	}
}

func TestParsePackageTellsAbsentFromEmptyTools(t *testing.T) {
	t.Parallel()
	absent, _ := ParsePackage(agentFile(minimal("")))
	empty, _ := ParsePackage(agentFile(minimal("tools: []\n")))
	if absent.Tools != nil || empty.Tools == nil || len(empty.Tools) != 0 {
		t.Errorf("absent = %#v, empty = %#v; want nil and an empty list", absent.Tools, empty.Tools)
	}
}

func TestParsePackageAcceptsWhatCannotBeSeen(t *testing.T) {
	t.Parallel()
	text := minimal("version: 2\n")
	for name, content := range map[string]string{
		"CRLF":                  strings.ReplaceAll(text, "\n", "\r\n"),
		"byte order mark":       "\ufeff" + text,
		"blanks after fences":   strings.ReplaceAll(text, "---\n", "---  \t\n"),
		"comments":              "---\n# who\nname: inventory # the name\ndescription: d\nversion: 2\n---\nbody\n",
		"all of them":           "\ufeff" + strings.ReplaceAll(strings.ReplaceAll(text, "---\n", "--- \n"), "\n", "\r\n"),
		"fence without newline": "---\nname: inventory\nversion: 2\ndescription: d\n---\nbody",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pkg, list := ParsePackage(agentFile(content))
			if list != nil || pkg.Name != "inventory" || pkg.Version != 2 || strings.TrimSpace(pkg.Instructions) != "body" {
				t.Errorf("package = %+v, findings %v", pkg, list)
			}
		})
	}
}

func TestParsePackageReadsWordsAsText(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"yes", "No", "on", "off", "y", "1:30", "2026-01-02", "1_000", "0b1"} {
		pkg, list := ParsePackage(agentFile("---\nname: inventory\ndescription: " + word + "\n---\nbody\n"))
		if list != nil || pkg.Description != word {
			t.Errorf("description %s = %q, findings %v", word, pkg.Description, list)
		}
	}
}

func TestParsePackageFindings(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"
	for name, tc := range map[string]struct {
		content string
		want    []place
	}{
		"no frontmatter":                {"body\n", []place{{CodeFrontmatterMissing, "inventory.md", 1, 1}}},
		"empty file":                    {"", []place{{CodeFrontmatterMissing, "inventory.md", 1, 1}}},
		"frontmatter not closed":        {"---\nname: inventory\n", []place{{CodeFrontmatterMissing, "inventory.md", 1, 1}}},
		"UTF-16":                        {"\xff\xfe-\x00", []place{{CodeTextInvalid, "inventory.md", 1, 1}}},
		"not UTF-8":                     {minimal("") + "a\xffb\n", []place{{CodeTextInvalid, "inventory.md", 6, 2}}},
		"NUL byte":                      {minimal("") + "\x00", []place{{CodeTextInvalid, "inventory.md", 6, 1}}},
		"empty frontmatter":             {"---\n---\nbody\n", []place{{CodeNameInvalid, "inventory.md", 2, 1}, {CodeDescriptionMissing, "inventory.md", 2, 1}}},
		"only comments":                 {"---\n# nothing\n---\nbody\n", []place{{CodeNameInvalid, "inventory.md", 2, 1}, {CodeDescriptionMissing, "inventory.md", 2, 1}}},
		"frontmatter is a list":         {"---\n- a\n---\nbody\n", []place{{CodeFrontmatterInvalid, "inventory.md", 2, 1}}},
		"empty body":                    {"---\nname: inventory\ndescription: d\n---\n \n", []place{{CodeBodyEmpty, "inventory.md", 5, 1}}},
		"tab indent":                    {minimal("metadata:\n\tx: y\n"), []place{{CodeFrontmatterInvalid, "inventory.md", 5, 1}}},
		"tab before a key":              {"---\nname: inventory\n\tdescription: d\n---\nbody\n", []place{{CodeFrontmatterInvalid, "inventory.md", 3, 1}}},
		"second document":               {minimal("--- other\n"), []place{{CodeFrontmatterInvalid, "inventory.md", 4, 1}}},
		"text after a document end":     {minimal("...\nname: other\n"), []place{{CodeFrontmatterInvalid, "inventory.md", 4, 1}}},
		"directive":                     {"---\n%YAML 1.1\nname: inventory\n---\nbody\n", []place{{CodeFrontmatterInvalid, "inventory.md", 3, 1}}},
		"anchor and alias":              {minimal("tools: &a [read]\nskills: *a\n"), []place{{CodeFrontmatterInvalid, "inventory.md", 4, 8}, {CodeFrontmatterInvalid, "inventory.md", 5, 9}, {CodeSkillInvalid, "inventory.md", 5, 9}}},
		"binary tag":                    {minimal("version: !!binary aGk=\n"), []place{{CodeFrontmatterInvalid, "inventory.md", 4, 10}, {CodeVersionInvalid, "inventory.md", 4, 10}}},
		"object tag":                    {"---\nname: inventory\ndescription: !!python/object:os.system x\n---\nb\n", []place{{CodeFrontmatterInvalid, "inventory.md", 3, 14}}},
		"merge key":                     {minimal("metadata:\n  <<: {a: b}\n"), []place{{CodeFrontmatterInvalid, "inventory.md", 5, 3}}},
		"duplicate key":                 {minimal("name: other\n"), []place{{CodeKeyDuplicate, "inventory.md", 4, 1}}},
		"duplicate key in metadata":     {minimal("metadata: {a: b, a: c}\n"), []place{{CodeKeyDuplicate, "inventory.md", 4, 18}}},
		"key that is a list":            {minimal("? [a]\n: b\n"), []place{{CodeKeyInvalid, "inventory.md", 4, 3}}},
		"unknown key":                   {minimal("tool: read\n"), []place{{CodeKeyUnknown, "inventory.md", 4, 1}}},
		"unknown extension":             {minimal("x-lop: {}\n"), []place{{CodeKeyUnknown, "inventory.md", 4, 1}}},
		"alias bomb":                    {minimal("metadata:\n  " + strings.ReplaceAll(strings.TrimSpace(bomb), "\n", "\n  ") + "\n"), nil},
		"name is a number":              {"---\nname: 5\ndescription: d\n---\nbody\n", []place{{CodeNameInvalid, "inventory.md", 2, 7}}},
		"name is a list":                {"---\nname: [a]\ndescription: d\n---\nbody\n", []place{{CodeNameInvalid, "inventory.md", 2, 7}}},
		"name has capitals":             {"---\nname: Inventory\ndescription: d\n---\nbody\n", []place{{CodeNameInvalid, "inventory.md", 2, 7}}},
		"name differs from file":        {"---\nname: stock\ndescription: d\n---\nbody\n", []place{{CodeNameMismatch, "inventory.md", 2, 7}}},
		"name missing":                  {"---\ndescription: d\n---\nbody\n", []place{{CodeNameInvalid, "inventory.md", 2, 1}}},
		"version 1.10":                  {minimal("version: 1.10\n"), []place{{CodeVersionInvalid, "inventory.md", 4, 10}}},
		"version zero":                  {minimal("version: 0\n"), []place{{CodeVersionInvalid, "inventory.md", 4, 10}}},
		"version with leading zero":     {minimal("version: 010\n"), []place{{CodeVersionInvalid, "inventory.md", 4, 10}}},
		"version in quotes":             {minimal("version: \"1\"\n"), []place{{CodeVersionInvalid, "inventory.md", 4, 10}}},
		"version too large":             {minimal("version: 99999999999999999999\n"), []place{{CodeVersionInvalid, "inventory.md", 4, 10}}},
		"description missing":           {"---\nname: inventory\n---\nbody\n", []place{{CodeDescriptionMissing, "inventory.md", 2, 1}}},
		"description empty":             {"---\nname: inventory\ndescription:\n---\nbody\n", []place{{CodeDescriptionMissing, "inventory.md", 3, 13}}},
		"description blank":             {"---\nname: inventory\ndescription: \" \"\n---\nbody\n", []place{{CodeDescriptionMissing, "inventory.md", 3, 14}}},
		"description a number":          {"---\nname: inventory\ndescription: 5\n---\nbody\n", []place{{CodeValueType, "inventory.md", 3, 14}}},
		"description a boolean":         {"---\nname: inventory\ndescription: true\n---\nbody\n", []place{{CodeValueType, "inventory.md", 3, 14}}},
		"description too long":          {"---\nname: inventory\ndescription: " + strings.Repeat("é", 1025) + "\n---\nbody\n", []place{{CodeDescriptionInvalid, "inventory.md", 3, 14}}},
		"description cut by a comment":  {"---\nname: inventory\ndescription: Fixes issue #5 and more\n---\nbody\n", []place{{CodeDescriptionInvalid, "inventory.md", 3, 14}}},
		"description with a colon":      {"---\nname: inventory\ndescription: Use when: a, b\n---\nbody\n", []place{{CodeFrontmatterInvalid, "inventory.md", 3, 22}}},
		"colon and other faults":        {"---\nname: inventory\ndescription: Use when: a, b\nversion: x\n---\n", []place{{CodeFrontmatterInvalid, "inventory.md", 3, 22}, {CodeVersionInvalid, "inventory.md", 4, 10}, {CodeBodyEmpty, "inventory.md", 6, 1}}},
		"tools a scalar":                {minimal("tools: read\n"), []place{{CodeToolsNotList, "inventory.md", 4, 8}}},
		"tools without a value":         {minimal("tools:\n"), []place{{CodeToolsNotList, "inventory.md", 4, 7}}},
		"tools hold a number":           {minimal("tools: [5, read]\n"), []place{{CodeValueType, "inventory.md", 4, 9}}},
		"tools hold a bad name":         {minimal("tools: [\"a b\", \"\"]\n"), []place{{CodeToolInvalid, "inventory.md", 4, 9}, {CodeToolInvalid, "inventory.md", 4, 16}}},
		"tools name no MCP tool":        {minimal("tools: [mcp__wiki, mcp__wiki__, mcp____x, \"mcp__wiki__se*\", mcp__*]\n"), []place{{CodeToolInvalid, "inventory.md", 4, 9}, {CodeToolInvalid, "inventory.md", 4, 20}, {CodeToolInvalid, "inventory.md", 4, 33}, {CodeToolInvalid, "inventory.md", 4, 43}, {CodeToolInvalid, "inventory.md", 4, 61}}},
		"tools hold one twice":          {minimal("tools: [read, read]\n"), []place{{CodeToolDuplicate, "inventory.md", 4, 15}}},
		"skills a scalar":               {minimal("skills: tone\n"), []place{{CodeSkillInvalid, "inventory.md", 4, 9}}},
		"skills hold a bad name":        {minimal("skills: [a_b, Tone, tone, tone]\n"), []place{{CodeSkillInvalid, "inventory.md", 4, 10}, {CodeSkillInvalid, "inventory.md", 4, 15}, {CodeSkillDuplicate, "inventory.md", 4, 27}}},
		"thinking unknown":              {minimal("thinking: hard\n"), []place{{CodeThinkingInvalid, "inventory.md", 4, 11}}},
		"thinking a boolean":            {minimal("thinking: false\n"), []place{{CodeThinkingInvalid, "inventory.md", 4, 11}}},
		"patterns a scalar":             {minimal("deny-command-patterns: rm\n"), []place{{CodeDenyPatternInvalid, "inventory.md", 4, 24}}},
		"patterns invalid":              {minimal("deny-command-patterns: [\"(\", \"a(?=b)\", \"\"]\n"), []place{{CodeDenyPatternInvalid, "inventory.md", 4, 25}, {CodeDenyPatternInvalid, "inventory.md", 4, 30}, {CodeDenyPatternInvalid, "inventory.md", 4, 40}}},
		"metadata a scalar":             {minimal("metadata: x\n"), []place{{CodeMetadataInvalid, "inventory.md", 4, 11}}},
		"metadata nested":               {minimal("metadata: {a: [b]}\n"), []place{{CodeMetadataInvalid, "inventory.md", 4, 15}}},
		"audience unknown":              {minimal("metadata: {audience: all}\n"), []place{{CodeAudienceInvalid, "inventory.md", 4, 22}}},
		"template unknown":              {minimal("template: jinja\n"), []place{{CodeTemplateInvalid, "inventory.md", 4, 11}}},
		"x-loop without a kind":         {minimal("x-loop: {}\n"), []place{{CodeExtensionInvalid, "inventory.md", 4, 9}}},
		"x-loop of an unknown kind":     {minimal("x-loop: {kind: fast, speed: 2}\n"), []place{{CodeExtensionInvalid, "inventory.md", 4, 16}, {CodeKeyUnknown, "inventory.md", 4, 22}}},
		"x-loop a scalar":               {minimal("x-loop: transcript\n"), []place{{CodeExtensionInvalid, "inventory.md", 4, 9}}},
		"x-output without a schema":     {minimal("x-output: {maxRepairs: -1}\n"), []place{{CodeExtensionInvalid, "inventory.md", 4, 11}, {CodeExtensionInvalid, "inventory.md", 4, 24}}},
		"x-budget with wrong values":    {minimal("x-budget: {maxTurns: 0, maxCostUsd: -1, timeoutSec: 0}\n"), []place{{CodeExtensionInvalid, "inventory.md", 4, 22}, {CodeExtensionInvalid, "inventory.md", 4, 37}, {CodeExtensionInvalid, "inventory.md", 4, 53}}},
		"x-subagents a mapping":         {minimal("x-subagents: {}\n"), []place{{CodeExtensionInvalid, "inventory.md", 4, 14}}},
		"x-subagents with one twice":    {minimal("x-subagents:\n  - {name: a, description: d, instructions: i}\n  - {name: a, description: d, instructions: i}\n"), []place{{CodeExtensionInvalid, "inventory.md", 6, 12}}},
		"x-subagents without a name":    {minimal("x-subagents:\n  - {description: d, instructions: i, budget: {maxTurns: x}}\n"), []place{{CodeExtensionInvalid, "inventory.md", 5, 5}, {CodeExtensionInvalid, "inventory.md", 5, 58}}},
		"number no JSON reader reads":   {minimal("x-output: {schema: {minimum: 0x1F, maximum: .inf}}\n"), []place{{CodeExtensionInvalid, "inventory.md", 4, 30}, {CodeExtensionInvalid, "inventory.md", 4, 45}}},
		"nested too deeply":             {minimal("x-output: {schema: " + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "}\n"), nil},
		"frontmatter too large":         {minimal("# " + strings.Repeat("x", MaxFrontmatter) + "\n"), []place{{CodeFileTooLarge, "inventory.md", 1, 1}}},
		"a scalar of ten megabytes":     {minimal("metadata: {a: " + strings.Repeat("x", 10<<20) + "}\n"), nil},
		"instructions too large":        {minimal("") + strings.Repeat("x", MaxInstructions), []place{{CodeFileTooLarge, "inventory.md", 5, 1}}},
		"nine faults are nine findings": {"---\nname: Stock\nversion: 1.10\ntools: read\nskills: [A]\nthinking: hard\ndeny-command-patterns: [\"(\"]\nmodel: x\n---\n", []place{{CodeNameInvalid, "inventory.md", 2, 7}, {CodeDescriptionMissing, "inventory.md", 2, 1}, {CodeVersionInvalid, "inventory.md", 3, 10}, {CodeToolsNotList, "inventory.md", 4, 8}, {CodeSkillInvalid, "inventory.md", 5, 10}, {CodeThinkingInvalid, "inventory.md", 6, 11}, {CodeDenyPatternInvalid, "inventory.md", 7, 25}, {CodeKeyUnknown, "inventory.md", 8, 1}, {CodeBodyEmpty, "inventory.md", 10, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, list := ParsePackage(agentFile(tc.content))
			if tc.want == nil {
				if len(list) == 0 {
					t.Error("no finding")
				}
				return
			}
			want := map[place]bool{}
			for _, w := range tc.want {
				want[w] = true
			}
			got := map[place]bool{}
			for _, g := range places(list) {
				got[g] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%v", diff, list)
			}
		})
	}
}

func TestFindingsHelp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ lines, want string }{
		"misspelt key":       {"thinkin: low\n", "did you mean thinking?"},
		"capital key":        {"Tools: [read]\n", "did you mean tools?"},
		"snake case":         {"deny_command_patterns: []\n", "did you mean deny-command-patterns?"},
		"a model":            {"model: gpt\n", "the job chooses the model"},
		"audience at top":    {"audience: member\n", "belongs under metadata"},
		"colon in metadata":  {"thinking: x: y\n", `put the value in quotes: thinking: "x: y"`},
		"tools with commas":  {"tools: read, grep\n", "write tools: [read, grep]"},
		"look-around":        {"deny-command-patterns: [\"a(?!b)\"]\n", "RE2 has no look-around"},
		"back-reference":     {"deny-command-patterns: ['(a)\\1']\n", "RE2 has no back-references"},
		"version":            {"version: 1.10\n", "not 1.10"},
		"nested key":         {"x-budget: {maxTurn: 1}\n", "did you mean maxTurns?"},
		"older key":          {"x-budget: {maxSteps: 1}\n", "the key is maxTurns"},
		"tab":                {"metadata:\n\ta: b\n", "not tabs"},
		"no value":           {"thinking:\n", "an empty value"},
		"thinking in a list": {"thinking: [low]\n", "off, minimal, low"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, list := ParsePackage(agentFile(minimal(tc.lines)))
			var text strings.Builder
			for _, p := range list {
				text.WriteString(p.String() + "\n")
			}
			if !strings.Contains(text.String(), tc.want) {
				t.Errorf("findings = %v; want %q", list, tc.want)
			}
		})
	}
}

func TestParsePackageSkills(t *testing.T) {
	t.Parallel()
	good := minimal("skills: [shared]\n")
	for name, tc := range map[string]struct {
		path, content string
		want          []place
	}{
		"name differs from folder":  {"skills/sums/SKILL.md", skill, []place{{CodeNameMismatch, "skills/sums/SKILL.md", 2, 7}}},
		"bad folder name":           {"skills/a_b/SKILL.md", "---\nname: a_b\ndescription: d\n---\nx\n", []place{{CodeNameInvalid, "skills/a_b/SKILL.md", 2, 7}, {CodeSkillInvalid, "skills/a_b/SKILL.md", 1, 1}}},
		"no frontmatter":            {"skills/counting/SKILL.md", "text\n", []place{{CodeFrontmatterMissing, "skills/counting/SKILL.md", 1, 1}}},
		"unknown key":               {"skills/counting/SKILL.md", "---\nname: counting\ndescription: d\nlicense: x\n---\nb\n", []place{{CodeKeyUnknown, "skills/counting/SKILL.md", 4, 1}}},
		"nothing at all":            {"skills/counting/SKILL.md", "---\n---\n", []place{{CodeNameInvalid, "skills/counting/SKILL.md", 2, 1}, {CodeDescriptionMissing, "skills/counting/SKILL.md", 2, 1}, {CodeBodyEmpty, "skills/counting/SKILL.md", 3, 1}}},
		"too large":                 {"skills/counting/SKILL.md", skill + strings.Repeat("x", MaxSkill), []place{{CodeFileTooLarge, "skills/counting/SKILL.md", 5, 1}}},
		"shared and local at once":  {"skills/shared/SKILL.md", "---\nname: shared\ndescription: d\n---\nb\n", []place{{CodeSkillDuplicate, "inventory.md", 4, 10}}},
		"file name in lower case":   {"skills/counting/skill.md", skill, []place{{CodeFileUnexpected, "skills/counting/skill.md", 1, 1}}},
		"script beside the skill":   {"skills/counting/run.sh", "x", []place{{CodeFileUnexpected, "skills/counting/run.sh", 1, 1}}},
		"second agent file":         {"other.md", minimal(""), []place{{CodeFileUnexpected, "other.md", 1, 1}}},
		"path that leaves":          {"skills/../../x/SKILL.md", "x", []place{{CodePathUnsafe, "skills/../../x/SKILL.md", 1, 1}}},
		"absolute path":             {"/etc/passwd", "x", []place{{CodePathUnsafe, "/etc/passwd", 1, 1}}},
		"drive letter":              {"C:x.md", "x", []place{{CodePathUnsafe, "C:x.md", 1, 1}}},
		"backslash":                 {"..\\x", "x", []place{{CodePathUnsafe, "..\\x", 1, 1}}},
		"NUL in the name":           {"a\x00b", "x", []place{{CodePathUnsafe, "a\x00b", 1, 1}}},
		"twin that differs by case": {"INVENTORY.md", minimal(""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, list := ParsePackage(map[string][]byte{"inventory.md": []byte(good), tc.path: []byte(tc.content)})
			if tc.want == nil {
				if !list.Has(CodePathUnsafe, "") {
					t.Errorf("findings = %v", list)
				}
				return
			}
			if diff := cmp.Diff(tc.want, places(list)); diff != "" && !sameSet(tc.want, places(list)) {
				t.Errorf("%s\n%v", diff, list)
			}
		})
	}
}

func sameSet(a, b []place) bool {
	count := map[place]int{}
	for _, p := range a {
		count[p]++
	}
	for _, p := range b {
		count[p]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func TestParsePackageBoundsTheNumberOfSkillsAndTheWhole(t *testing.T) {
	t.Parallel()
	files := agentFile(minimal(""))
	for i := range MaxSkills + 1 {
		name := fmt.Sprintf("s%d", i)
		files["skills/"+name+"/SKILL.md"] = []byte("---\nname: " + name + "\ndescription: d\n---\n" + strings.Repeat("x", MaxSkill-100))
	}
	_, list := ParsePackage(files)
	want := []place{{CodeFileTooLarge, "", 0, 0}, {CodeFileTooLarge, "skills", 1, 1}}
	if diff := cmp.Diff(want, places(list)); diff != "" {
		t.Error(diff)
	}
}

func TestParsePackageWithoutAnAgentFile(t *testing.T) {
	t.Parallel()
	pkg, list := ParsePackage(map[string][]byte{"skills/counting/SKILL.md": []byte(skill)})
	if diff := cmp.Diff([]place{{CodeFileMissing, "", 0, 0}}, places(list)); diff != "" || pkg != nil {
		t.Errorf("package = %v, %s", pkg, diff)
	}
}

func TestFindingsAreInOrder(t *testing.T) {
	t.Parallel()
	_, list := ParsePackage(map[string][]byte{
		"inventory.md":             []byte("---\nnope: 1\nname: inventory\nversion: x\n---\n"),
		"skills/counting/SKILL.md": []byte("---\nname: x\n---\nb\n"),
		"a.txt":                    []byte("x"),
	})
	want := []place{
		{CodeKeyUnknown, "inventory.md", 2, 1}, {CodeDescriptionMissing, "inventory.md", 2, 1}, {CodeVersionInvalid, "inventory.md", 4, 10},
		{CodeBodyEmpty, "inventory.md", 6, 1}, {CodeFileUnexpected, "a.txt", 1, 1},
		{CodeNameMismatch, "skills/counting/SKILL.md", 2, 7}, {CodeDescriptionMissing, "skills/counting/SKILL.md", 2, 1},
	}
	if diff := cmp.Diff(want[:1], places(list)[:1]); diff != "" {
		t.Error(diff)
	}
	if !sameSet(want, places(list)) {
		t.Errorf("findings = %v", list)
	}
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; a.Path == b.Path && (a.Line > b.Line || a.Line == b.Line && a.Column > b.Column) {
			t.Errorf("%v stands before %v", a, b)
		}
	}
}
