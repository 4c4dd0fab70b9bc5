package builder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/builtin"
	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Files are the files of a package by slash-separated path.
type Files = map[string][]byte

// Agent is an agent as a list shows it.
type Agent struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	BuiltIn     bool             `json:"builtIn"`
	Audience    catalog.Audience `json:"audience"`
	// Enabled is false for an agent that somebody switched off. What the release brings is always on.
	Enabled bool `json:"enabled"`
	// Version is the current one, Revision that of everything about the agent; a change names the revision it is based on.
	// What the release brings has revision 0.
	Version  int64 `json:"version"`
	Revision int64 `json:"revision"`
	// Valid says that the agent can run, or be given to people, as things are now. Problems say why not; Warnings do not
	// keep it from running.
	Valid    bool         `json:"valid"`
	Problems problem.List `json:"problems"`
	Warnings problem.List `json:"warnings"`
	// Binding is the model that the agent uses where a project says nothing else, nil if there is none.
	Binding   *Binding  `json:"binding,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
}

// Detail is an agent in full.
type Detail struct {
	Agent
	// Tools is null for an agent that takes every kernel tool.
	Tools               []string          `json:"tools"`
	SharedSkills        []string          `json:"sharedSkills"`
	Thinking            llm.Level         `json:"thinking,omitempty"`
	DenyCommandPatterns []string          `json:"denyCommandPatterns"`
	Metadata            map[string]string `json:"metadata,omitempty"`
	Instructions        string            `json:"instructions"`
	// Skills are those of the package, Subagents the names of the agents in it.
	Skills    []SkillText `json:"skills"`
	Subagents []string    `json:"subagents"`
	// Extensions are the names of the x- keys.
	Extensions []string `json:"extensions"`
	// Note and Author belong to the current version.
	Note   string `json:"note,omitempty"`
	Author string `json:"author,omitempty"`
	Digest string `json:"digest"`
	// Files are as they were given.
	Files Files `json:"-"`
}

// SkillText is a skill inside of a package.
type SkillText struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Content     string `json:"content"`
}

// Version is one version of an agent, without its files.
type Version struct {
	Version int64 `json:"version"`
	// Current says that jobs get this one.
	Current bool   `json:"current"`
	Note    string `json:"note,omitempty"`
	Author  string `json:"author,omitempty"`
	// Digest is the SHA-256 of the canonical package, in hex: equal content has equal digests.
	Digest    string    `json:"digest"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// VersionFiles is a version with its files as they were given, for a comparison of two for example.
type VersionFiles struct {
	Version
	Files Files `json:"-"`
}

// List returns the agents of the release and then those of the tenant, by name. Whether they are valid is found out anew.
func (s *Service) List(ctx context.Context, tenant string) ([]Agent, error) {
	around, err := s.around(ctx, tenant)
	if err != nil {
		return nil, err
	}
	rows, err := listAgents(ctx, s.db, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the agents: %w", err)
	}
	agents := []Agent{}
	for i := range s.config.BuiltIn.Agents {
		agents = append(agents, s.builtIn(&s.config.BuiltIn.Agents[i], around).Agent)
	}
	for _, r := range rows {
		agents = append(agents, s.custom(r, around).Agent)
	}
	return agents, nil
}

