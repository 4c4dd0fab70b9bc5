package hozo_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The tests of this package are the house rules. They read the source of the whole module once, run nothing of it, and
// report each place that breaks a rule together with what to do about it.

const module = "github.com/hozo-run/hozo"

// exceptions are the places at which a rule does not hold, as "<rule> <place>", each with its reason. An entry that is
// not needed any more fails too.
var exceptions = map[string]string{
	"context kernel/thread.go thread":                      "a thread is the life of one agent in a job, with a time limit of its own; every part of its loop needs it",
	"context kernel/run.go run":                            "a run is the life of one job: Start makes the context, execute ends it, and every part of the job needs it",
	"start internal/schemagen/build.go regexp.MustCompile": "the generator is run by go generate only",
}

// usedExceptions is filled by allowed; the rules run one after another.
var usedExceptions = map[string]bool{}

// allowed reports whether an exception stands at this place.
func allowed(rule, place string) bool {
	_, ok := exceptions[rule+" "+place]
	if ok {
		usedExceptions[rule+" "+place] = true
	}
	return ok
}

// source is one parsed Go file.
type source struct {
	path      string // slash-separated, from the module's root
	dir       string // the directory of path; "." is the root
	test      bool
	generated bool
	file      *ast.File
	lines     int
}

// tree is everything that the rules look at.
type tree struct {
	fset    *token.FileSet
	sources []source
	files   []string // every file of the working tree, sorted
}

// load reads the tree once. Build output, version control and nested modules are left out.
var load = sync.OnceValues(func() (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDir(name)
		}
		if entry.Type().IsRegular() {
			t.files = append(t.files, name)
		}
		if strings.HasSuffix(name, ".go") {
			return t.parse(name)
		}
		return nil
	})
	return t, err
})

func skipDir(name string) error {
	if name == "." {
		return nil
	}
	base := path.Base(name)
	if slices.Contains([]string{".git", ".cache", "bin", "dist", "node_modules", "demo-out"}, base) || name == "bench/out" {
		return fs.SkipDir
	}
	if _, err := os.Stat(name + "/go.mod"); err == nil {
		return fs.SkipDir
	}
	return nil
}

