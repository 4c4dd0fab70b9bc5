package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

const (
	maxAgentID = 200
	maxModelID = 256
	// AnyVersion takes the place of a version where a change may replace whatever there is, also nothing.
	AnyVersion = -1
	// maxTries is how often AnyVersion tries against others.
	maxTries = 16
)

// Binding says which model an agent uses. It is all of an agent that a project may choose.
type Binding struct {
	// Project is where the binding holds; "" is the installation.
	Project string `json:"project,omitempty"`
	// Agent is the id of an agent, which need not exist, or not yet; "" stands for every agent that has no binding of its own.
	Agent string `json:"agent,omitempty"`
	// Provider is the id of an account, Model that of a model there.
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Thinking goes before what the agent says; "" leaves it to the agent.
	Thinking  llm.Level `json:"thinking,omitempty"`
	Version   int64     `json:"version"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// source is the kind of the binding.
func (b Binding) source() Source {
	switch {
	case b.Project != "" && b.Agent != "":
		return SourceProject
	case b.Agent != "":
		return SourceInstallation
	case b.Project != "":
		return SourceProjectDefault
	}
	return SourceInstallationDefault
}

// scope describes where a binding holds.
func (b Binding) scope() string {
	agent, where := "every agent", "the installation"
	if b.Agent != "" {
		agent = fmt.Sprintf("the agent %q", b.Agent)
	}
	if b.Project != "" {
		where = fmt.Sprintf("the project %q", b.Project)
	}
	return agent + " in " + where
}

// SaveBinding makes or replaces the binding of an agent in a project. version is that of the binding to replace, 0 if there
// must be none, or AnyVersion. Errors are *problem.Error of kind Invalid, also for an account that does not exist;
// store.ErrExists, store.ErrNotFound and store.ErrStale.
func (s *Service) SaveBinding(ctx context.Context, tenant string, b Binding, version int64) (Binding, error) {
	b.UpdatedAt = s.moment()
	for try := 1; ; try++ {
		saved, err := s.saveBinding(ctx, tenant, b, version)
		// Whoever takes any version does not lose against others who save at the same time.
		lost := errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrStale)
		if !lost || version != AnyVersion || try == maxTries {
			return saved, err
		}
	}
}

func (s *Service) saveBinding(ctx context.Context, tenant string, b Binding, version int64) (Binding, error) {
	problems := checkBinding(b)
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		found := slices.Clone(problems)
		if _, err := providerByID(ctx, tx, tenant, b.Provider); notFound(err) {
			found.Add("unknown-provider", "/provider", "there is no provider %q", shorten(b.Provider))
		} else if err != nil {
			return err
		}
		if err := found.Err("bind a model"); err != nil {
			return err
		}
		old, err := bindingOf(ctx, tx, tenant, b.Project, b.Agent)
		switch {
		case err != nil && !notFound(err):
			return err
		case err != nil && version > 0:
			return store.ErrNotFound
		case err != nil:
			b.Version = 1
			return insertBinding(ctx, tx, tenant, b)
		case version == 0:
			return store.ErrExists
		case version > 0 && version != old.Version:
			return store.ErrStale
		}
		b.Version = old.Version + 1
		return updateBinding(ctx, tx, tenant, b, old.Version)
	})
	if err != nil {
		return Binding{}, err
	}
	return b, nil
}

func checkBinding(b Binding) problem.List {
	var problems problem.List
	for _, f := range []struct {
		pointer, text string
		limit         int
		needed        bool
	}{{"/project", b.Project, maxAgentID, false}, {"/agent", b.Agent, maxAgentID, false}, {"/model", b.Model, maxModelID, true}} {
		if f.needed && f.text == "" {
			problems.Add("required", f.pointer, "must not be empty")
		}
		if len(f.text) > f.limit || strings.ContainsFunc(f.text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			problems.Add("invalid", f.pointer, "may hold at most %d printable ASCII characters without spaces", f.limit)
		}
	}
	if b.Thinking != "" && !b.Thinking.Valid() {
		problems.Add("unknown", "/thinking", "unknown level %q; known: %v", shorten(string(b.Thinking)), llm.Levels())
	}
	return problems
}

// Binding returns the binding of an agent in a project, exactly as it is; Resolve says which one applies.
func (s *Service) Binding(ctx context.Context, tenant, project, agent string) (Binding, error) {
	return bindingOf(ctx, s.db, tenant, project, agent)
}

// Bindings returns the bindings of a project, or those of the installation for project "", sorted by agent.
func (s *Service) Bindings(ctx context.Context, tenant, project string) ([]Binding, error) {
	return listBindings(ctx, s.db, tenant, bindingFilter{project: &project})
}

// AgentBindings returns every binding of one agent, that of the installation first.
func (s *Service) AgentBindings(ctx context.Context, tenant, agent string) ([]Binding, error) {
	return listBindings(ctx, s.db, tenant, bindingFilter{agent: &agent})
}

// DeleteBinding removes a binding of this version, or of any for AnyVersion. Errors are store.ErrNotFound and
// store.ErrStale.
func (s *Service) DeleteBinding(ctx context.Context, tenant, project, agent string, version int64) error {
	return s.db.Write(ctx, func(tx *store.Tx) error {
		b, err := bindingOf(ctx, tx, tenant, project, agent)
		if err != nil {
			return err
		}
		if version != AnyVersion && b.Version != version {
			return store.ErrStale
		}
		return deleteBinding(ctx, tx, tenant, project, agent, b.Version)
	})
}

// Source says where the choice of a model comes from.
type Source string

// The sources, each before the next one.
const (
	// SourceJob is what the job itself asks for.
	SourceJob Source = "job"
	// SourceProject is the project's binding of the agent, SourceInstallation that of the installation.
	SourceProject      Source = "project"
	SourceInstallation Source = "installation"
	// SourceProjectDefault and SourceInstallationDefault are the bindings for every agent.
	SourceProjectDefault      Source = "project-default"
	SourceInstallationDefault Source = "installation-default"
)

// Wanted is a question about the model of a job.
type Wanted struct {
	Agent, Project string
	// Override is what the job asks for; nil, and empty fields, leave the choice to bindings. Provider and ID go together.
	Override *job.ModelRef
}

// Resolution is the model of a job. Printing it shows no credential.
type Resolution struct {
	Ref    job.ModelRef
	Source Source
	// Config is the account with its credentials, for Spec.Providers[Ref.Provider].
	Config job.ProviderConfig
	// Model is the entry of the model; Known is false if nothing but its name is known.
	Model llm.Model
	Known bool
}

// Resolve says which model a job uses: what the job asks for goes before the project's binding of the agent, that before
// the installation's, that before the project's default and that before the installation's. Errors are *problem.Error of
// kind NotFound that say what is missing and what to do.
func (s *Service) Resolve(ctx context.Context, tenant string, w Wanted) (Resolution, error) {
	var r Resolution
	asked := job.ModelRef{}
	if w.Override != nil {
		asked = *w.Override
	}
	switch {
	case asked.Provider != "" && asked.ID != "":
		r.Ref, r.Source = asked, SourceJob
	case asked.Provider != "" || asked.ID != "":
		return r, &problem.Error{Kind: problem.Invalid, Op: "choose a model", Message: "a job that asks for a model names the provider and the model"}
	default:
		b, source, err := s.bound(ctx, tenant, w)
		if err != nil {
			return r, err
		}
		r.Ref, r.Source = job.ModelRef{Provider: b.Provider, ID: b.Model, Thinking: b.Thinking}, source
		if asked.Thinking != "" {
			r.Ref.Thinking = asked.Thinking
		}
	}
	p, err := providerByID(ctx, s.db, tenant, r.Ref.Provider)
	if notFound(err) {
		return r, &problem.Error{Kind: problem.NotFound, Op: "choose a model", Message: fmt.Sprintf("there is no provider %q", shorten(r.Ref.Provider)), Err: err}
	}
	if err != nil {
		return r, err
	}
	if r.Config, err = s.open(tenant, p); err != nil {
		return r, err
	}
	r.Model, r.Known = s.entry(p.Config, r.Ref.ID)
	return r, nil
}

// bound returns the binding that applies, in one look at the store.
func (s *Service) bound(ctx context.Context, tenant string, w Wanted) (Binding, Source, error) {
	candidates, err := candidateBindings(ctx, s.db, tenant, w.Project, w.Agent)
	if err != nil {
		return Binding{}, "", err
	}
	for _, source := range []Source{SourceProject, SourceInstallation, SourceProjectDefault, SourceInstallationDefault} {
		i := slices.IndexFunc(candidates, func(b Binding) bool { return b.source() == source })
		if i >= 0 {
			return candidates[i], source, nil
		}
	}
	where := "in the installation"
	if w.Project != "" {
		where = fmt.Sprintf("in the project %q or in the installation", w.Project)
	}
	return Binding{}, "", &problem.Error{Kind: problem.NotFound, Op: "choose a model", Err: store.ErrNotFound,
		Message: fmt.Sprintf("no model is bound to the agent %q; bind one to it, or a default for every agent, %s", shorten(w.Agent), where)}
}
