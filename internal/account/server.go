package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool/mcptool"
)

// ServerSettings are what an administrator says about an MCP server, without credentials.
type ServerSettings struct {
	// TimeoutSec is how long a call may be without an answer or progress; 0 means 60 seconds.
	TimeoutSec float64 `json:"timeoutSec,omitempty"`
	// AllowedTools, by the server's own names, may run although the server does not claim that they only read.
	AllowedTools []string `json:"allowedTools,omitempty"`
	// Required makes a job fail if the server cannot be used.
	Required bool `json:"required,omitempty"`
	// AllowPrivate opens loopback and private addresses for this server; metadata services stay closed.
	AllowPrivate bool `json:"allowPrivate,omitempty"`
	// Disabled keeps the server out of jobs.
	Disabled bool `json:"disabled,omitempty"`
}

// Server is an MCP server as it is shown.
type Server struct {
	// Name matches [a-z][a-z0-9-]{0,31}; agents name the tools as mcp__<name>__<tool>.
	Name string `json:"name"`
	// URL is without its query, which may hold a key; HasQuery says that there is one.
	URL      string `json:"url"`
	HasQuery bool   `json:"hasQuery,omitempty"`
	// Headers are the names of the headers that are sent.
	Headers []string `json:"headers,omitempty"`
	ServerSettings
	// State is what the last refresh found, Reason why the server could not be used.
	State  ServerState `json:"state"`
	Reason string      `json:"reason,omitempty"`
	// CheckedAt is when that was, zero if never.
	CheckedAt time.Time `json:"checkedAt,omitzero"`
	// Tools are those of the last refresh that succeeded, and pinned ones that the server does not list any more.
	Tools     []ServerTool `json:"tools"`
	Version   int64        `json:"version"`
	CreatedAt time.Time    `json:"createdAt"`
	UpdatedAt time.Time    `json:"updatedAt"`

	sealed string
	listed []mcptool.Definition
	pins   map[string]pin
}

// ServerState says what is known of a server.
type ServerState string

// The states.
const (
	ServerUnchecked   ServerState = "unchecked"
	ServerReady       ServerState = "ready"
	ServerUnavailable ServerState = "unavailable"
)

// ServerDraft is a new MCP server or a changed one.
type ServerDraft struct {
	Name string `json:"name"`
	// URL may have a query, which is kept as a credential. In a change a URL without one keeps what there is.
	URL string `json:"url"`
	// Headers hold credentials; in a change the empty value of a header keeps what there is, and headers that are not named
	// are removed. A change of the address keeps nothing.
	Headers map[string]string `json:"headers,omitempty"`
	// RemoveQuery removes the query although none is given.
	RemoveQuery bool `json:"removeQuery,omitempty"`
	ServerSettings
}

// String shows the draft without its credentials.
func (d ServerDraft) String() string {
	bare, _ := splitQuery(d.URL)
	return fmt.Sprintf("{Name: %s, URL: %s, %d headers}", d.Name, bare, len(d.Headers))
}

// GoString is String.
func (d ServerDraft) GoString() string { return d.String() }

// serverConfig is what the column config holds.
type serverConfig struct {
	URL      string   `json:"url"`
	HasQuery bool     `json:"hasQuery,omitempty"`
	Headers  []string `json:"headers,omitempty"`
	ServerSettings
}

func serverPlace(tenant, name string) secret.Place {
	return secret.Place{Tenant: tenant, Table: "mcp_servers", ID: name, Field: "credentials"}
}

// splitQuery divides an address before its query, and leaves out whatever else may hold a credential.
func splitQuery(text string) (bare, query string) {
	bare, query, _ = strings.Cut(text, "?")
	if u, err := url.Parse(bare); err == nil && u.User != nil {
		u.User = nil
		bare = u.String()
	}
	return bare, query
}

