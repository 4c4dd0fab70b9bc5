package builder_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

func TestASkillIsNeverDeletedUnderAnAgentThatIsSavedAtOnce(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		for i := range 15 {
			skill, name := fmt.Sprintf("skill-%d", i), fmt.Sprintf("agent-%d", i)
			f.createSkill(t, skill, "x\n")
			var created, deleted error
			var group sync.WaitGroup
			group.Go(func() {
				_, created = f.Create(t.Context(), tenant, builder.Draft{Files: agent(name, "skills: ["+skill+"]")})
			})
			group.Go(func() { deleted = f.DeleteSkill(t.Context(), tenant, skill, builder.AnyRevision) })
			group.Wait()
			switch {
			case created == nil && deleted == nil:
				t.Fatalf("the agent %s was saved and its skill deleted", name)
			case created != nil && !cmp.Equal(codes(created), []string{catalog.CodeSkillUnknown}):
				t.Errorf("create: %v", created)
			case deleted != nil && !errors.Is(deleted, store.ErrInUse):
				t.Errorf("delete: %v", deleted)
			}
			if created == nil && !f.get(t, name).Valid {
				t.Errorf("the agent %s was saved and is not valid", name)
			}
		}
	})
}

func TestNamesThatNoDatabaseTakesAreNotFound(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		for _, name := range []string{"a\x00b", "\xff", "", "a/b", "A"} {
			_, err := f.Get(ctx, tenant, name)
			wantError(t, err, store.ErrNotFound)
			_, err = f.Versions(ctx, tenant, name)
			wantError(t, err, store.ErrNotFound)
			_, err = f.Version(ctx, tenant, name, 3)
			wantError(t, err, store.ErrNotFound)
			_, err = f.Skill(ctx, tenant, name)
			wantError(t, err, store.ErrNotFound)
			if _, err = f.Resolve(ctx, tenant, name, 0); err == nil || errors.Is(err, store.ErrNotFound) {
				t.Errorf("%q: %v", name, err)
			}
		}
		_, err := f.Create(ctx, tenant, builder.Draft{Files: agent("a"), Note: "a\x00b"})
		if diff := cmp.Diff([]string{builder.CodeNoteInvalid}, codes(err)); diff != "" {
			t.Error(diff)
		}
		_, err = f.Import(ctx, tenant, builder.ImportRequest{Files: filesOf(agent("a")), Archive: pack(t)})
		if diff := cmp.Diff([]string{"conflict"}, codes(err)); diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkListOfTwoHundredAgents(b *testing.B) {
	f := newFixture(b, storetest.Open(b, storetest.SQLite(b)))
	for i := range 200 {
		f.create(b, agent(fmt.Sprintf("agent-%d", i), "skills: [reading-code]", "tools: [read, grep]"))
	}
	for b.Loop() {
		if _, err := f.List(b.Context(), tenant); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	f := newFixture(b, storetest.Open(b, storetest.SQLite(b)))
	f.create(b, agent("a", "skills: [reading-code]", "tools: [read, grep]"))
	for b.Loop() {
		f.resolve(b, "a", 0)
	}
}
