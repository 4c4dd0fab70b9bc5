package workspace

import (
	"net"
	"os"
	"strings"
	"testing"
)

func TestSocketsAreNotOpened(t *testing.T) {
	tr := plant(t)
	t.Chdir(tr.source) // socket paths are short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := tr.open(t)
	if _, _, err := read(w, "source/socket"); code(err) != CodeNotRegular || !strings.Contains(err.Error(), "socket") {
		t.Errorf("got %v", err)
	}
}

func TestDeepPaths(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	deep := strings.Repeat("d/", 300)
	mkdir(t, tr.source+"/"+deep)
	put(t, tr.source+"/"+deep+"f", "deep")
	w := tr.open(t)
	if content, _, err := read(w, "source/"+deep+"f"); content != "deep" || err != nil {
		t.Errorf("got %q, %v", content, err)
	}
	if _, _, err := read(w, "source/"+deep+strings.Repeat("../", 300)+"a.txt"); err != nil {
		t.Error(err)
	}
	if got, err := w.WriteFile(deep+"f", nil); err != nil || !got.Created {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFilesStayOpenAfterTheWorkspaceIsClosed(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	w, err := Open(tr.config())
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.OpenFile("source/a.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Read(make([]byte, 10)); n != 5 || err != nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
	if _, err := w.OpenFile("source/a.txt"); code(err) != CodeIO {
		t.Errorf("got %v", err)
	}
	if _, err := w.WriteFile("a", nil); code(err) != CodeIO {
		t.Errorf("got %v", err)
	}
}

func TestReplacedDirectoriesStayTheOnesThatWereOpened(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	w := tr.open(t)
	if err := os.Rename(tr.source, tr.base+"/moved"); err != nil {
		t.Fatal(err)
	}
	link(t, tr.secret, tr.source)
	if content, _, err := read(w, "source/a.txt"); content != "alpha" || err != nil {
		t.Errorf("got %q, %v", content, err)
	}
	if _, _, err := read(w, "source/s.txt"); code(err) != CodeNotFound {
		t.Errorf("got %v", err)
	}
}

func BenchmarkOpenFile(b *testing.B) {
	tr := plant(b)
	w := tr.open(b)
	for b.Loop() {
		f, err := w.OpenFile("source/sub/b.txt")
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

func BenchmarkWriteFile(b *testing.B) {
	tr := plant(b)
	w := tr.open(b)
	data := []byte(strings.Repeat("line of a report\n", 500))
	for b.Loop() {
		if _, err := w.WriteFile("dir/report.md", data); err != nil {
			b.Fatal(err)
		}
	}
}
