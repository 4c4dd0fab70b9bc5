package checkout_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/project"
)

func TestOnlyRegularFilesOfADirectoryAreTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plans := filepath.Join(b.sources, "plans")
	put(t, filepath.Join(plans, "a"), "1")
	put(t, filepath.Join(plans, "odd\nname"), "2")
	left := 1
	if runtime.GOOS == "linux" { // elsewhere no file has such a name
		put(t, filepath.Join(plans, "bad\xff"), "3")
		left = 2
	}
	must(t, syscall.Mkfifo(filepath.Join(plans, "pipe"), 0o644)) // reading it would wait for ever
	must(t, os.MkdirAll(filepath.Join(plans, "empty/dir"), 0o755))
	b.source(t, "plans", project.SourceDraft{Kind: project.Directory, Location: plans})
	w := prepare(t, b.machine(t, "one"), b.request("run_1"))
	if diff := cmp.Diff(map[string]string{"a": "0444 1", "odd\nname": "0444 2"}, tree(t, filepath.Join(w.Job.ReadOnly[0], "plans"))); diff != "" {
		t.Errorf("source/plans (-want +got):\n%s", diff)
	}
	guide := read(t, filepath.Join(w.Job.Root, "WORKSPACE.md"))
	if len(w.Notices) != left || !strings.Contains(guide, `"pipe"`) {
		t.Errorf("notices = %v, guide:\n%s", w.Notices, guide)
	}
}
