package agent_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/agent"
)

func TestTheAgentIsWhatItsPackageSays(t *testing.T) {
	t.Parallel()
	a, err := agent.Parse(agent.Files, agent.Name)
	if err != nil {
		t.Fatal(err)
	}
	var prompts, searching []string
	a.Each(func(a *agent.Agent) {
		prompts = append(prompts, a.Prompt.String())
		if a.Loop.Kind != "working-memory" {
			t.Errorf("%s runs in the loop %q", a.Definition.ID, a.Loop.Kind)
		}
		if strings.Contains(strings.Join(a.Definition.Tools, " "), "mcp__search__*") {
			searching = append(searching, a.Definition.ID)
		}
	})
	if diff := cmp.Diff([]string{"events-calendar/orchestrator@production", "events-calendar/research@production", "events-calendar/plan@production"}, prompts); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"events-calendar", "research"}, searching); diff != "" {
		t.Errorf("agents with search tools (-want +got):\n%s", diff)
	}
	if a.Budget.MaxTurns == 0 || a.Budget.MaxCostUSD == 0 || a.Budget.TimeoutSec == 0 || len(a.Subagents) != 2 {
		t.Errorf("the agent is %+v", a)
	}
}

func TestEveryProblemOfEveryFileIsReported(t *testing.T) {
	t.Parallel()
	const good = "---\nname: %\nversion: 1\ndescription: d\ntools: []\n---\nDo it.\n"
	named := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.ReplaceAll(good, "%", name))}
	}
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	roster := func(names ...string) *fstest.MapFile {
		s := "---\nname: main\nversion: 1\ndescription: d\ntools: []\nx-subagents:\n"
		for _, name := range names {
			s += "  - {name: " + name + ", description: d, agent: " + name + "}\n"
		}
		return text(s + "---\nDo it.\n")
	}
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  []string
	}{
		"sound":             {fstest.MapFS{"main.md": roster("a"), "subagents/a.md": named("a")}, nil},
		"no file":           {fstest.MapFS{}, []string{"main.md "}},
		"no frontmatter":    {fstest.MapFS{"main.md": text("Do it.")}, []string{"main.md "}},
		"no end":            {fstest.MapFS{"main.md": text("---\nname: main\n")}, []string{"main.md "}},
		"an unknown key":    {fstest.MapFS{"main.md": text("---\nnames: main\n---\nDo it.")}, []string{"main.md "}},
		"another name":      {fstest.MapFS{"main.md": named("other")}, []string{"main.md /name"}},
		"nothing in it":     {fstest.MapFS{"main.md": text("---\nversion: 0\n---\n\n")}, []string{"main.md /name", "main.md /version", "main.md /description", "main.md ", "main.md /tools"}},
		"a missing helper":  {fstest.MapFS{"main.md": roster("a", "b"), "subagents/a.md": named("a")}, []string{"subagents/b.md "}},
		"two bad helpers":   {fstest.MapFS{"main.md": roster("a", "b"), "subagents/a.md": named("x"), "subagents/b.md": named("y")}, []string{"subagents/a.md /name", "subagents/b.md /name"}},
		"a circle":          {fstest.MapFS{"main.md": roster("main"), "subagents/main.md": roster("main")}, []string{"subagents/main.md /x-subagents/0/agent"}},
		"an unknown loop":   {fstest.MapFS{"main.md": text("---\nname: main\nversion: 1\ndescription: d\ntools: []\nx-loop: {kind: spiral}\n---\nDo it.")}, []string{"main.md /x-loop/kind"}},
		"a negative budget": {fstest.MapFS{"main.md": text("---\nname: main\nversion: 1\ndescription: d\ntools: []\nx-budget: {maxTurns: -1}\n---\nDo it.")}, []string{"main.md /x-budget"}},
		"a bad prompt":      {fstest.MapFS{"main.md": text("---\nname: main\nversion: 1\ndescription: d\ntools: []\nmetadata: {prompt: plan}\n---\nDo it.")}, []string{"main.md /metadata/prompt"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := agent.Parse(c.files, "main")
			var got []string
			for _, p := range problem.Of(err) {
				got = append(got, p.Path+" "+p.Pointer)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || (err == nil) != (c.want == nil) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestInstructionsAreVerbatim(t *testing.T) {
	t.Parallel()
	body := "\nDo it.\n---\n  And more. \n\n"
	files := fstest.MapFS{"main.md": {Data: []byte("---\nname: main\nversion: 3\ndescription: d\ntools: []\n---\n" + body)}}
	a, err := agent.Parse(files, "main")
	if err != nil || a.Definition.Instructions != body || a.Definition.Version != "3" {
		t.Errorf("%+v (%v)", a, err)
	}
}
