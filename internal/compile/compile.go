// Package compile makes the job of a run: it puts together the frozen definition of the agent, the model that is bound to
// it with its account, the MCP servers that the agent names, the directories and the limits. It is the orchestrator's
// Compiler, and the only place where all of these meet; each of them is asked through an interface, so the package knows
// no database.
//
// The same run with the same surroundings makes the same job, byte for byte. An attempt that goes on with a run does not
// look at the surroundings again: the job is the one that the journal begins with, with today's credentials filled in, so
// that nothing that was saved meanwhile changes a run in its middle. Credentials are in the memory of a job only.
package compile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// Agents resolves names; *builder.Service does.
type Agents interface {
	// Resolve returns what a job gets under a name, version 0 being the current one. An agent that cannot run is a
	// *builder.Unresolved; other errors are those of the database.
	Resolve(ctx context.Context, tenant, name string, version int64) (*builder.Resolved, error)
}

// Accounts knows models and servers with their credentials; *account.Service does.
type Accounts interface {
	// Resolve says which model a job uses. A model that is not there is a *problem.Error of kind NotFound.
	Resolve(ctx context.Context, tenant string, w account.Wanted) (account.Resolution, error)
	// Configs returns accounts with their credentials by id; store.ErrNotFound if one does not exist.
	Configs(ctx context.Context, tenant string, ids ...string) (map[string]job.ProviderConfig, error)
	// Specs returns servers with their credentials, in the order of the names. Missing ones are a *problem.Error.
	Specs(ctx context.Context, tenant string, names []string) (account.Specs, error)
}

// Workspaces makes and keeps the directories of runs.
type Workspaces interface {
	// Prepare makes the directories of a run, or finds those of an earlier attempt, and says what is to be said of them. An
	// error of kind problem.Unavailable is tried again later.
	Prepare(ctx context.Context, r run.Run, inputs []Input) (job.Workspace, []job.Notice, error)
	// Keep keeps what a job left in its output directory.
	Keep(ctx context.Context, r run.Run, w job.Workspace, outcome job.Outcome) error
	// Discard removes the directories, unless the run goes on in them.
	Discard(ctx context.Context, r run.Run, w job.Workspace)
}

// Journals returns the frames of a tenant's run; *run.Store does.
type Journals interface {
	// Journal yields the frames that are stored, of which there may be none.
	Journal(ctx context.Context, tenant, id string) (iter.Seq2[[]byte, error], error)
}

// Config is what a Compiler is made of. The four services are required.
type Config struct {
	Agents     Agents
	Accounts   Accounts
	Workspaces Workspaces
	Journals   Journals
	// TimeoutSec is the time limit where neither the request nor the agent has one; zero means an hour. MaxTimeoutSec and
	// MaxCostUSD bound every run, whatever it asks for; zero and nil do not.
	TimeoutSec, MaxTimeoutSec float64
	MaxCostUSD                *llm.USD
	// PrivateServers says that the runtime opens private addresses for MCP servers. Without it, a job that needs one is not
	// compiled.
	PrivateServers bool
}

// Compiler makes jobs of runs. It is safe for concurrent use, and an orchestrator.Compiler and Keeper.
type Compiler struct{ config Config }

// New returns a Compiler. It does no input or output.
func New(config Config) (*Compiler, error) {
	if config.Agents == nil || config.Accounts == nil || config.Workspaces == nil || config.Journals == nil {
		return nil, errors.New("a compiler needs agents, accounts, workspaces and journals")
	}
	if config.TimeoutSec == 0 {
		config.TimeoutSec = 3600
	}
	return &Compiler{config}, nil
}

// Compile makes the job of a run with its directories and its credentials. Its errors are *problem.Error: of kind
// Unavailable for what may work later, of another one for a run that cannot start. The code of an agent that cannot run is
// one of the four reasons of package builder.
func (c *Compiler) Compile(ctx context.Context, r run.Run) (*job.Spec, job.Host, error) {
	q, err := ParseRequest(r.Input)
	if err != nil {
		return nil, nil, err
	}
	spec, err := c.recorded(ctx, r)
	goesOn := spec != nil
	if err == nil && !goesOn {
		spec, err = c.fresh(ctx, r, q)
	}
	if err == nil {
		err = c.fill(ctx, r, spec, goesOn)
	}
	if err != nil {
		return nil, nil, later(err)
	}
	w, notices, err := c.config.Workspaces.Prepare(ctx, r, q.Inputs)
	if err != nil {
		return nil, nil, err
	}
	spec.Workspace = w
	if !goesOn {
		spec.Notices = append(spec.Notices, notices...)
	}
	return spec, nil, nil
}

// Keep implements orchestrator.Keeper.
func (c *Compiler) Keep(ctx context.Context, r run.Run, spec *job.Spec, outcome job.Outcome) error {
	return c.config.Workspaces.Keep(ctx, r, spec.Workspace, outcome)
}

// Discard implements orchestrator.Keeper.
func (c *Compiler) Discard(ctx context.Context, r run.Run, spec *job.Spec) {
	if spec != nil {
		c.config.Workspaces.Discard(ctx, r, spec.Workspace)
	}
}

// later gives an error that says nothing about the run itself the kind of one that may pass.
func later(err error) error {
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	return &problem.Error{Kind: problem.Unavailable, Op: "compile the run", Err: err}
}

