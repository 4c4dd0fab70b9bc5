package builder_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/builtin"
	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

func (f *fixture) resolve(t testing.TB, name string, version int64) *builder.Resolved {
	t.Helper()
	r, err := f.Resolve(t.Context(), tenant, name, version)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnAgentThatCannotRunSaysWhichOfFourReasonsHolds(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.servers = []string{"docs"}
		f.create(t, agent("off"))
		f.create(t, agent("member", "metadata: {audience: member}"))
		f.create(t, agent("broken", "tools: [mcp__docs__x]"))
		f.servers = nil
		if _, err := f.SetEnabled(ctx, tenant, "off", false, builder.AnyRevision); err != nil {
			t.Fatal(err)
		}
		messages := map[string]bool{}
		for _, c := range []struct {
			name    string
			version int64
			reason  builder.Reason
			message string
		}{
			{"ghost", 0, builder.ReasonUnknown, `unknown agent "ghost"`},
			{"member", 7, builder.ReasonUnknown, `unknown agent: there is no version 7 of "member"`},
			{"inventory", 2, builder.ReasonUnknown, `unknown agent: there is no version 2 of "inventory"`},
			{"off", 0, builder.ReasonDisabled, `the agent "off" is switched off`},
			{"off", 1, builder.ReasonDisabled, `the agent "off" is switched off`},
			{"member", 0, builder.ReasonMember, `the agent "member" is meant for people's own tools (audience member) and does not run as a job`},
			{"broken", 0, builder.ReasonInvalid, `the agent "broken" is invalid: `},
		} {
			_, err := f.Resolve(ctx, tenant, c.name, c.version)
			unresolved, ok := errors.AsType[*builder.Unresolved](err)
			if !ok || unresolved.Reason != c.reason || !strings.HasPrefix(err.Error(), c.message) {
				t.Errorf("%s, version %d: %v", c.name, c.version, err)
				continue
			}
			messages[string(c.reason)] = true
			if c.reason == builder.ReasonInvalid && (len(unresolved.Problems) != 1 || unresolved.Problems[0].Code != catalog.CodeMCPServerUnknown) {
				t.Errorf("problems %v", unresolved.Problems)
			}
		}
		if len(messages) != 4 {
			t.Errorf("reasons %v", messages)
		}
	})
}

func TestTheReleaseGoesBeforeAnAgentOfTheSameName(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, agent("reader"))
		set, err := builtin.Load()
		if err != nil {
			t.Fatal(err)
		}
		pkg, problems := catalog.ParsePackage(agent("reader", "thinking: max"))
		if problems != nil {
			t.Fatal(problems)
		}
		larger := *set
		larger.Agents = append(slices.Clone(set.Agents), builtin.Agent{Package: pkg, Files: agent("reader", "thinking: max")})
		next, err := builder.New(builder.Config{DB: f.db, BuiltIn: &larger, Runtime: f.runtime, Tools: f.tools})
		if err != nil {
			t.Fatal(err)
		}
		r, err := next.Resolve(t.Context(), tenant, "reader", 0)
		if err != nil || !r.BuiltIn || r.Job.Agent.Thinking != "max" {
			t.Errorf("%+v, %v", r, err)
		}
		agents, err := next.List(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		last := agents[len(agents)-1]
		if last.Name != "reader" || last.BuiltIn || !slices.Equal(codes(last.Problems), []string{catalog.CodeNameReserved}) {
			t.Errorf("the agent that is hidden: %+v", last)
		}
	})
}

func TestAResolvedAgentIsFrozen(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		skill := f.createSkill(t, "tone", "Be short.\n")
		f.create(t, agent("a", "skills: [tone]"))
		before := f.resolve(t, "a", 0)
		frozen, err := json.Marshal(before.Job)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.SaveSkill(ctx, tenant, "tone", skillFile("tone", "Be long.\n"), "", skill.Revision); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Save(ctx, tenant, "a", builder.Draft{Files: agent("a", "skills: [tone]", "thinking: low")}, builder.AnyRevision); err != nil {
			t.Fatal(err)
		}
		after, again := f.resolve(t, "a", 0), f.resolve(t, "a", 0)
		still, err := json.Marshal(before.Job)
		if err != nil {
			t.Fatal(err)
		}
		if string(still) != string(frozen) || before.Job.Agent.Version != "1" || before.Job.Agent.Skills[0].Content != "Be short.\n" {
			t.Error("the definition of a job that runs has changed")
		}
		if after.Version != 2 || after.Job.Agent.Version != "2" || after.Job.Agent.Skills[0].Content != "Be long.\n" || after.Job.Agent.Thinking != "low" {
			t.Errorf("the next job gets %+v", after.Job.Agent)
		}
		if before.Digest == after.Digest || after.Digest != again.Digest {
			t.Error("digests do not follow the definition")
		}
		if pinned := f.resolve(t, "a", 1); pinned.Job.Agent.Version != "1" || pinned.Job.Agent.Thinking != "" || pinned.Job.Agent.Skills[0].Content != "Be long.\n" {
			t.Errorf("version 1 is now %+v", pinned.Job.Agent)
		}
	})
}

