package filetool

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

func TestWriteSaysWhereTheFileLanded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	tests := []struct{ name, path, content, text, lands string }{
		{"new", "report.md", "hello\n", `Created "report.md" in the output directory with 6 bytes.`, "out/report.md"},
		{"again", "report.md", "é", `Replaced "report.md" in the output directory with 2 bytes.`, "out/report.md"},
		{"empty", "a/b/empty", "", `Created "a/b/empty" in the output directory with 0 bytes.`, "out/a/b/empty"},
		{"own name", "out/report.md", "x", `Created "out/report.md" in the output directory (paths start there, so this is in a folder out/ within it; ` +
			`"report.md" would be at its top) with 1 byte.`, "out/out/report.md"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := d.call(t, newWrite(), args{"path": tt.path, "content": tt.content})
			if got.IsError || got.Text != tt.text || d.content(t, tt.lands) != tt.content {
				t.Errorf("got %q, file %q", got.Text, d.content(t, tt.lands))
			}
			want := []tool.Output{{Path: strings.TrimPrefix(tt.lands, "out/"), Bytes: int64(len(tt.content))}}
			if diff := cmp.Diff(want, got.Outputs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWriteKeepsEveryByte(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	content := "\ufeffa\r\nb\rc\n\n \t\u2028end"
	d.call(t, newWrite(), args{"path": "f", "content": content})
	if d.content(t, "out/f") != content {
		t.Errorf("got %q", d.content(t, "out/f"))
	}
}

func TestWrittenFilesCanBeReadBackIfTheOutputDirectoryIsReadable(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	w, err := workspace.Open(workspace.Config{Root: d.root, ReadOnly: []string{d.src, d.out}, OutDir: d.out})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d.env.Workspace = w
	got := d.call(t, newWrite(), args{"path": "f.md", "content": "text\n"})
	if want := `Created "f.md" in the output directory (for reading: "out/f.md") with 5 bytes.`; got.Text != want {
		t.Errorf("got %q", got.Text)
	}
	if got := d.call(t, newRead(), args{"path": "out/f.md"}); got.Text != "text\n" {
		t.Errorf("got %q", got.Text)
	}
}

func TestWritesAndEditsOfOneFileTakeTurns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(t, "out/f", strings.Repeat("old line\n", 1000)+"mark 0\n")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if i%2 == 0 {
				d.call(t, newWrite(), args{"path": "f", "content": strings.Repeat("new line\n", 1000) + "mark 0\n"})
			} else {
				d.call(t, newEdit(), args{"path": "f", "edits": []replacement{{"mark 0", "mark 1"}}})
			}
		})
	}
	wg.Wait()
	got := d.content(t, "out/f")
	body, mark, _ := strings.Cut(got, "mark ")
	if body != strings.Repeat("new line\n", 1000) || mark != "0\n" && mark != "1\n" {
		t.Errorf("the file is a mixture: %d bytes, mark %q", len(got), mark)
	}
}
