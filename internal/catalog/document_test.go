package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
)

func TestADocumentIsReadByTheRulesOfAPackage(t *testing.T) {
	t.Parallel()
	d, list := ReadDocument("a.md", []byte("\ufeff---\r\nname: a\r\nsince: 1.10\r\nlist: [yes, 1]\r\n---\r\nBody\r\n"))
	if list != nil {
		t.Fatal(list)
	}
	if diff := cmp.Diff(`{"name":"a","since":1.10,"list":["yes",1]}`, string(d.Front)); diff != "" || d.Body != "Body\r\n" {
		t.Error(diff, d.Body)
	}
	for pointer, want := range map[string][2]int{"/list": {4, 1}, "/list/1": {4, 13}, "/list/1/none": {4, 13}, "/nowhere": {2, 1}} {
		if p := d.Problem("c", pointer, "m", "h"); p.Line != want[0] || p.Column != want[1] || p.Path != "a.md" || p.Hint != "h" {
			t.Errorf("%s is at %+v", pointer, p)
		}
	}
}

func TestAYAMLFileHasItsLines(t *testing.T) {
	t.Parallel()
	d, list := ReadYAML("a.yaml", []byte("name: a\nsteps:\n  - x\n"))
	if list != nil {
		t.Fatal(list)
	}
	if p := d.Problem("c", "/steps/0", "", ""); p.Line != 3 || p.Column != 5 {
		t.Errorf("%+v", p)
	}
	for text, line := range map[string]int{"name: a\nb: &x y\n": 2, "a: 1\n---\nb: 2\n": 2, "a: 0x10\n": 1, "a: [\n": 1} {
		d, list := ReadYAML("a.yaml", []byte(text))
		if len(list) == 0 || list[0].Line != line {
			t.Errorf("%q: %v, %v", text, d, list)
		}
	}
	if d, list := ReadYAML("a.yaml", []byte("a: \xff")); d != nil || len(list) != 1 || list[0].Code != CodeTextInvalid {
		t.Errorf("%v, %v", d, list)
	}
}

func TestSharedSkillsAreCompiledIn(t *testing.T) {
	t.Parallel()
	pkg, list := ParsePackage(map[string][]byte{
		"a.md":                []byte("---\nname: a\ndescription: d\nskills: [tone, depth]\nx-subagents:\n  - {name: b, description: d, instructions: i, skills: [own, tone]}\n---\nx\n"),
		"skills/own/SKILL.md": []byte("---\nname: own\ndescription: d\n---\nOwn.\n"),
	})
	if list != nil {
		t.Fatal(list)
	}
	if diff := cmp.Diff([]string{"depth", "tone"}, pkg.SharedSkillNames()); diff != "" {
		t.Error(diff)
	}
	j, list := pkg.CompileWith(map[string]string{"tone": "Tone.\n", "depth": "Depth.\n", "other": "Other.\n"})
	if list != nil {
		t.Fatal(list)
	}
	if diff := cmp.Diff([]job.Skill{{Name: "tone", Content: "Tone.\n"}, {Name: "depth", Content: "Depth.\n"}, {Name: "own", Content: "Own.\n"}}, j.Agent.Skills); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]job.Skill{{Name: "own", Content: "Own.\n"}, {Name: "tone", Content: "Tone.\n"}}, j.Subagents[0].Agent.Skills); diff != "" {
		t.Error(diff)
	}
	_, list = pkg.CompileWith(map[string]string{"tone": "Tone.\n"})
	if len(list) != 1 || list[0].Code != CodeSkillUnknown || list[0].Pointer != "/skills/1" {
		t.Errorf("a skill that is not there: %v", list)
	}
}

func TestASharedSkillIsWrittenAndReadBack(t *testing.T) {
	t.Parallel()
	want := Skill{Name: "tone", Description: "Use it: always", Content: "Be short.\n"}
	got, list := ParseSkill("tone", want.Marshal())
	if diff := cmp.Diff(want, got); diff != "" || list != nil {
		t.Error(diff, list)
	}
	if _, list := ParseSkill("Bad", want.Marshal()); len(list) != 2 || list[0].Code != CodeSkillInvalid {
		t.Errorf("%v", list)
	}
}