// CreateServer registers an MCP server. Nothing is sent to it; Refresh does that. Errors are a *problem.Error of kind
// Invalid with every problem, and store.ErrExists.
func (s *Service) CreateServer(ctx context.Context, tenant string, draft ServerDraft) (Server, error) {
	now := s.moment()
	server := Server{Name: draft.Name, State: ServerUnchecked, Version: 1, CreatedAt: now, UpdatedAt: now, Tools: []ServerTool{}}
	if err := s.prepareServer(&server, tenant, draft, Server{}, credentials{}); err != nil {
		return Server{}, err
	}
	if err := s.db.Append(ctx, func(tx *store.Tx) error { return insertServer(ctx, tx, tenant, server) }); err != nil {
		return Server{}, err
	}
	return server, nil
}

// UpdateServer changes an MCP server whose current version is the one given; the name stays. A change of the address
// forgets the tools and their pins. Errors are those of CreateServer, store.ErrNotFound and store.ErrStale.
func (s *Service) UpdateServer(ctx context.Context, tenant, name string, version int64, draft ServerDraft) (Server, error) {
	var server Server
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		old, err := serverByName(ctx, tx, tenant, name)
		if err != nil {
			return err
		}
		if old.Version != version {
			return store.ErrStale
		}
		held, err := unseal(s.keys, serverPlace(tenant, name), old.sealed)
		if err != nil && (len(missing(draft.Headers)) > 0 || old.HasQuery && !draft.RemoveQuery && !strings.Contains(draft.URL, "?")) {
			return err
		}
		server = old
		server.UpdatedAt, draft.Name = s.moment(), name
		if err := s.prepareServer(&server, tenant, draft, old, held); err != nil {
			return err
		}
		return updateServer(ctx, tx, tenant, &server)
	})
	server.judge()
	return server, err
}

// prepareServer checks a draft and makes server of it.
func (s *Service) prepareServer(server *Server, tenant string, draft ServerDraft, old Server, held credentials) error {
	bare, query := splitQuery(draft.URL)
	given := credentials{Headers: maps.Clone(draft.Headers), Query: query}
	moved := old.Name != "" && originOf(old.URL) != originOf(bare)
	if !moved {
		keepValues(given.Headers, held.Headers)
		if query == "" && !draft.RemoveQuery {
			given.Query = held.Query
		}
	}
	var problems problem.List
	// The address goes to the check as it was given: what it may not hold must not be lost first.
	full := draft.URL
	if query == "" {
		full = joinQuery(draft.URL, given.Query)
	}
	for _, p := range mcptool.Check([]mcptool.Server{ready(server.Name, full, given.Headers, draft.ServerSettings, nil)}, nil, draft.AllowPrivate) {
		p.Pointer = strings.TrimPrefix(p.Pointer, "/mcp/servers/0")
		problems = append(problems, p)
	}
	hint := "give the value"
	if moved && !held.empty() {
		hint = "the address has changed: give the value again"
	}
	for _, name := range missing(given.Headers) {
		problems.AddHint("required", "/headers/"+escape(name), hint, "the header has no value")
	}
	if err := problems.Err("save the MCP server"); err != nil {
		return err
	}
	server.URL, server.HasQuery, server.ServerSettings = bare, given.Query != "", draft.ServerSettings
	server.Headers = slices.Sorted(maps.Keys(given.Headers))
	if moved {
		server.State, server.Reason, server.CheckedAt, server.listed, server.pins = ServerUnchecked, "", time.Time{}, nil, nil
	}
	var err error
	server.sealed, err = given.seal(s.keys, serverPlace(tenant, draft.Name))
	return err
}

func joinQuery(bare, query string) string {
	if query == "" {
		return bare
	}
	return bare + "?" + query
}

func ready(name, address string, headers map[string]string, settings ServerSettings, pins map[string]string) mcptool.Server {
	return mcptool.Server{Name: name, URL: address, Headers: headers, Timeout: time.Duration(settings.TimeoutSec * float64(time.Second)),
		AllowedTools: settings.AllowedTools, Required: settings.Required, Pins: pins}
}

