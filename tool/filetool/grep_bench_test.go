package filetool

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/workspace"
)

// goRoot returns the directory of the Go distribution, whose sources are a tree that everyone has who runs these tests.
func goRoot(tb testing.TB) string {
	tb.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Skipf("needs the go command for the sources of the Go distribution: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// goSources is a workspace whose sources are those of the Go distribution, a tree of some 10,000 files.
func goSources(b *testing.B) *tool.Env {
	b.Helper()
	root := filepath.Join(goRoot(b), "src")
	w, err := workspace.Open(workspace.Config{Root: b.TempDir(), ReadOnly: []string{root}, OutDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.Close() })
	return &tool.Env{Workspace: w}
}

func benchmarkTool(b *testing.B, tl tool.Tool, a args) {
	env := goSources(b)
	raw, err := json.Marshal(a)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r := tl.Run(b.Context(), env, raw); r.IsError {
			b.Fatal(r.Text)
		}
	}
}

func BenchmarkGrepTree(b *testing.B) {
	for _, pattern := range []string{"xyzzy absent", `func \w+Context\(.*absent`, "(?i)deadline absent", "[A-Z][a-z]+[0-9]{7}"} {
		b.Run(pattern, func(b *testing.B) { benchmarkTool(b, newGrep(), args{"pattern": pattern}) })
	}
}

func BenchmarkFindTree(b *testing.B) {
	for _, pattern := range []string{"*.absent", "**/testdata/**/*.absent"} {
		b.Run(pattern, func(b *testing.B) { benchmarkTool(b, newFind(), args{"pattern": pattern}) })
	}
}
