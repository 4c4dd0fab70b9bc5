package filetool

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/workspace"
)

func TestListShowsEveryKindOfEntry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"B.txt", "a.txt", ".hidden", "_x", "dir/inner", "line\nbreak", "Zoë"} {
		d.put(t, "src/d/"+name, "")
	}
	d.put(t, "elsewhere/hidden", "")
	for name, target := range map[string]string{
		"l-file": "a.txt", "l-dir": "dir", "l-up": "..", "l-out": "../../elsewhere", "l-abs": d.src + "/d/a.txt", "l-broken": "gone", "l-loop": "l-loop",
	} {
		if err := os.Symlink(target, d.src+"/d/"+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(d.src+"/d/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	want := `.hidden
_x
a.txt
B.txt
dir/
l-abs (link with an absolute target, not followed)
l-broken (broken link)
l-dir/ (link to a directory)
l-file (link to a file)
l-loop (link to itself)
l-out (link that leads out, not followed)
l-up/ (link to a directory)
line\nbreak
pipe (named pipe)
Zoë
`
	for _, path := range []string{"src/d", "src/d/", d.src + "/d"} {
		if diff := cmp.Diff(want, d.call(t, newList(), args{"path": path}).Text); diff != "" {
			t.Errorf("%q: %s", path, diff)
		}
	}
}

func TestListOfTheRootShowsWhatMayBeRead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "secret.txt", "")
	for _, a := range []args{{}, {"path": ""}, {"path": "."}, {"path": d.root}} {
		if got := d.call(t, newList(), a); got.IsError || got.Text != "src/\n\n[This is what may be read here.]" {
			t.Errorf("%v: got %q", a, got.Text)
		}
	}
}

func TestListIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 1200 {
		d.put(t, fmt.Sprintf("src/many/%04d", i), "")
	}
	d.put(t, "src/one/only", "")
	tests := []struct {
		name, path string
		limit      any
		first      string
		lines      int
		notice     string
	}{
		{"default", "src/many", nil, "0000", 500, "[The first 500 of 1200 names. Use limit=1000 for more, or find with a pattern.]"},
		{"limit", "src/many", 1000, "0000", 1000, "[The first 1000 of 1200 names. Use limit=1200 for more, or find with a pattern.]"},
		{"limit beyond all", "src/many", 5000, "0000", 1200, ""},
		{"exact limit", "src/many", 1200, "0000", 1200, ""},
		{"limit 0", "src/one", 0, "only", 1, "[limit 0 was taken as 1.]"},
		{"huge limit", "src/one", 1e30, "only", 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := args{"path": tt.path}
			if tt.limit != nil {
				a["limit"] = tt.limit
			}
			text, notice, _ := strings.Cut(d.call(t, newList(), a).Text, "\n\n")
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if lines[0] != tt.first || len(lines) != tt.lines || notice != tt.notice {
				t.Errorf("%d lines from %q, notice %q", len(lines), lines[0], notice)
			}
		})
	}
}

func TestListOfLongNamesIsCutAt50KB(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 300 {
		d.put(t, fmt.Sprintf("src/long/%03d%s", i, strings.Repeat("n", 240)), "")
	}
	got := d.call(t, newList(), args{"path": "src/long"})
	text, notice, _ := strings.Cut(got.Text, "\n\n")
	if len(text) > maxBytes || notice != "[The first 209 of 300 names, cut at 50 KB. Use find with a pattern to narrow it down.]" {
		t.Errorf("%d bytes, notice %q", len(text), notice)
	}
}

func TestListSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/f", "")
	if err := os.Mkdir(d.src+"/empty", 0o755); err != nil {
		t.Fatal(err)
	}
	if got := d.call(t, newList(), args{"path": "src/empty"}); got.IsError || got.Text != "(empty directory)" {
		t.Errorf("got %q", got.Text)
	}
	for path, says := range map[string]string{"src/f": "this is a file", "src/gone": "nothing is there", "out": "may be written to but not read", "..": "outside"} {
		if got := d.call(t, newList(), args{"path": path}); !got.IsError || !strings.Contains(got.Text, says) {
			t.Errorf("%q: got %q", path, got.Text)
		}
	}
}

func TestListOfADirectoryThatIsGoneNamesTheCause(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if err := os.RemoveAll(d.src); err != nil {
		t.Fatal(err)
	}
	got := d.call(t, newList(), args{"path": "src"})
	if !got.IsError || !strings.Contains(got.Text, "no such file or directory") || strings.Contains(got.Text, d.src) {
		t.Errorf("got %q, want the cause without the place on this machine", got.Text)
	}
}

// TestListHoldsFewNamesOfALargeDirectory is not parallel, since it measures memory.
func TestListHoldsFewNamesOfALargeDirectory(t *testing.T) {
	d := newDesk(t)
	const n = 6000
	for i := range n {
		if err := os.Symlink("x", fmt.Sprintf("%s/%s-%d", d.src, strings.Repeat("n", 100), i)); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := d.env.Workspace.OpenDir("src")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	names, total, err := smallest(t.Context(), dir, 10)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(names) != 10 || total != n || err != nil {
		t.Fatalf("%d of %d names, %v", len(names), total, err)
	}
	if cap(names) > 4096 {
		t.Errorf("room for %d names was kept", cap(names))
	}
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 256<<10 {
		t.Errorf("%d bytes are still held", kept)
	}
	runtime.KeepAlive(names)
	if names[0].key > names[9].key || names[0].name != strings.Repeat("n", 100)+"-0" {
		t.Errorf("first name %q", workspace.Escape(names[0].name))
	}
}
