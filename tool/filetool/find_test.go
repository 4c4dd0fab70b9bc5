package filetool

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindListsFilesAndDirectoriesInPathOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"a/x.go", "a/sub/y.go", "a-b.go", "b/Z.go", ".hidden/h.go", "doc/readme.md"} {
		d.put(t, "src/"+name, "")
	}
	for _, c := range []struct {
		arguments args
		want      []string
	}{
		{args{"pattern": "*.go"}, []string{"src/.hidden/h.go", "src/a/sub/y.go", "src/a/x.go", "src/a-b.go", "src/b/Z.go"}},
		{args{"pattern": "a/**/*.go"}, []string{"src/a/sub/y.go", "src/a/x.go"}},
		{args{"pattern": "./a/*.go"}, []string{"src/a/x.go"}},
		{args{"pattern": "/*.go"}, []string{"src/a-b.go"}},
		{args{"pattern": "*.go", "path": "src/a"}, []string{"src/a/sub/y.go", "src/a/x.go"}},
		{args{"pattern": "sub/*", "path": "src/a"}, []string{"src/a/sub/y.go"}},
		{args{"pattern": "a/*", "path": "src/a"}, []string{"No files found."}},
		{args{"pattern": "sub"}, []string{"src/a/sub/"}},
		{args{"pattern": "?"}, []string{"src/a/", "src/b/"}},
		{args{"pattern": "*", "path": "src/a"}, []string{"src/a/sub/", "src/a/sub/y.go", "src/a/x.go"}},
		{args{"pattern": "z.go"}, []string{"src/b/Z.go"}},
		{args{"pattern": "Z.go"}, []string{"src/b/Z.go"}},
		{args{"pattern": "X.go"}, []string{"No files found."}},
		{args{"pattern": "readme.{md,txt}"}, []string{"src/doc/readme.md"}},
		{args{"pattern": "{a,doc}/**"}, []string{"src/a/", "src/a/sub/", "src/a/sub/y.go", "src/a/x.go", "src/doc/", "src/doc/readme.md"}},
	} {
		r := d.find(t, c.arguments)
		if diff := cmp.Diff(strings.Join(c.want, "\n"), strings.TrimSuffix(r.Text, "\n")); diff != "" {
			t.Errorf("find %v (-want +got):\n%s", c.arguments, diff)
		}
	}
}

func TestFindStopsAtTheLimitAndSaysSoOnlyIfThereIsMore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 4 {
		d.put(t, fmt.Sprintf("src/f%d", i), "")
	}
	checkText(t, d.find(t, args{"pattern": "f*", "limit": 3}), "src/f0", "src/f1", "src/f2", "",
		"[The first 3 paths, there are more. Use limit=6 for more, or a narrower pattern or path.]")
	checkText(t, d.find(t, args{"pattern": "f*", "limit": 4}), "src/f0", "src/f1", "src/f2", "src/f3")
	checkText(t, d.find(t, args{"pattern": "f3", "limit": 0}), "src/f3", "", "[limit 0 was taken as 1.]")
}

func TestFindKeepsRulesOfSiblingsApart(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/one/.gitignore", "*.txt\n")
	d.put(t, "src/one/a.txt", "")
	d.put(t, "src/two/a.txt", "")
	d.put(t, "src/.git/a.txt", "")
	checkText(t, d.find(t, args{"pattern": "*.txt"}), "src/two/a.txt")
	d.put(t, "src/.gitignore", "two/\n")
	checkText(t, d.find(t, args{"pattern": "*.txt"}), "No files found.")
	checkText(t, d.find(t, args{"pattern": "*.txt", "path": "src/two"}), "src/two/a.txt")
}

func TestFindRefusesPatternsWithAdvice(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "")
	for _, c := range []struct {
		arguments args
		want      string
	}{
		{args{"pattern": ""}, "use * for everything"},
		{args{"pattern": "./"}, "use * for everything"},
		{args{"pattern": "dir/"}, `"dir"`},
		{args{"pattern": "../*.go"}, "as path"},
		{args{"pattern": "a/../b"}, "as path"},
		{args{"pattern": "[a"}, "no valid pattern"},
		{args{"pattern": "{a"}, "brace"},
		{args{"pattern": "*", "path": "src/a"}, "not a directory"},
		{args{"pattern": "*", "path": "src/none"}, "src/none"},
	} {
		r := d.call(t, newFind(), c.arguments)
		if !r.IsError || !strings.Contains(r.Text, c.want) {
			t.Errorf("find %v: error %v, %q, want a refusal with %q", c.arguments, r.IsError, r.Text, c.want)
		}
	}
}

