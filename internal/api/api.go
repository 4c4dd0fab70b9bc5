// Package api is the HTTP API of the server: agents and skills, accounts, runs with their events, people and keys. Its
// routes are declared with the types that their bodies have, and the OpenAPI document follows from them. One table says who
// may use which route; a route that the table does not have is closed.
//
// There is one convention. Errors are application/problem+json with every fault of the request; a request that is wrong is
// 400. A change of a record names the version that it was made from in If-Match: 428 without, 412 if another was faster.
// Lists are {items, nextCursor}. People have a session cookie and send a CSRF token with each change, programs have an API
// key in the Authorization header. What belongs to another tenant, or to a project that the caller may not see, answers as
// if it did not exist.
//
// The package decides nothing about agents or runs: it asks the services in its Config.
package api

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/hozo-run/hozo/internal/access"
	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/run"
)

// Config is what a Handler is made of.
type Config struct {
	// Access knows people and keys; it is required, as are all of the services.
	Access *access.Service
	// Accounts keeps providers, bindings and MCP servers.
	Accounts *account.Service
	// Runs keeps runs and their events.
	Runs *run.Store
	// Orchestrator starts and ends runs.
	Orchestrator Orchestrator
	// Agents keeps agents and shared skills.
	Agents *builder.Service
	// Projects keeps projects and their sources.
	Projects *project.Service
	// Artifacts keeps what runs left.
	Artifacts *artifact.Store
	// Tenant is that of people who sign in; "" means access.DefaultTenant.
	Tenant string
	// Secure says that people reach the server by https, through TLS of its own or of a proxy. Cookies are then sent by
	// https only.
	Secure bool
	// Proxies are the networks of proxies whose X-Forwarded-For is believed; nil believes nobody.
	Proxies []netip.Prefix
	// Ready says whether the server can work; nil means that it can.
	Ready func() error
	// Ping is the time after which a silent stream of events gets a comment; zero means 15 seconds.
	Ping time.Duration
	// WriteTimeout is how long a reader of a stream may take nothing before it is cut off; zero means 30 seconds.
	WriteTimeout time.Duration
	// Log is told about faults of the server; nil means slog.Default.
	Log *slog.Logger
	// Version is that of the program.
	Version string
}

func (c Config) withDefaults() Config {
	if c.Tenant == "" {
		c.Tenant = access.DefaultTenant
	}
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Ping == 0 {
		c.Ping = 15 * time.Second
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Handler serves the API. It is safe for concurrent use.
type Handler struct {
	config Config
	api    huma.API
	mux    *http.ServeMux
	rules  map[string]rule
	chain  http.Handler

	drain   sync.Once
	drained chan struct{}
	// streams counts those that are open.
	streams atomic.Int64
}

// New returns a handler for every path of the API, "/livez", "/readyz" and "/openapi.json". It does no input or output.
func New(config Config) (*Handler, error) {
	if config.Access == nil || config.Accounts == nil || config.Runs == nil || config.Orchestrator == nil || config.Agents == nil ||
		config.Projects == nil || config.Artifacts == nil {
		return nil, errors.New("the API needs every service of its Config")
	}
	return build(config), nil
}

// build makes the routes; without services they can be described and not used.
func build(config Config) *Handler {
	useProblems()
	h := &Handler{config: config.withDefaults(), mux: http.NewServeMux(), rules: rules(), drained: make(chan struct{})}
	h.api = humago.New(h.mux, describe(h.config.Version))
	h.api.UseMiddleware(h.guard)
	h.health()
	h.sessions()
	h.people()
	h.keys()
	h.audit()
	h.providers()
	h.bindings()
	h.servers()
	h.agents()
	h.skills()
	h.projects()
	h.artifacts()
	h.runs()
	h.records()
	h.events()
	h.mux.HandleFunc("/", h.unknown)
	h.chain = h.protect(h.identify(h.mux))
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.chain.ServeHTTP(w, r) }

// Drain ends every stream of events, so that a server that shuts down need not wait for them. Their readers come back
// elsewhere and miss nothing. Streams that begin later end at once.
func (h *Handler) Drain() { h.drain.Do(func() { close(h.drained) }) }

// Streams is how many streams of events are open.
func (h *Handler) Streams() int { return int(h.streams.Load()) }

// Server returns an HTTP server for the handler with limits on time and size. Its Shutdown drains streams.
func (h *Handler) Server() *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(h.config.Log.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(h.Drain)
	return server
}
