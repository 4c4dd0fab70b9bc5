package workspace

import (
	"syscall"
	"testing"
)

func TestWriteToAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("hozo-test", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	checkNoRoom(t, dir)
}
