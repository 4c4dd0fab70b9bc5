package checkout_test

import (
	"os"
	"syscall"
	"testing"
)

// mountSmall makes a directory with room for a megabyte, a file system of its own.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	if err := syscall.Mount("hozo-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
}
