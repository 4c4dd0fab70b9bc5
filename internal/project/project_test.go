package project_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/problem"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const tenant = "acme"

type bench struct {
	*project.Service
	db   *store.DB
	ring *secret.Ring
}

func setup(t *testing.T, db *store.DB) *bench {
	t.Helper()
	ring, err := secret.Load(filepath.Join(t.TempDir(), "keys"))
	must(t, err)
	s, err := project.New(project.Config{DB: db, Keys: ring, Directories: []string{"/srv/repos"}})
	must(t, err)
	return &bench{s, db, ring}
}

func (b *bench) create(t *testing.T, name string) project.Project {
	t.Helper()
	p, err := b.Create(t.Context(), tenant, project.Draft{Name: name})
	must(t, err)
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAProjectIsKeptAsItWasGiven(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := setup(t, db)
		settings := project.Settings{Concurrency: 3, Grants: project.Grants{MemoryRead: []string{"*"}, MemoryWrite: []string{"b", "a", "b"}, WebSearch: []string{"research"}}}
		made, err := b.Create(t.Context(), tenant, project.Draft{Name: "  Shop ", Settings: settings})
		must(t, err)
		settings.Grants.MemoryWrite = []string{"a", "b"}
		if made.Name != "Shop" || made.Version != 1 || !cmp.Equal(made.Settings, settings) {
			t.Errorf("created %+v", made)
		}
		got, err := b.Get(t.Context(), tenant, made.ID)
		must(t, err)
		if diff := cmp.Diff(made, got); diff != "" {
			t.Errorf("project (-created +read):\n%s", diff)
		}
		changed, err := b.Update(t.Context(), tenant, made.ID, 1, project.Draft{Name: "Store"})
		must(t, err)
		got, err = b.Get(t.Context(), tenant, made.ID)
		must(t, err)
		if diff := cmp.Diff(changed, got); diff != "" || got.Version != 2 || got.Settings.Concurrency != 0 {
			t.Errorf("changed to %+v (-returned +read):\n%s", got, diff)
		}
	})
}

func TestAChangeOfAnOldVersionIsStale(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := setup(t, db)
		p := b.create(t, "Shop")
		_, err := b.Update(t.Context(), tenant, p.ID, 1, project.Draft{Name: "Two"})
		must(t, err)
		if _, err := b.Update(t.Context(), tenant, p.ID, 1, project.Draft{Name: "Three"}); !errors.Is(err, store.ErrStale) {
			t.Errorf("Update = %v", err)
		}
		if err := b.Delete(t.Context(), tenant, p.ID, 1); !errors.Is(err, store.ErrStale) {
			t.Errorf("Delete = %v", err)
		}
		draft := project.SourceDraft{Kind: project.Git, Location: "https://git.example.com/a/b"}
		_, err = b.PutSource(t.Context(), tenant, p.ID, "app", 0, draft)
		must(t, err)
		if _, err := b.PutSource(t.Context(), tenant, p.ID, "app", 0, draft); !errors.Is(err, store.ErrExists) {
			t.Errorf("a second source of the name: %v", err)
		}
		if _, err := b.PutSource(t.Context(), tenant, p.ID, "app", 7, draft); !errors.Is(err, store.ErrStale) {
			t.Errorf("PutSource = %v", err)
		}
		if err := b.DeleteSource(t.Context(), tenant, p.ID, "app", 7); !errors.Is(err, store.ErrStale) {
			t.Errorf("DeleteSource = %v", err)
		}
		must(t, b.Delete(t.Context(), tenant, p.ID, 2))
		if _, err := b.Sources(t.Context(), tenant, p.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("sources of a project that is gone: %v", err)
		}
	})
}

func TestAForeignProjectIsAsOneThatDoesNotExist(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := setup(t, db)
		p := b.create(t, "Shop")
		draft := project.SourceDraft{Kind: project.Git, Location: "https://git.example.com/a/b", Credential: secret.New("token")}
		_, err := b.PutSource(t.Context(), tenant, p.ID, "app", 0, draft)
		must(t, err)
		for name, c := range map[string][2]string{"foreign": {"rival", p.ID}, "missing": {tenant, "prj_0"}} {
			calls := map[string]func() error{
				"Get":          func() error { _, err := b.Get(t.Context(), c[0], c[1]); return err },
				"Update":       func() error { _, err := b.Update(t.Context(), c[0], c[1], 1, project.Draft{Name: "x"}); return err },
				"Delete":       func() error { return b.Delete(t.Context(), c[0], c[1], 1) },
				"Sources":      func() error { _, err := b.Sources(t.Context(), c[0], c[1]); return err },
				"Source":       func() error { _, err := b.Source(t.Context(), c[0], c[1], "app"); return err },
				"Credential":   func() error { _, err := b.Credential(t.Context(), c[0], c[1], "app"); return err },
				"PutSource":    func() error { _, err := b.PutSource(t.Context(), c[0], c[1], "app", 1, draft); return err },
				"DeleteSource": func() error { return b.DeleteSource(t.Context(), c[0], c[1], "app", 1) },
			}
			for call, do := range calls {
				if err := do(); !errors.Is(err, store.ErrNotFound) || err.Error() != store.ErrNotFound.Error() {
					t.Errorf("%s: %s = %v", name, call, err)
				}
			}
		}
		if all, err := b.List(t.Context(), "rival", "", 10); err != nil || len(all) != 0 {
			t.Errorf("List = %v, %v", all, err)
		}
		if _, err := b.Create(t.Context(), "rival", project.Draft{Name: "Shop"}); err != nil {
			t.Errorf("a name of another tenant is taken: %v", err)
		}
		if _, err := b.Create(t.Context(), tenant, project.Draft{Name: "Shop"}); !errors.Is(err, store.ErrExists) {
			t.Errorf("a name twice: %v", err)
		}
	})
}

