// Package builder keeps the agents of an installation: those of the release, which nobody changes, and those that people
// make. Saving an agent publishes it: one immutable version with every check made before, and a pointer to the current one
// that Restore moves. The package keeps the skills that agents share, imports and exports agents, previews drafts without
// keeping anything, and resolves a name to the frozen definition that a job carries. Every part of the product that needs
// an agent by name gets it from Service.Resolve, so that all agree on what runs.
//
// Agents belong to the installation and not to a project: nothing in here reads a directory that somebody checked out.
package builder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/builtin"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
)

// Config is what a Service is made of. DB, BuiltIn, Runtime and Tools are required.
type Config struct {
	DB *store.DB
	// BuiltIn is what the release brings.
	BuiltIn *builtin.Set
	// Runtime checks and previews jobs; it starts none.
	Runtime *kernel.Runtime
	// Tools are the kernel's tools.
	Tools []Tool
	// MCPServers returns the names of a tenant's registered MCP servers; nil means that there are none.
	MCPServers func(ctx context.Context, tenant string) ([]string, error)
	// Bindings returns the models that agents use where a project says nothing else, by the name of the agent; "" stands for
	// every agent without one of its own. Nil means that there are none.
	Bindings func(ctx context.Context, tenant string) (map[string]Binding, error)
	// Now returns the time; nil means time.Now.
	Now func() time.Time
}

// Tool is a tool of the kernel, for people who choose some.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Effect is what a call may change: read, write or external.
	Effect string `json:"effect"`
	// Note says why an agent that names no tools goes without this one; "" says that it gets it.
	Note string `json:"note,omitempty"`
}

// Binding is the model that an agent uses where a project says nothing else.
type Binding struct {
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	Thinking llm.Level `json:"thinking,omitempty"`
}

// AnyRevision takes the place of a revision where a change may replace whatever there is.
const AnyRevision = -1

// Errors that callers decide on, beside those of package store: store.ErrNotFound for what the tenant does not have,
// store.ErrExists for a name that is taken, and store.ErrStale for a change to a revision that is not the current one.
// What is wrong with a draft is a *problem.Error of kind Invalid.
var (
	// ErrBuiltIn is the error of a change to what the release brings.
	ErrBuiltIn = errors.New("it belongs to the release and cannot be changed; copy it under another name")
	// ErrMember is the error of asking for the job of an agent that never runs as one.
	ErrMember = errors.New("the agent is meant for people's own tools (audience member) and never runs as a job")
)

// Service is the one door to agents and shared skills. It is safe for concurrent use.
type Service struct {
	config Config
	db     *store.DB
	now    func() time.Time
	// tools and reserved are the names in Config.Tools and of the release's agents.
	tools, reserved []string
}

// New returns a service. It does no input or output.
func New(config Config) (*Service, error) {
	if config.DB == nil || config.BuiltIn == nil || config.Runtime == nil || len(config.Tools) == 0 {
		return nil, errors.New("the builder needs a database, the built-in agents, a runtime and its tools")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.MCPServers == nil {
		config.MCPServers = func(context.Context, string) ([]string, error) { return nil, nil }
	}
	if config.Bindings == nil {
		config.Bindings = func(context.Context, string) (map[string]Binding, error) { return nil, nil }
	}
	s := &Service{config: config, db: config.DB, now: config.Now}
	for _, t := range config.Tools {
		s.tools = append(s.tools, t.Name)
	}
	for _, a := range config.BuiltIn.Agents {
		s.reserved = append(s.reserved, a.Package.Name)
	}
	return s, nil
}

// moment is the current time as the database keeps it.
func (s *Service) moment() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// Surroundings is what an editor offers: what an agent may name, and which names are taken.
type Surroundings struct {
	Tools      []Tool         `json:"tools"`
	MCPServers []string       `json:"mcpServers"`
	Skills     []SkillSummary `json:"skills"`
	Reserved   []string       `json:"reserved"`
}

// Surroundings returns what the agents of a tenant may name.
func (s *Service) Surroundings(ctx context.Context, tenant string) (*Surroundings, error) {
	servers, err := s.config.MCPServers(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list the MCP servers: %w", err)
	}
	skills, err := s.Skills(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if servers == nil {
		servers = []string{}
	}
	return &Surroundings{Tools: s.config.Tools, MCPServers: servers, Skills: skills, Reserved: s.reserved}, nil
}
