package artifact_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/artifact/artifacttest"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

const tenant = "acme"

// shelf is a store over a folder, with a clock that the test moves.
type shelf struct {
	*artifact.Store
	folder *artifact.Folder
	dir    string
	mu     sync.Mutex
	now    time.Time
}

func (s *shelf) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shelf) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func setup(t *testing.T, db *store.DB) *shelf {
	t.Helper()
	s := &shelf{dir: filepath.Join(t.TempDir(), "blobs"), now: time.Now()}
	s.folder = openFolder(t, s.dir)
	s.Store = artifact.New(artifact.Config{DB: db, Blobs: s.folder, Now: s.clock})
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shelf) put(t *testing.T, text string) (hash string) {
	t.Helper()
	hash = artifacttest.HashOf([]byte(text))
	must(t, s.Put(t.Context(), hash, strings.NewReader(text)))
	return hash
}

func (s *shelf) has(t *testing.T, hash string) bool {
	t.Helper()
	r, err := s.Open(t.Context(), hash)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	must(t, err)
	must(t, r.Close())
	return true
}

func outputs(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		path = filepath.Join(dir, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestOutputsBecomeArtifacts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := setup(t, db)
		dir := outputs(t, map[string]string{"report.md": "# R\n", "data/x.json": "{}", "run.sh": "#!/bin/sh\n", "page.html": "<html><script>evil()</script>",
			"drawing.svg": `<?xml version="1.0"?><svg onload="evil()"/>`, "picture.txt": "\x89PNG\r\n\x1a\n", "empty": "", "same.md": "# R\n"})
		must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
		o := artifact.Outputs{Tenant: tenant, Project: "p", Run: "run_1", Dir: dir}
		first, err := s.Keep(t.Context(), o)
		must(t, err)
		types := map[string]string{}
		for _, a := range first.Artifacts {
			types[a.Path] = a.MediaType
			if a.Executable != (a.Path == "run.sh") {
				t.Errorf("%s: executable = %v", a.Path, a.Executable)
			}
		}
		want := map[string]string{"report.md": "text/markdown; charset=utf-8", "same.md": "text/markdown; charset=utf-8", "data/x.json": "application/json",
			"run.sh": "text/plain; charset=utf-8", "page.html": "text/plain; charset=utf-8", "drawing.svg": "text/plain; charset=utf-8",
			"picture.txt": "image/png", "empty": "text/plain; charset=utf-8"}
		if diff := cmp.Diff(want, types); diff != "" {
			t.Errorf("media types (-want +got):\n%s", diff)
		}
		again, err := s.Keep(t.Context(), o)
		must(t, err)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("kept again (-first +again):\n%s", diff)
		}
		listed, err := s.OfRun(t.Context(), tenant, "run_1", "", 100)
		must(t, err)
		if diff := cmp.Diff(first.Artifacts, listed); diff != "" {
			t.Errorf("listed (-kept +listed):\n%s", diff)
		}
		a, r, err := s.Content(t.Context(), tenant, first.Artifacts[0].ID)
		must(t, err)
		defer r.Close()
		if data, err := io.ReadAll(r); err != nil || artifacttest.HashOf(data) != a.Hash || int64(len(data)) != a.Size {
			t.Errorf("content of %s: %q, %v", a.Path, data, err)
		}
	})
}

func TestOnlyRegularFilesBelowTheOutputDirectoryAreKept(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	s := setup(t, db)
	outside := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(outside, []byte("outside-canary"), 0o644))
	dir := outputs(t, map[string]string{"good": "1", "large": strings.Repeat("x", 2000), "z1": strings.Repeat("y", 900), "z2": "too many"})
	must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "linked")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644)) // reading it would wait for ever
	kept, err := s.Keep(t.Context(), artifact.Outputs{Tenant: tenant, Run: "run_1", Dir: dir, Limits: artifact.Limits{MaxFileBytes: 1000, MaxBytes: 905, MaxFiles: 10}})
	must(t, err)
	var paths, skipped []string
	for _, a := range kept.Artifacts {
		paths = append(paths, a.Path)
	}
	for _, k := range kept.Skipped {
		skipped = append(skipped, k.Path)
	}
	if diff := cmp.Diff([]string{"good", "z1"}, paths); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"large", "link", "linked", "pipe", "z2"}, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if s.has(t, artifacttest.HashOf([]byte("outside-canary"))) {
		t.Error("a file outside was kept")
	}
}

func TestArtifactsOfOthersAreNotFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := setup(t, db)
		kept, err := s.Keep(t.Context(), artifact.Outputs{Tenant: tenant, Project: "p", Run: "run_1", Dir: outputs(t, map[string]string{"a": "1"})})
		must(t, err)
		id := kept.Artifacts[0].ID
		for name, c := range map[string][2]string{"another tenant": {"rival", id}, "an id that is none": {tenant, "art_0"}} {
			_, err1 := s.Get(t.Context(), c[0], c[1])
			_, _, err2 := s.Content(t.Context(), c[0], c[1])
			err3 := s.Delete(t.Context(), c[0], c[1])
			for _, err := range []error{err1, err2, err3} {
				if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s: error = %v", name, err)
				}
			}
		}
		if _, err := s.Find(t.Context(), "rival", "run_1", "a"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Find: %v", err)
		}
		for name, list := range map[string]func() ([]artifact.Artifact, error){
			"of a run":     func() ([]artifact.Artifact, error) { return s.OfRun(t.Context(), "rival", "run_1", "", 10) },
			"of a project": func() ([]artifact.Artifact, error) { return s.OfProject(t.Context(), "rival", "p", "", 10) },
		} {
			if all, err := list(); err != nil || len(all) != 0 {
				t.Errorf("%s: %v, %v", name, all, err)
			}
		}
		must(t, s.DeleteRun(t.Context(), "rival", "run_1"))
		if n, err := s.DeleteBefore(t.Context(), "rival", "", time.Now().Add(time.Hour)); n != 0 || err != nil {
			t.Errorf("DeleteBefore = %d, %v", n, err)
		}
		if _, err := s.Get(t.Context(), tenant, id); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	})
}

func TestListsGoOnAfterTheLastOne(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := setup(t, db)
		files := map[string]string{}
		for _, name := range []string{"a", "B", "b", "a/b", "ä", "_", "a-b"} { // databases sort these each in its own way
			files["x"+name+"x"] = name
		}
		_, err := s.Keep(t.Context(), artifact.Outputs{Tenant: tenant, Project: "p", Run: "run_1", Dir: outputs(t, files)})
		must(t, err)
		for name, page := range map[string]func(after string) ([]artifact.Artifact, string, error){
			"of a run": func(after string) ([]artifact.Artifact, string, error) {
				all, err := s.OfRun(t.Context(), tenant, "run_1", after, 2)
				return all, last(all, func(a artifact.Artifact) string { return a.Path }), err
			},
			"of a project": func(after string) ([]artifact.Artifact, string, error) {
				all, err := s.OfProject(t.Context(), tenant, "p", after, 2)
				return all, last(all, func(a artifact.Artifact) string { return a.ID }), err
			},
		} {
			seen := map[string]bool{}
			for after := ""; ; {
				all, next, err := page(after)
				must(t, err)
				if len(all) == 0 {
					break
				}
				for _, a := range all {
					if seen[a.Path] {
						t.Fatalf("%s: %s twice", name, a.Path)
					}
					seen[a.Path] = true
				}
				after = next
			}
			if len(seen) != len(files) {
				t.Errorf("%s: %d artifacts, want %d", name, len(seen), len(files))
			}
		}
	})
}

func last(all []artifact.Artifact, key func(artifact.Artifact) string) string {
	if len(all) == 0 {
		return ""
	}
	return key(all[len(all)-1])
}

func TestCollectRemovesWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := setup(t, db)
		loose, held, used := s.put(t, "loose"), s.put(t, "held"), s.put(t, "used")
		must(t, s.Hold(t.Context(), artifact.Holder{Tenant: tenant, Kind: "run", ID: "run_1"}, held))
		kept, err := s.Keep(t.Context(), artifact.Outputs{Tenant: tenant, Run: "run_1", Dir: outputs(t, map[string]string{"a": "artifact"})})
		must(t, err)
		uses := func(_ context.Context, hashes []string) ([]string, error) { return []string{used}, nil }
		collect := func(want artifact.Collected) {
			t.Helper()
			got, err := s.Collect(t.Context(), 0, uses)
			must(t, err)
			if got != want {
				t.Errorf("collected %+v, want %+v", got, want)
			}
		}
		collect(artifact.Collected{}) // everything is young
		s.pass(25 * time.Hour)
		collect(artifact.Collected{Removed: 1, Kept: 1})
		for hash, want := range map[string]bool{loose: false, held: true, used: true, kept.Artifacts[0].Hash: true} {
			if s.has(t, hash) != want {
				t.Errorf("%s: there = %v, want %v", hash, !want, want)
			}
		}
		s.put(t, "loose") // as if it had never been
		if !s.has(t, loose) {
			t.Error("content that was removed cannot be put again")
		}
		must(t, s.Release(t.Context(), artifact.Holder{Tenant: "rival", Kind: "run", ID: "run_1"}))
		must(t, s.Release(t.Context(), artifact.Holder{Tenant: tenant, Kind: "run", ID: "run_1"}))
		must(t, s.Delete(t.Context(), tenant, kept.Artifacts[0].ID))
		s.pass(25 * time.Hour)
		collect(artifact.Collected{Removed: 3, Kept: 1})
	})
}

func TestAFailingQuestionRemovesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t, storetest.Open(t, storetest.SQLite(t)))
	hash := s.put(t, "x")
	s.pass(48 * time.Hour)
	broken := errors.New("the other rows cannot be read")
	if _, err := s.Collect(t.Context(), 0, func(context.Context, []string) ([]string, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error = %v", err)
	}
	if !s.has(t, hash) {
		t.Error("content is gone")
	}
}

func TestContentThatNobodyPutCannotBeHeld(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := setup(t, db)
		_, never := artifacttest.Content(1)
		if err := s.Hold(t.Context(), artifact.Holder{Tenant: tenant, Kind: "run", ID: "r"}, never); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("error = %v", err)
		}
		content, hash := artifacttest.Content(10)
		content[0]++
		if err := s.Put(t.Context(), hash, bytes.NewReader(content)); !errors.Is(err, artifact.ErrMismatch) {
			t.Errorf("Put = %v", err)
		}
		if err := s.Hold(t.Context(), artifact.Holder{Tenant: tenant, Kind: "run", ID: "r"}, hash); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("what could not be put is held: %v", err)
		}
	})
}

// cutOff is a place whose removals are cut off in their middle.
type cutOff struct {
	artifact.Blobs
	fail bool
}

func (c *cutOff) Delete(ctx context.Context, hash string) error {
	if c.fail {
		return errors.New("the process dies here")
	}
	return c.Blobs.Delete(ctx, hash)
}

func TestARemovalThatWasCutOffIsFinishedLater(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := setup(t, db)
		place := &cutOff{Blobs: s.folder, fail: true}
		s.Store = artifact.New(artifact.Config{DB: db, Blobs: place, Now: s.clock})
		one, two := s.put(t, "one"), s.put(t, "two")
		s.pass(48 * time.Hour)
		for range 2 { // each time one more is marked
			if _, err := s.Collect(t.Context(), 0); err == nil {
				t.Fatal("no error")
			}
		}
		first := min(one, two)
		text := map[string]string{one: "one", two: "two"}[first]
		if err := s.Put(t.Context(), first, strings.NewReader(text)); !errors.Is(err, artifact.ErrCondemned) {
			t.Errorf("content that is being removed can be put: %v", err)
		}
		place.fail = false
		s.pass(time.Hour) // whoever removed it is dead
		must(t, s.Put(t.Context(), first, strings.NewReader(text)))
		if done, err := s.Collect(t.Context(), 0); err != nil || done.Removed != 1 {
			t.Errorf("collected %+v, %v", done, err)
		}
		if !s.has(t, first) {
			t.Error("what was put again is gone")
		}
	})
}

