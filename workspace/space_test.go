package workspace

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// smallFiles in the environment makes TestWriteWithoutRoom the child that may not write files of more than 4 KB.
const smallFiles = "HOZO_TEST_SMALL_FILES"

// TestWriteWithoutRoom runs itself as a child process with a limit on the size of files.
func TestWriteWithoutRoom(t *testing.T) {
	if dir := os.Getenv(smallFiles); dir != "" {
		limit := syscall.Rlimit{Cur: 4096, Max: 4096}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		checkNoRoom(t, dir)
		return
	}
	t.Parallel()
	child := exec.Command(os.Args[0], "-test.run=^TestWriteWithoutRoom$")
	child.Env = append(os.Environ(), smallFiles+"="+t.TempDir())
	if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// checkNoRoom writes more to dir than fits and checks that the file there is as it was and nothing else is left.
func checkNoRoom(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"/src", "/out"} {
		mkdir(t, dir+name)
	}
	put(t, dir+"/out/a.md", "before")
	w, err := Open(Config{Root: dir, ReadOnly: []string{dir + "/src"}, OutDir: dir + "/out"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	large := bytes.Repeat([]byte("too much "), 1<<18)
	for _, name := range []string{"a.md", "new.md"} {
		if _, err := w.WriteFile(name, large); code(err) != CodeNoSpace {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := w.EditFile("a.md", func([]byte) ([]byte, error) { return large, nil }); code(err) != CodeNoSpace {
		t.Errorf("edit: got %v", err)
	}
	names, err := os.ReadDir(dir + "/out")
	if err != nil || len(names) != 1 {
		t.Errorf("left in the directory: %v, %v", names, err)
	}
	if data, err := os.ReadFile(dir + "/out/a.md"); err != nil || string(data) != "before" {
		t.Errorf("file holds %q, %v", data, err)
	}
	if _, err := w.WriteFile("a.md", []byte("after")); err != nil {
		t.Errorf("a small file does not fit either: %v", err)
	}
}
