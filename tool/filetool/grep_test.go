package filetool

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// grep runs the tool and fails the test if the call fails.
func (d *desk) grep(t testing.TB, a args) tool.Result {
	t.Helper()
	r := d.call(t, newGrep(), a)
	if r.IsError {
		t.Fatalf("grep %v: %s", a, r.Text)
	}
	return r
}

func (d *desk) find(t testing.TB, a args) tool.Result {
	t.Helper()
	r := d.call(t, newFind(), a)
	if r.IsError {
		t.Fatalf("find %v: %s", a, r.Text)
	}
	return r
}

// checkText compares the text of a result with lines.
func checkText(t testing.TB, r tool.Result, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.TrimSuffix(r.Text, "\n")); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestGrepShowsPathLineAndTextInPathOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/b.go", "x\nfoo 1\n")
	d.put(t, "src/a-z.go", "foo 2\r\nfoo 3")
	d.put(t, "src/a/sub/c.go", "\tfoo 4\n")
	d.put(t, "out/d.go", "foo 5\n")
	checkText(t, d.grep(t, args{"pattern": "foo"}),
		"src/a/sub/c.go:1: \tfoo 4", "src/a-z.go:1: foo 2", "src/a-z.go:2: foo 3", "src/b.go:2: foo 1")
}

func TestGrepPathsCanBeReadAsShown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/pkg/deep/name.go", "needle\n")
	for _, path := range []string{"", "src", "src/pkg", "./src//pkg/deep/", d.src + "/pkg", "src/pkg/deep/name.go"} {
		a := args{"pattern": "needle"}
		if path != "" {
			a["path"] = path
		}
		checkText(t, d.grep(t, a), "src/pkg/deep/name.go:1: needle")
	}
	if r := d.call(t, newRead(), args{"path": "src/pkg/deep/name.go"}); r.IsError {
		t.Errorf("read of the path shown: %s", r.Text)
	}
}

func TestGrepWithoutPathSearchesTheFirstReadableDirectoryOnly(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "needle\n")
	d.put(t, "more/b", "needle\n")
	w, err := workspace.Open(workspace.Config{Root: d.root, ReadOnly: []string{d.src, d.root + "/more"}, OutDir: d.out})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d.env = &tool.Env{Workspace: w}
	checkText(t, d.grep(t, args{"pattern": "needle"}), "src/a:1: needle")
	checkText(t, d.grep(t, args{"pattern": "needle", "path": "more"}), "more/b:1: needle")
}

func TestGrepShowsAllMatchesOfAFileUpToTheLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "m1\nm2\nm3\n")
	d.put(t, "src/b", "m4\n")
	const more = "[The first %s, there are more. Use limit=%d for more, or a narrower pattern, path or glob.]"
	for limit, want := range map[int][]string{
		1: {"src/a:1: m1", "", fmt.Sprintf(more, "1 match", 2)},
		2: {"src/a:1: m1", "src/a:2: m2", "", fmt.Sprintf(more, "2 matches", 4)},
		3: {"src/a:1: m1", "src/a:2: m2", "src/a:3: m3", "", fmt.Sprintf(more, "3 matches", 6)},
		4: {"src/a:1: m1", "src/a:2: m2", "src/a:3: m3", "src/b:1: m4"},
		5: {"src/a:1: m1", "src/a:2: m2", "src/a:3: m3", "src/b:1: m4"},
	} {
		checkText(t, d.grep(t, args{"pattern": "m", "limit": limit}), want...)
	}
	checkText(t, d.grep(t, args{"pattern": "m", "limit": 0, "path": "src/b"}), "src/b:1: m4", "", "[limit 0 was taken as 1.]")
}

func TestGrepShowsTheContextOfTheLastMatchAndNoFurtherMatchAsOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "1\nm2\nm3\n4\n5\nm6\n")
	r := d.grep(t, args{"pattern": "m", "limit": 1, "context": 2})
	checkText(t, r, "src/a-1- 1", "src/a:2: m2", "src/a-3- m3", "src/a-4- 4", "",
		"[The first 1 match, there are more. Use limit=2 for more, or a narrower pattern, path or glob.]")
	r = d.grep(t, args{"pattern": "m", "limit": 2, "context": 1})
	checkText(t, r, "src/a-1- 1", "src/a:2: m2", "src/a:3: m3", "src/a-4- 4", "",
		"[The first 2 matches, there are more. Use limit=4 for more, or a narrower pattern, path or glob.]")
}

func TestGrepKeepsLineNumbersRightDespiteLoneCarriageReturns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "a\rb\nc\nneedle\n")
	checkText(t, d.grep(t, args{"pattern": "needle", "context": 1}), "src/a-2- c", "src/a:3: needle")
}

