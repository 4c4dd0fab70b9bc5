package account_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// TestTheModelOfAnAgentIsChosenInOneOrder tries every set of bindings there can be.
func TestTheModelOfAnAgentIsChosenInOneOrder(t *testing.T) {
	t.Parallel()
	places := []struct {
		project, agent string
		source         account.Source
	}{
		{"p", "a", account.SourceProject}, {"", "a", account.SourceInstallation}, {"p", "", account.SourceProjectDefault}, {"", "", account.SourceInstallationDefault},
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		for set := range 1 << len(places) {
			tenant := fmt.Sprint("t", set)
			must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("main", "https://llm.example/v1", "k")))
			var want account.Source
			for i, place := range places {
				for _, noise := range [][2]string{{"q", "a"}, {"p", "b"}, {"q", ""}} {
					_, _ = s.SaveBinding(t.Context(), tenant, account.Binding{Project: noise[0], Agent: noise[1], Provider: "main", Model: "noise"}, account.AnyVersion)
				}
				if set&(1<<i) == 0 {
					continue
				}
				must[account.Binding](t)(s.SaveBinding(t.Context(), tenant, account.Binding{Project: place.project, Agent: place.agent, Provider: "main", Model: string(place.source), Thinking: llm.LevelLow}, 0))
				if want == "" {
					want = place.source
				}
			}
			got, err := s.Resolve(t.Context(), tenant, account.Wanted{Agent: "a", Project: "p"})
			if want == "" {
				if problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), `no model is bound to the agent "a"`) {
					t.Errorf("without a binding: %v", err)
				}
			} else if err != nil || got.Source != want || got.Ref.ID != string(want) || got.Ref.Thinking != llm.LevelLow || got.Config.APIKey != "k" {
				t.Errorf("set %04b: %v of %v, %v", set, got.Ref, got.Source, err)
			}
			override := &job.ModelRef{Provider: "main", ID: "asked", Thinking: llm.LevelMax}
			if got, err = s.Resolve(t.Context(), tenant, account.Wanted{Agent: "a", Project: "p", Override: override}); err != nil || got.Source != account.SourceJob || got.Ref != *override {
				t.Errorf("set %04b with an override: %v of %v, %v", set, got.Ref, got.Source, err)
			}
		}
	})
}

func TestAJobMayAskForAnotherLevelOnly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("main", "https://llm.example/v1", "k")))
		must[account.Binding](t)(s.SaveBinding(t.Context(), tenant, account.Binding{Provider: "main", Model: "m", Thinking: llm.LevelLow}, 0))
		got, err := s.Resolve(t.Context(), tenant, account.Wanted{Agent: "a", Override: &job.ModelRef{Thinking: llm.LevelHigh}})
		if err != nil || got.Ref != (job.ModelRef{Provider: "main", ID: "m", Thinking: llm.LevelHigh}) || got.Source != account.SourceInstallationDefault {
			t.Errorf("%+v, %v", got.Ref, err)
		}
		for name, ref := range map[string]job.ModelRef{"provider alone": {Provider: "main"}, "model alone": {ID: "m"}} {
			if _, err := s.Resolve(t.Context(), tenant, account.Wanted{Agent: "a", Override: &ref}); problem.KindOf(err) != problem.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err = s.Resolve(t.Context(), tenant, account.Wanted{Agent: "a", Override: &job.ModelRef{Provider: "none", ID: "m"}})
		if problem.KindOf(err) != problem.NotFound || !strings.Contains(err.Error(), `"none"`) {
			t.Errorf("an unknown provider: %v", err)
		}
	})
}

func TestABindingMayNameAnAgentThatDoesNotExist(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("main", "https://llm.example/v1", "k")))
		for _, agent := range []string{"later", "ns.some-agent", "UPPER_case", "a/b@1"} {
			b := must[account.Binding](t)(s.SaveBinding(t.Context(), tenant, account.Binding{Project: "p", Agent: agent, Provider: "main", Model: "org/model:latest"}, 0))
			if got := must[account.Binding](t)(s.Binding(t.Context(), tenant, "p", agent)); got != b {
				t.Errorf("stored %+v, want %+v", got, b)
			}
		}
		if all := must[[]account.Binding](t)(s.Bindings(t.Context(), tenant, "p")); len(all) != 4 {
			t.Errorf("%d bindings of the project", len(all))
		}
		if all := must[[]account.Binding](t)(s.AgentBindings(t.Context(), tenant, "later")); len(all) != 1 || all[0].Project != "p" {
			t.Errorf("bindings of the agent: %v", all)
		}
		_, err := s.SaveBinding(t.Context(), tenant, account.Binding{Project: "p q", Agent: "a\n", Provider: "none", Thinking: "huge"}, 0)
		for _, at := range []string{"/project", "/agent", "/model", "/thinking", "/provider"} {
			has(t, err, at)
		}
	})
}

