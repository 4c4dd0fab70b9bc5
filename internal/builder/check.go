package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// around is what the agents of a tenant stand in at one moment.
type around struct {
	installation catalog.Installation
	// shared are the contents of the shared skills by name, own the names of those that belong to the tenant.
	shared   map[string]string
	own      []string
	bindings map[string]Binding
}

// around looks at what the agents of a tenant may name.
func (s *Service) around(ctx context.Context, tenant string) (*around, error) {
	servers, err := s.config.MCPServers(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the MCP servers: %w", err)
	}
	bindings, err := s.config.Bindings(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the model bindings: %w", err)
	}
	rows, err := listSkills(ctx, s.db, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the skills: %w", err)
	}
	a := &around{shared: make(map[string]string), bindings: bindings}
	for _, r := range rows {
		skill, _ := catalog.ParseSkill(r.name, []byte(r.file)) // checked when it was saved
		a.shared[r.name] = skill.Content
		if s.config.BuiltIn.Skill(r.name) == nil {
			a.own = append(a.own, r.name)
		}
	}
	for _, k := range s.config.BuiltIn.Skills {
		a.shared[k.Name] = k.Content // the release goes first
	}
	a.installation = catalog.Installation{Tools: s.tools, Skills: slices.Sorted(maps.Keys(a.shared)), MCPServers: append([]string{}, servers...), Reserved: s.reserved}
	if a.installation.Skills == nil {
		a.installation.Skills = []string{}
	}
	return a, nil
}

// release is the same for an agent of the release, which has the name that is reserved for it.
func (a *around) release() *around {
	own := *a
	own.installation.Reserved = nil
	return &own
}

// binding returns the model that an agent uses by default.
func (a *around) binding(name string) *Binding {
	if b, ok := a.bindings[name]; ok {
		return &b
	}
	if b, ok := a.bindings[""]; ok {
		return &b
	}
	return nil
}

// ownOf returns which of the tenant's skills a package names.
func (a *around) ownOf(pkg *catalog.Package) []string {
	return slices.DeleteFunc(pkg.SharedSkillNames(), func(name string) bool { return !slices.Contains(a.own, name) })
}

// check parses a package and reports everything that is wrong with it: its form, what it names and the installation does
// not have, and what the runtime would refuse.
func (s *Service) check(files Files, around *around) (*catalog.Package, problem.List) {
	pkg, problems := catalog.ParsePackage(files)
	switch {
	case pkg == nil:
	case len(problems) > 0:
		problems = append(problems, pkg.Check(around.installation)...)
	default:
		problems = s.installed(pkg, around)
	}
	return pkg, problems
}

// installed checks a package of good form.
func (s *Service) installed(pkg *catalog.Package, around *around) problem.List {
	problems := pkg.Check(around.installation)
	if pkg.Audience == catalog.AudienceMember {
		return problems
	}
	compiled, found := pkg.CompileWith(around.shared)
	problems = addNew(problems, found)
	return addNew(problems, s.startProblems(compiled))
}

// addNew adds the findings whose place has none yet: two checks say in different words what is wrong there.
func addNew(list, more problem.List) problem.List {
	before := list
	for _, p := range more {
		if !slices.ContainsFunc(before, func(q problem.Problem) bool {
			return q.Path == p.Path && q.Line == p.Line && q.Column == p.Column
		}) {
			list = append(list, p)
		}
	}
	return list
}

// startProblems returns for what in a package the runtime would refuse a job. The rest of the job is made up.
func (s *Service) startProblems(compiled *catalog.Job) problem.List {
	spec, restore := exampleSpec(compiled, "")
	found := compiled.Locate(s.config.Runtime.Check(spec))
	restore()
	return slices.DeleteFunc(found, func(p problem.Problem) bool {
		// Journals belong to a run. What has no place in the package is made up.
		return p.Path == "" || p.Code == "journal-missing"
	})
}

// exampleSpec makes a whole job around the agent's part, with directories below root; restore undoes what it changes in
// the part.
func exampleSpec(compiled *catalog.Job, root string) (spec *job.Spec, restore func()) {
	script := job.ProviderConfig{API: job.APIScripted, Script: []byte(`{"responses":[]}`)}
	spec = &job.Spec{APIVersion: job.APIVersion, Task: "(the task of the run)", Model: job.ModelRef{Provider: job.APIScripted, ID: "model"},
		Providers: map[string]job.ProviderConfig{job.APIScripted: script}, MCP: exampleServers(compiled)}
	compiled.Apply(spec)
	if spec.Limits.TimeoutSec == 0 {
		spec.Limits.TimeoutSec = 1
	}
	spec.Limits.MaxCostUSD = nil // the model that is made up has no price
	given := map[*job.ModelRef]string{}
	for _, model := range catalog.Writers(spec) {
		given[model] = model.Provider
		if model.Provider == "" {
			model.Provider = job.APIScripted
		}
		spec.Providers[model.Provider] = script
	}
	if root != "" {
		spec.Workspace = job.Workspace{Root: root, OutDir: filepath.Join(root, "out"), TmpDir: filepath.Join(root, "tmp"), ReadOnly: []string{
			filepath.Join(root, "source"), filepath.Join(root, "inputs"), filepath.Join(root, "WORKSPACE.md")}}
	}
	return spec, func() {
		for model, provider := range given {
			model.Provider = provider
		}
	}
}

// exampleServers stand for the MCP servers that an agent and its subagents name.
func exampleServers(compiled *catalog.Job) *job.MCP {
	names := map[string]bool{}
	add := func(tools []string) {
		for _, name := range tools {
			if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
				server, _, _ := strings.Cut(rest, "__")
				names[server] = true
			}
		}
	}
	var walk func([]job.Subagent)
	walk = func(roster []job.Subagent) {
		for i := range roster {
			add(roster[i].Agent.Tools)
			walk(roster[i].Subagents)
		}
	}
	add(compiled.Agent.Tools)
	walk(compiled.Subagents)
	if len(names) == 0 {
		return nil
	}
	mcp := &job.MCP{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		mcp.Servers = append(mcp.Servers, job.MCPServer{Name: name, URL: "https://" + name + ".invalid/mcp"})
	}
	return mcp
}

// exampleDirectories makes the directories of a job, as every job has them.
func exampleDirectories() (root string, err error) {
	root, err = os.MkdirTemp("", "hozo-preview-")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"source", "inputs", "out", "tmp"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			return root, err
		}
	}
	return root, os.WriteFile(filepath.Join(root, "WORKSPACE.md"), []byte("# Workspace\n"), 0o600)
}

// packageDigest is the SHA-256 of the canonical package without its number, in hex.
func packageDigest(pkg *catalog.Package) string {
	bare := *pkg
	bare.Version = 0
	files := bare.Marshal()
	sum := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		_, _ = sum.Write([]byte(strconv.Quote(path) + " " + strconv.Itoa(len(files[path])) + "\n")) // a hash takes everything
		_, _ = sum.Write(files[path])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
