package filetool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindTellsSizeAndLinesOnRequest(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/dir/a.txt", "one\ntwo\n")
	d.put(t, "src/empty", "")
	d.put(t, "src/image", "\x89PNG\x00\n\n")
	d.put(t, "src/last-line-open", "one\ntwo")
	d.put(t, "src/one", "x")
	d.put(t, "src/odd\nname", "x\n")
	d.put(t, "src/zz-large", strings.Repeat(strings.Repeat("y", 99)+"\n", 5000))
	if err := os.Symlink("one", filepath.Join(d.root, "src", "link")); err != nil {
		t.Fatal(err)
	}
	checkText(t, d.find(t, args{"pattern": "*", "details": true}),
		"src/dir/", "src/dir/a.txt (8 bytes, 2 lines)", "src/empty (0 bytes, 0 lines)", "src/image (7 bytes)",
		"src/last-line-open (7 bytes, 2 lines)", "src/link", `src/odd\nname (2 bytes, 1 line)`, "src/one (1 byte, 1 line)",
		"src/zz-large (500000 bytes, 5000 lines)")
	checkText(t, d.find(t, args{"pattern": "one", "details": false}), "src/one")
}

func TestFindCountsNoLinesOfAVeryLargeFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "src/sparse", "")
	if err := os.Truncate(filepath.Join(d.root, "src", "sparse"), 2<<30); err != nil {
		t.Fatal(err)
	}
	checkText(t, d.find(t, args{"pattern": "*", "details": true}), "src/sparse (2147483648 bytes)")
}
