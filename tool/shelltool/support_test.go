package shelltool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// TestMain makes this test binary the helper of the sandboxes of its own tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.ShimArgument {
		os.Exit(sandbox.Shim())
	}
	os.Exit(m.Run())
}

// desk is a workspace with sources in src, an output directory out and a directory for temporary files tmp, and a file
// outside that nobody may see.
type desk struct {
	root, src, out, tmp, outside string
	env                          *tool.Env
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	d := &desk{root: base + "/job", outside: base + "/outside"}
	d.src, d.out, d.tmp = d.root+"/src", d.root+"/out", base+"/tmp"
	for _, dir := range []string{d.src, d.out, d.tmp, d.outside} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, os.WriteFile(d.outside+"/secret.txt", []byte("outside-canary\n"), 0o644))
	w, err := workspace.Open(workspace.Config{Root: d.root, ReadOnly: []string{d.src}, OutDir: d.out, TmpDir: d.tmp})
	must(t, err)
	open := sync.OnceValues(func() (*sandbox.Sandbox, error) {
		return sandbox.Open(sandbox.Policy{Read: []string{d.src}, Write: []string{d.out, d.tmp}})
	})
	t.Cleanup(func() {
		if s, err := open(); err == nil {
			s.Close()
		}
		must(t, w.Close())
	})
	d.env = &tool.Env{Workspace: w, Processes: open}
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shell runs a call as the kernel does, arguments coerced and validated first.
func (d *desk) shell(t testing.TB, command string) tool.Result {
	t.Helper()
	return d.call(t.Context(), t, New(Options{}), map[string]any{"command": command})
}

func (d *desk) call(ctx context.Context, t testing.TB, tl tool.Tool, arguments any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(arguments)
	must(t, err)
	prepared, err := tl.PrepareArguments(raw)
	if err != nil {
		t.Fatalf("arguments %s: %v", raw, err)
	}
	return tl.Run(ctx, d.env, prepared)
}
