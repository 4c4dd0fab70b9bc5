package builder_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

func TestAFreshInstallationListsTheFiveAgentsOfTheRelease(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		agents, err := f.List(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, a := range agents {
			names = append(names, a.Name)
			if !a.BuiltIn || !a.Enabled || !a.Valid || a.Version != 1 || a.Audience != catalog.AudienceRuntime || a.Description == "" {
				t.Errorf("%+v", a)
			}
		}
		if diff := cmp.Diff([]string{"behaviour", "data", "inventory", "risk", "structure"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatTheReleaseBringsCannotBeChanged(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		_, err := f.Save(ctx, tenant, "inventory", builder.Draft{Files: agent("inventory")}, builder.AnyRevision)
		wantError(t, err, builder.ErrBuiltIn)
		_, err = f.SetEnabled(ctx, tenant, "inventory", false, builder.AnyRevision)
		wantError(t, err, builder.ErrBuiltIn)
		_, err = f.Restore(ctx, tenant, "inventory", 1, builder.AnyRevision)
		wantError(t, err, builder.ErrBuiltIn)
		wantError(t, f.Delete(ctx, tenant, "inventory", builder.AnyRevision), builder.ErrBuiltIn)
		_, err = f.Create(ctx, tenant, builder.Draft{Files: agent("inventory")})
		if diff := cmp.Diff([]string{catalog.CodeNameReserved}, codes(err)); diff != "" {
			t.Error(diff)
		}
		_, err = f.SaveSkill(ctx, tenant, "reading-code", skillFile("reading-code", "x\n"), "", builder.AnyRevision)
		wantError(t, err, builder.ErrBuiltIn)
		wantError(t, f.DeleteSkill(ctx, tenant, "reading-code", builder.AnyRevision), builder.ErrBuiltIn)
		_, err = f.CreateSkill(ctx, tenant, "reading-code", skillFile("reading-code", "x\n"), "")
		if diff := cmp.Diff([]string{catalog.CodeNameReserved}, codes(err)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestACopyHasTheSameContentUnderANewName(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		saved, err := f.Copy(t.Context(), tenant, builder.CopyRequest{From: "inventory", To: "stock", Author: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		original, copied := f.get(t, "inventory"), f.get(t, "stock")
		if saved.Version != 1 || copied.BuiltIn || !copied.Valid || copied.Instructions != original.Instructions || copied.Description != original.Description {
			t.Errorf("the copy is %+v", copied)
		}
		want := strings.Replace(string(original.Files["inventory.md"]), "name: inventory", "name: stock", 1)
		if diff := cmp.Diff(want, string(copied.Files["stock.md"])); diff != "" {
			t.Error(diff)
		}
		if copied.Note != "copy of inventory, version 1" || copied.Author != "ada" {
			t.Errorf("note %q by %q", copied.Note, copied.Author)
		}
		_, err = f.Copy(t.Context(), tenant, builder.CopyRequest{From: "inventory", To: "stock"})
		wantError(t, err, store.ErrExists)
		_, err = f.Copy(t.Context(), tenant, builder.CopyRequest{From: "nobody", To: "x"})
		wantError(t, err, store.ErrNotFound)
		_, err = f.Copy(t.Context(), tenant, builder.CopyRequest{From: "stock", To: "No Name"})
		if diff := cmp.Diff([]string{catalog.CodeNameInvalid}, codes(err)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestACopyOfAnAgentWrittenOnOneLineIsCanonical(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, builder.Files{"a.md": []byte("---\n{name: a, description: Does it.}\n---\nDo.\n")})
		if _, err := f.Copy(t.Context(), tenant, builder.CopyRequest{From: "a", To: "b"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("---\nname: b\ndescription: Does it.\n---\nDo.\n", string(f.get(t, "b").Files["b.md"])); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEveryProblemOfADraftIsReportedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.servers = []string{"docs"}
		draft := builder.Draft{Files: agent("a", "tools: [read, fly, mcp__doc__search]", "skills: [nothing]", "deny-command-patterns: ['(']", "thinking: deep", "colour: red")}
		_, err := f.Create(t.Context(), tenant, draft)
		want := []string{catalog.CodeToolUnknown, catalog.CodeMCPServerUnknown, catalog.CodeSkillUnknown, catalog.CodeDenyPatternInvalid,
			catalog.CodeThinkingInvalid, catalog.CodeKeyUnknown}
		got := codes(err)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s%v", diff, err)
		}
		for _, p := range problem.Of(err) {
			if p.Path != "a.md" || p.Line == 0 || p.Message == "" {
				t.Errorf("a problem without a place: %+v", p)
			}
		}
		if agents, _ := f.List(t.Context(), tenant); len(agents) != 5 {
			t.Errorf("%d agents after a draft that was refused", len(agents))
		}
	})
}

func TestADraftThatTheRuntimeWouldRefuseIsRefused(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		_, err := f.Create(t.Context(), tenant, builder.Draft{Files: agent("a", "x-loop: {kind: working-memory}", "tools: [read, codemode]")})
		if diff := cmp.Diff([]string{"tool-unavailable"}, codes(err)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAMemberAgentMayNameToolsThatTheKernelDoesNotKnow(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, agent("a", "tools: [Fly]", "metadata: {audience: member}"))
		if d := f.get(t, "a"); !d.Valid || d.Audience != catalog.AudienceMember || len(d.Warnings) > 0 {
			t.Errorf("%+v", d.Agent)
		}
	})
}

func TestEverySaveMakesAVersionThatStays(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		first := f.create(t, agent("a", "# one"))
		second, err := f.Save(t.Context(), tenant, "a", builder.Draft{Files: agent("a", "# two"), Note: "better", Author: "bob"}, first.Revision)
		if err != nil {
			t.Fatal(err)
		}
		versions, err := f.Versions(t.Context(), tenant, "a")
		if err != nil {
			t.Fatal(err)
		}
		if len(versions) != 2 || versions[0].Version != 2 || !versions[0].Current || versions[0].Note != "better" || versions[0].Author != "bob" ||
			versions[1].Version != 1 || versions[1].Current || versions[1].Author != "ada" {
			t.Errorf("history %+v", versions)
		}
		if versions[0].Digest != versions[1].Digest {
			t.Error("versions that differ in a comment only have different digests")
		}
		for number, comment := range map[int64]string{1: "# one", 2: "# two"} {
			v, err := f.Version(t.Context(), tenant, "a", number)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(agent("a", comment), v.Files); diff != "" {
				t.Error("the files are not those that were given", diff)
			}
		}
		if _, err := f.Version(t.Context(), tenant, "a", 3); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("version 3: %v", err)
		}
		if d := f.get(t, "a"); d.Version != 2 || d.Revision != second.Revision {
			t.Errorf("%+v", d.Agent)
		}
	})
}

func TestASaveThatIsBasedOnAnOldRevisionIsStale(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		first := f.create(t, agent("a"))
		if _, err := f.Save(ctx, tenant, "a", builder.Draft{Files: agent("a", "# 2")}, first.Revision); err != nil {
			t.Fatal(err)
		}
		_, err := f.Save(ctx, tenant, "a", builder.Draft{Files: agent("a", "# 3")}, first.Revision)
		wantError(t, err, store.ErrStale)
		_, err = f.SetEnabled(ctx, tenant, "a", false, first.Revision)
		wantError(t, err, store.ErrStale)
		_, err = f.Restore(ctx, tenant, "a", 1, first.Revision)
		wantError(t, err, store.ErrStale)
		wantError(t, f.Delete(ctx, tenant, "a", first.Revision), store.ErrStale)
		third, err := f.Save(ctx, tenant, "a", builder.Draft{Files: agent("a", "# 3")}, builder.AnyRevision)
		if err != nil || third.Version != 3 {
			t.Errorf("%+v, %v: a refused save must not take a number", third, err)
		}
	})
}

func TestASaveUnderAnotherNameIsRefused(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, agent("a"))
		_, err := f.Save(t.Context(), tenant, "a", builder.Draft{Files: agent("b")}, builder.AnyRevision)
		if diff := cmp.Diff([]string{catalog.CodeNameMismatch}, codes(err)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestANumberIsNeverUsedAgain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		first := f.create(t, agent("a"))
		if _, err := f.Save(ctx, tenant, "a", builder.Draft{Files: agent("a")}, first.Revision); err != nil {
			t.Fatal(err)
		}
		if err := f.Delete(ctx, tenant, "a", builder.AnyRevision); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Get(ctx, tenant, "a"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the deleted agent: %v", err)
		}
		again := f.create(t, agent("a"))
		if again.Version != 3 || again.Revision <= first.Revision {
			t.Errorf("%+v after version 2 was deleted", again)
		}
		if versions, err := f.Versions(ctx, tenant, "a"); err != nil || len(versions) != 1 {
			t.Errorf("%v, %v", versions, err)
		}
		_, err := f.SetEnabled(ctx, tenant, "a", false, first.Revision)
		wantError(t, err, store.ErrStale)
	})
}