func TestGrepPatternBeginningWithADashIsAPattern(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "a --version b\n")
	checkText(t, d.grep(t, args{"pattern": "--version"}), "src/a:1: a --version b")
	checkText(t, d.grep(t, args{"pattern": "-v", "literal": true}), "src/a:1: a --version b")
}

func TestGrepGlobIsRelativeToPath(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"a.go", "a_test.go", "a.ts", "cmd/b.go", "cmd/x/c.go", "cmd/x/c.md"} {
		d.put(t, "src/"+name, "needle\n")
	}
	for _, c := range []struct {
		path, glob string
		want       []string
	}{
		{"", "*.go", []string{"a.go", "a_test.go", "cmd/b.go", "cmd/x/c.go"}},
		{"src", "./cmd/**/*.go", []string{"cmd/b.go", "cmd/x/c.go"}},
		{"src/cmd", "*/*.go", []string{"cmd/x/c.go"}},
		{"src/cmd", "cmd/*.go", nil},
		{"src", "!*.go", []string{"a.ts", "cmd/x/c.md"}},
		{"src", "!./cmd/**", []string{"a.go", "a.ts", "a_test.go"}},
		{"src", "*.{ts,md}", []string{"a.ts", "cmd/x/c.md"}},
		{"src", "/*.go", []string{"a.go", "a_test.go"}},
		{"src", "[!a]*", []string{"cmd/b.go", "cmd/x/c.go", "cmd/x/c.md"}},
		{"src", "?.TS", nil},
	} {
		a := args{"pattern": "needle", "glob": c.glob}
		if c.path != "" {
			a["path"] = c.path
		}
		var want []string
		for _, name := range c.want {
			want = append(want, "src/"+name+":1: needle")
		}
		if want == nil {
			want = []string{"No matches found.", "", fmt.Sprintf("[No file matches the glob, which is relative to %q.]", c.path)}
		}
		checkText(t, d.grep(t, a), want...)
	}
}

func TestGrepSaysThatGlobDoesNotApplyToANamedFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a.txt", "needle\n")
	checkText(t, d.grep(t, args{"pattern": "needle", "path": "src/a.txt", "glob": "*.go"}),
		"src/a.txt:1: needle", "", "[glob was not applied, as path names a file.]")
}

func TestGrepHonoursIgnoreRulesUnlessAFileOrDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, content := range map[string]string{
		".gitignore": "*.log\n/dist/\n", "a.go": "", "b.log": "", "dist/c.js": "", ".git/config": "", "pkg/.ignore": "gen.go\n", "pkg/gen.go": "", "pkg/e.go": "", ".github/f.yml": "",
	} {
		d.put(t, "src/"+name, content+"needle\n")
	}
	checkText(t, d.grep(t, args{"pattern": "needle"}), "src/.github/f.yml:1: needle", "src/.gitignore:3: needle", "src/a.go:1: needle", "src/pkg/.ignore:2: needle", "src/pkg/e.go:1: needle")
	checkText(t, d.grep(t, args{"pattern": "needle", "path": "src/b.log"}), "src/b.log:1: needle")
	checkText(t, d.grep(t, args{"pattern": "needle", "path": "src/dist"}), "src/dist/c.js:1: needle")
	checkText(t, d.grep(t, args{"pattern": "needle", "path": "src/pkg", "glob": "*.go"}), "src/pkg/e.go:1: needle")
}

func TestGrepReportsTheRangesOfLinesShown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "1\n2\nm\n4\n5\n6\n7\nm\nm\n10\n")
	d.put(t, "src/b", "m\n")
	r := d.grep(t, args{"pattern": "m", "context": 1})
	want := []tool.SourceRead{{Path: "src/a", From: 2, To: 4}, {Path: "src/a", From: 7, To: 10}, {Path: "src/b", From: 1, To: 1}}
	if diff := cmp.Diff(want, r.Reads); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
}

func TestGrepWithoutMatchesIsNoFailureAndSaysWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "text\n")
	checkText(t, d.grep(t, args{"pattern": "needle"}), "No matches found.")
	d.put(t, "src/bin", "needle\x00")
	checkText(t, d.grep(t, args{"pattern": "needle"}), "No matches found.", "", "[Not searched, as they hold no text: 1 file.]")
	checkText(t, d.grep(t, args{"pattern": "needle", "path": "src/bin"}), `["src/bin" holds no text and was not searched.]`)
}

