//go:build linux && !portable

package walk

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// top opens dir as a handle, with and without openat2.
func tops(t *testing.T, dir string) map[string]handle {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	handles := map[string]handle{}
	for _, name := range []string{"openat2", "openat"} {
		h, err := openTop(root)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.close)
		if name == "openat" {
			var st unix.Stat_t
			if err := unix.Fstat(h.fd, &st); err != nil {
				t.Fatal(err)
			}
			h.plain, h.dev = true, st.Dev
		}
		handles[name] = h
	}
	return handles
}

func TestOnlyDirectoriesAndRegularFilesOpenWithEitherSystemCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("file")
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"tofile": "file", "todir": "dir", "out": "/etc", "loop": "loop", "zero": "/dev/zero"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Skipf("no socket in the test directory: %v", err)
	}
	defer listener.Close()
	for way, h := range tops(t, dir) {
		f, err := h.openFile("file")
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		if content, err := io.ReadAll(f); string(content) != "text" || err != nil {
			t.Errorf("%s: read %q, %v", way, content, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		sub, err := h.openDir("dir")
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		sub.close()
		for _, name := range []string{"dir", "tofile", "todir", "out", "loop", "zero", "pipe", "s"} {
			if f, err := h.openFile(name); err == nil {
				t.Errorf("%s: %s opened as a file", way, name)
				_ = f.Close()
			}
		}
		for _, name := range []string{"file", "tofile", "todir", "out", "loop", "pipe", "s"} {
			if d, err := h.openDir(name); err == nil {
				t.Errorf("%s: %s opened as a directory", way, name)
				d.close()
			}
		}
	}
}

func TestKindIsAskedForWhereTheDirectoryDoesNotTell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dir", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := tops(t, dir)["openat2"]
	for name, want := range map[string]Kind{"file": Regular, "dir": Directory, "link": Symlink, "pipe": Special} {
		if got, err := h.kind(name); got != want || err != nil {
			t.Errorf("kind(%q) = %v, %v, want %v", name, got, err, want)
		}
	}
	if _, err := h.kind("none"); err == nil {
		t.Error("kind of an absent name is no error")
	}
	if kindOf(unix.DT_UNKNOWN) != Unknown {
		t.Error("an entry without a type is not taken as unknown")
	}
}

func TestMountPointsAreNotEnteredWithEitherSystemCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, mount := range map[string]func(string) error{
		"bind": func(at string) error { return unix.Mount(outside, at, "", unix.MS_BIND, "") },
		"proc": func(at string) error { return unix.Mount("proc", at, "proc", 0, "") },
	} {
		at := filepath.Join(dir, name)
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := mount(at); err != nil {
			t.Skipf("cannot mount here: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	}
	for way, h := range tops(t, dir) {
		for _, name := range []string{"bind", "proc"} {
			if way == "openat" && name == "bind" {
				continue // one device: only openat2 can tell
			}
			if d, err := h.openDir(name); err != errMount {
				t.Errorf("%s: opening a mount point (%s) = %v, want %v", way, name, err, errMount)
				if err == nil {
					d.close()
				}
			}
		}
	}
}
