package workspace

import (
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/problem"
)

func TestCheckReportsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	put(t, base+"/file", "x")
	mkdir(t, base+"/dir")
	if err := syscall.Mkfifo(base+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	got := Check(Config{Root: base + "/no-root", ReadOnly: []string{base + "/file", base + "/gone", base + "/pipe", base + "/dir", base + "/dir/"},
		OutDir: base + "/file", TmpDir: base + "/no-tmp"})
	want := [][2]string{
		{"missing-directory", "/workspace/root"},
		{"not-a-directory", "/workspace/outDir"},
		{"missing-directory", "/workspace/tmpDir"},
		{"not-a-directory", "/workspace/readOnly/0"},
		{"missing-directory", "/workspace/readOnly/1"},
		{"not-a-regular-file", "/workspace/readOnly/2"},
		{"duplicate-entry", "/workspace/readOnly/4"},
	}
	if diff := cmp.Diff(want, places(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := Open(Config{}); problem.KindOf(err) != problem.Invalid || len(problem.Of(err)) != 3 {
		t.Errorf("Open of nothing: got %v", err)
	}
}

func places(l problem.List) [][2]string {
	var out [][2]string
	for _, p := range l {
		out = append(out, [2]string{p.Code, p.Pointer})
	}
	return out
}

func TestCheckKeepsOutputAndReadOnlyApart(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for _, dir := range []string{"/src/deep/er", "/out/in", "/other"} {
		mkdir(t, base+dir)
	}
	put(t, base+"/out/guide.md", "x")
	link(t, base+"/src", base+"/src-link")
	link(t, base+"/out", base+"/out-link")
	tests := []struct {
		name     string
		readOnly []string
		out      string
		want     [][2]string
	}{
		{"beside each other", []string{"/src"}, "/out", nil},
		{"output is a further entry, so that it can be read back", []string{"/src", "/out"}, "/out", nil},
		{"the same through a link", []string{"/src", "/out-link"}, "/out", nil},
		{"output is the sources", []string{"/src"}, "/src", [][2]string{{"overlap", "/workspace/outDir"}}},
		{"output is the sources through a link", []string{"/src"}, "/src-link", [][2]string{{"overlap", "/workspace/outDir"}}},
		{"output inside an entry", []string{"/src"}, "/src/deep/er", [][2]string{{"overlap", "/workspace/outDir"}}},
		{"output inside an entry through a link", []string{"/src-link"}, "/src/deep", [][2]string{{"overlap", "/workspace/outDir"}}},
		{"output above an entry", []string{"/out/in"}, "/out", [][2]string{{"overlap", "/workspace/readOnly/0"}}},
		{"output above an entry through a link", []string{"/src", "/out-link/in"}, "/out", [][2]string{{"overlap", "/workspace/readOnly/1"}}},
		{"output above a file entry", []string{"/src", "/out/guide.md"}, "/out", [][2]string{{"overlap", "/workspace/readOnly/1"}}},
		{"prefix twins are apart", []string{"/src"}, "/other", nil},
		{"one directory under two names", []string{"/src", "/src-link"}, "/out", [][2]string{{"duplicate-entry", "/workspace/readOnly/1"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := Config{Root: base, OutDir: base + tt.out}
			for _, name := range tt.readOnly {
				c.ReadOnly = append(c.ReadOnly, base+name)
			}
			if diff := cmp.Diff(tt.want, places(Check(c))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckKeepsTemporaryAndReadOnlyApart(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for _, dir := range []string{"/src/deep", "/out", "/tmp"} {
		mkdir(t, base+dir)
	}
	link(t, base+"/src", base+"/src-link")
	overlap := [][2]string{{"overlap", "/workspace/tmpDir"}}
	for _, tt := range []struct {
		name, tmp string
		want      [][2]string
	}{
		{"beside", "/tmp", nil},
		{"inside an entry", "/src/deep", nil},
		{"the output directory, which is an entry too", "/out", nil},
		{"the sources through a link", "/src-link", overlap},
		{"above the sources", "/", overlap},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Check(Config{Root: base, ReadOnly: []string{base + "/src", base + "/out"}, OutDir: base + "/out", TmpDir: base + tt.tmp})
			if diff := cmp.Diff(tt.want, places(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckFindsDirectoriesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("the superuser may use any directory")
	}
	base := t.TempDir()
	for _, dir := range []string{"/src", "/out"} {
		mkdir(t, base+dir)
	}
	for dir, mode := range map[string]os.FileMode{"/src": 0o311, "/out": 0o555} {
		if err := os.Chmod(base+dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	want := [][2]string{{"not-writable", "/workspace/outDir"}, {"unreadable", "/workspace/readOnly/0"}}
	if diff := cmp.Diff(want, places(Check(Config{Root: base, ReadOnly: []string{base + "/src"}, OutDir: base + "/out"}))); diff != "" {
		t.Error(diff)
	}
}

func TestOpenResolvesRelativePathsFromTheProcess(t *testing.T) {
	base := t.TempDir()
	mkdir(t, base+"/job/src")
	mkdir(t, base+"/job/out")
	put(t, base+"/job/src/a", "x")
	t.Chdir(base)
	w, err := Open(Config{Root: "job", ReadOnly: []string{"job/src"}, OutDir: "job/out"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if content, display, err := read(w, "src/a"); err != nil || content != "x" || display != "src/a" {
		t.Errorf("got %q, %q, %v", content, display, err)
	}
}