// fresh makes the job of a run that has not begun, without its directories and without credentials.
func (c *Compiler) fresh(ctx context.Context, r run.Run, q *Request) (*job.Spec, error) {
	resolved, err := c.agent(ctx, r)
	if err != nil {
		return nil, err
	}
	model, err := c.config.Accounts.Resolve(ctx, r.Tenant, account.Wanted{Agent: r.Agent, Project: r.Project, Override: q.Model})
	if err != nil {
		return nil, err
	}
	spec := &job.Spec{APIVersion: job.APIVersion, Task: q.Task, Model: model.Ref, Metadata: q.Metadata,
		Providers: map[string]job.ProviderConfig{model.Ref.Provider: model.Config}}
	if l := q.Limits; l != nil {
		spec.Limits = job.Limits{TimeoutSec: l.TimeoutSec, IdleTimeoutSec: l.IdleTimeoutSec, MaxTurns: l.MaxTurns, MaxCostUSD: l.MaxCostUSD}
	}
	resolved.Job.Apply(spec)
	c.limit(spec)
	for _, writer := range catalog.Writers(spec) {
		if writer.Provider == "" {
			writer.Provider = spec.Model.Provider
		}
		spec.Providers[writer.Provider] = job.ProviderConfig{}
	}
	if names := servers(spec); len(names) > 0 {
		spec.MCP = &job.MCP{}
		for _, name := range names {
			spec.MCP.Servers = append(spec.MCP.Servers, job.MCPServer{Name: name})
		}
	}
	return spec, nil
}

// agent resolves the agent of a run. A run that has started keeps the version with which it did.
func (c *Compiler) agent(ctx context.Context, r run.Run) (*builder.Resolved, error) {
	asked := r.Version
	if r.Resolved != "" {
		asked = r.Resolved
	}
	version := int64(0)
	if asked != "" {
		n, err := strconv.ParseInt(asked, 10, 64)
		if err != nil || n < 1 {
			return nil, refusal(problem.NotFound, builder.ReasonUnknown, fmt.Sprintf("unknown agent: %q is no version of %q", asked, r.Agent))
		}
		version = n
	}
	resolved, err := c.config.Agents.Resolve(ctx, r.Tenant, r.Agent, version)
	unresolved, ok := errors.AsType[*builder.Unresolved](err)
	if !ok {
		return resolved, err
	}
	kind := problem.Conflict
	switch unresolved.Reason {
	case builder.ReasonUnknown:
		kind = problem.NotFound
	case builder.ReasonInvalid:
		kind = problem.Invalid
	}
	failure := refusal(kind, unresolved.Reason, unresolved.Error())
	failure.Problems = append(failure.Problems, unresolved.Problems...)
	return nil, failure
}

func refusal(kind problem.Kind, reason builder.Reason, message string) *problem.Error {
	return &problem.Error{Kind: kind, Op: "compile the run", Problems: problem.List{{Code: string(reason), Message: message}}}
}

// limit fills in the time limit and lowers what is above the installation's limits.
func (c *Compiler) limit(spec *job.Spec) {
	l := &spec.Limits
	if l.TimeoutSec == 0 {
		l.TimeoutSec = c.config.TimeoutSec
	}
	if most := c.config.MaxTimeoutSec; most > 0 && l.TimeoutSec > most {
		spec.Notices = append(spec.Notices, job.Notice{Code: "limit-lowered", Message: fmt.Sprintf("the time limit of %g s is above that of the installation, %g s, which holds", l.TimeoutSec, most)})
		l.TimeoutSec = most
	}
	if most := c.config.MaxCostUSD; most != nil && (l.MaxCostUSD == nil || *l.MaxCostUSD > *most) {
		if l.MaxCostUSD != nil {
			spec.Notices = append(spec.Notices, job.Notice{Code: "limit-lowered", Message: "the cost limit is above that of the installation, which holds"})
		}
		cost := *most
		l.MaxCostUSD = &cost
	}
}

// servers returns the names of the MCP servers whose tools the agent of a job and its subagents name, sorted.
func servers(spec *job.Spec) []string {
	var names []string
	add := func(tools []string) {
		for _, t := range tools {
			if rest, ok := strings.CutPrefix(t, "mcp__"); ok {
				name, _, _ := strings.Cut(rest, "__")
				names = append(names, name)
			}
		}
	}
	add(spec.Agent.Tools)
	var below func([]job.Subagent)
	below = func(roster []job.Subagent) {
		for i := range roster {
			add(roster[i].Agent.Tools)
			below(roster[i].Subagents)
		}
	}
	below(spec.Subagents)
	slices.Sort(names)
	return slices.Compact(names)
}

// recorded returns the job with which an earlier attempt began, nil if none did.
func (c *Compiler) recorded(ctx context.Context, r run.Run) (*job.Spec, error) {
	if r.Attempts <= 1 {
		return nil, nil
	}
	frames, err := c.config.Journals.Journal(ctx, r.Tenant, r.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line, err := range frames {
		if err != nil {
			return nil, err
		}
		frame, err := job.ParseFrame(line)
		if err != nil {
			return nil, fmt.Errorf("read the journal: %w", err)
		}
		if frame.Type != job.FrameSpec {
			return nil, fmt.Errorf("the journal begins with a frame of another type, %s", frame.Type)
		}
		var begin job.SpecFrame
		if err := json.Unmarshal(frame.Data, &begin); err != nil {
			return nil, fmt.Errorf("read the journal: %w", err)
		}
		var spec job.Spec
		if err := json.Unmarshal(begin.Spec, &spec); err != nil {
			return nil, fmt.Errorf("read the job in the journal: %w", err)
		}
		return &spec, nil
	}
	return nil, nil
}
