package api

import (
	"context"

	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/api/wire"
)

func (h *Handler) providers() {
	const tag = "providers"
	accounts := h.config.Accounts
	route(h, tag, "list-providers", "GET /api/v1/providers", "Accounts at model providers", func(ctx context.Context, _ *nothing) (*plain[wire.Page[account.Provider]], error) {
		return whole(accounts.Providers(ctx, tenantOf(ctx)))
	})
	route(h, tag, "create-provider", "POST /api/v1/providers", "Add an account; its credentials are never returned", func(ctx context.Context, in *bodyOf[account.ProviderDraft]) (*created[account.Provider], error) {
		p, err := accounts.CreateProvider(ctx, tenantOf(ctx), in.Body)
		if err != nil {
			return nil, err
		}
		return &created[account.Provider]{"/api/v1/providers/" + p.ID, wire.ETag(p.Version), p}, nil
	}, makes())
	route(h, tag, "get-provider", "GET /api/v1/providers/{id}", "One account", func(ctx context.Context, in *ByID) (*tagged[account.Provider], error) {
		return tagProvider(accounts.Provider(ctx, tenantOf(ctx), in.ID))
	})
	route(h, tag, "update-provider", "PUT /api/v1/providers/{id}", "Change an account; credentials that are not given stay", func(ctx context.Context, in *struct {
		ChangeByID
		Body account.ProviderDraft
	}) (*tagged[account.Provider], error) {
		version, err := in.current(ctx, h.providerVersion(in.ID))
		if err != nil {
			return nil, err
		}
		return tagProvider(accounts.UpdateProvider(ctx, tenantOf(ctx), in.ID, version, in.Body))
	})
	route(h, tag, "delete-provider", "DELETE /api/v1/providers/{id}", "Remove an account with its credentials", func(ctx context.Context, in *ChangeByID) (*nothing, error) {
		version, err := in.current(ctx, h.providerVersion(in.ID))
		if err != nil {
			return nil, err
		}
		return nil, accounts.DeleteProvider(ctx, tenantOf(ctx), in.ID, version)
	})
	route(h, tag, "test-provider", "POST /api/v1/providers/{id}/test", "Send one small request to a model, which may cost money", func(ctx context.Context, in *struct {
		ByID
		Body wire.ModelQuery
	}) (*plain[account.TestResult], error) {
		result, err := accounts.TestProvider(ctx, tenantOf(ctx), in.ID, in.Body.Model)
		return &plain[account.TestResult]{result}, err
	})
	route(h, tag, "get-model", "GET /api/v1/providers/{id}/model", "What is known of a model", h.model)
}

func tagProvider(p account.Provider, err error) (*tagged[account.Provider], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[account.Provider]{wire.ETag(p.Version), p}, nil
}

func (h *Handler) providerVersion(id string) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		p, err := h.config.Accounts.Provider(ctx, tenantOf(ctx), id)
		return p.Version, err
	}
}

func (h *Handler) model(ctx context.Context, in *struct {
	ByID
	Model string `query:"model" required:"true" maxLength:"256" doc:"The id of the model at the provider."`
}) (*plain[wire.Model], error) {
	model, known, err := h.config.Accounts.Model(ctx, tenantOf(ctx), in.ID, in.Model)
	if err != nil {
		return nil, err
	}
	levels, err := h.config.Accounts.Levels(ctx, tenantOf(ctx), in.ID, in.Model)
	if err != nil {
		return nil, err
	}
	return &plain[wire.Model]{wire.Model{
		ID: in.Model, Known: known, ContextWindow: model.ContextWindow, MaxOutputTokens: model.MaxOutputTokens, ThinkingLevels: levels,
	}}, nil
}

// everyAgent is the name in the path of the binding for agents that have none of their own.
const everyAgent = "*"

// BindingPath names a binding.
type BindingPath struct {
	Agent   string `path:"agent" maxLength:"128" doc:"The id of an agent, which need not exist yet; * for every agent without a binding of its own."`
	Project string `query:"project" maxLength:"128" doc:"The project of the binding; absent for the installation."`
}

func (p BindingPath) agent() string {
	if p.Agent == everyAgent {
		return ""
	}
	return p.Agent
}

func (h *Handler) bindings() {
	const tag = "bindings"
	route(h, tag, "list-bindings", "GET /api/v1/bindings", "Which agent uses which model", func(ctx context.Context, in *struct {
		Project string `query:"project" maxLength:"128" doc:"The project; absent for the installation."`
		Agent   string `query:"agent" maxLength:"128" doc:"Only bindings of this agent, of every project."`
	}) (*plain[wire.Page[account.Binding]], error) {
		if in.Agent != "" {
			return h.agentBindings(ctx, in.Agent)
		}
		if !seesBindings(ctx, in.Project) {
			return nil, missing(ctx)
		}
		return whole(h.config.Accounts.Bindings(ctx, tenantOf(ctx), in.Project))
	})
	route(h, tag, "get-binding", "GET /api/v1/bindings/{agent}", "The binding of one agent", func(ctx context.Context, in *BindingPath) (*tagged[account.Binding], error) {
		if !seesBindings(ctx, in.Project) {
			return nil, missing(ctx)
		}
		return tagBinding(h.config.Accounts.Binding(ctx, tenantOf(ctx), in.Project, in.agent()))
	})
	route(h, tag, "save-binding", "PUT /api/v1/bindings/{agent}", "Choose the model of an agent", h.saveBinding)
	route(h, tag, "delete-binding", "DELETE /api/v1/bindings/{agent}", "Remove the binding of an agent", func(ctx context.Context, in *struct {
		Precondition
		BindingPath
	}) (*nothing, error) {
		if !managesBindings(ctx, in.Project) {
			return nil, missing(ctx)
		}
		version, err := in.version()
		if err != nil {
			return nil, err
		}
		return nil, h.config.Accounts.DeleteBinding(ctx, tenantOf(ctx), in.Project, in.agent(), version)
	})
}