func TestEditingASkillMakesNoVersionOfAnyAgent(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		skill := f.createSkill(t, "tone", "Be short.\n")
		f.create(t, agent("a", "skills: [tone]"))
		before := f.get(t, "a")
		if _, err := f.SaveSkill(t.Context(), tenant, "tone", skillFile("tone", "Be long.\n"), "bob", skill.Revision); err != nil {
			t.Fatal(err)
		}
		after := f.get(t, "a")
		if after.Version != before.Version || after.Revision != before.Revision || after.Digest != before.Digest {
			t.Errorf("%+v", after.Agent)
		}
	})
}

func TestTheSkillsOfAJobAreInTheAuthorsOrderAndThenTheLocalOnes(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.createSkill(t, "tone", "Tone.\n")
		f.create(t, with(agent("a", "skills: [tone, reading-code]"), builder.Files{"skills/own/SKILL.md": []byte(skillFile("own", "Own.\n"))}))
		var names []string
		for _, k := range f.resolve(t, "a", 0).Job.Agent.Skills {
			names = append(names, k.Name)
			if k.Content == "" {
				t.Errorf("the skill %s is empty", k.Name)
			}
		}
		if diff := cmp.Diff([]string{"tone", "reading-code", "own"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

func TestASubagentGetsSharedSkillsToo(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.createSkill(t, "tone", "Tone.\n")
		f.create(t, agent("a", "x-subagents:", "  - name: helper", "    description: Helps.", "    instructions: Help.", "    skills: [tone]"))
		roster := f.resolve(t, "a", 0).Job.Subagents
		if len(roster) != 1 || len(roster[0].Agent.Skills) != 1 || roster[0].Agent.Skills[0].Content != "Tone.\n" {
			t.Errorf("%+v", roster)
		}
		if err := f.DeleteSkill(t.Context(), tenant, "tone", builder.AnyRevision); !errors.Is(err, store.ErrInUse) {
			t.Errorf("deleted under a subagent: %v", err)
		}
	})
}

// It cannot run beside others, as it changes the directory of the process.
func TestAgentFilesOfACheckoutChangeNothing(t *testing.T) {
	f := newFixture(t, storetest.Open(t, storetest.SQLite(t)))
	checkout := t.TempDir()
	for _, dir := range []string{"agents", ".agents"} {
		if err := os.MkdirAll(filepath.Join(checkout, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, files := range map[string]builder.Files{"planted": agent("planted"), "inventory": agent("inventory", "thinking: max")} {
			if err := os.WriteFile(filepath.Join(checkout, dir, name+".md"), files[name+".md"], 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Chdir(checkout)
	_, err := f.Resolve(t.Context(), tenant, "planted", 0)
	if unresolved, ok := errors.AsType[*builder.Unresolved](err); !ok || unresolved.Reason != builder.ReasonUnknown {
		t.Errorf("an agent was found in a checkout: %v", err)
	}
	if r := f.resolve(t, "inventory", 0); r.Job.Agent.Thinking != "low" {
		t.Errorf("an agent of the release was replaced: %+v", r.Job.Agent)
	}
	if agents, err := f.List(t.Context(), tenant); err != nil || len(agents) != 5 {
		t.Errorf("%d agents, %v", len(agents), err)
	}
}

func TestADefinitionIsShownForAnAgentThatIsSwitchedOff(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.create(t, agent("off"))
		f.create(t, agent("member", "metadata: {audience: member}"))
		if _, err := f.SetEnabled(ctx, tenant, "off", false, builder.AnyRevision); err != nil {
			t.Fatal(err)
		}
		if r, err := f.Definition(ctx, tenant, "off", 0); err != nil || r.Job.Agent.ID != "off" {
			t.Errorf("%+v, %v", r, err)
		}
		_, err := f.Definition(ctx, tenant, "member", 0)
		wantError(t, err, builder.ErrMember)
		_, err = f.Definition(ctx, tenant, "off", 9)
		wantError(t, err, store.ErrNotFound)
	})
}

func TestPreviewShowsTheJobAndThePromptAndKeepsNothing(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.servers = []string{"docs"}
		f.createSkill(t, "tone", "Be short.\n")
		files := agent("a", "tools: [read, write, mcp__docs__*]", "skills: [tone]", "x-budget: {maxCostUsd: 1.50}", "x-approvals: {write: always}")
		p, err := f.Preview(t.Context(), tenant, "", files)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Problems) > 0 || p.Definition == nil || p.Prompt == nil {
			t.Fatalf("problems %v", p.Problems)
		}
		if p.Definition.Agent.Version != catalog.DraftVersion || p.Definition.Limits == nil || p.Definition.Approvals == nil {
			t.Errorf("definition %+v", p.Definition)
		}
		want := "Do it.\n\n\n<skill name=\"tone\">\nBe short.\n</skill>"
		if !strings.HasPrefix(p.Prompt.System, want) || !strings.Contains(p.Prompt.Run, "source/") || !strings.Contains(p.Prompt.Run, "WORKSPACE.md") {
			t.Errorf("system %q, run %q", p.Prompt.System, p.Prompt.Run)
		}
		if len(p.Prompt.Tools) != 2 || !slices.Equal(p.Prompt.Connected, []string{"mcp__docs__*"}) {
			t.Errorf("tools %v, connected %v", p.Prompt.Tools, p.Prompt.Connected)
		}
		bytes := 0
		for _, part := range p.Prompt.Parts {
			bytes += part.Bytes
		}
		if p.Prompt.Tokens != int64(bytes+3)/4 || p.Prompt.Tokens == 0 {
			t.Errorf("%d tokens of %d bytes in %+v", p.Prompt.Tokens, bytes, p.Prompt.Parts)
		}
		if agents, _ := f.List(t.Context(), tenant); len(agents) != 5 {
			t.Error("the preview was kept")
		}
		if _, err := f.Versions(t.Context(), tenant, "a"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("versions of a preview: %v", err)
		}
	})
}

func TestPreviewAndJobHaveTheSamePrompt(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		files := agent("a", "skills: [reading-code]", "tools: [read]")
		draft, err := f.Preview(t.Context(), tenant, "", files)
		if err != nil {
			t.Fatal(err)
		}
		f.create(t, files)
		kept, err := f.PromptOf(t.Context(), tenant, "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(draft.Prompt, kept); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPreviewReportsWhatIsWrong(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		p, err := f.Preview(t.Context(), tenant, "b", agent("a", "tools: [fly]", "skills: [none]"))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{catalog.CodeToolUnknown, catalog.CodeSkillUnknown, catalog.CodeNameMismatch}
		if diff := cmp.Diff(want, codes(p.Problems)); diff != "" || p.Definition != nil || p.Prompt != nil {
			t.Error(diff)
		}
		p, err = f.Preview(t.Context(), tenant, "", builder.Files{"notes.txt": []byte("x")})
		if err != nil || len(p.Problems) == 0 {
			t.Errorf("%+v, %v", p, err)
		}
		p, err = f.Preview(t.Context(), tenant, "", agent("m", "metadata: {audience: member}"))
		if err != nil || len(p.Problems) > 0 || p.Definition != nil {
			t.Errorf("an agent for people: %+v, %v", p, err)
		}
	})
}