// Get returns one agent in full. Of a name that is the release's and somebody's, it is that of the release. It is
// store.ErrNotFound for a name that nobody has.
func (s *Service) Get(ctx context.Context, tenant, name string) (*Detail, error) {
	around, err := s.around(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if agent := s.config.BuiltIn.Agent(name); agent != nil {
		return s.builtIn(agent, around), nil
	}
	r, err := agentByName(ctx, s.db, tenant, name)
	if err != nil {
		return nil, err
	}
	return s.custom(r, around), nil
}

// Versions returns the history of an agent, the newest version first. An agent of the release has one.
func (s *Service) Versions(ctx context.Context, tenant, name string) ([]Version, error) {
	if agent := s.config.BuiltIn.Agent(name); agent != nil {
		return []Version{builtInVersion(agent).Version}, nil
	}
	versions, err := listVersions(ctx, s.db, tenant, name)
	if err == nil && len(versions) == 0 {
		return nil, store.ErrNotFound
	}
	return versions, err
}

// Version returns one version with its files; 0 is the current one.
func (s *Service) Version(ctx context.Context, tenant, name string, version int64) (*VersionFiles, error) {
	if agent := s.config.BuiltIn.Agent(name); agent != nil {
		v := builtInVersion(agent)
		if version != 0 && version != v.Version.Version {
			return nil, store.ErrNotFound
		}
		return &v, nil
	}
	if version == 0 {
		r, err := agentByName(ctx, s.db, tenant, name)
		if err != nil {
			return nil, err
		}
		return &r.version, nil
	}
	v, err := versionOf(ctx, s.db, tenant, name, version)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

func builtInVersion(agent *builtin.Agent) VersionFiles {
	return VersionFiles{Version{Version: max(agent.Package.Version, 1), Current: true, Digest: packageDigest(agent.Package)}, agent.Files}
}

// builtIn describes an agent of the release.
func (s *Service) builtIn(agent *builtin.Agent, around *around) *Detail {
	pkg := agent.Package
	d := detail(pkg)
	d.Name, d.BuiltIn, d.Enabled, d.Version = pkg.Name, true, true, max(pkg.Version, 1)
	d.Digest, d.Files = packageDigest(pkg), agent.Files
	s.judge(d, pkg, s.installed(pkg, around.release()), around)
	return d
}

// custom describes an agent of the tenant.
func (s *Service) custom(r *row, around *around) *Detail {
	pkg, problems := s.check(r.version.Files, around)
	d := detail(pkg)
	d.Name, d.Enabled, d.Version, d.Revision, d.CreatedAt, d.UpdatedAt = r.name, r.enabled, r.version.Version.Version, r.revision, r.createdAt, r.updatedAt
	d.Note, d.Author, d.Digest, d.Files = r.version.Note, r.version.Author, r.version.Digest, r.version.Files
	s.judge(d, pkg, problems, around)
	return d
}

// judge adds what is found out anew each time.
func (s *Service) judge(d *Detail, pkg *catalog.Package, problems problem.List, around *around) {
	d.Problems, d.Valid = append(problem.List{}, problems...), len(problems) == 0
	d.Binding = around.binding(d.Name)
	d.Warnings = s.warnings(pkg, around, d.Binding)
}

// detail describes what a package says.
func detail(pkg *catalog.Package) *Detail {
	d := &Detail{Agent: Agent{Audience: catalog.AudienceRuntime}, SharedSkills: []string{}, DenyCommandPatterns: []string{}, Skills: []SkillText{},
		Subagents: []string{}, Extensions: []string{}}
	if pkg == nil {
		return d
	}
	d.Description, d.Audience, d.Thinking, d.Metadata, d.Instructions = pkg.Description, pkg.Audience, pkg.Thinking, pkg.Metadata, pkg.Instructions
	d.Tools = slices.Clone(pkg.Tools)
	d.SharedSkills = append(d.SharedSkills, pkg.SharedSkills...)
	d.DenyCommandPatterns = append(d.DenyCommandPatterns, pkg.DenyCommandPatterns...)
	for _, k := range pkg.Skills {
		d.Skills = append(d.Skills, SkillText{k.Name, k.Description, k.Content})
	}
	for _, a := range pkg.Subagents {
		d.Subagents = append(d.Subagents, a.Name)
	}
	for _, x := range pkg.Extensions {
		d.Extensions = append(d.Extensions, x.Key)
	}
	return d
}

// largeSkills is how many bytes of skills an agent may have before the builder remarks on it: all of them are in every
// request.
const largeSkills = 32 << 10

// The codes of warnings.
const (
	CodeBindingMissing = "binding-missing"
	CodeSkillsLarge    = "skills-large"
	CodeProcessTools   = "process-tools"
	CodeVersionKept    = "version-replaced"
)

// warnings are remarks that keep no agent from running.
func (s *Service) warnings(pkg *catalog.Package, around *around, binding *Binding) problem.List {
	warnings := problem.List{}
	if pkg == nil || pkg.Audience == catalog.AudienceMember {
		return warnings
	}
	if binding == nil {
		warnings.AddHint(CodeBindingMissing, "", "bind a model to the agent, or to every agent of the installation",
			"no model is bound to the agent: a run has to name one")
	}
	size := 0
	for _, k := range pkg.Skills {
		size += len(k.Content)
	}
	for _, name := range pkg.SharedSkillNames() {
		size += len(around.shared[name])
	}
	if size > largeSkills {
		warnings.AddHint(CodeSkillsLarge, "/skills", "keep what only some tasks need out of the skills",
			"the skills have %d bytes together, and each request carries all of them", size)
	}
	if pkg.Tools == nil {
		if names := s.processTools(); len(names) > 0 {
			warnings.AddHint(CodeProcessTools, "/tools", "list the tools that the agent needs",
				"the agent names no tools and so may start processes with %s", strings.Join(names, " and "))
		}
	}
	return warnings
}

// processTools are the tools of the default set that change what is outside of the output directory.
func (s *Service) processTools() []string {
	var names []string
	for _, t := range s.config.Tools {
		if t.Effect == "external" && t.Note == "" {
			names = append(names, t.Name)
		}
	}
	return names
}
