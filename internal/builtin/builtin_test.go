package builtin_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/builtin"
	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/problem"
)

func load(t *testing.T) *builtin.Set {
	t.Helper()
	set, err := builtin.Load()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestAReleaseBringsFiveAgentsWithEverythingAroundThem(t *testing.T) {
	t.Parallel()
	set := load(t)
	got := map[string][]string{}
	for _, a := range set.Agents {
		got["agents"] = append(got["agents"], a.Package.Name)
	}
	for _, s := range set.Skills {
		got["skills"] = append(got["skills"], s.Name)
	}
	for _, c := range set.Commands {
		got["commands"] = append(got["commands"], c.Name)
	}
	for _, w := range set.Workflows {
		got["workflows"] = append(got["workflows"], w.Name)
	}
	for _, s := range set.Scripts {
		got["scripts"] = append(got["scripts"], s.Name)
	}
	five := []string{"behaviour", "data", "inventory", "risk", "structure"}
	want := map[string][]string{"agents": five, "commands": five, "skills": {"citing-sources", "reading-code", "writing-reports"},
		"workflows": {"understand"}, "scripts": {"file-census", "open-marks", "who-imports"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBuiltInAgentsListNoTools(t *testing.T) {
	t.Parallel()
	for _, a := range load(t).Agents {
		if a.Package.Tools != nil || strings.Contains(string(a.Files[a.Package.Name+".md"]), "\ntools:") {
			t.Errorf("%s has the key tools", a.Package.Name)
		}
		if a.Package.Audience != catalog.AudienceRuntime {
			t.Errorf("%s is not meant to run", a.Package.Name)
		}
	}
}

func TestWhatIsBuiltInRefersToWhatIsBuiltIn(t *testing.T) {
	t.Parallel()
	set := load(t)
	for _, a := range set.Agents {
		for _, name := range a.Package.SharedSkillNames() {
			if set.Skill(name) == nil {
				t.Errorf("the agent %s names the skill %s, which is not there", a.Package.Name, name)
			}
		}
	}
	for _, c := range set.Commands {
		if set.Agent(c.Agent) == nil {
			t.Errorf("the command %s names the agent %s, which is not there", c.Name, c.Agent)
		}
		text, problems := set.Command(c.Name).Render(nil, set.Scripts)
		if problems != nil || strings.Contains(text, "{{") {
			t.Errorf("the command %s without arguments: %v\n%s", c.Name, problems, text)
		}
		for _, s := range c.Scripts {
			if !strings.Contains(text, "<script name=\""+s+"\">\n// ") {
				t.Errorf("the command %s does not hold its script %s:\n%s", c.Name, s, text)
			}
		}
	}
	for _, s := range set.Workflow("understand").Steps {
		if set.Agent(s.Agent) == nil {
			t.Errorf("the workflow names the agent %s, which is not there", s.Agent)
		}
	}
}

func TestTheWayInFindsNothingThatIsNotThere(t *testing.T) {
	t.Parallel()
	set := load(t)
	if set.Agent("knowledge") != nil || set.Skill("x") != nil || set.Command("x") != nil || set.Workflow("x") != nil {
		t.Error("a name that nothing has was found")
	}
}

func TestReadNamesEveryProblemOfEveryFile(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{}
	for path, text := range map[string]string{
		"agents/a/a.md":          "---\nname: b\n---\nx\n",
		"skills/Bad/SKILL.md":    "---\nname: Bad\ndescription: d\n---\nx\n",
		"commands/c.md":          "---\nname: c\ndescription: d\nagent: a\nscripts: [none]\n---\n{{ nothing }}\n",
		"workflows/w.yaml":       "name: w\ndescription: d\nsteps: []\n",
		"scripts/No Name.js":     "1",
		"scripts/fine.js":        "2",
		"agents/empty/README.md": "no frontmatter",
	} {
		files[path] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModePerm}
	}
	_, err := builtin.Read(files)
	if err == nil {
		t.Fatal("a set with problems was read")
	}
	for _, want := range []string{"agents/a", "skills/Bad", "script-unknown", "placeholder-unknown", "workflows/w.yaml", "No Name", "agents/empty"} {
		if !strings.Contains(codes(err), want) {
			t.Errorf("nothing says %q:\n%s", want, codes(err))
		}
	}
}

// codes writes an error with the codes of its problems.
func codes(err error) string {
	text := err.Error()
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		for _, p := range problem.Of(e) {
			text += "\n" + p.Code + " " + p.Path
		}
	}
	return text
}

func TestLoadReadsOnce(t *testing.T) {
	t.Parallel()
	first, second := load(t), load(t)
	if first != second || !slices.IsSortedFunc(load(t).Skills, func(a, b builtin.Skill) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the set is read twice, or not in order")
	}
}