func TestASkillInUseCannotBeDeleted(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		skill := f.createSkill(t, "tone", "x\n")
		f.create(t, agent("b", "skills: [tone]"))
		f.create(t, agent("a", "skills: [tone]"))
		if _, err := f.SetEnabled(ctx, tenant, "b", false, builder.AnyRevision); err != nil {
			t.Fatal(err)
		}
		err := f.DeleteSkill(ctx, tenant, "tone", skill.Revision)
		used, ok := errors.AsType[*builder.InUse](err)
		if !ok || !errors.Is(err, store.ErrInUse) || !slices.Equal(used.Agents, []string{"a", "b"}) {
			t.Fatalf("error %v", err)
		}
		shown, err := f.Skill(ctx, tenant, "tone")
		if err != nil || !slices.Equal(shown.UsedBy, []string{"a", "b"}) {
			t.Errorf("%+v, %v", shown, err)
		}
		for _, name := range []string{"a", "b"} {
			if _, err := f.Save(ctx, tenant, name, builder.Draft{Files: agent(name)}, builder.AnyRevision); err != nil {
				t.Fatal(err)
			}
		}
		wantError(t, f.DeleteSkill(ctx, tenant, "tone", skill.Revision+1), store.ErrStale)
		if err := f.DeleteSkill(ctx, tenant, "tone", skill.Revision); err != nil {
			t.Error(err)
		}
		wantError(t, f.DeleteSkill(ctx, tenant, "tone", builder.AnyRevision), store.ErrNotFound)
	})
}