func TestTwentySavesAtOnceGetTwentyNumbers(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, agent("a"))
		var mutex sync.Mutex
		var numbers []int64
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				saved, err := f.Save(t.Context(), tenant, "a", builder.Draft{Files: agent("a", fmt.Sprintf("# %d", i))}, builder.AnyRevision)
				if err != nil {
					t.Error(err)
					return
				}
				mutex.Lock()
				defer mutex.Unlock()
				numbers = append(numbers, saved.Version)
			})
		}
		group.Wait()
		slices.Sort(numbers)
		for i, n := range numbers {
			if n != int64(i)+2 {
				t.Fatalf("numbers %v", numbers)
			}
		}
		if d := f.get(t, "a"); len(numbers) != 20 || d.Version != 21 {
			t.Errorf("%d saves, current is %d", len(numbers), d.Version)
		}
	})
}

func TestOfSavesOnTheSameBaseOneWins(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		base := f.create(t, agent("a")).Revision
		results := make(chan error, 5)
		for range cap(results) {
			go func() {
				_, err := f.Save(t.Context(), tenant, "a", builder.Draft{Files: agent("a")}, base)
				results <- err
			}()
		}
		won := 0
		for range cap(results) {
			switch err := <-results; {
			case err == nil:
				won++
			case !errors.Is(err, store.ErrStale):
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d saves on one base were kept", won)
		}
	})
}

