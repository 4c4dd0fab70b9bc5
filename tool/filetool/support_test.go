package filetool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// desk is a workspace with sources to read in src and an output directory out, both below root.
type desk struct {
	root, src, out string
	env            *tool.Env
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{root: root, src: root + "/src", out: root + "/out"}
	for _, dir := range []string{d.src, d.out} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w, err := workspace.Open(workspace.Config{Root: root, ReadOnly: []string{d.src}, OutDir: d.out})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	d.env = &tool.Env{Workspace: w}
	return d
}

// put writes a file below root.
func (d *desk) put(t testing.TB, name string, content string) {
	t.Helper()
	full := filepath.Join(d.root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// content reads a file below root.
func (d *desk) content(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// call runs a tool as the kernel does, arguments coerced and validated first.
func (d *desk) call(t testing.TB, tl tool.Tool, arguments any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := tl.PrepareArguments(raw)
	if err != nil {
		t.Fatalf("arguments %s: %v", raw, err)
	}
	return tl.Run(t.Context(), d.env, prepared)
}

type args map[string]any
