package client

import (
	"context"
	"net/http"

	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/api/wire"
)

// Providers returns every account, sorted by id.
func (c *Client) Providers(ctx context.Context) ([]account.Provider, error) {
	return items[account.Provider](ctx, c, get(path("providers"), nil))
}

// Provider returns one account.
func (c *Client) Provider(ctx context.Context, id string) (account.Provider, error) {
	return as[account.Provider](ctx, c, get(path("providers", id), nil))
}

// CreateProvider adds an account.
func (c *Client) CreateProvider(ctx context.Context, draft account.ProviderDraft) (account.Provider, error) {
	return as[account.Provider](ctx, c, call{method: http.MethodPost, path: path("providers"), body: draft})
}

// UpdateProvider changes an account; credentials that are not given stay.
func (c *Client) UpdateProvider(ctx context.Context, id string, version IfMatch, draft account.ProviderDraft) (account.Provider, error) {
	return as[account.Provider](ctx, c, change(http.MethodPut, path("providers", id), version, draft))
}

// DeleteProvider removes an account with its credentials.
func (c *Client) DeleteProvider(ctx context.Context, id string, version IfMatch) error {
	return c.done(ctx, change(http.MethodDelete, path("providers", id), version, nil))
}

// TestProvider sends one small request to a model of an account, which may cost money.
func (c *Client) TestProvider(ctx context.Context, id, model string) (account.TestResult, error) {
	return as[account.TestResult](ctx, c, call{method: http.MethodPost, path: path("providers", id, "test"), body: wire.ModelQuery{Model: model}})
}

// Model says what is known of a model of an account.
func (c *Client) Model(ctx context.Context, id, model string) (wire.Model, error) {
	return as[wire.Model](ctx, c, get(path("providers", id, "model"), query("model", model)))
}

// Bindings returns the bindings of a project, or those of the installation for project "".
func (c *Client) Bindings(ctx context.Context, project string) ([]account.Binding, error) {
	return items[account.Binding](ctx, c, get(path("bindings"), query("project", project)))
}

// AgentBindings returns every binding of one agent.
func (c *Client) AgentBindings(ctx context.Context, agent string) ([]account.Binding, error) {
	return items[account.Binding](ctx, c, get(path("bindings"), query("agent", agent)))
}

// Binding returns the binding of an agent in a project; agent "" stands for every agent without one of its own.
func (c *Client) Binding(ctx context.Context, project, agent string) (account.Binding, error) {
	return as[account.Binding](ctx, c, get(bindingPath(agent), query("project", project)))
}

// SaveBinding chooses the model of an agent in a project.
func (c *Client) SaveBinding(ctx context.Context, project, agent string, version IfMatch, draft wire.BindingDraft) (account.Binding, error) {
	k := change(http.MethodPut, bindingPath(agent), version, draft)
	k.query = query("project", project)
	return as[account.Binding](ctx, c, k)
}

// DeleteBinding removes the binding of an agent in a project.
func (c *Client) DeleteBinding(ctx context.Context, project, agent string, version IfMatch) error {
	k := change(http.MethodDelete, bindingPath(agent), version, nil)
	k.query = query("project", project)
	return c.done(ctx, k)
}

func bindingPath(agent string) string {
	if agent == "" {
		agent = "*"
	}
	return path("bindings", agent)
}

// Servers returns every MCP server, sorted by name.
func (c *Client) Servers(ctx context.Context) ([]account.Server, error) {
	return items[account.Server](ctx, c, get(path("mcp-servers"), nil))
}

// Server returns one MCP server with its tools.
func (c *Client) Server(ctx context.Context, name string) (account.Server, error) {
	return as[account.Server](ctx, c, get(path("mcp-servers", name), nil))
}

// CreateServer registers an MCP server.
func (c *Client) CreateServer(ctx context.Context, draft account.ServerDraft) (account.Server, error) {
	return as[account.Server](ctx, c, call{method: http.MethodPost, path: path("mcp-servers"), body: draft})
}

// UpdateServer changes an MCP server; credentials that are not given stay.
func (c *Client) UpdateServer(ctx context.Context, name string, version IfMatch, draft account.ServerDraft) (account.Server, error) {
	return as[account.Server](ctx, c, change(http.MethodPut, path("mcp-servers", name), version, draft))
}

// DeleteServer removes an MCP server with its credentials.
func (c *Client) DeleteServer(ctx context.Context, name string, version IfMatch) error {
	return c.done(ctx, change(http.MethodDelete, path("mcp-servers", name), version, nil))
}

// RefreshServer asks an MCP server for its tools.
func (c *Client) RefreshServer(ctx context.Context, name string) (account.Server, error) {
	return as[account.Server](ctx, c, call{method: http.MethodPost, path: path("mcp-servers", name, "refresh"), again: true})
}

// AcceptTools pins tools of an MCP server as the caller saw them: hashes by name, "" for a tool that is gone.
func (c *Client) AcceptTools(ctx context.Context, name string, hashes map[string]string) (account.Server, error) {
	return as[account.Server](ctx, c, call{method: http.MethodPost, path: path("mcp-servers", name, "accept"), body: wire.Acceptance{Hashes: hashes}, again: true})
}
