package builder

import (
	"context"
	"errors"
	"fmt"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// Format is the form in which agents come and go.
type Format string

// The formats.
const (
	// FormatPackage is one package: <name>.md with its folders.
	FormatPackage Format = "package"
	// FormatClaude is the layout of Claude Code: .claude/agents/<name>.md and .claude/skills/<name>/SKILL.md.
	FormatClaude Format = "claude"
	// FormatSkills are folders with a SKILL.md each, as agentskills.io describes them.
	FormatSkills Format = "agent-skills"
)

// ImportRequest brings agents or skills from outside. Files or Archive is set.
type ImportRequest struct {
	// Format is FormatPackage if it is "".
	Format Format
	Files  []File
	// Archive is a ZIP archive.
	Archive []byte
	// Replace permits new versions of agents and new texts of skills that the tenant has; without it those names are taken.
	Replace      bool
	Note, Author string
}

// Imported is what an import made.
type Imported struct {
	Agents []Saved `json:"agents"`
	// Skills are the names of shared skills that were made or changed.
	Skills []string `json:"skills"`
	// Losses are what the other product has and this one does not, Remarks everything else that is worth knowing.
	Losses  []Loss       `json:"losses"`
	Remarks problem.List `json:"remarks"`
}

// Import keeps what is given, all of it or, with any problem, nothing. It makes the checks of Create and Save; a number in
// a package is kept if it is above every number that the agent has had. Errors are a *problem.Error of kind Invalid with
// every problem, store.ErrExists for a name that is taken, and ErrBuiltIn.
func (s *Service) Import(ctx context.Context, tenant string, request ImportRequest) (*Imported, error) {
	files, problems := request.Files, problem.List(nil)
	switch {
	case request.Archive != nil && len(files) > 0:
		problems.Add("conflict", "/archive", "give files or an archive, not both")
	case request.Archive != nil:
		files, problems = ReadArchive(request.Archive)
	}
	gathered, remarks, found := gather(files)
	problems = append(problems, found...)
	if len(gathered) == 0 && len(problems) == 0 {
		problems.Add(catalog.CodeFileMissing, "", "there is no file to import")
	}
	if err := problems.Err("import"); err != nil {
		return nil, err // what the files say means nothing before the archive is safe
	}
	incoming, problems := s.translate(request.Format, gathered)
	if err := problems.Err("import"); err != nil {
		return nil, err
	}
	incoming.remarks = append(remarks, incoming.remarks...)
	return s.importAll(ctx, tenant, request, incoming)
}

// Loss is something that one product knows and the other does not.
type Loss struct {
	// Path is the file, Key the key in it that cannot be carried; Key is "" where it is the file itself.
	Path string `json:"path"`
	Key  string `json:"key,omitempty"`
	// What says what is lost, and where it was kept if it was.
	What string `json:"what"`
}

// incoming is what an import holds, in our own form.
type incoming struct {
	agents  []Files
	skills  []incomingSkill
	losses  []Loss
	remarks problem.List
}

type incomingSkill struct{ name, file string }

func (s *Service) translate(format Format, files Files) (*incoming, problem.List) {
	switch format {
	case "", FormatPackage:
		return &incoming{agents: []Files{withoutTop(files)}}, nil
	case FormatClaude:
		return fromClaude(files, s.tools)
	case FormatSkills:
		return fromSkills(files)
	}
	var problems problem.List
	problems.AddHint("unknown", "/format", fmt.Sprintf("one of %s, %s, %s", FormatPackage, FormatClaude, FormatSkills), "unknown format %q", format)
	return nil, problems
}

// importAll checks everything and keeps it in one transaction.
func (s *Service) importAll(ctx context.Context, tenant string, request ImportRequest, in *incoming) (*Imported, error) {
	around, err := s.around(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var problems problem.List
	for _, k := range in.skills {
		problems = append(problems, s.checkSkill(k.name, k.file)...)
		around.addSkill(k)
	}
	var drafts []*prepared
	for _, files := range in.agents {
		p, err := s.prepareIn(around, "", Draft{Files: files, Note: request.Note, Author: request.Author})
		if found := problem.Of(err); len(found) > 0 {
			problems = append(problems, found...)
		} else if err != nil {
			return nil, err
		}
		drafts = append(drafts, p)
	}
	if err := problems.Err("import"); err != nil {
		return nil, err
	}
	result := &Imported{}
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		*result = Imported{Agents: []Saved{}, Skills: []string{}, Losses: append([]Loss{}, in.losses...), Remarks: append(problem.List{}, in.remarks...)}
		for _, k := range in.skills {
			if err := s.importSkill(ctx, tx, tenant, request, k, result); err != nil {
				return fmt.Errorf("import the skill %q: %w", k.name, err)
			}
		}
		for _, p := range drafts {
			if err := s.importAgent(ctx, tx, tenant, request, p, result); err != nil {
				return fmt.Errorf("import the agent %q: %w", p.pkg.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.skillGone(err)
	}
	return result, nil
}

// addSkill makes a skill known that comes with the agents that name it.
func (a *around) addSkill(k incomingSkill) {
	parsed, _ := catalog.ParseSkill(k.name, []byte(k.file)) // its problems are reported by its own check
	if _, known := a.shared[k.name]; !known {
		a.installation.Skills = append(a.installation.Skills, k.name)
		a.own = append(a.own, k.name)
	}
	a.shared[k.name] = parsed.Content
}

// maxNumber is the highest number that a version takes over from a file, so that a typo does not use all of them up.
const maxNumber = 1 << 31

func (s *Service) importAgent(ctx context.Context, tx *store.Tx, tenant string, request ImportRequest, p *prepared, result *Imported) error {
	wanted := p.pkg.Version
	if wanted > maxNumber {
		wanted = 0
	}
	_, err := agentByName(ctx, tx, tenant, p.pkg.Name)
	var saved *Saved
	switch {
	case errors.Is(err, store.ErrNotFound):
		saved, err = s.insert(ctx, tx, tenant, p, wanted)
	case err == nil && !request.Replace:
		return store.ErrExists
	case err == nil:
		saved, err = s.replace(ctx, tx, tenant, p, AnyRevision, wanted)
	}
	if err != nil {
		return err
	}
	result.Agents = append(result.Agents, *saved)
	return nil
}

// importSkill makes a skill, or changes it. One that is there with the same text stays as it is.
func (s *Service) importSkill(ctx context.Context, tx *store.Tx, tenant string, request ImportRequest, k incomingSkill, result *Imported) error {
	r, err := skillByName(ctx, tx, tenant, k.name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		_, err = s.insertSkill(ctx, tx, tenant, k.name, k.file, request.Author)
	case err != nil:
	case r.file == k.file:
		return nil
	case !request.Replace:
		return store.ErrExists
	default:
		before := r.revision
		r.file, r.author, r.updatedAt = k.file, request.Author, s.moment()
		if r.revision, err = nextRevision(ctx, tx, tenant, kindSkill, k.name); err == nil {
			err = updateSkill(ctx, tx, tenant, r, before)
		}
	}
	if err == nil {
		result.Skills = append(result.Skills, k.name)
	}
	return err
}

// Exported is an agent on its way to somewhere else.
type Exported struct {
	// Name is a file name without a folder, such as "inventory-v3.zip".
	Name    string
	Archive []byte
	// Losses are what the other format cannot say.
	Losses []Loss
}

// Export returns a version of an agent as a ZIP archive; 0 is the current one. Equal definitions have equal archives: the
// files are written from the definition, in canonical form, with the number of the version. Errors are store.ErrNotFound
// and, for a version of an older release that this one cannot read, a *problem.Error.
func (s *Service) Export(ctx context.Context, tenant, name string, version int64, format Format) (*Exported, error) {
	v, err := s.Version(ctx, tenant, name, version)
	if err != nil {
		return nil, err
	}
	pkg, problems := catalog.ParsePackage(v.Files)
	if err := problems.Err("export the agent"); err != nil {
		return nil, err
	}
	pkg.Version = v.Version.Version
	exported := &Exported{Name: fmt.Sprintf("%s-v%d.zip", pkg.Name, pkg.Version), Losses: []Loss{}}
	files := pkg.Marshal()
	switch format {
	case "", FormatPackage:
	case FormatClaude:
		shared, err := s.skillsOf(ctx, tenant, pkg)
		if err != nil {
			return nil, err
		}
		files, exported.Losses = toClaude(pkg, shared)
		exported.Name = fmt.Sprintf("%s-v%d-claude.zip", pkg.Name, pkg.Version)
	default:
		problems.AddHint("unknown", "/format", fmt.Sprintf("one of %s, %s", FormatPackage, FormatClaude), "an agent has no form as %q", format)
		return nil, problems.Err("export the agent")
	}
	exported.Archive, err = WriteArchive(files)
	return exported, err
}

// skillsOf returns the shared skills that a package names, as far as they are there.
func (s *Service) skillsOf(ctx context.Context, tenant string, pkg *catalog.Package) ([]catalog.Skill, error) {
	var skills []catalog.Skill
	for _, name := range pkg.SharedSkillNames() {
		switch k, err := s.Skill(ctx, tenant, name); {
		case err == nil:
			skills = append(skills, catalog.Skill{Name: name, Description: k.Description, Content: k.Content})
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	return skills, nil
}

// ExportSkill returns a shared skill as a ZIP archive with one folder, as agentskills.io describes it.
func (s *Service) ExportSkill(ctx context.Context, tenant, name string) (*Exported, error) {
	k, err := s.Skill(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	archive, err := WriteArchive(Files{name + "/" + catalog.SkillFile: catalog.Skill{Name: name, Description: k.Description, Content: k.Content}.Marshal()})
	return &Exported{Name: name + ".zip", Archive: archive, Losses: []Loss{}}, err
}