// Server returns an MCP server.
func (s *Service) Server(ctx context.Context, tenant, name string) (Server, error) {
	server, err := serverByName(ctx, s.db, tenant, name)
	server.judge()
	return server, err
}

// Servers returns every MCP server of a tenant, sorted by name.
func (s *Service) Servers(ctx context.Context, tenant string) ([]Server, error) {
	servers, err := listServers(ctx, s.db, tenant)
	for i := range servers {
		servers[i].judge()
	}
	return servers, err
}

// DeleteServer removes an MCP server with its credentials. Agents that name it become invalid; that is for the catalog to
// say. Errors are store.ErrNotFound and store.ErrStale.
func (s *Service) DeleteServer(ctx context.Context, tenant, name string, version int64) error {
	return s.db.Write(ctx, func(tx *store.Tx) error {
		server, err := serverByName(ctx, tx, tenant, name)
		if err != nil {
			return err
		}
		if server.Version != version {
			return store.ErrStale
		}
		return deleteServer(ctx, tx, tenant, name, version)
	})
}

// Specs are MCP servers ready for the spec of a job.
type Specs struct {
	Servers []job.MCPServer
	// AllowPrivate says that one of them may be at a private address, which the runtime of the job must then open.
	AllowPrivate bool
}

// Specs returns the named servers with their credentials and pins, in the order of the names. Names that are not
// registered and servers that are switched off are problems, all of them at once, in a *problem.Error of kind NotFound.
func (s *Service) Specs(ctx context.Context, tenant string, names []string) (Specs, error) {
	specs := Specs{Servers: []job.MCPServer{}}
	var missing problem.List
	for _, name := range names {
		server, err := serverByName(ctx, s.db, tenant, name)
		switch {
		case errors.Is(err, store.ErrNotFound):
			missing.Add("unknown-server", "", "there is no MCP server %q", shorten(name))
			continue
		case err != nil:
			return Specs{}, err
		case server.Disabled:
			missing.Add("disabled-server", "", "the MCP server %q is switched off", name)
			continue
		}
		held, err := unseal(s.keys, serverPlace(tenant, name), server.sealed)
		if err != nil {
			return Specs{}, err
		}
		specs.AllowPrivate = specs.AllowPrivate || server.AllowPrivate
		specs.Servers = append(specs.Servers, job.MCPServer{Name: name, URL: joinQuery(server.URL, held.Query), Headers: held.Headers,
			TimeoutSec: server.TimeoutSec, AllowedTools: server.AllowedTools, Required: server.Required, Pins: server.hashes()})
	}
	if len(missing) > 0 {
		return Specs{}, &problem.Error{Kind: problem.NotFound, Op: "prepare MCP servers", Problems: missing}
	}
	return specs, nil
}

// decodeServer fills a server from its columns.
func decodeServer(server *Server, config, pins, tools string) error {
	var c serverConfig
	for _, column := range []struct {
		text string
		into any
	}{{config, &c}, {pins, &server.pins}, {tools, &server.listed}} {
		if err := json.Unmarshal([]byte(column.text), column.into); err != nil {
			return fmt.Errorf("read the MCP server %q: %w", server.Name, err)
		}
	}
	server.URL, server.HasQuery, server.Headers, server.ServerSettings = c.URL, c.HasQuery, c.Headers, c.ServerSettings
	return nil
}

// encode returns the columns of a server.
func (server *Server) encode() (config, pins, tools string, err error) {
	texts := make([]string, 3)
	for i, value := range []any{serverConfig{server.URL, server.HasQuery, server.Headers, server.ServerSettings}, server.pins, server.listed} {
		text, err := json.Marshal(value)
		if err != nil {
			return "", "", "", err
		}
		texts[i] = string(text)
	}
	return texts[0], texts[1], texts[2], nil
}