func TestProjectsAreListedPageByPage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := setup(t, db)
		want := map[string]bool{}
		for i := range 7 {
			want[b.create(t, fmt.Sprint("p", i)).ID] = true
		}
		for after := ""; ; {
			page, err := b.List(t.Context(), tenant, after, 3)
			must(t, err)
			if len(page) == 0 {
				break
			}
			for _, p := range page {
				if !want[p.ID] || p.ID <= after {
					t.Errorf("%s comes twice or in no order", p.ID)
				}
				delete(want, p.ID)
				after = p.ID
			}
		}
		if len(want) > 0 {
			t.Errorf("not listed: %v", want)
		}
	})
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.Open(t, storetest.SQLite(t)))
	_, err := b.Create(t.Context(), tenant, project.Draft{Name: "a\nb", Settings: project.Settings{Concurrency: -1,
		Commit: &project.Commit{Source: "../x", Branch: "a..b", Directory: "../out", AuthorName: "<x>", AuthorEmail: "nobody"},
		Grants: project.Grants{WebFetch: []string{"Big One"}}}})
	var pointers []string
	for _, p := range problem.Of(err) {
		pointers = append(pointers, p.Pointer)
	}
	want := []string{"/name", "/settings/commit/authorEmail", "/settings/commit/authorName", "/settings/commit/branch", "/settings/commit/directory", "/settings/commit/source",
		"/settings/concurrency", "/settings/grants/webFetch"}
	if diff := cmp.Diff(want, pointers); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestAddressesOfSourcesAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t, storetest.Open(t, storetest.SQLite(t)))
	p := b.create(t, "Shop")
	for name, c := range map[string]struct {
		name  string
		draft project.SourceDraft
		want  string // the pointer of the problem, "" if there is none
	}{
		"https":                 {"a", project.SourceDraft{Kind: project.Git, Location: "https://git.example.com/a/b.git", Ref: "feature/x"}, ""},
		"ssh":                   {"b", project.SourceDraft{Kind: project.Git, Location: "ssh://git@git.example.com/a/b.git"}, ""},
		"a repository here":     {"c", project.SourceDraft{Kind: project.Git, Location: "/srv/repos/x.git"}, ""},
		"a directory":           {"d", project.SourceDraft{Kind: project.Directory, Location: "/srv/repos/plans", Exclude: []string{"**/*.log"}}, ""},
		"a program":             {"e", project.SourceDraft{Kind: project.Git, Location: "ext::sh -c evil"}, "/location"},
		"without encryption":    {"e", project.SourceDraft{Kind: project.Git, Location: "http://git.example.com/a/b"}, "/location"},
		"git's own protocol":    {"e", project.SourceDraft{Kind: project.Git, Location: "git://git.example.com/a/b"}, "/location"},
		"file":                  {"e", project.SourceDraft{Kind: project.Git, Location: "file:///etc"}, "/location"},
		"an option":             {"e", project.SourceDraft{Kind: project.Git, Location: "--upload-pack=evil"}, "/location"},
		"an option as host":     {"e", project.SourceDraft{Kind: project.Git, Location: "ssh://-oProxyCommand=evil/x"}, "/location"},
		"an option as user":     {"e", project.SourceDraft{Kind: project.Git, Location: "ssh://-oProxyCommand=evil@host/x"}, "/location"},
		"a password":            {"e", project.SourceDraft{Kind: project.Git, Location: "https://ada:secret@git.example.com/a/b"}, "/location"},
		"a token":               {"e", project.SourceDraft{Kind: project.Git, Location: "https://token@git.example.com/a/b"}, "/location"},
		"two lines":             {"e", project.SourceDraft{Kind: project.Git, Location: "https://git.example.com/a\nb"}, "/location"},
		"a place not opened":    {"e", project.SourceDraft{Kind: project.Directory, Location: "/etc"}, "/location"},
		"a neighbour":           {"e", project.SourceDraft{Kind: project.Directory, Location: "/srv/repos-private"}, "/location"},
		"a way up":              {"e", project.SourceDraft{Kind: project.Directory, Location: "/srv/repos/../../etc"}, "/location"},
		"a relative path":       {"e", project.SourceDraft{Kind: project.Directory, Location: "repos"}, "/location"},
		"an option as ref":      {"e", project.SourceDraft{Kind: project.Git, Location: "https://h/a", Ref: "--output=x"}, "/ref"},
		"a ref with a space":    {"e", project.SourceDraft{Kind: project.Git, Location: "https://h/a", Ref: "a b"}, "/ref"},
		"a ref with a mapping":  {"e", project.SourceDraft{Kind: project.Git, Location: "https://h/a", Ref: "main:refs/heads/x"}, "/ref"},
		"a pattern that is bad": {"e", project.SourceDraft{Kind: project.Directory, Location: "/srv/repos", Exclude: []string{"[a"}}, "/exclude/0"},
		"a name with a slash":   {"a/b", project.SourceDraft{Kind: project.Git, Location: "https://h/a"}, "/name"},
		"a name of dots":        {"..", project.SourceDraft{Kind: project.Git, Location: "https://h/a"}, "/name"},
		"a kind that is none":   {"e", project.SourceDraft{Kind: "svn", Location: "https://h/a"}, "/kind"},
	} {
		_, err := b.PutSource(t.Context(), tenant, p.ID, c.name, 0, c.draft)
		got := ""
		if list := problem.Of(err); len(list) > 0 {
			got = list[0].Pointer
		}
		if got != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: problem at %q, want %q (%v)", name, got, c.want, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: the error quotes the credential: %v", name, err)
		}
	}
}