func TestGrepRefusesPatternsWithAdvice(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "text\n")
	for _, c := range []struct {
		arguments args
		want      string
	}{
		{args{"pattern": `foo(?=bar)`}, "look-ahead"},
		{args{"pattern": `(?<!foo)bar`}, "look-behind"},
		{args{"pattern": `(a)\1`}, "back-references"},
		{args{"pattern": `foo(`}, "literal to true"},
		{args{"pattern": ``}, "empty"},
		{args{"pattern": `a\nb`}, "within one line"},
		{args{"pattern": "x", "glob": "[a"}, "glob: "},
		{args{"pattern": "x", "glob": "../*"}, "give the directory to search as path"},
		{args{"pattern": "x", "glob": "{a,b"}, "brace"},
		{args{"pattern": "x", "glob": strings.Repeat("{a,b}", 20)}, "more than 100 alternatives"},
		{args{"pattern": "x", "path": "nowhere"}, "nowhere"},
		{args{"pattern": "x", "path": "../other"}, "outside"},
		{args{"pattern": "x", "path": "/etc"}, "outside"},
	} {
		r := d.call(t, newGrep(), c.arguments)
		if !r.IsError || !strings.Contains(r.Text, c.want) {
			t.Errorf("grep %v: error %v, %q, want a refusal with %q", c.arguments, r.IsError, r.Text, c.want)
		}
	}
}

func TestGrepCutsResultsAt50KBAndLinesAt500CharactersAtRuneBorders(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", strings.Repeat(strings.Repeat("😀", 600)+"\n", 200))
	r := d.grep(t, args{"pattern": "😀", "limit": 1000})
	body, bracket, _ := strings.Cut(r.Text, "\n\n")
	if len(body) > maxBytes || len(body) < maxBytes-2100 || !utf8.ValidString(r.Text) {
		t.Errorf("result of %d bytes, valid UTF-8 %v, want nearly 50 KB", len(body), utf8.ValidString(r.Text))
	}
	for line := range strings.SplitSeq(body, "\n") {
		if n := strings.Count(line, "😀"); n != 500 {
			t.Errorf("line with %d characters, want 500", n)
		}
	}
	for _, want := range []string{"cut at 50 KB", "Lines are cut at 500 characters"} {
		if !strings.Contains(bracket, want) {
			t.Errorf("notice %q lacks %q", bracket, want)
		}
	}
}

func TestGrepOfLargeFilesWithContextIsBoundedInMemory(t *testing.T) {
	// Not parallel: it measures allocations of the whole process.
	d := newDesk(t)
	block := bytes.Repeat([]byte("some line of a log that goes on and on\n"), 1<<20/39)
	for i := range 8 {
		f, err := os.Create(filepath.Join(d.src, fmt.Sprintf("log%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			if _, err := f.Write(block); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.WriteString("before\nneedle\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := d.grep(t, args{"pattern": "needle", "context": 2})
	runtime.ReadMemStats(&after)
	if n := strings.Count(r.Text, ": needle\n"); n != 8 {
		t.Errorf("%d matches, want 8:\n%s", n, r.Text)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
		t.Errorf("%d bytes allocated for 64 MB of files, want at most 8 MB", grown)
	}
}

func TestGrepOfASparseFileEndsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "needle\n")
	f, err := os.Create(filepath.Join(d.src, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(10 << 30); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	checkText(t, d.grep(t, args{"pattern": "needle"}), "src/a:1: needle")
}

func TestCancelledGrepAndFindFail(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/a", "x\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tl := range []tool.Tool{newGrep(), newFind()} {
		for _, arguments := range []string{`{"pattern":"x"}`, `{"pattern":"x","path":"src"}`} {
			if r := tl.Run(ctx, d.env, []byte(arguments)); !r.IsError || !strings.Contains(r.Text, "cancelled") {
				t.Errorf("%s %s after cancellation: %+v", tl.Name, arguments, r)
			}
		}
	}
}

func TestGrepCountsEqualGNUGrep(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("grep", "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU grep")) {
		t.Skip("GNU grep is the oracle of this test and is not installed")
	}
	root := filepath.Join(goRoot(t), "src", "regexp")
	w, err := workspace.Open(workspace.Config{Root: t.TempDir(), ReadOnly: []string{root}, OutDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d := &desk{env: &tool.Env{Workspace: w}}
	for _, pattern := range []string{"return nil", "(Match|Find)String", "^func [A-Z]", "[a-z]+[0-9]{3,}", "xyzzy plugh", `\bre\b.*\bprog\b`} {
		cmd := exec.Command("grep", "-rIhE", "--", pattern, root)
		cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")}
		out, _ := cmd.Output() // exit code 1 means no match
		r := d.grep(t, args{"pattern": pattern, "limit": 100000})
		got := len(regexp.MustCompile(`(?m)^\S+:\d+: `).FindAllString(r.Text, -1))
		if want := bytes.Count(out, []byte("\n")); got != want && !strings.Contains(r.Text, "cut at 50 KB") {
			t.Errorf("pattern %q: %d lines, GNU grep finds %d", pattern, got, want)
		}
	}
}
