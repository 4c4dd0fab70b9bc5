package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteCreatesAndReplaces(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	w := tr.open(t)
	tests := []struct {
		name, path string
		want       Written
	}{
		{"new file", "a.md", Written{Path: "a.md", Bytes: 4, Created: true}},
		{"the same again", "a.md", Written{Path: "a.md", Bytes: 4}},
		{"missing folders", "x/y/z.md", Written{Path: "x/y/z.md", Bytes: 4, Created: true}},
		{"absolute below the output directory", tr.out + "/abs.md", Written{Path: "abs.md", Bytes: 4, Created: true}},
		{"dots that stay inside", "x/../b.md", Written{Path: "b.md", Bytes: 4, Created: true}},
		{"own name of the output directory", "out/c.md", Written{Path: "out/c.md", Bytes: 4, Created: true}},
		{"255 bytes", strings.Repeat("n", 255), Written{Path: strings.Repeat("n", 255), Bytes: 4, Created: true}},
		{"letters of any script", "Отчёт 報告 – 1.md", Written{Path: "Отчёт 報告 – 1.md", Bytes: 4, Created: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.WriteFile(tt.path, []byte("text"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if data, err := os.ReadFile(filepath.Join(tr.out, got.Path)); err != nil || string(data) != "text" {
				t.Errorf("file holds %q, %v", data, err)
			}
		})
	}
	noTemporaryFiles(t, tr.out)
}

func TestWritesToARemovedOutputDirectorySaySo(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	w := tr.open(t)
	if err := os.RemoveAll(tr.out); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a.md", "b/c.md"} {
		if _, err := w.WriteFile(path, nil); err == nil || !strings.Contains(err.Error(), "the output directory was removed") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := w.EditFile("a.md", func(before []byte) ([]byte, error) { return before, nil }); err == nil ||
		!strings.Contains(err.Error(), "the output directory was removed") {
		t.Errorf("edit: %v", err)
	}
}

func noTemporaryFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(p, ".tmp") {
			t.Errorf("a temporary file was left: %s", filepath.Base(p))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWriteKeepsThePermissionsOfTheFile(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	w := tr.open(t)
	put(t, tr.out+"/run.sh", "old")
	if err := os.Chmod(tr.out+"/run.sh", 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteFile("run.sh", []byte("new")); err != nil {
		t.Fatal(err)
	}
	stat, err := os.Stat(tr.out + "/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	if stat.Mode().Perm() != 0o750 {
		t.Errorf("permissions %v", stat.Mode())
	}
}

func TestWritesThatAreRefused(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	put(t, tr.base+"/victim", canary)
	if err := os.Link(tr.source+"/a.txt", tr.out+"/hard"); err != nil {
		t.Fatal(err)
	}
	mkdir(t, tr.out+"/dir")
	mkdir(t, tr.root+"/out-evil")
	link(t, tr.base+"/victim", tr.out+"/to-victim")
	link(t, tr.base+"/created-outside", tr.out+"/dangling")
	link(t, tr.base+"/made-outside", tr.out+"/dangling-dir")
	link(t, tr.secret, tr.out+"/dir-out")
	link(t, "../source", tr.out+"/dir-source")
	link(t, "dir/inner.md", tr.out+"/to-inside")
	link(t, "loop", tr.out+"/loop")
	put(t, tr.out+"/dir/inner.md", "inner")
	if err := syscall.Mkfifo(tr.out+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	w := tr.open(t)
	tests := []struct {
		name, path string
		code       Code
	}{
		{"dots", "../escaped.md", CodeOutside},
		{"inner dots", "a/../../escaped.md", CodeOutside},
		{"absolute", "/tmp/escaped.md", CodeOutside},
		{"absolute into the sources", tr.source + "/escaped.md", CodeOutside},
		{"absolute prefix twin", tr.root + "/out-evil/x", CodeOutside},
		{"workspace root", tr.root + "/escaped.md", CodeOutside},
		{"link to a file outside", "to-victim", CodeIsLink},
		{"dangling link outside", "dangling", CodeIsLink},
		{"below a dangling link outside", "dangling-dir/x.md", CodeLinkOut},
		{"link to a directory outside", "dir-out/x.md", CodeLinkOut},
		{"link to the sources", "dir-source/a.txt", CodeLinkOut},
		{"link to the inside", "to-inside", CodeIsLink},
		{"link loop", "loop/x", CodeLinkLoop},
		{"hard link to a source", "hard", CodeHardLink},
		{"directory", "dir", CodeIsDirectory},
		{"output directory", ".", CodeIsDirectory},
		{"trailing slash", "new/", CodeIsDirectory},
		{"below a file", "dir/inner.md/x", CodeNotDirectory},
		{"named pipe", "pipe", CodeNotRegular},
		{"empty", "", CodeBadPath},
		{"NUL", "a\x00b", CodeBadPath},
		{"line break", "a\nb", CodeBadPath},
		{"escape character", "a\x1b[31m", CodeBadPath},
		{"direction override", "a\u202etxt.exe", CodeBadPath},
		{"invalid UTF-8", "a\xff", CodeBadPath},
		{"trailing blank", "a ", CodeBadPath},
		{"backslash", `dir\a.md`, CodeBadPath},
		{"drive", `C:\a.md`, CodeBadPath},
		{"home", "~/a.md", CodeBadPath},
		{"256 bytes", strings.Repeat("n", 256), CodeTooLong},
		{"4097 bytes", strings.Repeat("n/", 2048) + "n", CodeTooLong},
	}
	before := snapshot(t, tr.base)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.WriteFile(tt.path, []byte("written"))
			if code(err) != tt.code {
				t.Errorf("write: %v (%s), want %s", err, code(err), tt.code)
			}
			_, err = w.EditFile(tt.path, func([]byte) ([]byte, error) { return []byte("edited"), nil })
			if code(err) == "" {
				t.Errorf("edit: got %v", err)
			}
		})
	}
	if diff := cmp.Diff(before, snapshot(t, tr.base)); diff != "" {
		t.Errorf("something changed on disk:\n%s", diff)
	}
}

// snapshot returns every path below dir with its type and content.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all[p] = d.Type().String()
		if d.Type().IsRegular() {
			data, err := os.ReadFile(p)
			all[p] += string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEditSeesAndReplacesTheWholeFile(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	w := tr.open(t)
	put(t, tr.out+"/a", "one")
	got, err := w.EditFile("a", func(before []byte) ([]byte, error) { return append(before, " two"...), nil })
	if err != nil || got != (Written{Path: "a", Bytes: 7}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if data, err := w.ReadOutput("a"); err != nil || string(data) != "one two" {
		t.Errorf("got %q, %v", data, err)
	}
	own := errors.New("own")
	if _, err := w.EditFile("a", func([]byte) ([]byte, error) { return nil, own }); err != own {
		t.Errorf("the error of edit came back as %v", err)
	}
	if _, err := w.EditFile("A", nil); code(err) != CodeNotFound || !strings.Contains(err.Error(), "did you mean a?") {
		t.Errorf("got %v", err)
	}
	if err := os.Truncate(tr.out+"/a", 2<<30); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ReadOutput("a"); code(err) != CodeTooLarge {
		t.Errorf("a file of 2 GB: %v", err)
	}
	noTemporaryFiles(t, tr.out)
}

func TestWrittenNamesTheReadablePathOnlyIfThereIsOne(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	c := tr.config()
	c.ReadOnly = append(c.ReadOnly, tr.out)
	w, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	got, err := w.WriteFile("deep/a.md", nil)
	if err != nil || got.Readable != "out/deep/a.md" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, _, err := read(w, got.Readable); err != nil {
		t.Error(err)
	}
}