// TestSearchesNeverFollowLinksOrOpenSpecialFiles puts everything into the tree that could lead out of it, run in circles or
// block, and lets a canary outside tell whether it did.
func TestSearchesNeverFollowLinksOrOpenSpecialFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const canary = "canary-5d1f"
	d.put(t, "outside/secret.txt", canary+"\n")
	d.put(t, "src/plain.txt", "plain "+canary[:6]+"\n")
	for link, target := range map[string]string{
		"src/dirlink": d.root + "/outside", "src/rel": "../outside", "src/file.txt": "../outside/secret.txt", "src/up": "..", "src/self": ".",
		"src/loop": "loop", "src/procroot": "/proc/self/root", "src/dangling.txt": "nowhere", "src/zero.txt": "/dev/zero",
	} {
		if err := os.Symlink(target, filepath.Join(d.root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(d.src, "pipe.txt"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(d.src, "s.txt"))
	if err != nil {
		t.Skipf("no socket in the test directory: %v", err)
	}
	defer listener.Close()

	checkText(t, d.grep(t, args{"pattern": "canary"}), "src/plain.txt:1: plain canary")
	r := d.find(t, args{"pattern": "**/*.txt"})
	checkText(t, r, "src/dangling.txt", "src/file.txt", "src/pipe.txt", "src/plain.txt", "src/s.txt", "src/zero.txt")
	for _, path := range []string{"src/dirlink", "src/rel", "src/up", "src/procroot", "src/file.txt", "src/pipe.txt", "src/s.txt", "src/zero.txt", "src/loop"} {
		r := d.call(t, newGrep(), args{"pattern": "canary|root", "path": path})
		if !r.IsError || strings.Contains(r.Text, canary) {
			t.Errorf("grep of %s: error %v, %q, want a refusal", path, r.IsError, r.Text)
		}
	}
}

func TestNamesThatCouldDeceiveAreShownEscaped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	names := map[string]string{
		"nl\nx:1: forged":        `nl\nx:1: forged`,
		"esc\x1b[31m":            `esc\x1b[31m`,
		"cr\r":                   `cr\r`,
		"bidi\u202e":             `bidi\u202e`,
		"bad\xff":                `bad\xff`,
		"trail ":                 `trail\x20`,
		"dot.":                   `dot.`,
		strings.Repeat("n", 255): strings.Repeat("n", 255),
	}
	for name, shown := range names {
		full := filepath.Join(d.src, name)
		if err := os.WriteFile(full, []byte("needle\n"), 0o644); err != nil {
			if strings.Contains(name, "\xff") {
				continue // some file systems take valid UTF-8 only
			}
			t.Fatal(err)
		}
		if r := d.find(t, args{"pattern": "*"}); !strings.Contains(r.Text, "src/"+shown+"\n") {
			t.Errorf("find does not list %q as %q:\n%s", name, shown, r.Text)
		}
		r := d.grep(t, args{"pattern": "needle"})
		if !strings.Contains(r.Text, "src/"+shown+":1: needle\n") {
			t.Errorf("grep does not show %q as %q:\n%s", name, shown, r.Text)
		}
		if strings.ContainsAny(r.Text, "\x1b\r\u202e") {
			t.Errorf("grep shows %q raw", name)
		}
		if err := os.Remove(full); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSearchesOfHugeDirectoriesAndDeepTreesEnd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("creates many files")
	}
	d := newDesk(t)
	wide := filepath.Join(d.src, "wide")
	if err := os.Mkdir(wide, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(wide, "parent")); err != nil {
		t.Fatal(err)
	}
	const files = 3_000
	first := filepath.Join(wide, "f00000")
	if err := os.WriteFile(first, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < files; i++ {
		if err := os.Link(first, filepath.Join(wide, fmt.Sprintf("f%05d", i))); err != nil {
			t.Skipf("no hard links here: %v", err)
		}
	}
	deep := d.src
	for range 400 {
		deep += "/d"
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	r := d.find(t, args{"pattern": "**/**/**/**/f*", "limit": 2})
	if !strings.HasPrefix(r.Text, "src/wide/f00000\nsrc/wide/f00001\n\n") || !strings.Contains(r.Text, "there are more") {
		t.Errorf("find in a wide directory:\n%s", r.Text)
	}
	r = d.find(t, args{"pattern": "**/**/**/**/x"})
	if !strings.Contains(r.Text, "No files found.") || !strings.Contains(r.Text, "more than 256 levels deep") {
		t.Errorf("find in a deep tree does not say what it left out:\n%s", r.Text)
	}
	r = d.grep(t, args{"pattern": "needle"})
	if !strings.Contains(r.Text, "No matches found.") || !strings.Contains(r.Text, "The search is incomplete") {
		t.Errorf("grep in a deep tree does not say what it left out:\n%s", r.Text)
	}
}

func TestFindCutsResultsAt50KB(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 300 {
		d.put(t, fmt.Sprintf("src/%s%03d", strings.Repeat("é", 100), i), "")
	}
	r := d.find(t, args{"pattern": "*"})
	body, bracket, _ := strings.Cut(r.Text, "\n\n")
	if len(body) > maxBytes || !strings.Contains(bracket, "cut at 50 KB") {
		t.Errorf("result of %d bytes with notice %q", len(body), bracket)
	}
	if last := body[strings.LastIndexByte(body, '\n')+1:]; len(last) != len("src/")+203 {
		t.Errorf("the last path is cut: %q", last)
	}
}
