package ignore_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/workspace/ignore"
)

// tree is the set of paths every verdict is asked for; a final slash marks an
// empty directory.
var tree = strings.Fields(`
	a b c d x foo bar baz foobar foo.txt foo.log foo.o .hidden Foo FOO.TXT
	a.b ab abc abd a-b a_b a]b a\b a*b a?b [ab] !bang #hash ~tilde é ü.txt
	dir/foo dir/bar dir/foo.txt dir/foo.log dir/x dir/sub/foo dir/sub/x dir/sub/deep/x dir/sub/deep/foo.o
	dir2/foo dir2/sub/foo dir2/sub/bar/foo dir2/.keep
	foodir/foo/foo foodir/bar/foo foodir/bar/baz/foo
	q/b q/bc q/bx/y/c q/b1/c q/x/b/c
	build/out.o build/keep/me build/keep/you build/a/b/c/d/e
	src/a/b src/a/c/b src/b src/a/x/y/b src/main.go src/main_test.go
	node_modules/p/index.js lib/node_modules/p/index.js
	empty/ e/m/p/t/y/
`)

// odd are further paths that cannot be written as fields.
var odd = []string{"foo ", "foo  ", "with space", "sp /x", "tab\t", "cr\r", "dir/foo ", "nl\nx"}

// patternSets are ignore files; each is compared with git for every path.
var patternSets = []string{
	"foo", "/foo", "foo/", "/foo/", "dir/foo", "/dir/foo", "dir/", "dir/*", "dir/**", "dir/**/", "**/foo", "**/dir/foo",
	"**", "*", "/*", "/**", "**/", "*/", "*/*", "*/foo", "**/*", "/*/foo", "a/**/b", "src/a/**/b", "src/**/b", "src/**/*/b",
	"**/sub/**", "**/sub/*", "*.txt", "*.o\n!build/out.o", "*.[oa]", "foo.*", "f*o", "*foo*", "*o*o*", "?", "??", "???", "f??",
	"[abc]", "[!a-c]", "[^a-c]", "[a-c]b", "a[]]b", "a[!]]b", "a[]-]b", "a[_-]b", "a[a-]b", "a[-_]b", "[[:alpha:]]", "[[:upper:]]*",
	"[[:nosuch:]]", "[[:alpha:]", "[[:alpha]b]", "[[:digit:]_-]*", "a[", "a[b", "[", "[]", "[!]", "[!]]*", "a[b-", "a[b-]", `a[\]]b`, `a[\\]b`,
	`a\b`, `a\\b`, `a\*b`, `a\?b`, `\a`, `\!bang`, `\#hash`, "!bang", "#hash", `\`, `foo\`, `\[ab]`, `\[ab\]`, `~tilde`,
	"foo ", `foo\ `, `foo\ \ `, `foo \ `, `foo\  `, "foo  ", "with space", "with space ", "sp /", "sp\\ /", "tab\t", "tab\t ", " foo", "  ",
	"foo\r\nbar\r\n", "foo\r", "cr\\\r", "cr\r\r\n", "foo \r\n", "\r\n\r\n", "dir/\r\n!dir/foo\r\n",
	"\xef\xbb\xbffoo\nbar", "\xef\xbb\xbf#c\nfoo", "foo\n\xef\xbb\xbfbar", "\n\n#x\n  \nfoo",
	"dir\n!dir/foo", "dir/*\n!dir/foo", "dir/*\n!dir/sub", "dir/*\n!dir/sub/", "dir/**\n!dir/sub/\n!dir/sub/deep/x", "build/*\n!build/keep\nbuild/keep/*\n!build/keep/me",
	"/*\n!/src\n/src/*\n!/src/a", "*\n!*/\n!*.go", "*\n!*.txt", "foo\n!foo", "!foo\nfoo", "!foo", "!", "/", "//", "///", "!/", "/!", "//foo", "foo//", "dir//foo",
	"q/b**/c", "q/b**", "q/**c", "q/**/c", "q/b*/c", "q/*/c", "q**/c", "**c", "q/***/c", "***", "***/c", "q/***", `q/**\/c`, "q/b**x/**/c", "q/[b]**/c",
	"foo**bar", "foo**/bar", "foodir/**/foo", "foodir/**/baz/**/foo", "**/**/foo", "**/**/**/**/x", "**/*/x", "**/bar/**/foo",
	"é", "?.txt", "??.txt", "[é]", "\xc3*", "node_modules", "/node_modules", "node_modules/", "e/", "/e/m", "e/m/", "e/**/y", "e/**/y/", "empty/", "empty",
	"FOO", "Foo", "[F]OO.TXT", "a\x00b", ".*", ".hidden", "dir2/.keep", "*.*", "main*.go", "*_test.go", "nl\\\nx", "a\\/b", `dir\/foo`, "dir/foo\\/", "./foo", "../foo",
}

