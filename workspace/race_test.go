package workspace

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rounds is how often each access is tried while names are swapped; raise it for a long search for holes.
var rounds = flag.Int("rounds", 1000, "accesses per race test")

// swapper keeps giving the name to a harmless thing and to a trap in turn, until stop is called.
type swapper struct {
	swaps atomic.Int64
	stop  func()
}

// swap starts a swapper for name. Before the first swap name is the harmless thing and name.trap the trap.
func swap(t *testing.T, name string) *swapper {
	t.Helper()
	s := &swapper{}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, step := range [][2]string{{name, name + ".ok"}, {name + ".trap", name}, {name, name + ".trap"}, {name + ".ok", name}} {
				if err := os.Rename(step[0], step[1]); err != nil {
					t.Error(err)
					return
				}
			}
			s.swaps.Add(1)
		}
	})
	s.stop = func() { close(done); wg.Wait() }
	return s
}

func TestReadsNeverEscapeWhileNamesAreSwapped(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	mkdir(t, tr.source+"/dir")
	put(t, tr.source+"/dir/s.txt", "harmless")
	link(t, tr.secret, tr.source+"/dir.trap")
	put(t, tr.source+"/leaf", "harmless")
	link(t, tr.secret+"/s.txt", tr.source+"/leaf.trap")
	put(t, tr.source+"/pipe", "harmless")
	if err := syscall.Mkfifo(tr.source+"/pipe.trap", 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sibling.txt", tr.root+"/WORKSPACE.md.trap"); err != nil {
		t.Fatal(err)
	}
	w := tr.open(t)
	for path, name := range map[string]string{
		"source/dir/s.txt": tr.source + "/dir", "source/leaf": tr.source + "/leaf", "source/pipe": tr.source + "/pipe", "WORKSPACE.md": tr.root + "/WORKSPACE.md",
	} {
		t.Run(path, func(t *testing.T) {
			s := swap(t, name)
			defer s.stop()
			good := 0
			for i := 0; i < *rounds || s.swaps.Load() < 100 || good == 0; i++ {
				content, _, err := read(w, path)
				if strings.Contains(content, canary) {
					t.Fatal("read what must not be read")
				}
				if err == nil {
					good++
				}
			}
		})
	}
}

func TestDirectoriesNeverEscapeWhileNamesAreSwapped(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	for _, name := range []string{"/dir", "/pipe"} {
		mkdir(t, tr.source+name)
		put(t, tr.source+name+"/harmless", "")
	}
	link(t, tr.secret, tr.source+"/dir.trap")
	if err := syscall.Mkfifo(tr.source+"/pipe.trap", 0o644); err != nil {
		t.Fatal(err)
	}
	w := tr.open(t)
	for _, name := range []string{"dir", "pipe"} {
		t.Run(name, func(t *testing.T) {
			s := swap(t, tr.source+"/"+name)
			defer s.stop()
			for i := 0; i < *rounds || s.swaps.Load() < 100; i++ {
				d, err := w.OpenDir("source/" + name)
				if err != nil {
					continue
				}
				names, err := d.File.Readdirnames(-1)
				d.Close()
				if err == nil && (len(names) != 1 || names[0] != "harmless") {
					t.Fatalf("listed %q", names)
				}
			}
		})
	}
}

func TestWritesNeverEscapeWhileNamesAreSwapped(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	mkdir(t, tr.out+"/dir")
	put(t, tr.out+"/dir/s.txt", "")
	put(t, tr.out+"/leaf", "")
	put(t, tr.out+"/hard", "")
	w := tr.open(t)
	before := snapshot(t, tr.secret)
	tests := []struct {
		name, path string
		trap       func(name string) error
	}{
		{"dir", "dir/s.txt", func(name string) error { return os.Symlink(tr.secret, name) }},
		{"leaf", "leaf", func(name string) error { return os.Symlink(tr.secret+"/s.txt", name) }},
		{"hard", "hard", func(name string) error { return os.Link(tr.secret+"/s.txt", name) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := swapBack(t, tr.out+"/"+tt.name, tt.trap)
			defer s.stop()
			good := 0
			for i := 0; i < *rounds/4 || s.swaps.Load() < 50; i++ {
				if _, err := w.WriteFile(tt.path, []byte(fmt.Sprint(i))); err == nil {
					good++
				}
				edit := func([]byte) ([]byte, error) { return []byte("edited"), nil }
				if _, err := w.EditFile(tt.path, edit); err == nil {
					good++
				}
			}
			if good == 0 {
				t.Error("no write succeeded, so that nothing was tested")
			}
		})
	}
	if diff := cmp.Diff(before, snapshot(t, tr.secret)); diff != "" {
		t.Errorf("written outside:\n%s", diff)
	}
	noTemporaryFiles(t, tr.out)
}

// swapBack is swap for a name that others write to: a write may create the name anew between two steps, or replace the
// trap, so that steps may fail and the trap is set again each time.
func swapBack(t *testing.T, name string, trap func(name string) error) *swapper {
	t.Helper()
	s := &swapper{}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			_ = os.Remove(name + ".trap") // there may be none
			if err := trap(name + ".trap"); err != nil {
				t.Error(err)
				return
			}
			for _, step := range [][2]string{{name, name + ".ok"}, {name + ".trap", name}, {name, name + ".trap"}, {name + ".ok", name}} {
				_ = os.Rename(step[0], step[1]) // whoever was faster
			}
			s.swaps.Add(1)
		}
	})
	s.stop = func() { close(done); wg.Wait() }
	return s
}

func TestEditsOfOneFileTakeTurns(t *testing.T) {
	t.Parallel()
	tr := plant(t)
	w := tr.open(t)
	put(t, tr.out+"/count", "")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := w.EditFile("count", func(before []byte) ([]byte, error) { return append(before, '.'), nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if data, err := w.ReadOutput("count"); len(data) != 400 || err != nil {
		t.Errorf("%d of 400 edits survived, %v", len(data), err)
	}
}
