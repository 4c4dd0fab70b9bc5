package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestEscapeShowsWhatCannotBeSeen(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                 "",
		"plain-name_1.txt": "plain-name_1.txt",
		"with space":       "with space",
		"報告é":              "報告é",
		"a\nb\rc\td":       `a\nb\rc\td`,
		"\x1b[31m":         `\x1b[31m`,
		"a\u202eb":         `a\u202eb`,
		"8\u202fPM":        `8\u202fPM`,
		"bad\xff\xfe":      `bad\xff\xfe`,
		`back\slash`:       `back\\slash`,
		" lead":            `\x20lead`,
		"trail ":           `trail\x20`,
		"zero\u200bwidth":  `zero\u200bwidth`,
		"dot.":             "dot.",
	} {
		got := Escape(name)
		if got != want {
			t.Errorf("Escape(%q) = %q, want %q", name, got, want)
		}
		if back, ok := unescape(got); got != name && (!ok || back != name) {
			t.Errorf("unescape(%q) = %q, %v", got, back, ok)
		}
	}
}

func TestNamesCanBeGivenAsTheyAreShown(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	names := []string{"a\nb", "esc\x1b[1m", "bidi\u202e", "bad\xff", "trail ", "dot.", `back\slash`, strings.Repeat("n", 255)}
	// Some file systems refuse some of these names.
	names = slices.DeleteFunc(names, func(name string) bool { return os.WriteFile(tr.source+"/"+name, []byte(name), 0o644) != nil })
	if len(names) == 0 {
		t.Fatal("no file could be made")
	}
	w := tr.open(t)
	for _, name := range names {
		for _, p := range []string{"source/" + name, Escape("source/" + name)} {
			if content, display, err := read(w, p); err != nil || content != name || display != "source/"+name {
				t.Errorf("%q: got %q, %q, %v", p, content, display, err)
			}
		}
	}
	if _, _, err := read(w, `source/a\x00b`); code(err) != CodeNotFound {
		t.Errorf("an escaped NUL: %v", err)
	}
	if _, _, err := read(w, `source/\x2e\x2e/sibling.txt`); code(err) != CodeNotFound {
		t.Errorf("escaped dots: %v", err)
	}
}

func TestNearMissesAreSuggested(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	put(t, tr.source+"/Screenshot 8.05\u202fPM.png", "x")
	put(t, tr.source+"/cafe\u0301.txt", "x")
	put(t, tr.source+"/It\u2019s.md", "x")
	put(t, tr.source+"/README.md", "x")
	mkdir(t, tr.source+"/Docs")
	put(t, tr.source+"/Docs/x.md", "x")
	link(t, "gone", tr.source+"/broken")
	w := tr.open(t)
	for p, says := range map[string]string{
		"source/Screenshot 8.05 PM.png": `did you mean source/Screenshot 8.05\u202fPM.png?`,
		"source/caf\u00e9.txt":          "did you mean source/cafe\u0301.txt?",
		"source/It's.md":                "did you mean source/It\u2019s.md?",
		"source/readme.md":              "did you mean source/README.md?",
		"source/docs/x.md":              "did you mean source/Docs?",
		"a.txt":                         "did you mean source/a.txt?",
		"sub/b.txt":                     "did you mean source/sub/b.txt?",
		"/source/a.txt":                 "did you mean source/a.txt?",
		"@source/a.txt":                 "did you mean source/a.txt?",
		`source\sub\b.txt`:              "did you mean source/sub/b.txt?",
		"source/none/deep/x":            "source/none does not exist",
		"source/broken":                 "source/broken is a link whose target does not exist",
		"l.txt":                         "did you mean lib/l.txt?",
	} {
		if _, err := os.Stat(filepath.Join(tr.root, p)); err == nil {
			continue // a file system for which these are the same name
		}
		if _, _, err := read(w, p); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: message %q does not say %q", p, err, says)
		}
	}
}

func TestReadableBelowShowsTheWayToTheEntries(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	mkdir(t, tr.root+"/inputs/a/deep")
	mkdir(t, tr.root+"/inputs/b")
	c := tr.config()
	c.ReadOnly = append(c.ReadOnly, tr.root+"/inputs/a/deep", tr.root+"/inputs/b")
	w, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for p, want := range map[string][]Entry{
		"":         {{"WORKSPACE.md", false}, {"inputs", true}, {"lib", true}, {"source", true}},
		".":        {{"WORKSPACE.md", false}, {"inputs", true}, {"lib", true}, {"source", true}},
		"inputs":   {{"a", true}, {"b", true}},
		"inputs/a": {{"deep", true}},
		"source":   nil,
		"inputs/b": nil,
		"..":       nil,
		"/":        nil,
		"other":    nil,
	} {
		if diff := cmp.Diff(want, w.ReadableBelow(p)); diff != "" {
			t.Errorf("%q: %s", p, diff)
		}
	}
}

