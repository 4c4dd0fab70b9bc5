package checkout_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/checkout"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/workspace"
)

func TestAWorkspaceHoldsTheSourcesOfItsProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	repo := b.repository(t, "app.git", map[string]string{"main.go": "package main\n", "docs/a.md": "A\n", "agents/evil.md": "---\nname: evil\n---\n", "empty": ""})
	must(t, os.Chmod(filepath.Join(repo, "main.go"), 0o755))
	must(t, os.Symlink("docs/a.md", filepath.Join(repo, "link.md")))
	commit := commitAll(t, repo, "second")
	plans := filepath.Join(b.sources, "plans")
	put(t, filepath.Join(plans, "plan.txt"), "one\r\n")
	put(t, filepath.Join(plans, ".git/config"), "[core]\n")
	put(t, filepath.Join(plans, "deep/er/x.log"), "noise")
	must(t, os.Symlink("plan.txt", filepath.Join(plans, "now.txt")))
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo})
	b.source(t, "plans", project.SourceDraft{Kind: project.Directory, Location: plans, Exclude: []string{"**/.git", "**/*.log"}})

	w := prepare(t, b.machine(t, "one"), b.request("run_1"))
	source := w.Job.ReadOnly[0]
	want := map[string]string{
		"app/main.go": "0555 package main\n", "app/docs/a.md": "0444 A\n", "app/link.md": "-> docs/a.md", "app/empty": "0444 ",
		"app/agents/evil.md": "0444 ---\nname: evil\n---\n",
		"plans/plan.txt":     "0444 one\r\n", "plans/now.txt": "-> plan.txt",
	}
	if diff := cmp.Diff(want, tree(t, source)); diff != "" {
		t.Errorf("source/ (-want +got):\n%s", diff)
	}
	if w.Sources[0].Digest != commit || w.Sources[0].Kind != project.Git || len(w.Sources[1].Digest) != 64 {
		t.Errorf("pins = %+v", w.Sources)
	}
	text := read(t, filepath.Join(w.Job.Root, workspace.GuideName))
	for _, part := range []string{"source/app/", commit, "source/plans/", w.Sources[1].Digest, "out/", "tmp/", "inputs/"} {
		if !strings.Contains(text, part) {
			t.Errorf("the guide does not name %s:\n%s", part, text)
		}
	}
	if strings.Contains(text, b.dir) || strings.Contains(text, b.sources) {
		t.Errorf("the guide names a place of this machine:\n%s", text)
	}
	opened, err := workspace.Open(workspace.Config{Root: w.Job.Root, ReadOnly: w.Job.ReadOnly, OutDir: w.Job.OutDir, TmpDir: w.Job.TmpDir})
	must(t, err)
	defer opened.Close()
	if got := opened.Layout().Guide; got != workspace.GuideName {
		t.Errorf("the guide of the job is %q", got)
	}
}

func TestPathsOfTheJobAreThoseOfTheConfiguration(t *testing.T) {
	b := setup(t)
	t.Chdir(b.dir)
	config := b.config("one")
	config.Base, config.Cache = "runs", "cache"
	s, err := checkout.Open(config)
	must(t, err)
	w := prepare(t, s, checkout.Request{Tenant: tenant, Run: "run_1"})
	want := job.Workspace{Root: "runs/run_1", ReadOnly: []string{"runs/run_1/source", "runs/run_1/inputs", "runs/run_1/WORKSPACE.md", "runs/run_1/out"}, OutDir: "runs/run_1/out", TmpDir: "runs/run_1/tmp"}
	if diff := cmp.Diff(want, w.Job); diff != "" {
		t.Errorf("workspace (-want +got):\n%s", diff)
	}
}

