//go:build unix

package catalog

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFileRefusesPipesAndLinksThatLeave(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(secret, []byte(skill), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := layOut(t, map[string]string{"inventory.md": minimal(""), "skills/pipe/.keep": "", "skills/counting/.keep": ""})
	if err := syscall.Mkfifo(filepath.Join(dir, "skills/pipe/SKILL.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "skills/counting/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(dir, "skills/linked")); err != nil {
		t.Fatal(err)
	}
	pkg, list := ParseFile(filepath.Join(dir, "inventory.md"))
	want := []place{
		{CodeFileUnreadable, filepath.Join(dir, "skills/counting/SKILL.md"), 0, 0},
		{CodeFileUnreadable, filepath.Join(dir, "skills/linked"), 0, 0},
		{CodeFileUnreadable, filepath.Join(dir, "skills/pipe/SKILL.md"), 0, 0},
	}
	if diff := cmp.Diff(want, places(list)); diff != "" || len(pkg.Skills) != 0 {
		t.Errorf("%s\n%v", diff, list)
	}
}

func TestParseFileRefusesAPipeAsAgentFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "inventory.md")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	_, list := ParseFile(path)
	if diff := cmp.Diff([]place{{CodeFileUnreadable, path, 0, 0}}, places(list)); diff != "" {
		t.Error(diff)
	}
}
