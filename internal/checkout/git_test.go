package checkout_test

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/checkout"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/problem"
)

func TestAReferenceNamesTheCommitOfARun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo := b.repository(t, "app.git", map[string]string{"a": "1"})
	first := git(t, repo, "rev-parse", "HEAD")
	git(t, repo, "tag", "-a", "-m", "one", "v1")
	git(t, repo, "checkout", "-q", "-b", "feature/x")
	put(t, filepath.Join(repo, "a"), "2")
	second := commitAll(t, repo, "second")
	git(t, repo, "checkout", "-q", "main")
	put(t, filepath.Join(repo, "a"), "3")
	third := commitAll(t, repo, "third")
	for ref, want := range map[string]string{"": third, "main": third, "feature/x": second, "v1": first, second: second, "refs/heads/feature/x": second} {
		t.Run("ref "+ref, func(t *testing.T) {
			b := *b
			var err error
			b.project, err = b.projects.Create(t.Context(), tenant, project.Draft{Name: "of " + ref})
			must(t, err)
			b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo, Ref: ref})
			w := prepare(t, b.machine(t, "one"), b.request("run_"+b.project.ID))
			if w.Sources[0].Digest != want {
				t.Errorf("commit = %s, want %s", w.Sources[0].Digest, want)
			}
		})
	}
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo, Ref: "there-is-none"})
	_, err := b.machine(t, "one").Prepare(t.Context(), b.request("run_1"))
	if err == nil || !strings.Contains(err.Error(), "there-is-none") || !strings.Contains(err.Error(), `source "app"`) {
		t.Errorf("error = %v", err)
	}
}

// TestACommitThatIsGoneIsSaid rewrites the history of a repository after the run began.
func TestACommitThatIsGoneIsSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo := b.repository(t, "app.git", map[string]string{"a": "1"})
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo})
	w, err := b.machine(t, "one").Prepare(t.Context(), b.request("run_1"))
	must(t, err)
	put(t, filepath.Join(repo, "a"), "2")
	git(t, repo, "commit", "-q", "-a", "--amend", "-m", "again")
	git(t, repo, "reflog", "expire", "--expire=now", "--all")
	git(t, repo, "gc", "-q", "--prune=now")
	_, err = b.machine(t, "two").Prepare(t.Context(), b.request("run_1"))
	if err == nil || !strings.Contains(err.Error(), w.Sources[0].Digest) || !strings.Contains(err.Error(), "cannot be fetched") {
		t.Errorf("error = %v", err)
	}
	must(t, w.Close())
	again, err := b.machine(t, "one").Prepare(t.Context(), b.request("run_1"))
	must(t, err)
	must(t, again.Remove())
}

// evil makes a program that leaves a mark when it runs.
func evil(t *testing.T, b *bench) (program, mark string) {
	t.Helper()
	program, mark = filepath.Join(b.dir, "evil"), filepath.Join(b.dir, "mark")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\necho ran >> "+mark+"\ncat\nexit 0\n"), 0o755))
	return program, mark
}

func TestNothingOfAHostileRepositoryRuns(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T, repo, program string){
		"filters and attributes": func(t *testing.T, repo, program string) {
			put(t, filepath.Join(repo, ".gitattributes"), "*.txt filter=evil diff=evil merge=evil\n*.md text eol=crlf ident\n")
			for _, key := range []string{"filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv"} {
				git(t, repo, "config", key, program)
			}
		},
		"hooks": func(t *testing.T, repo, program string) {
			for _, hook := range []string{"post-checkout", "pre-receive", "post-update", "reference-transaction", "upload-pack", "pre-commit"} {
				must(t, os.Symlink(program, filepath.Join(repo, ".git/hooks", hook)))
			}
		},
		"programs of the configuration": func(t *testing.T, repo, program string) {
			for _, key := range []string{"core.fsmonitor", "core.sshCommand", "core.gitProxy", "uploadpack.packObjectsHook", "core.alternateRefsCommand", "gpg.program", "credential.helper", "core.pager", "core.editor"} {
				git(t, repo, "config", key, program)
			}
		},
		"submodules": func(t *testing.T, repo, program string) {
			put(t, filepath.Join(repo, ".gitmodules"), "[submodule \"x\"]\n\tpath = sub\n\turl = ext::"+program+"\n\tupdate = !"+program+"\n")
			git(t, repo, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
			git(t, repo, "commit", "-q", "-m", "sub")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			program, mark := evil(t, b)
			repo := b.repository(t, "app.git", map[string]string{"a.txt": "$Id$ a\n", "b.md": "one\r\ntwo\n", "lfs.bin": "version https://git-lfs.github.com/spec/v1\n"})
			plant(t, repo, program)
			if name != "submodules" {
				git(t, repo, "-c", "filter.evil.clean=", "-c", "filter.evil.process=", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", "-A")
				git(t, repo, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "planted")
			}
			must(t, os.RemoveAll(mark))
			b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo})
			w := prepare(t, b.machine(t, "one"), b.request("run_1"))
			if data, err := os.ReadFile(mark); err == nil {
				t.Errorf("a program of the repository ran: %s", data)
			}
			got := tree(t, filepath.Join(w.Job.ReadOnly[0], "app"))
			for path, want := range map[string]string{"a.txt": "0444 $Id$ a\n", "lfs.bin": "0444 version https://git-lfs.github.com/spec/v1\n"} {
				if got[path] != want {
					t.Errorf("%s = %q, want %q", path, got[path], want)
				}
			}
			if name == "submodules" && (len(w.Notices) != 1 || !strings.Contains(w.Notices[0].Message, `"sub"`)) {
				t.Errorf("notices = %v", w.Notices)
			}
		})
	}
}

func TestLinksOfARepositoryStayInIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	outside := filepath.Join(b.dir, "secret.txt")
	put(t, outside, "outside-canary")
	repo := b.repository(t, "app.git", map[string]string{"a": "1", "d/e/f": "2"})
	for link, target := range map[string]string{"abs": outside, "up": "../secret", "d/up": "../../secret", "deep": "d/../../x", "in": "d/e", "d/e/in": "../../a", "passwd": "/etc/passwd", "dangling": "nowhere"} {
		must(t, os.Symlink(target, filepath.Join(repo, link)))
	}
	commitAll(t, repo, "links")
	plans := filepath.Join(b.sources, "plans")
	put(t, filepath.Join(plans, "a"), "1")
	must(t, os.Symlink(outside, filepath.Join(plans, "abs")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(plans, "dir")))
	must(t, os.Symlink("a", filepath.Join(plans, "in")))
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo})
	b.source(t, "plans", project.SourceDraft{Kind: project.Directory, Location: plans})
	w := prepare(t, b.machine(t, "one"), b.request("run_1"))
	want := map[string]string{"app/a": "0444 1", "app/d/e/f": "0444 2", "app/in": "-> d/e", "app/d/e/in": "-> ../../a", "app/dangling": "-> nowhere", "plans/a": "0444 1", "plans/in": "-> a"}
	if diff := cmp.Diff(want, tree(t, w.Job.ReadOnly[0])); diff != "" {
		t.Errorf("source/ (-want +got):\n%s", diff)
	}
	if len(w.Notices) != 7 {
		t.Errorf("notices = %v", w.Notices)
	}
}

// TestTreesThatNoGitWouldMakeAreRefused makes objects by hand, as somebody does who attacks.
func TestTreesThatNoGitWouldMakeAreRefused(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string]func(blob, tree string) string{
		"a directory of git":         func(blob, tree string) string { return "040000 tree " + tree + "\t.git" },
		"one in other letters":       func(blob, tree string) string { return "040000 tree " + tree + "\t.GIT" },
		"the parent":                 func(blob, tree string) string { return "040000 tree " + tree + "\t.." },
		"a file called the parent":   func(blob, tree string) string { return "100644 blob " + blob + "\t.." },
		"the directory itself":       func(blob, tree string) string { return "040000 tree " + tree + "\t." },
		"a name that is very long":   func(blob, tree string) string { return "100644 blob " + blob + "\t" + strings.Repeat("x", 300) },
		"a name that is not of text": func(blob, tree string) string { return "100644 blob " + blob + "\t\xff\xfe" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			repo := b.repository(t, "app.git", map[string]string{"config": "[core]\n"})
			blob, sub := git(t, repo, "rev-parse", "HEAD:config"), git(t, repo, "rev-parse", "HEAD^{tree}")
			top := gitWith(t, repo, entries(blob, sub)+"\n", "mktree")
			git(t, repo, "update-ref", "refs/heads/main", git(t, repo, "commit-tree", "-m", "evil", top))
			b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo})
			w, err := b.machine(t, "one").Prepare(t.Context(), b.request("run_1"))
			if problem.KindOf(err) != problem.Invalid {
				t.Errorf("Prepare = %+v, %v", w, err)
			}
			if got := tree(t, filepath.Join(b.dir, "one/runs/run_1")); len(got) != 0 {
				t.Errorf("it left %v", got)
			}
		})
	}
}