// TestALaterAttemptGetsTheSameFilesAnywhere changes and then removes the sources between two attempts on two machines.
func TestALaterAttemptGetsTheSameFilesAnywhere(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := setupOn(t, db)
		repo := b.repository(t, "app.git", map[string]string{"a": "1"})
		plans := filepath.Join(b.sources, "plans")
		put(t, filepath.Join(plans, "p"), "1")
		put(t, filepath.Join(plans, "big"), strings.Repeat("0123456789", 100_000))
		b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: repo, Ref: "main"})
		b.source(t, "plans", project.SourceDraft{Kind: project.Directory, Location: plans})

		first, err := b.machine(t, "one").Prepare(t.Context(), b.request("run_1"))
		must(t, err)
		before := tree(t, first.Job.ReadOnly[0])
		guide := read(t, filepath.Join(first.Job.Root, workspace.GuideName))
		put(t, filepath.Join(first.Job.OutDir, "result"), "r")
		must(t, first.Close())
		must(t, first.Close())
		if err := first.Remove(); err == nil {
			t.Error("directories that were given up can be removed")
		}

		put(t, filepath.Join(repo, "a"), "2")
		commitAll(t, repo, "second")
		must(t, os.RemoveAll(plans))

		again := prepare(t, b.machine(t, "one"), b.request("run_1"))
		if read(t, filepath.Join(again.Job.OutDir, "result")) != "r" {
			t.Error("an attempt in the same place lost the outputs")
		}
		other := prepare(t, b.machine(t, "two"), b.request("run_1"))
		for name, w := range map[string]*checkout.Workspace{"the same machine": again, "another machine": other} {
			if diff := cmp.Diff(before, tree(t, w.Job.ReadOnly[0])); diff != "" {
				t.Errorf("%s (-first +later):\n%s", name, diff)
			}
			if diff := cmp.Diff(guide, read(t, filepath.Join(w.Job.Root, workspace.GuideName))); diff != "" {
				t.Errorf("%s: guide (-first +later):\n%s", name, diff)
			}
			if diff := cmp.Diff(first.Sources, w.Sources); diff != "" {
				t.Errorf("%s: pins (-first +later):\n%s", name, diff)
			}
		}
		fork := b.request("run_2")
		fork.SourcesOf = "run_1"
		forked := prepare(t, b.machine(t, "three"), fork)
		if diff := cmp.Diff(before, tree(t, forked.Job.ReadOnly[0])); diff != "" {
			t.Errorf("fork (-first +fork):\n%s", diff)
		}
		foreign, err := b.machine(t, "one").Pins(t.Context(), "rival", "run_1")
		if err != nil || len(foreign) != 0 {
			t.Errorf("another tenant sees %v, %v", foreign, err)
		}
	})
}

func TestTheFilesOfASnapshotStayAsLongAsARunNeedsThem(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := setupOn(t, db)
		plans := filepath.Join(b.sources, "plans")
		put(t, filepath.Join(plans, "p"), "1")
		b.source(t, "plans", project.SourceDraft{Kind: project.Directory, Location: plans})
		w := prepare(t, b.machine(t, "one"), b.request("run_1"))

		later := func() time.Time { return time.Now().Add(100 * time.Hour) }
		folder, err := artifact.OpenFolder(filepath.Join(b.dir, "blobs"))
		must(t, err)
		defer folder.Close()
		artifacts := artifact.New(artifact.Config{DB: db, Blobs: folder, Now: later})
		config := b.config("one")
		config.Now = later
		s, err := checkout.Open(config)
		must(t, err)
		collect := func() artifact.Collected {
			t.Helper()
			must(t, s.ReleaseSnapshots(t.Context()))
			done, err := artifacts.Collect(t.Context(), 0)
			must(t, err)
			return done
		}
		if done := collect(); done.Removed != 0 {
			t.Errorf("%+v was removed while a run needs it", done)
		}
		prepare(t, b.machine(t, "two"), b.request("run_1"))
		must(t, s.Forget(t.Context(), "rival", "run_1"))
		if done := collect(); done.Removed != 0 {
			t.Errorf("another tenant made %+v be removed", done)
		}
		must(t, s.Forget(t.Context(), tenant, "run_1"))
		if done := collect(); done.Removed != 2 {
			t.Errorf("collected %+v, want the file and the list removed", done)
		}
		if _, err := b.artifacts.Open(t.Context(), w.Sources[0].Digest); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the list is still there: %v", err)
		}
	})
}

func TestTheDirectoriesOfARunBelongToOneAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, other := b.machine(t, "one"), b.machine(t, "one")
	w, err := s.Prepare(t.Context(), b.request("run_1"))
	must(t, err)
	if _, err := other.Prepare(t.Context(), b.request("run_1")); problem.KindOf(err) != problem.Conflict {
		t.Errorf("a second one gets %v", err)
	}
	second := prepare(t, other, b.request("run_2"))
	if second.Job.Root == w.Job.Root || second.Job.OutDir == w.Job.OutDir {
		t.Errorf("two runs share %s", second.Job.Root)
	}
	must(t, w.Remove())
	put(t, filepath.Join(b.dir, "one/runs/leftover"), "x")
	again := prepare(t, other, b.request("run_1"))
	if got := tree(t, again.Job.OutDir); len(got) != 0 {
		t.Errorf("a run that was removed left %v", got)
	}
}

func TestTmpIsEmptyInEachAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.machine(t, "one")
	w, err := s.Prepare(t.Context(), b.request("run_1"))
	must(t, err)
	put(t, filepath.Join(w.Job.TmpDir, "locked/x"), "x")
	must(t, os.Chmod(filepath.Join(w.Job.TmpDir, "locked"), 0o000))
	must(t, w.Close())
	again := prepare(t, s, b.request("run_1"))
	if got := tree(t, again.Job.TmpDir); len(got) != 0 {
		t.Errorf("tmp/ holds %v", got)
	}
}

