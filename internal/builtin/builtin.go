// Package builtin holds what a release brings along: five agents that help to understand a code base, the skills that they
// share, the commands that start them, the workflow that runs them one after another and the scripts that they may be told
// to run. All of it is embedded in the program and read-only; the names of the agents and of the skills are reserved, and
// whoever wants to change an agent copies it. It is content and no fallback: nothing in here is used under a name that
// somebody else's agent could have.
package builtin

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/workflow"
	"github.com/hozo-run/hozo/problem"
)

//go:embed content
var content embed.FS

// Set is everything that a release brings. It is shared and must not be changed.
type Set struct {
	// Agents, Skills, Commands, Workflows and Scripts are sorted by name.
	Agents    []Agent
	Skills    []Skill
	Commands  []*workflow.Command
	Workflows []*workflow.Definition
	Scripts   []workflow.Script
}

// Agent is an agent of a release.
type Agent struct {
	// Package is the agent, Files are what it was parsed from.
	Package *catalog.Package
	Files   map[string][]byte
}

// Skill is a shared skill of a release.
type Skill struct {
	catalog.Skill
	// File is what the skill was parsed from.
	File []byte
}

// Load returns what this release brings. It is read once, when it is first asked for. An error is a fault of the build.
func Load() (*Set, error) { return load() }

var load = sync.OnceValues(func() (*Set, error) {
	files, err := fs.Sub(content, "content")
	if err != nil {
		return nil, err
	}
	return Read(files)
})

// Read reads a set from a directory: agents/<name>/ with a package each, skills/<name>/SKILL.md, commands/<name>.md,
// workflows/<name>.yaml and scripts/<name>.js. The error names every problem of every file.
func Read(files fs.FS) (*Set, error) {
	r := reader{files: files}
	set := &Set{}
	for _, name := range r.names("agents") {
		set.Agents = append(set.Agents, r.agent(name))
	}
	for _, name := range r.names("skills") {
		set.Skills = append(set.Skills, r.skill(name))
	}
	for _, file := range r.names("scripts") {
		name := strings.TrimSuffix(file, ".js")
		if !catalog.ValidName(name) || name == file {
			r.fail(path.Join("scripts", file), problem.List{{Code: catalog.CodeNameInvalid, Message: "a script is <name>.js"}})
		}
		set.Scripts = append(set.Scripts, workflow.Script{Name: name, Code: string(r.read(path.Join("scripts", file)))})
	}
	for _, file := range r.names("commands") {
		at := path.Join("commands", file)
		command, problems := workflow.ParseCommand(at, r.read(at))
		problems = append(problems, command.CheckScripts(set.Scripts)...)
		r.fail(at, problems)
		set.Commands = append(set.Commands, command)
	}
	for _, file := range r.names("workflows") {
		at := path.Join("workflows", file)
		definition, problems := workflow.Parse(at, r.read(at))
		r.fail(at, problems)
		set.Workflows = append(set.Workflows, definition)
	}
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	return set, nil
}

// Agent returns the agent of a name, nil if the release has none.
func (s *Set) Agent(name string) *Agent {
	if at := slices.IndexFunc(s.Agents, func(a Agent) bool { return a.Package.Name == name }); at >= 0 {
		return &s.Agents[at]
	}
	return nil
}

// Skill returns the skill of a name, nil if the release has none.
func (s *Set) Skill(name string) *Skill {
	if at := slices.IndexFunc(s.Skills, func(k Skill) bool { return k.Name == name }); at >= 0 {
		return &s.Skills[at]
	}
	return nil
}

// Command returns the command of a name, nil if the release has none.
func (s *Set) Command(name string) *workflow.Command {
	if at := slices.IndexFunc(s.Commands, func(c *workflow.Command) bool { return c.Name == name }); at >= 0 {
		return s.Commands[at]
	}
	return nil
}

// Workflow returns the workflow of a name, nil if the release has none.
func (s *Set) Workflow(name string) *workflow.Definition {
	if at := slices.IndexFunc(s.Workflows, func(d *workflow.Definition) bool { return d.Name == name }); at >= 0 {
		return s.Workflows[at]
	}
	return nil
}

// reader reads a set and collects what is wrong with it.
type reader struct {
	files fs.FS
	errs  []error
}

func (r *reader) fail(at string, problems problem.List) {
	if err := problems.Err(at); err != nil {
		r.errs = append(r.errs, err)
	}
}

// names returns the entries of a directory; one that is missing has none.
func (r *reader) names(dir string) []string {
	entries, err := fs.ReadDir(r.files, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.errs = append(r.errs, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func (r *reader) read(name string) []byte {
	data, err := fs.ReadFile(r.files, name)
	if err != nil {
		r.errs = append(r.errs, err)
	}
	return data
}

func (r *reader) agent(name string) Agent {
	dir, files := path.Join("agents", name), make(map[string][]byte)
	err := fs.WalkDir(r.files, dir, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[strings.TrimPrefix(at, dir+"/")] = r.read(at)
		}
		return err
	})
	if err != nil {
		r.errs = append(r.errs, err)
	}
	pkg, problems := catalog.ParsePackage(files)
	r.fail(dir, problems)
	if pkg == nil {
		return Agent{Package: &catalog.Package{Name: name}}
	}
	if pkg.Name != name {
		r.errs = append(r.errs, fmt.Errorf("%s holds the agent %q", dir, pkg.Name))
	}
	return Agent{Package: pkg, Files: files}
}

func (r *reader) skill(name string) Skill {
	at := path.Join("skills", name, catalog.SkillFile)
	data := r.read(at)
	skill, problems := catalog.ParseSkill(name, data)
	r.fail(at, problems)
	return Skill{Skill: skill, File: data}
}
