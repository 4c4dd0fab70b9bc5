package walk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/workspace/walk"
)

// funcs is a visitor made of two functions; a nil want takes everything but
// directories.
type funcs struct {
	want  func(path string, kind walk.Kind) bool
	visit func(ctx context.Context, e *walk.Entry) (string, int)
}

func (f funcs) Want(path []byte, kind walk.Kind) bool {
	if f.want == nil {
		return kind != walk.Directory
	}
	return f.want(string(path), kind)
}

func (f funcs) Visit(ctx context.Context, e *walk.Entry) (string, int) {
	if f.visit == nil {
		return e.Path(), 1
	}
	return f.visit(ctx, e)
}

// collect walks and returns the delivered results, at most limit if that is
// positive.
func collect(t *testing.T, c walk.Config, f funcs, limit int) ([]string, walk.Report) {
	t.Helper()
	var got []string
	report, err := walk.Walk(t.Context(), c, func() walk.Visitor[string] { return f }, func(s string) bool {
		got = append(got, s)
		return limit <= 0 || len(got) < limit
	})
	if err != nil {
		t.Fatalf("Walk: %v", err)
	}
	return got, report
}

// makeTree creates files, given as paths with slashes and their content.
// A path that ends with a slash is a directory.
func makeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(full, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		must(t, os.WriteFile(full, []byte(content), 0o644))
	}
	return dir
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// randomTree makes a few hundred files in directories whose names are close in
// order, and returns the paths as filepath.WalkDir orders them.
func randomTree(t *testing.T, seed uint64) (dir string, files []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	names := []string{"a", "a-b", "a.b", "ab", "b", "Z", "é", "a b", "0", "~"}
	tree := map[string]string{}
	for range 400 {
		elements := make([]string, 1+rng.IntN(5))
		for i := range elements {
			elements[i] = names[rng.IntN(len(names))] + "d"
		}
		elements[len(elements)-1] = names[rng.IntN(len(names))] + fmt.Sprint(rng.IntN(9))
		tree[strings.Join(elements, "/")] = ""
	}
	dir = makeTree(t, tree)
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	return dir, files
}

func TestResultsComeInPathOrderWhateverTheWorkersDo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		dir, want := randomTree(t, seed)
		for _, workers := range []int{1, 2, 7} {
			slow := funcs{visit: func(_ context.Context, e *walk.Entry) (string, int) {
				for range len(e.Path()) % 5 {
					runtime.Gosched() // makes the workers overtake each other
				}
				return e.Path(), 1
			}}
			got, report := collect(t, walk.Config{Dir: openRoot(t, dir), Workers: workers, MaxPending: 3}, slow, 0)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d workers, seed %d (-want +got):\n%s", workers, seed, diff)
			}
			if diff := cmp.Diff(walk.Report{}, report); diff != "" {
				t.Errorf("report of a complete walk:\n%s", diff)
			}
		}
	}
}