func TestSourcesOutsideOfTheDirectoriesAreNotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	outside := filepath.Join(b.dir, "private")
	put(t, filepath.Join(outside, "secret"), "outside-canary")
	git(t, outside, "init", "-q", "-b", "main")
	commitAll(t, outside, "private")
	must(t, os.Symlink(outside, filepath.Join(b.sources, "way-out")))
	for _, kind := range []project.Kind{project.Directory, project.Git} {
		b.source(t, "x-"+string(kind), project.SourceDraft{Kind: kind, Location: filepath.Join(b.sources, "way-out")})
	}
	_, err := b.machine(t, "one").Prepare(t.Context(), b.request("run_1"))
	if problem.KindOf(err) != problem.Invalid || !strings.Contains(err.Error(), "may not be read") {
		t.Errorf("error = %v", err)
	}
}

func TestASourceIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plans := filepath.Join(b.sources, "plans")
	put(t, filepath.Join(plans, "a"), strings.Repeat("x", 600))
	put(t, filepath.Join(plans, "b"), strings.Repeat("y", 600))
	repo := b.repository(t, "app.git", map[string]string{"a": strings.Repeat("x", 600), "b": strings.Repeat("y", 600)})
	for name, limits := range map[string]checkout.Limits{"files": {MaxFiles: 1}, "bytes": {MaxBytes: 1000}} {
		for kind, location := range map[project.Kind]string{project.Directory: plans, project.Git: repo} {
			c := *b
			var err error
			c.project, err = b.projects.Create(t.Context(), tenant, project.Draft{Name: name + string(kind)})
			must(t, err)
			c.source(t, "x", project.SourceDraft{Kind: kind, Location: location})
			config := c.config("one")
			config.Limits = limits
			s, err := checkout.Open(config)
			must(t, err)
			if _, err := s.Prepare(t.Context(), c.request("run_"+c.project.ID)); problem.KindOf(err) != problem.Invalid || !strings.Contains(err.Error(), "more than") {
				t.Errorf("%s of %s: error = %v", name, kind, err)
			}
		}
	}
}

// server serves the repositories of the bench by git's own program for that, to whoever has the password.
func server(t *testing.T, b *bench, password string) (address string, seen *atomic.Int64) {
	t.Helper()
	backend := filepath.Join(strings.TrimSpace(git(t, b.dir, "--exec-path")), "git-http-backend")
	if _, err := exec.LookPath(backend); err != nil {
		t.Skip(err)
	}
	handler := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + b.sources, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "REMOTE_USER=test"}}
	seen = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, got, ok := r.BasicAuth(); password != "" && (!ok || got != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		seen.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, seen
}

func TestACredentialOpensARepositoryAndIsNowhereElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const password = "canary-77-password"
	address, seen := server(t, b, password)
	b.repository(t, "app", map[string]string{"a": "1"})
	location := address + "/app/.git"
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: location, Credential: secret.New("ada:" + password)})
	s := b.machine(t, "one")
	w := prepare(t, s, b.request("run_1"))
	if got := tree(t, filepath.Join(w.Job.ReadOnly[0], "app")); got["a"] != "0444 1" {
		t.Errorf("source/app = %v", got)
	}
	for _, dir := range []string{filepath.Join(b.dir, "one"), filepath.Join(b.dir, "blobs")} {
		if out, err := exec.Command("grep", "-r", "-a", "-l", "-e", "canary-77", "-e", "Y2FuYXJ5", "-e", "YWRhOmNhbmFyeS", dir).Output(); err == nil {
			t.Errorf("the credential is in %s", out)
		}
	}
	// A second run of the same commit asks which commit it is and fetches nothing it has.
	before := seen.Load()
	prepare(t, s, b.request("run_2"))
	if asked := seen.Load() - before; asked > 3 {
		t.Errorf("a second run made %d requests", asked)
	}

	source, err := b.projects.Source(t.Context(), tenant, b.project.ID, "app")
	must(t, err)
	_, err = b.projects.PutSource(t.Context(), tenant, b.project.ID, "app", source.Version, project.SourceDraft{Kind: project.Git, Location: location, Credential: secret.New("ada:canary-78-wrong")})
	must(t, err)
	_, err = b.machine(t, "two").Prepare(t.Context(), b.request("run_3"))
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("error = %v", err)
	}
}

