// Package project keeps projects: what a team runs agents for. A project names its sources (directories of the server and
// git repositories), how many of its runs may run at once, which agents may use memory and the web, and whether outputs
// are committed to a branch. Nothing else about an agent is a project's to say, and nothing in a source is ever read as a
// definition of one.
//
// Every row has a version; a change names the version that it was made from, and a change of another one is
// store.ErrStale. Credentials of sources are sealed and never returned.
package project

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

const (
	maxName   = 200
	maxAgents = 1000
	// MaxConcurrency bounds Settings.Concurrency.
	MaxConcurrency = 10_000
)

// Project is a project of a tenant.
type Project struct {
	ID string `json:"id"`
	// Name belongs to one project of the tenant.
	Name     string   `json:"name"`
	Settings Settings `json:"settings"`
	// Version counts changes.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Settings are what a project decides.
type Settings struct {
	// Concurrency is how many runs of the project may run at once; 0 means as many as the installation allows.
	Concurrency int64 `json:"concurrency,omitempty"`
	// Commit makes a commit of the outputs of every completed run; nil makes none.
	Commit *Commit `json:"commit,omitempty"`
	// Grants are what agents may use beyond their workspace.
	Grants Grants `json:"grants,omitzero"`
}

// Commit says how outputs are committed to a branch of one of the sources.
type Commit struct {
	// Source names a git source of the project.
	Source string `json:"source"`
	// Branch is the branch that the commits are added to. It may hold "{run}", which stands for the id of the run.
	Branch string `json:"branch"`
	// Directory is where the outputs go, "" for the top of the repository.
	Directory string `json:"directory,omitempty"`
	// AuthorName and AuthorEmail are the author of the commits.
	AuthorName  string `json:"authorName"`
	AuthorEmail string `json:"authorEmail"`
}

// Grants name agents. "*" stands for every agent.
type Grants struct {
	// MemoryRead and MemoryWrite may use the memory of the project, the second to change it.
	MemoryRead  []string `json:"memoryRead,omitempty"`
	MemoryWrite []string `json:"memoryWrite,omitempty"`
	// WebSearch may search the web, WebFetch may read its pages. Neither includes the other.
	WebSearch []string `json:"webSearch,omitempty"`
	WebFetch  []string `json:"webFetch,omitempty"`
}

// Permits reports whether a list of a Grants names an agent.
func Permits(agents []string, agent string) bool {
	return slices.Contains(agents, agent) || slices.Contains(agents, "*")
}

// Draft is a new project, or all of a changed one.
type Draft struct {
	Name     string   `json:"name"`
	Settings Settings `json:"settings"`
}

// Config is what a Service is made of.
type Config struct {
	// DB is required, Keys where a source has a credential.
	DB   *store.DB
	Keys *secret.Ring
	// Directories are the absolute paths below which directories may be sources; none means that directories may not. What
	// a tenant may read of the server is the operator's to say.
	Directories []string
	// PlainHTTP permits git repositories over http, without encryption.
	PlainHTTP bool
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Service is the one door to projects and their sources. It is safe for concurrent use.
type Service struct {
	config Config
	db     *store.DB
	now    func() time.Time
}

// New returns a service. It does no input or output.
func New(config Config) (*Service, error) {
	if config.DB == nil {
		return nil, errors.New("projects need a database")
	}
	s := &Service{config: config, db: config.DB, now: config.Now}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// Create adds a project. Errors are *problem.Error of kind Invalid, and store.ErrExists for a name that is taken.
func (s *Service) Create(ctx context.Context, tenant string, draft Draft) (Project, error) {
	draft.normalise()
	if err := check(draft).Err("create the project"); err != nil {
		return Project{}, err
	}
	now := s.time()
	p := Project{ID: newID(), Name: draft.Name, Settings: draft.Settings, Version: 1, CreatedAt: now, UpdatedAt: now}
	return p, s.db.Write(ctx, func(tx *store.Tx) error {
		if err := checkCommitSource(ctx, tx, tenant, p); err != nil {
			return err
		}
		return insertProject(ctx, tx, tenant, p)
	})
}

// Get returns a project of the tenant.
func (s *Service) Get(ctx context.Context, tenant, id string) (Project, error) {
	return findProject(ctx, s.db, tenant, id)
}

// List returns up to limit projects in the order of their ids, which is that in which they were made, those after the id in
// after; "" begins.
func (s *Service) List(ctx context.Context, tenant, after string, limit int) ([]Project, error) {
	return listProjects(ctx, s.db, tenant, after, limit)
}

// Update replaces the name and the settings of a project whose current version is the one given. Errors are those of Create,
// store.ErrNotFound and store.ErrStale.
func (s *Service) Update(ctx context.Context, tenant, id string, version int64, draft Draft) (Project, error) {
	draft.normalise()
	if err := check(draft).Err("change the project"); err != nil {
		return Project{}, err
	}
	var p Project
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		var err error
		if p, err = findProject(ctx, tx, tenant, id); err != nil {
			return err
		}
		if p.Version != version {
			return store.ErrStale
		}
		p.Name, p.Settings, p.UpdatedAt = draft.Name, draft.Settings, s.time()
		if err := checkCommitSource(ctx, tx, tenant, p); err != nil {
			return err
		}
		return updateProject(ctx, tx, tenant, &p)
	})
	return p, err
}

// Delete removes a project with its sources. Runs and artifacts keep its id.
func (s *Service) Delete(ctx context.Context, tenant, id string, version int64) error {
	return s.db.Write(ctx, func(tx *store.Tx) error {
		p, err := findProject(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		if p.Version != version {
			return store.ErrStale
		}
		return deleteProject(ctx, tx, tenant, p)
	})
}

// time is now as rows hold it.
func (s *Service) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

func (d *Draft) normalise() {
	d.Name = strings.TrimSpace(d.Name)
	for _, list := range []*[]string{&d.Settings.Grants.MemoryRead, &d.Settings.Grants.MemoryWrite, &d.Settings.Grants.WebSearch, &d.Settings.Grants.WebFetch} {
		*list = slices.Compact(slices.Sorted(slices.Values(*list)))
	}
}

// check lists everything that is wrong with a draft.
func check(d Draft) problem.List {
	var problems problem.List
	if !isLine(d.Name, maxName) {
		problems.Add("invalid", "/name", "must have 1 to %d bytes of text on one line", maxName)
	}
	if d.Settings.Concurrency < 0 || d.Settings.Concurrency > MaxConcurrency {
		problems.Add("out-of-range", "/settings/concurrency", "must be from 0 to %d", MaxConcurrency)
	}
	grants := d.Settings.Grants
	for pointer, agents := range map[string][]string{"memoryRead": grants.MemoryRead, "memoryWrite": grants.MemoryWrite, "webSearch": grants.WebSearch, "webFetch": grants.WebFetch} {
		checkAgents(&problems, "/settings/grants/"+pointer, agents)
	}
	if c := d.Settings.Commit; c != nil {
		checkCommit(&problems, c)
	}
	slices.SortStableFunc(problems, func(a, b problem.Problem) int { return strings.Compare(a.Pointer, b.Pointer) })
	return problems
}

func checkAgents(problems *problem.List, pointer string, agents []string) {
	if len(agents) > maxAgents {
		problems.Add("too-many", pointer, "there are %d agents, more than %d", len(agents), maxAgents)
		return
	}
	for _, agent := range agents {
		if agent != "*" && !isAgent(agent) {
			problems.AddHint("invalid", pointer, `names are small letters, digits, hyphens and dots; "*" stands for every agent`, "%q is no name of an agent", agent)
		}
	}
}

func isAgent(name string) bool {
	return name != "" && len(name) <= 200 && name[0] >= 'a' && name[0] <= 'z' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}

func checkCommit(problems *problem.List, c *Commit) {
	if !IsSourceName(c.Source) {
		problems.Add("invalid", "/settings/commit/source", "%q is no name of a source", c.Source)
	}
	if why := refFault(strings.ReplaceAll(c.Branch, "{run}", "run")); c.Branch == "" || why != "" {
		problems.AddHint("invalid", "/settings/commit/branch", `for example "hozo/{run}"`, "%q is no name of a branch", c.Branch)
	}
	if c.Directory != "" && !isLocalPath(c.Directory) {
		problems.Add("invalid", "/settings/commit/directory", "%q is no directory of a repository", c.Directory)
	}
	if !isLine(c.AuthorName, maxName) || strings.ContainsAny(c.AuthorName, "<>") {
		problems.Add("invalid", "/settings/commit/authorName", "must have 1 to %d bytes of text on one line, without angle brackets", maxName)
	}
	if !isLine(c.AuthorEmail, maxName) || strings.ContainsAny(c.AuthorEmail, "<> ") || !strings.Contains(c.AuthorEmail, "@") {
		problems.Add("invalid", "/settings/commit/authorEmail", "%q is no e-mail address", c.AuthorEmail)
	}
}

func isLine(text string, most int) bool {
	return text != "" && len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