// TestNothingIsLostWhileContentIsCollected puts and holds the same contents again and again while others remove them.
func TestNothingIsLostWhileContentIsCollected(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := setup(t, db)
		ctx, stop := context.WithCancel(t.Context())
		var collectors, putters sync.WaitGroup
		for range 2 {
			collectors.Go(func() {
				for ctx.Err() == nil {
					s.pass(30 * time.Minute)
					if _, err := s.Collect(ctx, artifact.MinGrace); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
		for p := range 3 {
			putters.Go(func() {
				for i := range 15 {
					h := artifact.Holder{Tenant: tenant, Kind: "test", ID: fmt.Sprint(p)}
					text := fmt.Sprint(i % 3)
					hash := artifacttest.HashOf([]byte(text))
					err := s.Put(ctx, hash, strings.NewReader(text))
					if err == nil {
						err = s.Hold(ctx, h, hash)
					}
					if errors.Is(err, artifact.ErrCondemned) || errors.Is(err, store.ErrNotFound) {
						continue // it was removed just then, and that is said
					}
					if err != nil {
						t.Error(err)
						return
					}
					if !s.has(t, hash) {
						t.Errorf("content that is held is gone")
					}
					if err := s.Release(ctx, h); err != nil {
						t.Error(err)
					}
				}
			})
		}
		putters.Wait()
		stop()
		collectors.Wait()
	})
}

func TestAPlaceAndItsRowsCanBeReconciled(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := setup(t, db)
		lost, there := s.put(t, "lost"), s.put(t, "there")
		must(t, s.folder.Delete(t.Context(), lost))
		unknown := artifacttest.HashOf([]byte("unknown"))
		must(t, s.folder.Put(t.Context(), unknown, strings.NewReader("unknown")))
		found, err := s.Reconcile(t.Context())
		must(t, err)
		if diff := cmp.Diff(artifact.Reconciled{Lost: []string{lost}, Unknown: 1}, found); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		s.put(t, "lost")
		if !s.has(t, lost) || !s.has(t, there) {
			t.Error("lost content cannot be put again")
		}
		s.pass(48 * time.Hour)
		if done, err := s.Collect(t.Context(), 0); err != nil || done.Removed != 3 {
			t.Errorf("collected %+v, %v", done, err)
		}
	})
}

func TestADownloadCanBeAskedForInParts(t *testing.T) {
	t.Parallel()
	s := setup(t, storetest.Open(t, storetest.SQLite(t)))
	text := strings.Repeat("0123456789", 10_000)
	kept, err := s.Keep(t.Context(), artifact.Outputs{Tenant: tenant, Run: "run_1", Dir: outputs(t, map[string]string{"a": text})})
	must(t, err)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.Header.Set("Range", "bytes=50005-50014")
	a, r, err := s.Content(t.Context(), tenant, kept.Artifacts[0].ID)
	must(t, err)
	defer r.Close()
	recorder := httptest.NewRecorder()
	http.ServeContent(recorder, request, a.Path, a.CreatedAt, r)
	if got := recorder.Body.String(); recorder.Code != http.StatusPartialContent || got != "5678901234" {
		t.Errorf("%d %q", recorder.Code, got)
	}
}

func TestManyContentsArePutAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := setup(t, db)
		var all []artifact.Content
		opened := map[string]int{}
		var mu sync.Mutex
		for i := range 1200 {
			text := fmt.Sprint(i % 1100)
			hash := artifacttest.HashOf([]byte(text))
			all = append(all, artifact.Content{Hash: hash, Open: func() (io.ReadCloser, error) {
				mu.Lock()
				defer mu.Unlock()
				opened[hash]++
				return io.NopCloser(strings.NewReader(text)), nil
			}})
		}
		for range 2 {
			must(t, s.PutAll(t.Context(), all))
		}
		if len(opened) != 1100 {
			t.Errorf("%d contents were opened", len(opened))
		}
		for hash, n := range opened {
			if n != 1 || !s.has(t, hash) {
				t.Errorf("%s was opened %d times", hash, n)
			}
		}
		broken := errors.New("gone")
		_, hash := artifacttest.Content(4)
		if err := s.PutAll(t.Context(), []artifact.Content{{Hash: hash, Open: func() (io.ReadCloser, error) { return nil, broken }}}); !errors.Is(err, broken) {
			t.Errorf("error = %v", err)
		}
	})
}