func TestSearchWithoutAPathStartsAtTheFirstEntry(t *testing.T) {
	t.Parallel()
	w := plant(t).open(t)
	for _, p := range []string{"", ".", "./", "source/"} {
		d, err := w.OpenDir(p)
		if err != nil {
			t.Fatal(err)
		}
		if d.Display != "source" {
			t.Errorf("%q: display %q", p, d.Display)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestReadableRootIsItself(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	w, err := Open(Config{Root: tr.source, ReadOnly: []string{tr.source}, OutDir: tr.out})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d, err := w.OpenDir(".")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, display, err := read(w, "sub/b.txt"); d.Display != "." || display != "sub/b.txt" || err != nil || w.ReadableBelow(".") != nil {
		t.Errorf("got %q, %q, %v", d.Display, display, err)
	}
}

func TestEntriesElsewhereHaveDistinctNames(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	for _, dir := range []string{"/one/lib", "/two/lib"} {
		mkdir(t, tr.base+dir)
		put(t, tr.base+dir+"/f", dir)
	}
	w, err := Open(Config{Root: tr.root, ReadOnly: []string{tr.source, tr.base + "/one/lib", tr.base + "/two/lib"}, OutDir: tr.out})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for p, want := range map[string]string{"lib/f": "/one/lib", "lib-2/f": "/two/lib"} {
		if content, display, err := read(w, p); content != want || display != p || err != nil {
			t.Errorf("%q: got %q, %q, %v", p, content, display, err)
		}
	}
}

func TestNestedEntriesAllowWhatEitherAllows(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	link(t, "../a.txt", tr.source+"/sub/up")
	w, err := Open(Config{Root: tr.root, ReadOnly: []string{tr.source, tr.source + "/sub"}, OutDir: tr.out})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if content, display, err := read(w, "source/sub/up"); content != "alpha" || display != "source/sub/up" || err != nil {
		t.Errorf("got %q, %q, %v", content, display, err)
	}
}

func TestRootReachedThroughALink(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	link(t, tr.root, tr.base+"/alias")
	w, err := Open(Config{Root: tr.base + "/alias", ReadOnly: []string{tr.source, tr.base + "/alias/WORKSPACE.md"}, OutDir: tr.base + "/alias/out"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for p, want := range map[string]string{
		"source/a.txt": "source/a.txt", tr.base + "/alias/source/a.txt": "source/a.txt", tr.source + "/a.txt": "source/a.txt", "WORKSPACE.md": "WORKSPACE.md",
	} {
		if _, display, err := read(w, p); display != want || err != nil {
			t.Errorf("%q: got %q, %v", p, display, err)
		}
	}
	for _, p := range []string{"a.md", tr.base + "/alias/out/a.md", tr.out + "/a.md"} {
		if got, err := w.WriteFile(p, nil); got.Path != "a.md" || err != nil {
			t.Errorf("%q: got %+v, %v", p, got, err)
		}
	}
}

// FuzzPath compares every path that is accepted with what the system makes of it: it must resolve to a place inside.
func FuzzPath(f *testing.F) {
	for _, p := range []string{"source/a.txt", "../../etc/passwd", "source/dir-out/s.txt", "/etc/passwd", "source/../sibling.txt", "source/in/b.txt",
		"lib/l.txt", `source/\x61.txt`, "source/./sub//b.txt", "WORKSPACE.md", "source-twin/t.txt", "source/in/../../a.txt", "\x00", "~"} {
		f.Add(p)
	}
	tr := plant(f)
	link(f, tr.secret, tr.source+"/dir-out")
	link(f, "sub", tr.source+"/in")
	link(f, "../..", tr.source+"/sub/up")
	w := tr.open(f)
	inside := []string{tr.source, tr.lib, tr.root + "/WORKSPACE.md"}
	f.Fuzz(func(t *testing.T, p string) {
		content, display, err := read(w, p)
		if strings.Contains(content, canary) {
			t.Fatalf("%q: read what must not be read", p)
		}
		if err != nil {
			if e := err.Error(); !utf8.ValidString(e) || strings.Contains(strings.ReplaceAll(e, Escape(p), ""), tr.base) {
				t.Fatalf("%q: message %q", p, e)
			}
		} else {
			checkInside(t, tr, inside, display)
		}
		if got, err := w.WriteFile(p, []byte("x")); err == nil {
			real, err := filepath.EvalSymlinks(filepath.Join(tr.out, got.Path))
			if _, ok := below(tr.out, real); err != nil || !ok {
				t.Fatalf("%q: wrote to %q, %v", p, real, err)
			}
		}
	})
}

// checkInside resolves the display of an opened file by the system's own rules.
func checkInside(t *testing.T, tr *tree, inside []string, display string) {
	t.Helper()
	full := filepath.Join(tr.root, display)
	if rest, ok := strings.CutPrefix(display, "lib/"); ok {
		full = filepath.Join(tr.lib, rest)
	}
	real, err := filepath.EvalSymlinks(full)
	if err != nil {
		t.Fatalf("display %q leads nowhere: %v", display, err)
	}
	for _, dir := range inside {
		if _, ok := below(dir, real); ok {
			return
		}
	}
	t.Fatalf("display %q leads to %q, outside", display, real)
}