func TestSkillsAreCheckedAndHaveRevisions(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		first := f.createSkill(t, "tone", "x\n")
		_, err := f.CreateSkill(ctx, tenant, "tone", skillFile("tone", "y\n"), "")
		wantError(t, err, store.ErrExists)
		second, err := f.SaveSkill(ctx, tenant, "tone", skillFile("tone", "y\n"), "bob", first.Revision)
		if err != nil || second.Content != "y\n" || second.Author != "bob" {
			t.Errorf("%+v, %v", second, err)
		}
		_, err = f.SaveSkill(ctx, tenant, "tone", skillFile("tone", "z\n"), "", first.Revision)
		wantError(t, err, store.ErrStale)
		_, err = f.SaveSkill(ctx, tenant, "none", skillFile("none", "z\n"), "", 1)
		wantError(t, err, store.ErrNotFound)
		for name, want := range map[string][]string{
			"Bad": {catalog.CodeSkillInvalid, catalog.CodeNameInvalid}, "1x": {catalog.CodeSkillInvalid, catalog.CodeNameInvalid},
			"a_b": {catalog.CodeSkillInvalid, catalog.CodeNameInvalid},
		} {
			_, err := f.CreateSkill(ctx, tenant, name, skillFile(name, "x\n"), "")
			if diff := cmp.Diff(want, codes(err)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		_, err = f.CreateSkill(ctx, tenant, "other", skillFile("tone", " \n"), "")
		if diff := cmp.Diff([]string{catalog.CodeBodyEmpty, catalog.CodeNameMismatch}, codes(err)); diff != "" {
			t.Error(diff)
		}
		if err := f.DeleteSkill(ctx, tenant, "tone", second.Revision); err != nil {
			t.Fatal(err)
		}
		if again := f.createSkill(t, "tone", "x\n"); again.Revision <= second.Revision {
			t.Errorf("revision %d comes again", again.Revision)
		}
	})
}

// The agents that are planned for later are data and nothing else: each is a package that this runtime takes, and none is
// in the catalog.
func TestThePlannedAgentsAreValidAndNoneIsShipped(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		paths, err := filepath.Glob("testdata/planned/*.md")
		if err != nil || len(paths) != 7 {
			t.Fatalf("%d files, %v", len(paths), err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(path), ".md")
			if _, err := f.Resolve(t.Context(), tenant, name, 0); err == nil {
				t.Errorf("%s is in the catalog", name)
			}
			f.create(t, builder.Files{name + ".md": data})
			r := f.resolve(t, name, 0)
			for _, tool := range r.Job.Agent.Tools {
				if !slices.ContainsFunc(f.tools, func(d builder.Tool) bool { return d.Name == tool }) {
					t.Errorf("%s names %s, which is no tool of the kernel", name, tool)
				}
			}
			if d := f.get(t, name); !d.Valid || r.Job.Agent.Tools == nil {
				t.Errorf("%s: problems %v, tools %v", name, d.Problems, r.Job.Agent.Tools)
			}
		}
	})
}

// Each agent of the release works in a real job, on this package's own folder, with the offline model.
func TestTheAgentsOfTheReleaseRunOffline(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		source, err := filepath.Abs(".")
		if err != nil {
			t.Fatal(err)
		}
		set, err := builtin.Load()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range set.Agents {
			name := a.Package.Name
			task, problems := set.Command(name).Render(nil, set.Scripts)
			if problems != nil {
				t.Fatal(problems)
			}
			root := t.TempDir()
			out := filepath.Join(root, "out")
			if err := os.Mkdir(out, 0o755); err != nil {
				t.Fatal(err)
			}
			spec := &job.Spec{APIVersion: job.APIVersion, Task: task, Model: job.ModelRef{Provider: "o", ID: "surveyor"},
				Providers: map[string]job.ProviderConfig{"o": {API: job.APIOffline}}, Limits: job.Limits{TimeoutSec: 60},
				Workspace: job.Workspace{Root: filepath.Dir(source), ReadOnly: []string{source}, OutDir: out}}
			f.resolve(t, name, 0).Job.Apply(spec)
			handle, err := f.runtime.Start(t.Context(), spec, job.Ports{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if end := handle.Wait(); end.Completed == nil {
				t.Errorf("%s ended as %+v", name, end.Failed)
			}
			if report, err := os.ReadFile(filepath.Join(out, "REPORT.md")); err != nil || !strings.Contains(string(report), "resolve_test.go") {
				t.Errorf("%s wrote no report about this folder: %v", name, err)
			}
		}
	})
}