func TestRestoreMovesThePointerAndNothingElse(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.create(t, agent("a", "# one"))
		second, err := f.Save(ctx, tenant, "a", builder.Draft{Files: agent("a", "# two")}, builder.AnyRevision)
		if err != nil {
			t.Fatal(err)
		}
		restored, err := f.Restore(ctx, tenant, "a", 1, second.Revision)
		if err != nil || restored.Version != 1 || restored.Revision <= second.Revision {
			t.Fatalf("%+v, %v", restored, err)
		}
		if d := f.get(t, "a"); d.Version != 1 || !strings.Contains(string(d.Files["a.md"]), "# one") {
			t.Errorf("current is %d", d.Version)
		}
		versions, err := f.Versions(ctx, tenant, "a")
		if err != nil || len(versions) != 2 || versions[0].Version != 2 || versions[0].Current || !versions[1].Current {
			t.Errorf("history %+v, %v", versions, err)
		}
		third, err := f.Save(ctx, tenant, "a", builder.Draft{Files: agent("a")}, restored.Revision)
		if err != nil || third.Version != 3 {
			t.Errorf("%+v, %v", third, err)
		}
		_, err = f.Restore(ctx, tenant, "a", 9, builder.AnyRevision)
		wantError(t, err, store.ErrNotFound)
	})
}

func TestRestoreChecksTheVersionAgain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.createSkill(t, "tone", "Be short.\n")
		f.create(t, agent("a", "skills: [tone]"))
		if _, err := f.Save(ctx, tenant, "a", builder.Draft{Files: agent("a")}, builder.AnyRevision); err != nil {
			t.Fatal(err)
		}
		if err := f.DeleteSkill(ctx, tenant, "tone", builder.AnyRevision); err != nil {
			t.Fatalf("only an old version names the skill: %v", err)
		}
		_, err := f.Restore(ctx, tenant, "a", 1, builder.AnyRevision)
		if diff := cmp.Diff([]string{catalog.CodeSkillUnknown}, codes(err)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSwitchingOffMakesNoVersion(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		first := f.create(t, agent("a"))
		off, err := f.SetEnabled(t.Context(), tenant, "a", false, first.Revision)
		if err != nil || off.Version != 1 || off.Revision == first.Revision {
			t.Fatalf("%+v, %v", off, err)
		}
		if d := f.get(t, "a"); d.Enabled || d.Version != 1 || d.Revision != off.Revision {
			t.Errorf("%+v", d.Agent)
		}
		if _, err := f.SetEnabled(t.Context(), tenant, "a", true, off.Revision); err != nil || !f.get(t, "a").Enabled {
			t.Errorf("switched on: %v", err)
		}
	})
}

func TestValidityIsFoundOutAnew(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.servers = []string{"docs"}
		f.create(t, agent("a", "tools: [read, mcp__docs__search]"))
		if d := f.get(t, "a"); !d.Valid {
			t.Fatalf("problems %v", d.Problems)
		}
		f.servers = nil
		d := f.get(t, "a")
		if diff := cmp.Diff([]string{catalog.CodeMCPServerUnknown}, codes(d.Problems)); diff != "" || d.Valid {
			t.Errorf("after the server went: %s", diff)
		}
		agents, err := serviceWithout(t, f, "read").List(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		last := agents[len(agents)-1]
		if got := codes(last.Problems); last.Name != "a" || !slices.Contains(got, catalog.CodeToolUnknown) {
			t.Errorf("after the tool went: %v", got)
		}
	})
}