func (t *tree) parse(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(t.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.sources = append(t.sources, source{
		path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(file),
		file: file, lines: bytes.Count(data, []byte("\n")),
	})
	return nil
}

func mustLoad(t *testing.T) *tree {
	t.Helper()
	tree, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// at returns the place of a node for messages.
func (t *tree) at(n ast.Node) string { return t.fset.Position(n.Pos()).String() }

// arrow says what the packages of one room may import of this module. A name that ends in /... stands for the package
// and everything below it.
type arrow struct {
	from string
	to   []string
}

// arrows are the import directions, most special first. What is not drawn is forbidden.
func arrows() []arrow {
	kernelRing := []string{"problem/...", "llm/...", "job/...", "tool/...", "workspace/...", "sandbox/...", "kernel/...", "jobproc/...", "journal/...", "hostserver/...", "provider/...", "schema/...", "telemetry/..."}
	return []arrow{
		{"problem", nil},
		{"llm/llmtest", []string{"llm", "problem"}},
		{"llm/textcall", []string{"llm", "problem"}},
		{"llm", []string{"problem"}},
		{"workspace/...", []string{"problem", "workspace/..."}},
		{"sandbox", []string{"problem"}},
		{"tool/tooltest", []string{"tool", "workspace", "llm", "problem"}},
		{"tool", []string{"llm", "problem", "workspace", "sandbox"}},
		{"tool/mcptool/mcptest", nil},
		{"tool/mcptool/conformance", []string{"tool", "tool/mcptool"}},
		{"tool/command", []string{"tool", "sandbox", "workspace"}},
		{"tool/shelltool", []string{"tool", "tool/command"}},
		{"tool/gittool", []string{"tool", "tool/command", "sandbox", "workspace"}},
		{"tool/...", []string{"tool", "workspace/...", "sandbox", "llm", "problem"}},
		{"job/jobtest", []string{"job", "llm", "problem"}},
		{"job", []string{"llm", "problem"}},
		{"provider/wire", []string{"llm", "problem"}},
		{"provider/azure", []string{"llm", "problem", "provider/wire", "provider/openaichat", "provider/openairesponses"}},
		{"provider/offline", []string{"llm", "problem", "provider/wire", "provider/scripted"}},
		{"provider/anthropic", []string{"llm", "provider/wire", "provider/claude"}},
		{"provider/bedrock", []string{"llm", "problem", "provider/wire", "provider/claude"}},
		{"provider/...", []string{"llm", "llm/llmtest", "problem", "provider/wire"}},
		{"schema", nil},
		{"telemetry", []string{"job", "llm", "problem"}},
		{"kernel/compaction", []string{"llm"}},
		{"kernel/workingmemory", []string{"llm", "problem"}},
		{"kernel/hostlender", []string{"kernel", "job", "tool", "tool/hosttool", "problem"}},
		{"kernel/mcplender", []string{"kernel", "job", "tool", "tool/mcptool", "problem"}},
		{"kernel", []string{"job", "kernel/compaction", "kernel/workingmemory", "llm", "llm/textcall", "tool", "workspace", "sandbox", "problem"}},
		{"jobproc", []string{"job", "problem", "sandbox"}},
		{"journal", []string{"job", "llm", "problem"}},
		{"hostserver", []string{"tool/hosttool", "tool", "job", "problem"}},
		{"internal/catalog", []string{"job", "llm", "problem"}},
		{"internal/workflow", []string{"internal/catalog", "internal/store", "llm", "problem"}},
		{"internal/builtin", []string{"internal/catalog", "internal/workflow", "problem"}},
		{"internal/builder", []string{"internal/builtin", "internal/catalog", "internal/store", "job", "kernel", "llm", "problem"}},
		{"internal/secret", nil},
		{"internal/access/oidctest", nil},
		{"internal/access", []string{"internal/secret", "internal/store", "problem"}},
		{"internal/account", []string{"internal/secret", "internal/store", "job", "llm", "problem", "provider/modeltable", "tool/mcptool"}},
		{"internal/run", []string{"internal/store", "job"}},
		{"internal/orchestrator", []string{"internal/run", "internal/store", "job", "journal", "problem"}},
		{"internal/artifact", []string{"internal/secret", "internal/store", "problem"}},
		{"internal/artifact/artifacttest", []string{"internal/artifact"}},
		{"internal/project", []string{"internal/secret", "internal/store", "problem"}},
		{"internal/checkout", []string{"internal/artifact", "internal/project", "internal/secret", "internal/store", "job", "journal", "problem", "sandbox"}},
		{"internal/api/wire", []string{"internal/access", "internal/account", "internal/builder", "internal/catalog", "internal/project", "internal/run", "job", "llm"}},
		{"internal/api", []string{"internal/api/wire", "internal/access", "internal/account", "internal/artifact", "internal/builder", "internal/project", "internal/run", "internal/secret", "internal/store", "job", "llm", "problem"}},
		{"internal/apigen", []string{"internal/api"}},
		{"internal/client", []string{"internal/api/wire", "internal/access", "internal/account", "internal/artifact", "internal/builder", "internal/project", "internal/run", "job", "llm", "problem"}},
		{"internal/compile", []string{"internal/account", "internal/builder", "internal/catalog", "internal/run", "internal/store", "job", "llm", "problem"}},
		{"internal/mcpserver", []string{"internal/api/wire", "internal/run", "job"}},
		{"internal/server", []string{"internal/...", "job", "kernel", "llm", "problem"}},
		{"internal/store", nil},
		{"internal/store/storetest", []string{"internal/store"}},
		{"internal/schemagen", kernelRing},
		{"internal/docgen", []string{"..."}},
		{".ci", nil},
		{"cmd/...", []string{"..."}},
		{"bench/...", append(kernelRing, "bench/...")},
		{"examples/...", kernelRing},
		{".", nil},
	}
}

// covers reports whether a pattern of an arrow stands for the package.
func covers(pattern, pkg string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(pkg+"/", prefix)
	}
	return pattern == pkg
}

func TestImportsFollowTheArrows(t *testing.T) {
	tree := mustLoad(t)
	for _, s := range tree.sources {
		if s.test {
			continue
		}
		i := slices.IndexFunc(arrows(), func(a arrow) bool { return covers(a.from, s.dir) })
		if i < 0 {
			t.Errorf("%s: no arrow starts at this package; draw one in arch_test.go", s.path)
			continue
		}
		for _, spec := range s.file.Imports {
			pkg, ours := modulePath(spec)
			if !ours || slices.ContainsFunc(arrows()[i].to, func(to string) bool { return covers(to, pkg) }) || allowed("import", s.dir+" "+pkg) {
				continue
			}
			t.Errorf("%s: %s must not import %s (allowed: %s)", tree.at(spec), s.dir, pkg, strings.Join(arrows()[i].to, " "))
		}
	}
}

// modulePath returns the path of an import inside this module.
func modulePath(spec *ast.ImportSpec) (string, bool) {
	full, err := strconv.Unquote(spec.Path.Value)
	if err != nil || full != module && !strings.HasPrefix(full, module+"/") {
		return "", false
	}
	if full == module {
		return ".", true
	}
	return full[len(module)+1:], true
}

// ringRoots are the folders of the kernel ring: the runtime that builds and passes its tests without the product.
func ringRoots() []string {
	return []string{"problem", "llm", "job", "tool", "workspace", "sandbox", "kernel", "jobproc", "journal", "hostserver", "provider", "schema", "telemetry"}
}

func inRing(dir string) bool {
	root, _, _ := strings.Cut(dir, "/")
	return slices.Contains(ringRoots(), root)
}

func TestTheKernelRingTestsWithoutTheProduct(t *testing.T) {
	tree := mustLoad(t)
	for _, s := range tree.sources {
		if !s.test || !inRing(s.dir) {
			continue
		}
		for _, spec := range s.file.Imports {
			if pkg, ours := modulePath(spec); ours && !inRing(pkg) {
				t.Errorf("%s: a test of the kernel ring must not import %s", tree.at(spec), pkg)
			}
		}
	}
}

func TestPackageNamesSaySomething(t *testing.T) {
	tree := mustLoad(t)
	dirs := map[string]bool{}
	for _, s := range tree.sources {
		dirs[s.dir] = true
	}
	for _, name := range []string{"util", "utils", "common", "types", "models", "helpers", "base", "core"} {
		for dir := range dirs {
			if path.Base(dir) == name {
				t.Errorf("%s: the package name %s says nothing; name it after what it does", dir, name)
			}
		}
	}
}

// TestMain runs the rules and then fails on exceptions that nothing needed.
func TestMain(m *testing.M) {
	code := m.Run()
	if all := flag.Lookup("test.run"); code == 0 && (all == nil || all.Value.String() == "") {
		for _, key := range slices.Sorted(maps.Keys(exceptions)) {
			if !usedExceptions[key] {
				fmt.Fprintf(os.Stderr, "exception %q in arch_test.go is not needed any more: remove it\n", key)
				code = 1
			}
		}
	}
	os.Exit(code)
}