func tagBinding(b account.Binding, err error) (*tagged[account.Binding], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[account.Binding]{wire.ETag(b.Version), b}, nil
}

func (h *Handler) agentBindings(ctx context.Context, agent string) (*plain[wire.Page[account.Binding]], error) {
	return whole(h.visibleBindings(ctx, agent))
}

func (h *Handler) saveBinding(ctx context.Context, in *struct {
	Precondition
	BindingPath
	Body wire.BindingDraft
}) (*tagged[account.Binding], error) {
	if !managesBindings(ctx, in.Project) {
		return nil, missing(ctx)
	}
	version, err := in.version()
	if err != nil {
		return nil, err
	}
	return tagBinding(h.config.Accounts.SaveBinding(ctx, tenantOf(ctx), account.Binding{
		Project: in.Project, Agent: in.agent(), Provider: in.Body.Provider, Model: in.Body.Model, Thinking: in.Body.Thinking,
	}, version))
}

// ByName names a record in the path.
type ByName struct {
	Name string `path:"name" maxLength:"128"`
}

// ChangeByName is a change of a record without a body.
type ChangeByName struct {
	Precondition
	Name string `path:"name" maxLength:"128"`
}

func (h *Handler) servers() {
	const tag = "mcp-servers"
	accounts := h.config.Accounts
	route(h, tag, "list-mcp-servers", "GET /api/v1/mcp-servers", "MCP servers", func(ctx context.Context, _ *nothing) (*plain[wire.Page[account.Server]], error) {
		return whole(accounts.Servers(ctx, tenantOf(ctx)))
	})
	route(h, tag, "create-mcp-server", "POST /api/v1/mcp-servers", "Register an MCP server; its credentials are never returned", func(ctx context.Context, in *bodyOf[account.ServerDraft]) (*created[account.Server], error) {
		s, err := accounts.CreateServer(ctx, tenantOf(ctx), in.Body)
		if err != nil {
			return nil, err
		}
		return &created[account.Server]{"/api/v1/mcp-servers/" + s.Name, wire.ETag(s.Version), s}, nil
	}, makes())
	route(h, tag, "get-mcp-server", "GET /api/v1/mcp-servers/{name}", "One MCP server with its tools", func(ctx context.Context, in *ByName) (*tagged[account.Server], error) {
		return tagServer(accounts.Server(ctx, tenantOf(ctx), in.Name))
	})
	route(h, tag, "update-mcp-server", "PUT /api/v1/mcp-servers/{name}", "Change an MCP server; credentials that are not given stay", func(ctx context.Context, in *struct {
		ChangeByName
		Body account.ServerDraft
	}) (*tagged[account.Server], error) {
		version, err := in.current(ctx, h.serverVersion(in.Name))
		if err != nil {
			return nil, err
		}
		return tagServer(accounts.UpdateServer(ctx, tenantOf(ctx), in.Name, version, in.Body))
	})
	route(h, tag, "delete-mcp-server", "DELETE /api/v1/mcp-servers/{name}", "Remove an MCP server with its credentials", func(ctx context.Context, in *ChangeByName) (*nothing, error) {
		version, err := in.current(ctx, h.serverVersion(in.Name))
		if err != nil {
			return nil, err
		}
		return nil, accounts.DeleteServer(ctx, tenantOf(ctx), in.Name, version)
	})
	route(h, tag, "refresh-mcp-server", "POST /api/v1/mcp-servers/{name}/refresh", "Ask the server for its tools", func(ctx context.Context, in *ByName) (*tagged[account.Server], error) {
		return tagServer(accounts.Refresh(ctx, tenantOf(ctx), in.Name))
	})
	route(h, tag, "accept-mcp-tools", "POST /api/v1/mcp-servers/{name}/accept", "Accept tools as they were looked at", func(ctx context.Context, in *struct {
		ByName
		Body wire.Acceptance
	}) (*tagged[account.Server], error) {
		version, err := h.serverVersion(in.Name)(ctx) // the hashes say what was looked at
		if err != nil {
			return nil, err
		}
		return tagServer(accounts.Accept(ctx, tenantOf(ctx), in.Name, version, in.Body.Hashes))
	})
}

func tagServer(s account.Server, err error) (*tagged[account.Server], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[account.Server]{wire.ETag(s.Version), s}, nil
}

func (h *Handler) serverVersion(name string) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		s, err := h.config.Accounts.Server(ctx, tenantOf(ctx), name)
		return s.Version, err
	}
}