func TestABindingIsReplacedByItsVersion(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("main", "https://llm.example/v1", "k")))
		save := func(model string, version int64) (account.Binding, error) {
			return s.SaveBinding(t.Context(), tenant, account.Binding{Agent: "a", Provider: "main", Model: model}, version)
		}
		_, err := save("m", 3)
		wants(t, "a version of nothing", err, store.ErrNotFound)
		first := must[account.Binding](t)(save("m", 0))
		_, err = save("n", 0)
		wants(t, "a second first one", err, store.ErrExists)
		second := must[account.Binding](t)(save("n", first.Version))
		_, err = save("o", first.Version)
		wants(t, "an old version", err, store.ErrStale)
		third := must[account.Binding](t)(save("o", account.AnyVersion))
		if diff := cmp.Diff([]int64{1, 2, 3}, []int64{first.Version, second.Version, third.Version}); diff != "" {
			t.Error(diff)
		}
		wants(t, "deleting an old version", s.DeleteBinding(t.Context(), tenant, "", "a", 1), store.ErrStale)
		if err := s.DeleteBinding(t.Context(), tenant, "", "a", 3); err != nil {
			t.Error(err)
		}
		wants(t, "deleting nothing", s.DeleteBinding(t.Context(), tenant, "", "a", account.AnyVersion), store.ErrNotFound)
	})
}

func TestOfManyWhoSaveAtOnceOneWinsEachVersion(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := service(t, db, ring(t))
		must[account.Provider](t)(s.CreateProvider(t.Context(), tenant, chat("main", "https://llm.example/v1", "k")))
		must[account.Server](t)(s.CreateServer(t.Context(), tenant, account.ServerDraft{Name: "docs", URL: "https://mcp.example/"}))
		for name, tc := range map[string]struct {
			save func(i int) error
			wins int
			lost error
		}{
			"the first binding": {func(i int) error {
				_, err := s.SaveBinding(t.Context(), tenant, account.Binding{Agent: "first", Provider: "main", Model: fmt.Sprint("m", i)}, 0)
				return err
			}, 1, store.ErrExists},
			"a binding of any version": {func(i int) error {
				_, err := s.SaveBinding(t.Context(), tenant, account.Binding{Agent: "any", Provider: "main", Model: fmt.Sprint("m", i)}, account.AnyVersion)
				return err
			}, 8, nil},
			"a provider": {func(i int) error {
				_, err := s.UpdateProvider(t.Context(), tenant, "main", 1, chat("main", "https://llm.example/v1", fmt.Sprint("k", i)))
				return err
			}, 1, store.ErrStale},
			"a server": {func(i int) error {
				_, err := s.UpdateServer(t.Context(), tenant, "docs", 1, account.ServerDraft{URL: fmt.Sprint("https://mcp.example/", i)})
				return err
			}, 1, store.ErrStale},
		} {
			errs := make([]error, 8)
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() { errs[i] = tc.save(i) })
			}
			all.Wait()
			wins := 0
			for _, err := range errs {
				if err == nil {
					wins++
				} else {
					wants(t, name, err, tc.lost)
				}
			}
			if wins != tc.wins {
				t.Errorf("%s: %d of 8 won, want %d", name, wins, tc.wins)
			}
		}
		if b := must[account.Binding](t)(s.Binding(t.Context(), tenant, "", "any")); b.Version != 8 {
			t.Errorf("after 8 changes the version is %d", b.Version)
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	db, err := store.Open(b.Context(), storetest.SQLite(b))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	keys, err := secret.Load(filepath.Join(b.TempDir(), "keys"))
	if err != nil {
		b.Fatal(err)
	}
	s, err := account.New(account.Config{DB: db, Keys: keys, Adapters: adapters(), Models: models})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.CreateProvider(b.Context(), tenant, chat("main", "https://llm.example/v1", "k")); err != nil {
		b.Fatal(err)
	}
	if _, err := s.SaveBinding(b.Context(), tenant, account.Binding{Provider: "main", Model: "m"}, 0); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Resolve(b.Context(), tenant, account.Wanted{Agent: "a", Project: "p"}); err != nil {
			b.Fatal(err)
		}
	}
}
