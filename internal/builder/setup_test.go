package builder_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/builtin"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/kernel/mcplender"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/offline"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/tool/scripttool"
	"github.com/hozo-run/hozo/tool/shelltool"
)

// TestMain makes this test binary the child of scripts as well.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == scripttool.ChildArgument {
		os.Exit(scripttool.Child())
	}
	storetest.Main(m)
}

const tenant = "acme"

// fixture is a service with what stands around it.
type fixture struct {
	*builder.Service
	db       *store.DB
	runtime  *kernel.Runtime
	tools    []builder.Tool
	servers  []string
	bindings map[string]builder.Binding
	now      time.Time
}

func newRuntime(t testing.TB) (*kernel.Runtime, []builder.Tool) {
	t.Helper()
	registry, err := tool.NewRegistry(append(filetool.Tools(), shelltool.New(shelltool.Options{}), scripttool.New(scripttool.Options{}))...)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := kernel.New(kernel.Config{
		Adapters: map[string]llm.Adapter{job.APIScripted: scripted.New, job.APIOffline: offline.New},
		Models:   func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id}, true },
		Tools:    registry,
		Lenders:  []kernel.Lender{mcplender.New(mcplender.Options{})},
	})
	if err != nil {
		t.Fatal(err)
	}
	var tools []builder.Tool
	for _, d := range registry.Tools() {
		tools = append(tools, builder.Tool{Name: d.Name, Description: d.Description, Effect: string(d.Effect)})
	}
	return rt, tools
}

func newFixture(t testing.TB, db *store.DB) *fixture {
	t.Helper()
	set, err := builtin.Load()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{db: db, now: time.UnixMilli(1_700_000_000_000)}
	f.runtime, f.tools = newRuntime(t)
	f.Service, err = builder.New(builder.Config{
		DB: db, BuiltIn: set, Runtime: f.runtime, Tools: f.tools,
		MCPServers: func(context.Context, string) ([]string, error) { return f.servers, nil },
		Bindings:   func(context.Context, string) (map[string]builder.Binding, error) { return f.bindings, nil },
		Now:        func() time.Time { return f.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// each runs a test on both databases.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, newFixture(t, db)) })
}

// agent is a package with more lines in its frontmatter.
func agent(name string, lines ...string) builder.Files {
	return builder.Files{name + ".md": []byte("---\nname: " + name + "\ndescription: Does something.\n" + strings.Join(append(lines, ""), "\n") + "---\nDo it.\n")}
}

func with(files, more builder.Files) builder.Files {
	all := maps.Clone(files)
	maps.Copy(all, more)
	return all
}

func skillFile(name, content string) string {
	return "---\nname: " + name + "\ndescription: Knows something.\n---\n" + content
}

func (f *fixture) create(t testing.TB, files builder.Files) *builder.Saved {
	t.Helper()
	saved, err := f.Create(t.Context(), tenant, builder.Draft{Files: files, Author: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func (f *fixture) createSkill(t testing.TB, name, content string) *builder.SharedSkill {
	t.Helper()
	skill, err := f.CreateSkill(t.Context(), tenant, name, skillFile(name, content), "ada")
	if err != nil {
		t.Fatal(err)
	}
	return skill
}

func (f *fixture) get(t testing.TB, name string) *builder.Detail {
	t.Helper()
	d, err := f.Get(t.Context(), tenant, name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// codes are those of the problems of an error, or of a list, in its order.
func codes(from any) []string {
	var list problem.List
	switch v := from.(type) {
	case problem.List:
		list = v
	case error:
		list = problem.Of(v)
	}
	found := []string{}
	for _, p := range list {
		found = append(found, p.Code)
	}
	return found
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// serviceWithout returns a service on the same database whose runtime lacks a tool.
func serviceWithout(t testing.TB, f *fixture, missing string) *builder.Service {
	t.Helper()
	set, err := builtin.Load()
	if err != nil {
		t.Fatal(err)
	}
	tools := slices.DeleteFunc(slices.Clone(f.tools), func(d builder.Tool) bool { return d.Name == missing })
	service, err := builder.New(builder.Config{DB: f.db, BuiltIn: set, Runtime: f.runtime, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return service
}
