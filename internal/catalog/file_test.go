package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layOut writes files below a new directory and returns it.
func layOut(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range files {
		full := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestParseFileReadsThePackageAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := layOut(t, map[string]string{
		"inventory.md":             minimal(""),
		"skills/counting/SKILL.md": skill,
		"skills/.hidden":           "x",
		"other.md":                 "not an agent",
		"AGENTS.md":                "no",
		"notes/skills/x/SKILL.md":  "no",
	})
	pkg, list := ParseFile(filepath.Join(dir, "inventory.md"))
	if list != nil {
		t.Fatalf("findings: %v", list)
	}
	if len(pkg.Skills) != 1 || pkg.Skills[0].Name != "counting" || pkg.Name != "inventory" {
		t.Errorf("package = %+v", pkg)
	}
}

func TestParseFileNamesThePlace(t *testing.T) {
	t.Parallel()
	dir := layOut(t, map[string]string{
		"inventory.md":             minimal("version: x\n"),
		"skills/counting/SKILL.md": "---\nname: nope\ndescription: d\n---\nb\n",
		"skills/counting/run.sh":   "x",
		"skills/empty/.keep":       "",
		"skills/README.md":         "x",
	})
	_, list := ParseFile(filepath.Join(dir, "inventory.md"))
	want := []place{
		{CodeFileUnexpected, filepath.Join(dir, "skills/counting/run.sh"), 1, 1},
		{CodeFileUnreadable, filepath.Join(dir, "skills/README.md"), 1, 1},
		{CodeFileMissing, filepath.Join(dir, "skills/empty"), 1, 1},
		{CodeVersionInvalid, filepath.Join(dir, "inventory.md"), 4, 10},
		{CodeNameMismatch, filepath.Join(dir, "skills/counting/SKILL.md"), 2, 7},
	}
	if !sameSet(want, places(list)) {
		t.Errorf("%s", cmp.Diff(want, places(list)))
	}
	pkg, _ := ParseFile(filepath.Join(dir, "inventory.md"))
	if found := pkg.Check(Installation{Reserved: []string{"inventory"}}); len(found) != 1 || found[0].Path != filepath.Join(dir, "inventory.md") {
		t.Errorf("later findings = %v", found)
	}
}

func TestParseFileOfABareName(t *testing.T) {
	dir := layOut(t, map[string]string{"inventory.md": minimal("version: x\n"), "skills/counting/SKILL.md": skill})
	t.Chdir(dir)
	pkg, list := ParseFile("inventory.md")
	if diff := cmp.Diff([]place{{CodeVersionInvalid, "inventory.md", 4, 10}}, places(list)); diff != "" || len(pkg.Skills) != 1 {
		t.Errorf("%s%+v", diff, pkg)
	}
}

func TestParseFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := layOut(t, map[string]string{"notes.txt": "x", "large.md": minimal("") + strings.Repeat("x", MaxFrontmatter+MaxInstructions+2000), "folder.md/x": ""})
	for name, code := range map[string]string{
		"nope.md": CodeFileMissing, "notes.txt": CodeFileUnexpected, "folder.md": CodeFileUnreadable, "large.md": CodeFileTooLarge, "no/nope.md": CodeFileMissing,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		pkg, list := ParseFile(path)
		if diff := cmp.Diff([]place{{code, path, 1, 1}}, places(list)); diff != "" || pkg != nil {
			t.Errorf("%s: package %v, %s", name, pkg, diff)
		}
	}
}

func TestOneBadPackageDoesNotHideAnother(t *testing.T) {
	t.Parallel()
	dir := layOut(t, map[string]string{"bad.md": "---\nname: 5\ntools: read\n---\nbody\n", "inventory.md": minimal("")})
	if _, list := ParseFile(filepath.Join(dir, "bad.md")); len(list) != 3 {
		t.Errorf("findings of the bad one = %v", list)
	}
	if pkg, list := ParseFile(filepath.Join(dir, "inventory.md")); list != nil || pkg.Name != "inventory" {
		t.Errorf("findings of the good one = %v", list)
	}
}