func TestVerdictsEqualGit(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	for _, set := range patternSets {
		repo.compare(t, map[string]string{".gitignore": set})
	}
}

func TestNestedFilesAddUpAndTheDeepestWinsAsInGit(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	for _, files := range []map[string]string{
		{".gitignore": "foo", "dir/.gitignore": "!foo"},
		{".gitignore": "!foo", "dir/.gitignore": "foo"},
		{".gitignore": "*.txt\n", "dir/.gitignore": "/foo\n!foo.txt", "dir/sub/.gitignore": "!foo\nx"},
		{"dir/.gitignore": "sub/x", "dir2/.gitignore": "/sub/**/foo"},
		{"dir/.gitignore": "/sub/", "dir/sub/.gitignore": "!*"},
		{"dir/.gitignore": "*\n!sub/\n!sub/foo"},
		{".gitignore": "!dir/foo", ".git/info/exclude": "foo"},
		{".git/info/exclude": "*.o\n/dir/", "build/.gitignore": "!out.o"},
		{"src/.gitignore": "**/b", "src/a/.gitignore": "!b\n", "src/a/x/.gitignore": "y/"},
	} {
		repo.compare(t, files)
	}
}

func TestRandomPatternsEqualGit(t *testing.T) {
	t.Parallel()
	repo := newRepository(t)
	rng := rand.New(rand.NewPCG(3, 9))
	words := []string{"*", "**", "/", "/", "a", "b", "c", "foo", "dir", "sub", "?", "[a-c]", "[!b]", "x", ".", "o", "!", `\`, " ", "q", "src", "**/", "/**", "bar"}
	for range 60 {
		var set strings.Builder
		for range 1 + rng.IntN(4) {
			if rng.IntN(4) == 0 {
				set.WriteByte('!')
			}
			for range 1 + rng.IntN(5) {
				set.WriteString(words[rng.IntN(len(words))])
			}
			set.WriteByte('\n')
		}
		repo.compare(t, map[string]string{".gitignore": set.String()})
	}
}

func TestIgnoreFileWinsOverGitFiles(t *testing.T) {
	t.Parallel()
	top := (*ignore.Level)(nil).Below("", ignore.Files{
		Git:   ignore.Parse([]byte("*.log\nkeep")),
		Plain: ignore.Parse([]byte("!a.log\nsecret")),
	})
	sub := top.Below("sub", ignore.Files{Git: ignore.Parse([]byte("a.log\n!secret\n!keep"))})
	checkVerdicts(t, sub, map[string]bool{
		"sub/a.log":  false, // kept by the .ignore above, whatever the nearer .gitignore says
		"sub/b.log":  true,
		"sub/secret": true,
		"sub/keep":   false,
	})
}

func TestGitRulesStopAtANestedRepository(t *testing.T) {
	t.Parallel()
	top := (*ignore.Level)(nil).Below("", ignore.Files{
		Git: ignore.Parse([]byte("*.log")), Exclude: ignore.Parse([]byte("*.tmp")), Plain: ignore.Parse([]byte("*.bak")), Repository: true,
	})
	nested := top.Below("vendor/lib", ignore.Files{Git: ignore.Parse([]byte("*.o")), Repository: true})
	checkVerdicts(t, nested, map[string]bool{
		"vendor/lib/a.log": false,
		"vendor/lib/a.tmp": false,
		"vendor/lib/a.bak": true,
		"vendor/lib/a.o":   true,
	})
	checkVerdicts(t, top, map[string]bool{"a.log": true, "a.tmp": true, "a.bak": true, "a.o": false})
}

func TestNilLevelIgnoresNothing(t *testing.T) {
	t.Parallel()
	var none *ignore.Level
	if none.Ignored([]byte("a/b"), false) {
		t.Error("a nil level ignored a path")
	}
	if got := none.Below("a", ignore.Files{}); got != nil {
		t.Errorf("Below with no rules = %v, want the same level", got)
	}
}

func TestPatternsCannotBlowUp(t *testing.T) {
	t.Parallel()
	// With plain backtracking either pattern would need longer than the
	// universe has existed; the test's own time-out is the failure.
	long := strings.Repeat("a/", 2000) + strings.Repeat("a", 2000)
	for _, pattern := range []string{strings.Repeat("a*", 500) + "b", "/" + strings.Repeat("**/a*", 100) + "/b"} {
		l := (*ignore.Level)(nil).Below("", ignore.Files{Git: ignore.Parse([]byte(pattern))})
		if l.Ignored([]byte(long), false) {
			t.Errorf("pattern %.20q matched a text without a b", pattern)
		}
	}
}

func checkVerdicts(t *testing.T, l *ignore.Level, want map[string]bool) {
	t.Helper()
	for name, ignored := range want {
		if got := l.Ignored([]byte(name), false); got != ignored {
			t.Errorf("Ignored(%q) = %v, want %v", name, got, ignored)
		}
	}
}

// repository is a git work tree that holds all test paths.
type repository struct {
	dir    string
	paths  []string // files and directories, sorted
	folder map[string]bool
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is the oracle of this test and is not installed")
	}
	r := &repository{dir: t.TempDir(), folder: map[string]bool{}}
	for _, name := range slices.Concat(tree, odd) {
		if ignoresCase(t) && name != strings.ToLower(name) {
			continue
		}
		full := filepath.Join(r.dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(full, 0o755))
		} else {
			must(t, os.MkdirAll(filepath.Dir(full), 0o755))
			must(t, os.WriteFile(full, nil, 0o644))
			r.folder[name] = false
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			r.folder[dir] = true
		}
	}
	r.paths = slices.Sorted(maps.Keys(r.folder))
	r.git(t, nil, "init", "-q")
	return r
}

// ignoresCase reports whether the test directory's file system folds case.
func ignoresCase(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o644))
	_, err := os.Stat(filepath.Join(dir, "A"))
	return err == nil
}

// compare writes the ignore files, asks git and this package about every path
// and removes the files again.
func (r *repository) compare(t *testing.T, files map[string]string) {
	t.Helper()
	for name, content := range files {
		full := filepath.Join(r.dir, filepath.FromSlash(name))
		must(t, os.WriteFile(full, []byte(content), 0o644))
		defer os.Remove(full)
	}
	if _, ok := files[".git/info/exclude"]; !ok {
		must(t, os.WriteFile(filepath.Join(r.dir, ".git/info/exclude"), nil, 0o644))
	}
	want := r.byGit(t)
	got := r.byLevels(files)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ignored paths for %q differ (-git +ours):\n%s", files, diff)
	}
}

func (r *repository) byGit(t *testing.T) []string {
	t.Helper()
	out := r.git(t, []byte(strings.Join(r.paths, "\x00")+"\x00"), "check-ignore", "-z", "--stdin", "--no-index")
	var ignored []string
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name != "" {
			ignored = append(ignored, name)
		}
	}
	slices.Sort(ignored)
	return ignored
}

// byLevels asks as a walk does: parents first, and nothing below an ignored
// directory.
func (r *repository) byLevels(files map[string]string) []string {
	rules := func(dir, name string) *ignore.Rules {
		content, ok := files[path.Join(dir, name)]
		if !ok {
			return nil
		}
		return ignore.Parse([]byte(content))
	}
	var ignored []string
	for _, name := range r.paths {
		var level *ignore.Level
		elements := strings.Split(name, "/")
		for i := range elements {
			dir := strings.Join(elements[:i], "/")
			contribution := ignore.Files{Git: rules(dir, ".gitignore"), Plain: rules(dir, ".ignore")}
			if i == 0 {
				contribution.Exclude = rules(dir, ".git/info/exclude")
			}
			level = level.Below(dir, contribution)
			prefix := strings.Join(elements[:i+1], "/")
			if level.Ignored([]byte(prefix), r.folder[prefix]) {
				ignored = append(ignored, name)
				break
			}
		}
	}
	return ignored
}

func (r *repository) git(t *testing.T, stdin []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "core.ignorecase=false"}, args...)...)
	cmd.Env = []string{"HOME=" + r.dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull}
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 1 && args[0] == "check-ignore" {
		return out // nothing is ignored
	}
	must(t, err)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
