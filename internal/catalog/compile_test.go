package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

func mustParse(t *testing.T, files map[string][]byte) *Package {
	t.Helper()
	pkg, list := ParsePackage(files)
	if list != nil {
		t.Fatalf("findings: %v", list)
	}
	return pkg
}

func TestCompile(t *testing.T) {
	t.Parallel()
	files := agentFile(minimal("version: 7\ntools: [read]\nthinking: high\ndeny-command-patterns: [x]\n"))
	files["skills/counting/SKILL.md"] = []byte(skill)
	files["skills/adding/SKILL.md"] = []byte("---\nname: adding\ndescription: d\n---\nAdd.\n")
	compiled, list := mustParse(t, files).Compile()
	got := compiled.Agent
	want := job.Definition{
		ID: "inventory", Version: "7", Instructions: "body\n", Tools: []string{"read"}, Thinking: llm.LevelHigh, DenyCommandPatterns: []string{"x"},
		Skills: []job.Skill{{Name: "adding", Content: "Add.\n"}, {Name: "counting", Content: "Count twice.\n"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || list != nil {
		t.Errorf("%s%v", diff, list)
	}
}

func TestCompileKeepsAbsentAndEmptyToolsApart(t *testing.T) {
	t.Parallel()
	absent, _ := mustParse(t, agentFile(minimal(""))).Compile()
	empty, _ := mustParse(t, agentFile(minimal("tools: []\n"))).Compile()
	if absent.Agent.Tools != nil || empty.Agent.Tools == nil {
		t.Errorf("absent = %#v, empty = %#v", absent.Agent.Tools, empty.Agent.Tools)
	}
	if absent.Agent.Version != DraftVersion {
		t.Errorf("version without a number = %q", absent.Agent.Version)
	}
}

func TestCompileReportsWhatThisRuntimeCannotDo(t *testing.T) {
	t.Parallel()
	pkg := mustParse(t, agentFile(minimal("skills: [tone]\ntemplate: liquid\nmetadata: {audience: member}\n"+
		"x-subagents:\n  - {name: a, description: d, instructions: i, skills: [tune]}\n")))
	_, list := pkg.Compile()
	want := []place{
		{CodeAudienceNotRunnable, "inventory.md", 6, 22},
		{CodeSkillUnknown, "inventory.md", 4, 10},
		{CodeExtensionUnsupported, "inventory.md", 5, 11},
		{CodeSkillUnknown, "inventory.md", 8, 57},
	}
	if diff := cmp.Diff(want, places(list)); diff != "" {
		t.Error(diff)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	in := Installation{Tools: []string{"read", "grep"}, Skills: []string{"tone"}, MCPServers: []string{"wiki"}, Reserved: []string{"inventory"}}
	for name, tc := range map[string]struct {
		lines string
		in    Installation
		want  []place
	}{
		"all known":               {"tools: [read, mcp__wiki__search]\nskills: [tone]\n", Installation{Tools: in.Tools, Skills: in.Skills, MCPServers: in.MCPServers}, nil},
		"nothing to check with":   {"tools: [nope, mcp__nope__x]\nskills: [nope]\n", Installation{}, nil},
		"unknown tool":            {"tools: [read, gerp]\n", Installation{Tools: in.Tools}, []place{{CodeToolUnknown, "inventory.md", 4, 15}}},
		"unknown tool of members": {"tools: [Bash]\nmetadata: {audience: member}\n", Installation{Tools: in.Tools}, nil},
		"unknown MCP server":      {"tools: [mcp__wikki__search]\n", Installation{MCPServers: in.MCPServers}, []place{{CodeMCPServerUnknown, "inventory.md", 4, 9}}},
		"MCP names are no tools":  {"tools: [mcp__wiki__search]\n", Installation{Tools: in.Tools}, nil},
		"all tools of a server":   {"tools: [mcp__wiki__*, mcp__wiki__pages.get]\n", Installation{Tools: in.Tools, MCPServers: in.MCPServers}, nil},
		"unknown skill":           {"skills: [tone, tune]\n", Installation{Skills: in.Skills}, []place{{CodeSkillUnknown, "inventory.md", 4, 16}}},
		"no skill at all":         {"skills: [tone]\n", Installation{Skills: []string{}}, []place{{CodeSkillUnknown, "inventory.md", 4, 10}}},
		"reserved name":           {"", Installation{Reserved: in.Reserved}, []place{{CodeNameReserved, "inventory.md", 2, 7}}},
		"everything at once": {"tools: [nope, mcp__nope__x]\nskills: [nope]\n", in, []place{
			{CodeNameReserved, "inventory.md", 2, 7}, {CodeToolUnknown, "inventory.md", 4, 9}, {CodeMCPServerUnknown, "inventory.md", 4, 15},
			{CodeSkillUnknown, "inventory.md", 5, 10},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mustParse(t, agentFile(minimal(tc.lines))).Check(tc.in)
			if diff := cmp.Diff(tc.want, places(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckSuggestsTheNearestName(t *testing.T) {
	t.Parallel()
	list := mustParse(t, agentFile(minimal("tools: [gerp]\n"))).Check(Installation{Tools: []string{"read", "grep"}})
	want := problem.List{{
		Code: CodeToolUnknown, Pointer: "/tools/0", Path: "inventory.md", Line: 4, Column: 9,
		Message: `unknown tool "gerp"`, Hint: "did you mean grep?",
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}