func TestACredentialStaysWithItsAddress(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := setup(t, db)
		p := b.create(t, "Shop")
		var draft project.SourceDraft
		must(t, json.Unmarshal([]byte(`{"kind": "git", "location": "https://git.example.com/a", "credential": "canary-77"}`), &draft))
		source, err := b.PutSource(t.Context(), tenant, p.ID, "app", 0, draft)
		must(t, err)
		has := func(want string) {
			t.Helper()
			value, err := b.Credential(t.Context(), tenant, p.ID, "app")
			must(t, err)
			if value.Reveal() != want {
				t.Errorf("the credential is %q, want %q", value.Reveal(), want)
			}
		}
		has("canary-77")
		shown, err := json.Marshal(source)
		must(t, err)
		if text := fmt.Sprintf("%+v %#v %s", source, draft, shown); strings.Contains(text, "canary") || !source.HasCredential {
			t.Errorf("the credential is shown: %s", text)
		}
		draft.Credential, draft.Ref = secret.Value{}, "main"
		source, err = b.PutSource(t.Context(), tenant, p.ID, "app", source.Version, draft)
		must(t, err)
		has("canary-77") // a change of something else keeps it
		must(t, b.ring.Rotate())
		if n, err := b.Reseal(t.Context()); n != 1 || err != nil {
			t.Errorf("Reseal = %d, %v", n, err)
		}
		has("canary-77")
		draft.Location = "https://evil.example.com/a"
		source, err = b.PutSource(t.Context(), tenant, p.ID, "app", source.Version, draft)
		must(t, err)
		has("") // it does not go to another address
		if source.HasCredential {
			t.Error("the source says that it has one")
		}
	})
}

func TestASourceThatIsCommittedToStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := setup(t, db)
		p := b.create(t, "Shop")
		draft := project.Draft{Name: "Shop", Settings: project.Settings{Commit: &project.Commit{Source: "app", Branch: "hozo/{run}", AuthorName: "Bot", AuthorEmail: "bot@example.com"}}}
		if _, err := b.Update(t.Context(), tenant, p.ID, 1, draft); problem.KindOf(err) != problem.Invalid {
			t.Errorf("a source that does not exist: %v", err)
		}
		_, err := b.PutSource(t.Context(), tenant, p.ID, "app", 0, project.SourceDraft{Kind: project.Git, Location: "https://git.example.com/a"})
		must(t, err)
		_, err = b.Update(t.Context(), tenant, p.ID, 1, draft)
		must(t, err)
		if err := b.DeleteSource(t.Context(), tenant, p.ID, "app", 1); !errors.Is(err, store.ErrInUse) {
			t.Errorf("DeleteSource = %v", err)
		}
	})
}

func TestPermits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		agents []string
		want   bool
	}{{nil, false}, {[]string{"b"}, false}, {[]string{"a", "b"}, true}, {[]string{"*"}, true}} {
		if got := project.Permits(c.agents, "a"); got != c.want {
			t.Errorf("Permits(%v) = %v", c.agents, got)
		}
	}
}
