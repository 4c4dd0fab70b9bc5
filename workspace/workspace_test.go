package workspace

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is a job directory with sources, an input directory elsewhere, a guide, and a place that nobody may reach.
type tree struct {
	base, root, source, lib, out, secret string
	w                                    *Workspace
}

func plant(t testing.TB) *tree {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tr := &tree{base: base, root: base + "/job", source: base + "/job/source", lib: base + "/elsewhere/lib", out: base + "/job/out",
		secret: base + "/secret"}
	for _, dir := range []string{tr.source + "/sub", tr.lib, tr.out, tr.secret, tr.root + "/source-twin"} {
		mkdir(t, dir)
	}
	put(t, tr.source+"/a.txt", "alpha")
	put(t, tr.source+"/sub/b.txt", "beta")
	put(t, tr.lib+"/l.txt", "lib")
	put(t, tr.root+"/WORKSPACE.md", "guide")
	put(t, tr.root+"/sibling.txt", canary)
	put(t, tr.root+"/source-twin/t.txt", canary)
	put(t, tr.secret+"/s.txt", canary)
	return tr
}

const canary = "CANARY-must-not-be-read"

func (tr *tree) config() Config {
	return Config{Root: tr.root, ReadOnly: []string{tr.source, tr.lib, tr.root + "/WORKSPACE.md"}, OutDir: tr.out}
}

func (tr *tree) open(t testing.TB) *Workspace {
	t.Helper()
	w, err := Open(tr.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	tr.w = w
	return w
}

func mkdir(t testing.TB, name string) {
	t.Helper()
	if err := os.MkdirAll(name, 0o755); err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func read(w *Workspace, p string) (content, display string, err error) {
	f, err := w.OpenFile(p)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), f.Display, err
}

func code(err error) Code {
	if e, ok := errors.AsType[*PathError](err); ok {
		return e.Code
	}
	return ""
}

func TestReadingPaths(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	w := tr.open(t)
	tests := []struct{ name, path, content, display string }{
		{"relative to the root", "source/a.txt", "alpha", "source/a.txt"},
		{"dot prefix", "./source/sub/b.txt", "beta", "source/sub/b.txt"},
		{"inner dots", "source/sub/../a.txt", "alpha", "source/a.txt"},
		{"through the root and back", "../job/source/a.txt", "alpha", "source/a.txt"},
		{"absolute below an entry", tr.source + "/a.txt", "alpha", "source/a.txt"},
		{"double slashes", tr.source + "//sub//b.txt", "beta", "source/sub/b.txt"},
		{"entry outside of the root by absolute path", tr.lib + "/l.txt", "lib", "lib/l.txt"},
		{"entry outside of the root by the name it is shown under", "lib/l.txt", "lib", "lib/l.txt"},
		{"file entry", "WORKSPACE.md", "guide", "WORKSPACE.md"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			content, display, err := read(w, tt.path)
			if err != nil || content != tt.content || display != tt.display {
				t.Errorf("got %q, %q, %v; want %q, %q", content, display, err, tt.content, tt.display)
			}
		})
	}
}