func TestFirstResultsAreTheRightOnesForAnyLimit(t *testing.T) {
	t.Parallel()
	dir, want := randomTree(t, 42)
	for limit := 1; limit < len(want); limit += 7 {
		got, _ := collect(t, walk.Config{Dir: openRoot(t, dir), Workers: 4}, funcs{}, limit)
		if diff := cmp.Diff(want[:limit], got); diff != "" {
			t.Fatalf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestWalkStopsSoonAfterTheReaderHasEnough(t *testing.T) {
	t.Parallel()
	tree := map[string]string{}
	for i := range 900 {
		tree[fmt.Sprintf("d%02d/f%04d", i/100, i)] = ""
	}
	var visited atomic.Int64
	count := funcs{visit: func(_ context.Context, e *walk.Entry) (string, int) {
		visited.Add(1)
		return e.Path(), 1
	}}
	// However slow the worker with the first file is, the other one may only
	// run ahead until the results that wait are as large as allowed.
	collect(t, walk.Config{Dir: openRoot(t, makeTree(t, tree)), Workers: 2, MaxPending: 10}, count, 1)
	if n := visited.Load(); n > 200 {
		t.Errorf("visited %d files for one result, want it to stop early", n)
	}
}

func TestDirectoriesAreDeliveredBeforeTheirContent(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"a/x": "", "a/sub/y": "", "a-b": "", "empty/": ""})
	all := funcs{want: func(string, walk.Kind) bool { return true }}
	got, _ := collect(t, walk.Config{Dir: openRoot(t, dir)}, all, 0)
	if diff := cmp.Diff([]string{"a", "a/sub", "a/sub/y", "a/x", "a-b", "empty"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIgnoreRulesAreReadOnTheWayDown(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{
		".git/HEAD": "", ".git/info/exclude": "excluded\n", ".gitignore": "!.git\n*.log\nout/\n", "a.log": "", "a.txt": "", "excluded": "",
		"out/x.txt": "", "sub/.gitignore": "!keep.log\nlocal\n", "sub/keep.log": "", "sub/b.log": "", "sub/local": "", "local": "",
		"sibling/local": "", ".ignore": "secret\n", "sub/secret": "", "worktree/.git": "gitdir: elsewhere", "worktree/c.log": "",
	})
	got, _ := collect(t, walk.Config{Dir: openRoot(t, dir)}, funcs{}, 0)
	want := []string{".gitignore", ".ignore", "a.txt", "local", "sibling/local", "sub/.gitignore", "sub/keep.log", "worktree/c.log"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRulesOfTheDirectoriesAboveHold(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{
		".gitignore": "/a/b/anchored\n*.log\n", "a/.gitignore": "b/x\n", "a/b/x": "", "a/b/y": "", "a/b/anchored": "", "a/b/z.log": "", "a/b/c/d": "",
	})
	top := openRoot(t, dir)
	sub, err := top.OpenRoot("a/b")
	must(t, err)
	defer sub.Close()
	got, _ := collect(t, walk.Config{Dir: sub, Path: "a/b", Ignore: walk.Above(top, "a/b")}, funcs{}, 0)
	if diff := cmp.Diff([]string{"c/d", "y"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNamedDirectoryIsWalkedAlthoughItsParentsIgnoreIt(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{".gitignore": "out/**\nvendor\n*.log\n", "out/a/x": "", "out/a/y.log": "", "vendor/p/z": "", "src/x.log": "", "src/y": ""})
	top := openRoot(t, dir)
	for name, want := range map[string][]string{"out/a": {"x", "y.log"}, "vendor/p": {"z"}, "src": {"y"}} {
		sub, err := top.OpenRoot(name)
		must(t, err)
		got, _ := collect(t, walk.Config{Dir: sub, Path: name, Ignore: walk.Above(top, name)}, funcs{}, 0)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		must(t, sub.Close())
	}
}

func TestBoundsEndTheWalkAndAreReported(t *testing.T) {
	t.Parallel()
	tree := map[string]string{"deep/1/2/3/4/x": ""}
	for i := range 50 {
		tree[fmt.Sprintf("wide/f%02d", i)] = ""
	}
	dir := makeTree(t, tree)
	for name, c := range map[string]struct {
		config walk.Config
		reason string
	}{
		"entries in all":           {walk.Config{MaxEntries: 20}, "stopped after 20 directory entries"},
		"entries of one directory": {walk.Config{MaxListing: 10}, "only 10 entries of a single directory"},
		"depth":                    {walk.Config{MaxDepth: 3}, "more than 3 levels deep"},
		"no time":                  {walk.Config{MaxTime: time.Nanosecond}, "stopped after 1ns"},
	} {
		c.config.Dir = openRoot(t, dir)
		got, report := collect(t, c.config, funcs{}, 0)
		if len(got) >= 51 {
			t.Errorf("%s: all %d files were delivered", name, len(got))
		}
		if len(report.Partial) != 1 || !strings.Contains(report.Partial[0], c.reason) {
			t.Errorf("%s: Partial = %q, want a reason with %q", name, report.Partial, c.reason)
		}
	}
}

func TestPanicOfAVisitorIsRaisedInTheCaller(t *testing.T) {
	t.Parallel()
	dir, _ := randomTree(t, 6)
	f := funcs{visit: func(_ context.Context, e *walk.Entry) (string, int) { panic("broken visitor") }}
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "broken visitor") {
			t.Errorf("Walk panicked with %q, want the visitor's panic", v)
		}
	}()
	collect(t, walk.Config{Dir: openRoot(t, dir), Workers: 3}, f, 0)
}

func TestRulesThatCannotBeReadAreReportedAndTheWalkGoesOn(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{".gitignore": strings.Repeat("#", 2<<20), "sub/.gitignore": "x\n", "sub/x": "", "a": ""})
	got, report := collect(t, walk.Config{Dir: openRoot(t, dir)}, funcs{}, 0)
	if diff := cmp.Diff([]string{".gitignore", "a", "sub/.gitignore"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(report.Problems) != 1 || !strings.Contains(report.Problems[0].Err.Error(), "its .gitignore is not applied") {
		t.Errorf("Problems = %v, want one about .gitignore", report.Problems)
	}
}

func TestNothingOutsideIsReachedWhileDirectoriesAreSwappedForLinks(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"in/d/f": "inside", "in/e/f": "inside", "out/f": "canary", "out/g": "canary"})
	root := openRoot(t, filepath.Join(dir, "in"))
	target, spare, link := filepath.Join(dir, "in/d"), filepath.Join(dir, "spare"), filepath.Join(dir, "link")
	must(t, os.Symlink(filepath.Join(dir, "out"), link))
	done := make(chan struct{})
	swapped := make(chan struct{})
	go func() { // renames the directory away, puts the link in its place, and back
		defer close(swapped)
		for {
			select {
			case <-done:
				return
			default:
			}
			_ = os.Rename(target, spare)
			_ = os.Rename(link, target)
			_ = os.Rename(target, link)
			_ = os.Rename(spare, target)
		}
	}()
	read := funcs{want: func(_ string, k walk.Kind) bool { return k == walk.Regular }, visit: func(_ context.Context, e *walk.Entry) (string, int) {
		f, ok := e.Open()
		if !ok {
			return "", 0
		}
		defer f.Close()
		content, err := io.ReadAll(f)
		return fmt.Sprint(string(content), err), 1
	}}
	for range 500 {
		got, _ := collect(t, walk.Config{Dir: root, Workers: 2}, read, 0)
		for _, content := range got {
			if content != "inside<nil>" {
				t.Fatalf("read %q", content)
			}
		}
	}
	close(done)
	<-swapped
}

func TestCancelledWalkReturnsTheContextsError(t *testing.T) {
	t.Parallel()
	dir, _ := randomTree(t, 5)
	ctx, cancel := context.WithCancel(t.Context())
	f := funcs{visit: func(ctx context.Context, e *walk.Entry) (string, int) {
		cancel()
		<-ctx.Done()
		return e.Path(), 1
	}}
	_, err := walk.Walk(ctx, walk.Config{Dir: openRoot(t, dir)}, func() walk.Visitor[string] { return f }, func(string) bool { return true })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want context.Canceled", err)
	}
}

func TestUnreadableEntriesAreReportedAndTheRestIsWalked(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("the superuser can read everything")
	}
	dir := makeTree(t, map[string]string{"a/x": "", "b/y": "text", "c": ""})
	must(t, os.Chmod(filepath.Join(dir, "a"), 0))
	must(t, os.Chmod(filepath.Join(dir, "b/y"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "a"), 0o755) })
	read := funcs{visit: func(_ context.Context, e *walk.Entry) (string, int) {
		f, ok := e.Open()
		if !ok {
			return "", 0
		}
		defer f.Close()
		return e.Path(), 1
	}}
	got, report := collect(t, walk.Config{Dir: openRoot(t, dir)}, read, 0)
	if diff := cmp.Diff([]string{"c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if report.Unreadable != 2 || len(report.Problems) != 2 || report.Problems[0].Path != "a" || report.Problems[1].Path != "b/y" {
		t.Errorf("report = %+v, want problems for a and b/y", report)
	}
}

func TestFileReadsAsFarAsItsSizeWhenOpened(t *testing.T) {
	t.Parallel()
	dir := makeTree(t, map[string]string{"f": "0123456789"})
	grow := funcs{visit: func(_ context.Context, e *walk.Entry) (string, int) {
		f, ok := e.Open()
		if !ok {
			return "not opened", 1
		}
		defer f.Close()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("0123456789 and more"), 0o644); err != nil {
			return err.Error(), 1
		}
		content, err := io.ReadAll(f)
		return fmt.Sprintf("%s %d %v", content, f.Size(), err), 1
	}}
	got, _ := collect(t, walk.Config{Dir: openRoot(t, dir)}, grow, 0)
	if diff := cmp.Diff([]string{"0123456789 10 <nil>"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOpenDescriptorsAreAllClosed(t *testing.T) {
	// Not parallel: it counts the descriptors of the whole process.
	const table = "/proc/self/fd"
	if _, err := os.Stat(table); err != nil {
		t.Skip("needs " + table)
	}
	count := func() int {
		entries, err := os.ReadDir(table)
		must(t, err)
		return len(entries)
	}
	dir, files := randomTree(t, 8)
	root := openRoot(t, dir)
	before := count()
	for limit := range 20 {
		collect(t, walk.Config{Dir: root, Workers: 3}, funcs{}, limit*len(files)/20)
		collect(t, walk.Config{Dir: root, Workers: 3, MaxEntries: 1 + limit*10}, funcs{}, 0)
		collect(t, walk.Config{Dir: root, Workers: 3, MaxTime: time.Duration(1+limit) * 100 * time.Microsecond}, funcs{}, 0)
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors open after the walks, %d before", after, before)
	}
}