func TestLeftoversOfRunsThatEndedAreSwept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.source(t, "app", project.SourceDraft{Kind: project.Git, Location: b.repository(t, "app.git", map[string]string{"d/a": "1"})})
	s := b.machine(t, "one")
	paths := map[string]string{}
	for _, run := range []string{"run_held", "run_ended", "run_waits"} {
		w, err := s.Prepare(t.Context(), b.request(run))
		must(t, err)
		paths[run] = w.Job.Root
		if run == "run_held" {
			t.Cleanup(func() { must(t, w.Remove()) })
		} else {
			must(t, w.Close())
		}
	}
	removed, err := b.machine(t, "one").Sweep(t.Context(), func(_ context.Context, run string) (bool, error) { return run != "run_waits", nil })
	must(t, err)
	if diff := cmp.Diff([]string{"run_ended"}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	for run, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) != (run == "run_ended") {
			t.Errorf("%s: %v", run, err)
		}
	}
	if _, err := os.Stat(paths["run_ended"] + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its lock: %v", err)
	}
}

func keep(t *testing.T, b *bench, run string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		put(t, filepath.Join(dir, path), text)
	}
	_, err := b.artifacts.Keep(t.Context(), artifact.Outputs{Tenant: tenant, Project: b.project.ID, Run: run, Dir: dir})
	must(t, err)
}

func TestInputsAreArtifactsOfEarlierRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keep(t, b, "run_1", map[string]string{"report.md": "R", "data/x.json": "{}"})
	keep(t, b, "run_2", map[string]string{"other.md": "O", "more.md": "M"})
	r := b.request("run_3")
	r.Inputs = []checkout.Input{{Run: "run_1"}, {Run: "run_2", Path: "other.md", As: "review"}}
	w := prepare(t, b.machine(t, "one"), r)
	want := map[string]string{"run_1/report.md": "0444 R", "run_1/data/x.json": "0444 {}", "review/other.md": "0444 O"}
	if diff := cmp.Diff(want, tree(t, w.Job.ReadOnly[1])); diff != "" {
		t.Errorf("inputs/ (-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct {
		tenant string
		inputs []checkout.Input
		want   problem.Kind
	}{
		"no such run":       {tenant, []checkout.Input{{Run: "run_9"}}, problem.NotFound},
		"no such path":      {tenant, []checkout.Input{{Run: "run_1", Path: "nope"}}, problem.NotFound},
		"another tenant":    {"rival", []checkout.Input{{Run: "run_1"}}, problem.NotFound},
		"one path twice":    {tenant, []checkout.Input{{Run: "run_1", As: "a"}, {Run: "run_1", As: "a"}}, problem.Invalid},
		"a way out":         {tenant, []checkout.Input{{Run: "run_1", As: ".."}}, problem.Invalid},
		"a directory below": {tenant, []checkout.Input{{Run: "run_1", As: "a/b"}}, problem.Invalid},
	} {
		if _, err := b.machine(t, "one").Prepare(t.Context(), checkout.Request{Tenant: c.tenant, Run: "run_4", Inputs: c.inputs}); problem.KindOf(err) != c.want {
			t.Errorf("%s: error = %v, want kind %s", name, err, c.want)
		}
	}
}

func TestRunsHaveNamesThatStayInTheirDirectory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, run := range []string{"", "..", "a/b", "-x", "a\x00b", "a.lock", strings.Repeat("a", 200)} {
		if _, err := b.machine(t, "one").Prepare(t.Context(), b.request(run)); problem.KindOf(err) != problem.Invalid {
			t.Errorf("%q: error = %v", run, err)
		}
	}
}

func TestAFullDiskIsSaidAndLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plans := filepath.Join(b.sources, "plans")
	content := bytes.Repeat([]byte("x"), 2<<20)
	put(t, filepath.Join(plans, "big"), string(content))
	b.source(t, "plans", project.SourceDraft{Kind: project.Directory, Location: plans})
	config := b.config("small")
	mountSmall(t, filepath.Join(b.dir, "small"))
	s, err := checkout.Open(config)
	must(t, err)
	_, err = s.Prepare(t.Context(), b.request("run_1"))
	if problem.KindOf(err) != problem.Unavailable || !strings.Contains(err.Error(), "the disk of the workspaces is full") {
		t.Errorf("error = %v", err)
	}
	if _, err := os.Stat(filepath.Join(config.Base, "run_1", "source")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a source that is not whole has its name: %v", err)
	}
	sum := sha256.Sum256(content)
	w := prepare(t, b.machine(t, "large"), b.request("run_1"))
	if data := read(t, filepath.Join(w.Job.ReadOnly[0], "plans/big")); sha256.Sum256([]byte(data)) != sum {
		t.Errorf("the run is not whole elsewhere: %s", hex.EncodeToString(sum[:]))
	}
}
