//go:build unix

package catalog

import (
	"os"
	"path/filepath"
	"strings"
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
		{CodeFileUnreadable, filepath.Join(dir, "skills/counting/SKILL.md"), 1, 1},
		{CodeFileUnreadable, filepath.Join(dir, "skills/linked"), 1, 1},
		{CodeFileUnreadable, filepath.Join(dir, "skills/pipe/SKILL.md"), 1, 1},
	}
	if diff := cmp.Diff(want, places(list)); diff != "" || len(pkg.Skills) != 0 {
		t.Errorf("%s\n%v", diff, list)
	}
	for i, says := range []string{"a link that leads out of the package", "a link that leads out of the package", "not a regular file"} {
		if !strings.Contains(list[i].Message, says) {
			t.Errorf("%v, want it to say %q", list[i], says)
		}
	}
}

func TestParseFileRefusesAPipeAsAgentFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "inventory.md")
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	_, list := ParseFile(path)
	if diff := cmp.Diff([]place{{CodeFileUnreadable, path, 1, 1}}, places(list)); diff != "" {
		t.Error(diff)
	}
}
