package workflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/problem"
)

func codes(list problem.List) []string {
	found := []string{}
	for _, p := range list {
		found = append(found, p.Code)
	}
	return found
}

const review = `# A comment.
name: review
description: Looks and then judges.
arguments:
  - name: focus
    description: What to look at.
  - name: tone
    description: How to write.
    default: short
steps:
  - name: look
    agent: reader
    task: Look at {{ focus }}.
  - name: judge
    agent: no-such-agent
    version: 3
    model: {provider: p, id: m, thinking: high}
    inputs:
      - from: look
        files: [REPORT.md]
    task: |
      Judge in a {{tone}} way. Seen: {{ steps.look.answer }}
`

func TestAWorkflowLoadsAlthoughItNamesAMissingAgent(t *testing.T) {
	t.Parallel()
	d, problems := Parse("workflows/review.yaml", []byte(review))
	if problems != nil {
		t.Fatal(problems)
	}
	if len(d.Steps) != 2 || d.Steps[1].Agent != "no-such-agent" || d.Steps[1].Version != 3 || d.Steps[1].Model.Thinking != "high" ||
		d.Steps[1].Inputs[0].Files[0] != "REPORT.md" || *d.Arguments[1].Default != "short" || d.Arguments[0].Default != nil {
		t.Errorf("%+v", d)
	}
	if string(d.Source()) != review || len(d.Digest()) != 64 {
		t.Error("the definition does not keep its file")
	}
}

func TestEveryProblemOfAWorkflowIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	_, problems := Parse("review.yaml", []byte(`name: reviews
descripton: typo
arguments:
  - {name: Focus, description: d}
  - {name: a, description: d}
  - {name: a, description: d}
steps:
  - name: one
    agent: x
    version: 0
    task: "{{ steps.two.answer }} {{ focus }} {{ open"
    inputs:
      - from: two
      - {from: one, files: [../x, a, a]}
  - name: one
    agent: 5
    model: {provider: p, thinking: deep}
`))
	want := []string{
		catalog.CodeKeyUnknown, CodeRequired, catalog.CodeNameInvalid, CodeDuplicate, catalog.CodeNameMismatch,
		CodeDuplicate, catalog.CodeVersionInvalid, CodeStepUnknown, CodeDuplicate, CodeStepUnknown, catalog.CodePathUnsafe,
		CodePlaceholderUnknown, CodePlaceholderUnknown, CodePlaceholderUnknown, catalog.CodeValueType, CodeRequired, CodeRequired, catalog.CodeThinkingInvalid,
	}
	got := codes(problems)
	count := func(list []string) map[string]int {
		n := map[string]int{}
		for _, c := range list {
			n[c]++
		}
		return n
	}
	if diff := cmp.Diff(count(want), count(got)); diff != "" {
		t.Errorf("%s%v", diff, problems)
	}
	for _, p := range problems {
		if p.Path != "review.yaml" || p.Line == 0 || p.Message == "" {
			t.Errorf("a problem without a place: %+v", p)
		}
		if p.Code == catalog.CodeVersionInvalid && p.Line != 10 {
			t.Errorf("the version stands on line 10, not %d", p.Line)
		}
	}
}

func TestAFileThatCannotBeReadIsOneProblem(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"no YAML": "name: [", "a list": "- a", "an alias": "name: &a x\ndescription: *a\nsteps: []", "not UTF-8": "name: \xff",
		"nothing": "", "too large": strings.Repeat("#", MaxFile+1)} {
		if d, problems := Parse("x.yaml", []byte(data)); d == nil || len(problems) == 0 {
			t.Errorf("%s: %+v, %v", name, d, problems)
		}
		if c, problems := ParseCommand("x.md", []byte(data)); c == nil || len(problems) == 0 {
			t.Errorf("%s: %+v, %v", name, c, problems)
		}
	}
}

const command = "---\nname: look\ndescription: Looks.\nagent: reader\narguments:\n  - {name: what, description: What to look at.}\n" +
	"  - {name: how, description: How., default: \"\"}\nscripts: [count]\n---\nLook at {{what}}{{ how }}. Braces: \\{{ what }}.\n"

func TestACommandIsATaskWithItsPlacesFilled(t *testing.T) {
	t.Parallel()
	scripts := []Script{{Name: "other", Code: "1"}, {Name: "count", Code: "return 1;\n"}}
	c, problems := ParseCommand("commands/look.md", []byte(command))
	if problems != nil || c.CheckScripts(scripts) != nil {
		t.Fatal(problems)
	}
	text, problems := c.Render(map[string]string{"what": "{{ how }} \\{{", "how": "!"}, scripts)
	want := "Look at {{ how }} \\{{!. Braces: {{ what }}.\n\n\n<script name=\"count\">\nreturn 1;\n</script>"
	if diff := cmp.Diff(want, text); diff != "" || problems != nil {
		t.Error(diff, problems)
	}
}

func TestWrongArgumentsAreAllReported(t *testing.T) {
	t.Parallel()
	c, problems := ParseCommand("look.md", []byte(command))
	if problems != nil {
		t.Fatal(problems)
	}
	text, problems := c.Render(map[string]string{"wath": "x", "how": strings.Repeat("x", MaxValue+1)}, nil)
	if diff := cmp.Diff([]string{CodeInvalid, CodeArgumentUnknown, CodeRequired}, codes(problems)); diff != "" || text != "" {
		t.Errorf("%s%v", diff, problems)
	}
	if _, problems := c.Render(map[string]string{"what": "x"}, nil); len(problems) != 1 || problems[0].Code != CodeScriptUnknown {
		t.Errorf("a script that is gone: %v", problems)
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("a {{ x }} b", "y")
	f.Add(`\{{ {{x}} {{`, "{{ x }}")
	f.Fuzz(func(t *testing.T, text, value string) {
		parsed, unknown := parseTemplate(text, []string{"x"})
		if len(unknown) > 0 {
			return
		}
		got := parsed.render(map[string]string{"x": value})
		places := len(parsed.parts) / 2
		if !strings.Contains(text, "{{") && got != text || strings.Count(got, value) < places && value != "" {
			t.Errorf("%q with %q became %q", text, value, got)
		}
	})
}