func TestReadingPathsThatAreRefused(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	link(t, tr.secret+"/s.txt", tr.source+"/file-out")
	link(t, "../../secret", tr.source+"/dir-out")
	link(t, "chain2", tr.source+"/chain1")
	link(t, "chain3", tr.source+"/chain2")
	link(t, "../../secret/s.txt", tr.source+"/chain3")
	link(t, "gone.txt", tr.source+"/dangling")
	link(t, "loop", tr.source+"/loop")
	link(t, tr.source+"/a.txt", tr.source+"/absolute")
	link(t, "../../elsewhere/lib/l.txt", tr.source+"/to-lib")
	link(t, "/proc/self/root", tr.source+"/procroot")
	link(t, "/dev/zero", tr.source+"/zero")
	if err := syscall.Mkfifo(tr.source+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	w := tr.open(t)
	tests := []struct {
		name, path string
		code       Code
		says       string
	}{
		{"dots to a system file", "../../etc/passwd", CodeOutside, "source/"},
		{"dots through an entry", "source/../../x", CodeOutside, ""},
		{"dots to a sibling", "source/../sibling.txt", CodeOutside, ""},
		{"sibling of a file entry", "sibling.txt", CodeOutside, ""},
		{"output directory", "out/report.md", CodeOutside, "may be written to but not read"},
		{"absolute system file", "/etc/passwd", CodeOutside, ""},
		{"double slash", "//etc", CodeOutside, ""},
		{"prefix twin", tr.source + "-twin/t.txt", CodeOutside, ""},
		{"relative prefix twin", "source-twin/t.txt", CodeOutside, ""},
		{"root itself", ".", CodeOutside, ""},
		{"root with slash", "./", CodeOutside, ""},
		{"empty", "", CodeBadPath, "empty"},
		{"NUL", "source/a.txt\x00.png", CodeBadPath, "NUL"},
		{"4097 bytes", "source/" + strings.Repeat("a/", 2045), CodeTooLong, ""},
		{"long name", "source/" + strings.Repeat("a", 256), CodeTooLong, ""},
		{"home", "~/.ssh/id_rsa", CodeBadPath, "home"},
		{"URL", "file:///etc/passwd", CodeBadPath, "URL"},
		{"drive", `C:\Windows\win.ini`, CodeBadPath, "drive"},
		{"server share", `\\server\share`, CodeBadPath, ""},
		{"directory", "source/sub", CodeIsDirectory, ""},
		{"file as a directory", "source/a.txt/x", CodeNotDirectory, ""},
		{"file entry as a directory", "WORKSPACE.md/x", CodeOutside, ""},
		{"link to a file outside", "source/file-out", CodeLinkOut, "source/file-out is a link"},
		{"link to a directory outside", "source/dir-out/s.txt", CodeLinkOut, "source/dir-out is a link"},
		{"chain of three links", "source/chain1", CodeLinkOut, "source/chain3 is a link"},
		{"dangling link", "source/dangling", CodeNotFound, "does not exist"},
		{"link loop", "source/loop", CodeLinkLoop, ""},
		{"absolute link to the inside", "source/absolute", CodeAbsoluteLink, "use source/a.txt"},
		{"link to another entry", "source/to-lib", CodeLinkOut, "use lib/l.txt"},
		{"process root", "source/procroot/etc/passwd", CodeLinkOut, ""},
		{"device by a link", "source/zero", CodeLinkOut, ""},
		{"named pipe", "source/pipe", CodeNotRegular, "named pipe"},
		{"missing", "source/nothing", CodeNotFound, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			content, _, err := read(w, tt.path)
			if code(err) != tt.code {
				t.Fatalf("got %q, %v (%s); want %s", content, err, code(err), tt.code)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("message %q does not say %q", err, tt.says)
			}
			if text := strings.ReplaceAll(err.Error(), tt.path, ""); strings.Contains(text, tr.base) || strings.Contains(text, "secret") {
				t.Errorf("message %q names a place outside", err)
			}
		})
	}
}

func TestLayoutNamesNoAbsolutePath(t *testing.T) {
	t.Parallel()
	w := plant(t).open(t)
	want := Layout{Readable: []Entry{{"source", true}, {"lib", true}, {"WORKSPACE.md", false}}, Out: "out", Guide: "WORKSPACE.md"}
	if diff := cmp.Diff(want, w.Layout()); diff != "" {
		t.Error(diff)
	}
}

func TestFailuresOfTheSystemAreWordedForModels(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]Code{
		syscall.EACCES: CodePermission, syscall.EPERM: CodePermission, syscall.EROFS: CodePermission, syscall.ENAMETOOLONG: CodeTooLong,
		syscall.ENOSPC: CodeNoSpace, syscall.EDQUOT: CodeNoSpace, syscall.EFBIG: CodeNoSpace, syscall.EIO: CodeIO, syscall.EMFILE: CodeIO,
	} {
		w := &Workspace{}
		err := w.explain("a/b", spot{}, &os.PathError{Op: "openat", Path: "/somewhere/secret", Err: errno})
		if err.Code != want || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "openat") {
			t.Errorf("%v: got %s, %q", errno, err.Code, err)
		}
	}
}
