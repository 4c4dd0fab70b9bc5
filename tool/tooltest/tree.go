package tooltest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hozo-run/hozo/workspace"
)

// tree is a job directory full of traps:
//
//	job/src          may be read
//	job/src-twin     has a name that begins like the sources' and may not
//	job/out          may be written to
//	job/out-twin     may not
//	outside          may not be reached at all; its names begin with "hidden"
type tree struct {
	base  string
	names []string
	w     *workspace.Workspace
}

func plant(t *testing.T) *tree {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tr := &tree{base: base}
	for _, dir := range []string{"outside", "job/src/names", "job/src/links", "job/src-twin", "job/out/dir", "job/out-twin"} {
		tr.do(t, os.MkdirAll(tr.at(dir), 0o755))
	}
	tr.plantFiles(t)
	tr.plantLinks(t)
	tr.plantNames(t)
	for _, dir := range []string{"job/src", "job/out"} {
		tr.do(t, syscall.Mkfifo(tr.at(dir+"/pipe"), 0o644))
	}
	return tr
}

func (tr *tree) at(name string) string { return filepath.Join(tr.base, name) }

func (tr *tree) do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (tr *tree) plantFiles(t *testing.T) {
	t.Helper()
	for name, content := range map[string]string{
		"outside/hidden.txt":      "hidden " + Canary + "\n",
		"job/hidden-sibling.txt":  "hidden " + Canary + "\n",
		"job/src-twin/hidden.txt": "hidden " + Canary + "\n",
		"job/out-twin/hidden.txt": "hidden " + Canary + "\n",
		"job/src/plain.txt":       "plain " + Canary + "\n",
		"job/out/note.md":         "note " + Canary + "\n",
		"job/src/huge":            "",
		"job/src/huge-text":       strings.Repeat("plain text\n", 4000),
		"job/out/huge":            "",
	} {
		tr.do(t, os.WriteFile(tr.at(name), []byte(content), 0o644))
	}
	for name, size := range map[string]int64{"job/src/huge": 2 << 30, "job/src/huge-text": 64 << 20, "job/out/huge": 2 << 30} {
		tr.do(t, os.Truncate(tr.at(name), size))
	}
	tr.do(t, os.Link(tr.at("outside/hidden.txt"), tr.at("job/out/hard")))
}

// plantLinks makes links whose names begin with the place they stand for.
func (tr *tree) plantLinks(t *testing.T) {
	t.Helper()
	for name, target := range map[string]string{
		"job/src/links/to-file":   tr.at("outside/hidden.txt"),
		"job/src/links/to-dir":    "../../../outside",
		"job/src/links/dangling":  "gone",
		"job/src/links/loop":      "loop",
		"job/src/links/chain":     "chain-2",
		"job/src/links/chain-2":   "chain-3",
		"job/src/links/chain-3":   "../../../outside/hidden.txt",
		"job/src/links/absolute":  tr.at("job/src/plain.txt"),
		"job/src/links/inside":    "../plain.txt",
		"job/src/links/self":      "..",
		"job/src/links/proc":      "/proc/self/root",
		"job/src/links/zero":      "/dev/zero",
		"job/out/to-file":         tr.at("outside/hidden.txt"),
		"job/out/to-new":          tr.at("outside/created"),
		"job/out/to-dir":          tr.at("outside"),
		"job/out/to-sources":      "../src",
		"job/out/to-inside":       "note.md",
		"job/out/to-sources-file": "../src/plain.txt",
	} {
		tr.do(t, os.Symlink(target, tr.at(name)))
	}
}

// plantNames makes files with names that harm a terminal or a parser. File systems that refuse a name go without it.
func (tr *tree) plantNames(t *testing.T) {
	t.Helper()
	for _, name := range []string{"line\nbreak", "return\r", "esc\x1b[2J", "bidi\u202etxt", "bad\xff\xfeutf8", "trail ", "dot.", `back\slash`,
		"8\u202fPM", strings.Repeat("n", 255)} {
		if err := os.WriteFile(tr.at("job/src/names/"+name), []byte("named "+Canary+"\n"), 0o644); err == nil {
			tr.names = append(tr.names, name)
		}
	}
	if len(tr.names) == 0 {
		t.Fatal("no file could be made")
	}
}

// open returns the workspace of the tree, opened once.
func (tr *tree) open(t *testing.T) *workspace.Workspace {
	t.Helper()
	if tr.w == nil {
		w, err := workspace.Open(workspace.Config{Root: tr.at("job"), ReadOnly: []string{tr.at("job/src")}, OutDir: tr.at("job/out")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		tr.w = w
	}
	return tr.w
}

// readingTraps are paths that every reading tool refuses. BASE stands for the directory above the job.
func readingTraps() []string {
	return []string{
		"../../etc/passwd", "src/../../outside/hidden.txt", "/etc/passwd", "//etc", "/proc/self/environ", "BASE/outside/hidden.txt", "BASE",
		"../outside", "hidden-sibling.txt", "src-twin", "src-twin/hidden.txt", "BASE/job/src-twin/hidden.txt", "out/note.md",
		"src/links/to-file", "src/links/to-dir", "src/links/to-dir/hidden.txt", "src/links/dangling", "src/links/loop", "src/links/chain",
		"src/links/absolute", "src/links/proc", "src/links/proc/etc", "src/links/zero", "src/links/self/links/to-file", "src/pipe",
		"src/plain.txt/x", "src/nothing", "src/a\x00b", "~/.ssh", `C:\Windows`, `\\server\share`, "file:///etc/passwd",
		strings.Repeat("a/", 2050), "src/" + strings.Repeat("n", 256), `src/\x2e\x2e/hidden-sibling.txt`,
	}
}

// writingTraps are paths that every writing tool refuses.
func writingTraps() []string {
	return []string{
		"../hidden-sibling.txt", "../out-twin/hidden.txt", "a/../../hidden-sibling.txt", "/etc/hozo-was-here", "BASE/outside/hidden.txt",
		"BASE/job/src/plain.txt", "BASE/job/out-twin/hidden.txt", "../src/plain.txt", "to-file", "to-new", "to-dir/hidden.txt",
		"to-dir/created", "to-sources/plain.txt", "to-inside", "to-sources-file", "hard", "pipe", "dir", ".", "", "dir/", "note.md/x",
		"a\x00b", "~/x", `C:\x`, `\\server\share`, "file:///tmp/x", strings.Repeat("a/", 2050), strings.Repeat("n", 256),
	}
}