func TestAMissingBindingIsAWarning(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, agent("a", "tools: [read]"))
		d := f.get(t, "a")
		if diff := cmp.Diff([]string{builder.CodeBindingMissing}, codes(d.Warnings)); diff != "" || !d.Valid || d.Binding != nil {
			t.Error(diff)
		}
		f.bindings = map[string]builder.Binding{"": {Provider: "p", Model: "any"}, "a": {Provider: "p", Model: "own"}, "ghost": {Provider: "p", Model: "m"}}
		if d := f.get(t, "a"); len(d.Warnings) != 0 || d.Binding.Model != "own" {
			t.Errorf("warnings %v, binding %v", d.Warnings, d.Binding)
		}
		if d := f.get(t, "inventory"); d.Binding == nil || d.Binding.Model != "any" {
			t.Errorf("binding %v", d.Binding)
		}
	})
}

func TestTheBuilderWarnsOfProcessesAndLargeSkills(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.bindings = map[string]builder.Binding{"": {Provider: "p", Model: "m"}}
		f.createSkill(t, "long", strings.Repeat("word ", 7000))
		f.create(t, agent("a", "skills: [long]"))
		if diff := cmp.Diff([]string{builder.CodeSkillsLarge, builder.CodeProcessTools}, codes(f.get(t, "a").Warnings)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnyNameThatIsWellFormedIsAccepted(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		for _, name := range []string{"a", "z9", "a-b-c", "x" + strings.Repeat("y", 63), "admin", "true", "null"} {
			files := builder.Files{name + ".md": []byte("---\nname: \"" + name + "\"\ndescription: d\n---\nx\n")}
			if saved := f.create(t, files); saved.Name != name {
				t.Errorf("%q was kept as %q", name, saved.Name)
			}
		}
	})
}

func TestOneTenantSeesNothingOfAnother(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.createSkill(t, "tone", "x\n")
		f.create(t, agent("a", "skills: [tone]"))
		const other = "other"
		agents, err := f.List(ctx, other)
		if err != nil || len(agents) != 5 {
			t.Errorf("%d agents, %v", len(agents), err)
		}
		skills, err := f.Skills(ctx, other)
		if err != nil || len(skills) != 3 {
			t.Errorf("%d skills, %v", len(skills), err)
		}
		for what, ask := range map[string]func() error{
			"get":      func() error { _, err := f.Get(ctx, other, "a"); return err },
			"versions": func() error { _, err := f.Versions(ctx, other, "a"); return err },
			"version":  func() error { _, err := f.Version(ctx, other, "a", 1); return err },
			"save": func() error {
				_, err := f.Save(ctx, other, "a", builder.Draft{Files: agent("a")}, builder.AnyRevision)
				return err
			},
			"restore":      func() error { _, err := f.Restore(ctx, other, "a", 1, builder.AnyRevision); return err },
			"enable":       func() error { _, err := f.SetEnabled(ctx, other, "a", false, builder.AnyRevision); return err },
			"delete":       func() error { return f.Delete(ctx, other, "a", builder.AnyRevision) },
			"copy":         func() error { _, err := f.Copy(ctx, other, builder.CopyRequest{From: "a", To: "b"}); return err },
			"definition":   func() error { _, err := f.Definition(ctx, other, "a", 0); return err },
			"export":       func() error { _, err := f.Export(ctx, other, "a", 0, ""); return err },
			"skill":        func() error { _, err := f.Skill(ctx, other, "tone"); return err },
			"save skill":   func() error { _, err := f.SaveSkill(ctx, other, "tone", skillFile("tone", "y\n"), "", -1); return err },
			"delete skill": func() error { return f.DeleteSkill(ctx, other, "tone", builder.AnyRevision) },
			"export skill": func() error { _, err := f.ExportSkill(ctx, other, "tone"); return err },
		} {
			if err := ask(); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err = f.Create(ctx, other, builder.Draft{Files: agent("b", "skills: [tone]")})
		if diff := cmp.Diff([]string{catalog.CodeSkillUnknown}, codes(err)); diff != "" {
			t.Error(diff)
		}
		if saved, err := f.Create(ctx, other, builder.Draft{Files: agent("a")}); err != nil || saved.Version != 1 {
			t.Errorf("%+v, %v: the name is free in another tenant", saved, err)
		}
	})
}

func TestWhatIsKeptSurvivesAnotherService(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.create(t, agent("a", "thinking: high"))
		if d := newFixture(t, f.db).get(t, "a"); d.Thinking != "high" || d.Instructions != "Do it.\n" {
			t.Errorf("%+v", d)
		}
	})
}

func TestSurroundingsAreWhatAnAgentMayName(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		f.servers = []string{"docs"}
		f.createSkill(t, "tone", "x\n")
		around, err := f.Surroundings(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		if len(around.Tools) != len(f.tools) || !slices.Equal(around.MCPServers, []string{"docs"}) || len(around.Skills) != 4 || len(around.Reserved) != 5 {
			t.Errorf("%+v", around)
		}
	})
}
