// Package api is the agent's HTTP surface: starting, watching, stopping and reading runs, looking after events and
// lessons, and the same agent as tools of an MCP server at /mcp. Everything but /healthz needs the API key. Errors are
// problem documents (RFC 9457) that list every problem of a request at once; what goes wrong inside is logged and not
// shown.
package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/hozo-run/hozo/examples/events-calendar/calendar"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
	"github.com/hozo-run/hozo/examples/events-calendar/runner"
)

// Agent is what the surface needs of a runner.
type Agent interface {
	Submit(ctx context.Context, q runner.Request) (run.Run, error)
	Abort(ctx context.Context, id, cause string) error
}

// Config is what the surface is built from. All fields are required unless they say otherwise.
type Config struct {
	Agent    Agent
	Runs     *run.Store
	Calendar *calendar.Store
	Memory   *memory.Store
	// Key is the API key, of at least MinKey characters.
	Key string
	// Version is what MCP clients are told about this program; empty means "dev".
	Version string
	// Heartbeat is how often a quiet stream gets a comment, so that nobody on the way takes it for dead; 0 means 15 s.
	Heartbeat time.Duration
	// Log gets what goes wrong inside; nil drops it.
	Log *slog.Logger
}

// MinKey is the length of the shortest API key.
const MinKey = 16

// New returns the handler of the surface.
func New(c Config) (http.Handler, error) {
	if c.Agent == nil || c.Runs == nil || c.Calendar == nil || c.Memory == nil {
		return nil, errors.New("api: config needs Agent, Runs, Calendar and Memory")
	}
	if len(c.Key) < MinKey {
		return nil, errors.New("api: the API key is too short")
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = 15 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &surface{Config: c, key: sha256.Sum256([]byte(c.Key))}
	return s.handler(), nil
}

// surface serves the routes.
type surface struct {
	Config
	key [sha256.Size]byte
	mux *http.ServeMux
}

// endpoint answers a request or returns why it cannot; the error is then the whole answer.
type endpoint func(w http.ResponseWriter, r *http.Request) error

// routes are all endpoints but /mcp and /healthz, by pattern.
func (s *surface) routes() map[string]endpoint {
	return map[string]endpoint{
		"POST /run":                 s.startRun,
		"GET /runs":                 s.listRuns,
		"GET /runs/{id}":            s.showRun,
		"GET /runs/{id}/steps":      s.listSteps,
		"GET /runs/{id}/steps/{n}":  s.showStep,
		"GET /runs/{id}/stm":        s.showDocument,
		"GET /runs/{id}/stream":     s.stream,
		"POST /runs/{id}/abort":     s.abortRun,
		"GET /runs/{id}/artifact":   s.artifact,
		"GET /events":               s.listEvents,
		"GET /events/{id}":          s.showEvent,
		"PATCH /events/{id}":        s.changeEvent,
		"POST /events/{id}/approve": s.decide(calendar.Approved),
		"POST /events/{id}/reject":  s.decide(calendar.Rejected),
		"GET /memory":               s.listLessons,
		"POST /memory":              s.addLesson,
		"GET /memory/search":        s.searchLessons,
		"GET /memory/{id}":          s.showLesson,
		"PATCH /memory/{id}":        s.changeLesson,
		"DELETE /memory/{id}":       s.deleteLesson,
	}
}

func (s *surface) handler() http.Handler {
	s.mux = http.NewServeMux()
	for pattern, e := range s.routes() {
		s.mux.HandleFunc(pattern, s.serve(e))
	}
	s.mux.Handle("/mcp", s.mcpHandler())
	s.mux.HandleFunc("/", s.serve(s.noRoute))

	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	open.Handle("/", s.authenticated(s.mux))
	return s.recovered(open)
}

// serve makes a handler of an endpoint.
func (s *surface) serve(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := e(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// recovered makes a panic the failure of one request.
func (s *surface) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		defer func() {
			fault := recover()
			if fault == http.ErrAbortHandler {
				panic(fault)
			}
			if fault != nil {
				s.Log.Error("a request failed inside", "method", r.Method, "path", r.URL.Path, "fault", fault)
				writeProblem(w, problemDocument{Status: http.StatusInternalServerError, Detail: "the request failed inside"})
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// authenticated lets only requests with the API key pass. Digests are compared, so that the time of an answer tells
// neither the key nor its length.
func (s *surface) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given := sha256.Sum256([]byte(strings.TrimSpace(key)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(given[:], s.key[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="events-calendar"`)
			writeProblem(w, problemDocument{Status: http.StatusUnauthorized, Detail: "send the API key as Authorization: Bearer KEY"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// noRoute answers for paths that nobody serves, and for methods that a path does not have.
func (s *surface) noRoute(w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeProblem(w, problemDocument{Status: http.StatusMethodNotAllowed, Detail: "this path takes " + strings.Join(allowed, ", ")})
		return nil
	}
	writeProblem(w, problemDocument{Status: http.StatusNotFound, Detail: "there is nothing at " + r.URL.Path})
	return nil
}