func TestAMirrorIsSharedByRunsThatBeginAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = strings.Repeat("x", i)
	}
	repo := b.repository(t, "app.git", files)
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo})
	var group sync.WaitGroup
	for i := range 8 {
		s := b.machine(t, "one") // as a process of its own
		group.Go(func() {
			w, err := s.Prepare(t.Context(), b.request(fmt.Sprintf("run_%d", i)))
			if err != nil {
				t.Error(err)
				return
			}
			if got := tree(t, filepath.Join(w.Job.ReadOnly[0], "app")); len(got) != len(files) {
				t.Errorf("run %d has %d files", i, len(got))
			}
			if err := w.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// committing makes a run with outputs and the request to commit them.
func committing(t *testing.T, b *bench, s *checkout.Service, run, branch string, files map[string]string) checkout.CommitRequest {
	t.Helper()
	w := prepare(t, s, b.request(run))
	for path, text := range files {
		put(t, filepath.Join(w.Job.OutDir, path), text)
	}
	return checkout.CommitRequest{Tenant: tenant, Project: b.project.ID, Run: run, OutDir: w.Job.OutDir, Message: "Describe the shop",
		Settings: project.Commit{Source: "app", Branch: branch, Directory: "docs/ai", AuthorName: "Hozo Bot", AuthorEmail: "bot@example.com"}}
}

func TestOutputsAreCommittedToABranch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo := b.repository(t, "app.git", map[string]string{"a": "1", "docs/ai/old.md": "old"})
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo})
	s := b.machine(t, "one")
	r := committing(t, b, s, "run_1", "hozo/{run}", map[string]string{"report.md": "# R\n", "d/\"odd\"\nname": "x", ".git/hooks/post-commit": "evil"})
	must(t, os.Symlink("/etc/passwd", filepath.Join(r.OutDir, "link")))
	first, err := s.Commit(t.Context(), r)
	must(t, err)
	if first.Branch != "hozo/run_1" || first.Commit != git(t, repo, "rev-parse", "refs/heads/hozo/run_1") || len(first.Skipped) != 2 {
		t.Errorf("committed = %+v", first)
	}
	if got := git(t, repo, "log", "-1", "--format=%an <%ae> %s", first.Commit); got != "Hozo Bot <bot@example.com> Describe the shop" {
		t.Errorf("commit = %s", got)
	}
	if got := git(t, repo, "rev-parse", first.Commit+"^"); got != git(t, repo, "rev-parse", "main") {
		t.Errorf("its parent is %s", got)
	}
	names := strings.Split(git(t, repo, "ls-tree", "-r", "-z", "--name-only", first.Commit), "\x00")
	if want := []string{"a", "docs/ai/d/\"odd\"\nname", "docs/ai/old.md", "docs/ai/report.md", ""}; !slices.Equal(names, want) {
		t.Errorf("files = %q, want %q", names, want)
	}
	again, err := s.Commit(t.Context(), r)
	if err != nil || again.Commit != first.Commit || !again.Unchanged {
		t.Errorf("the same again: %+v, %v", again, err)
	}
}

func TestACommitGoesOnTopOfWhatOthersAdded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo := b.repository(t, "app.git", map[string]string{"a": "1"})
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo})
	s := b.machine(t, "one")
	r := committing(t, b, s, "run_1", "docs", map[string]string{"r1": "1"})
	git(t, repo, "checkout", "-q", "-b", "docs")
	put(t, filepath.Join(repo, "b"), "2")
	theirs := commitAll(t, repo, "theirs")
	git(t, repo, "checkout", "-q", "main")
	made, err := s.Commit(t.Context(), r)
	must(t, err)
	if got := git(t, repo, "rev-parse", "docs^"); got != theirs {
		t.Errorf("the parent is %s, want %s", got, theirs)
	}
	r2 := committing(t, b, s, "run_2", "docs", map[string]string{"r1": "1"})
	same, err := s.Commit(t.Context(), r2)
	if err != nil || !same.Unchanged || same.Commit != made.Commit {
		t.Errorf("equal outputs: %+v, %v", same, err)
	}
}

func TestABranchThatIsRefusedIsAConflictAndStaysAsItWas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo := b.repository(t, "app.git", map[string]string{"a": "1"})
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo})
	s := b.machine(t, "one")
	before := git(t, repo, "rev-parse", "main")
	r := committing(t, b, s, "run_1", "main", map[string]string{"r1": "1"}) // it is checked out, which git refuses to change
	_, err := s.Commit(t.Context(), r)
	if problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "main") {
		t.Errorf("error = %v", err)
	}
	if got := git(t, repo, "rev-parse", "main"); got != before {
		t.Errorf("the branch moved to %s", got)
	}
	r.Settings.Source = "other"
	if _, err := s.Commit(t.Context(), r); problem.KindOf(err) != problem.Invalid {
		t.Errorf("a source that is none: %v", err)
	}
}

func TestRunsThatCommitAtOnceAllGetTheirCommit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	address, _ := server(t, b, "")
	repo := b.repository(t, "app", map[string]string{"a": "1"})
	git(t, repo, "config", "http.receivepack", "true")
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: address + "/app/.git"})
	s := b.machine(t, "one")
	var group sync.WaitGroup
	for i := range 3 {
		r := committing(t, b, s, fmt.Sprintf("run_%d", i), "docs", map[string]string{fmt.Sprintf("r%d", i): "1"})
		group.Go(func() {
			if _, err := s.Commit(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := git(t, repo, "rev-list", "--count", "main..docs"); got != "3" {
		t.Errorf("the branch has %s commits, want 3", got)
	}
}
