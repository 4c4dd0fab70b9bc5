package mcptool

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxPages and maxTools bound the list of one server.
	maxPages = 100
	maxTools = 1000
	// maxFailures in a row take a server out of the job.
	maxFailures = 3
)

// server is one MCP server of a job: its connection, which may be opened anew, and its tools, which stay those of the
// first listing.
type server struct {
	all     *Config
	config  *Server
	wish    *wish
	wire    *wire
	client  *mcp.Client
	origin  string
	secrets secrets
	timeout time.Duration
	notices []Notice
	// opening is held by whoever opens a session.
	opening chan struct{}

	tokens    atomic.Int64
	reporters sync.Map       // progress token (string) → func()
	closers   sync.WaitGroup // sessions that are being ended
	telling   sync.WaitGroup // cancelled calls of which the server has not been told yet

	mu       sync.Mutex
	session  *mcp.ClientSession // nil when a new one is needed
	revision string             // of the protocol, once known
	hashes   map[string]string  // definition by own name, as listed last
	dropped  [][2]string        // name of a tool that the SDK left out, and why
	tools    []Tool
	failures int
	down     string // why the server is not in use, "" if it is
	closed   bool
}

func newServer(c *Config, s *Server, w *wish) *server {
	srv := &server{all: c, config: s, wish: w, wire: newWire(c, s), origin: originOf(s.URL), secrets: newSecrets(s.Headers, s.URL),
		timeout: s.Timeout, opening: make(chan struct{}, 1)}
	if srv.timeout == 0 {
		srv.timeout = defaultTimeout
	}
	version := c.Version
	if version == "" {
		version = "dev"
	}
	options := &mcp.ClientOptions{
		Logger:                      slog.New(&dropLog{server: srv}),
		Capabilities:                &mcp.ClientCapabilities{},
		ProgressNotificationHandler: srv.progress,
		MultiRoundTrip:              &mcp.MultiRoundTripOptions{Disabled: c.Elicit == nil},
	}
	if c.Elicit != nil {
		options.ElicitationHandler = srv.elicit
	}
	srv.client = mcp.NewClient(&mcp.Implementation{Name: "hozo", Version: version}, options)
	srv.client.AddReceivingMiddleware(srv.refuseRequests)
	return srv
}

// dropLog turns what the SDK logs when it leaves out a tool of a list into notices; everything else is dropped.
type dropLog struct{ server *server }

// Enabled takes errors only.
func (d *dropLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle notes a tool that was left out.
func (d *dropLog) Handle(_ context.Context, record slog.Record) error {
	name, why := "", ""
	record.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "tool":
			name = a.Value.String()
		case "error":
			why = a.Value.String()
		}
		return true
	})
	if name != "" {
		d.server.mu.Lock()
		defer d.server.mu.Unlock()
		d.server.dropped = append(d.server.dropped, [2]string{name, why})
	}
	return nil
}

// WithAttrs adds nothing.
func (d *dropLog) WithAttrs([]slog.Attr) slog.Handler { return d }

// WithGroup adds nothing.
func (d *dropLog) WithGroup(string) slog.Handler { return d }

// refuseRequests lets through what a client must answer and refuses everything else that a server may ask for.
func (srv *server) refuseRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		switch {
		case method == "ping", method == "notifications/progress", method == "elicitation/create" && srv.all.Elicit != nil:
			return next(ctx, method, request)
		case strings.HasPrefix(method, "notifications/"):
			return nil, nil
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not offer " + method}
	}
}

func (srv *server) progress(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
	// Ours are texts. What a server sends may be anything, also something that cannot be a key.
	token, ok := request.Params.ProgressToken.(string)
	if !ok {
		return
	}
	if report, known := srv.reporters.Load(token); known {
		report.(func())()
	}
}

func (srv *server) elicit(ctx context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	message, _ := clean(request.Params.Message)
	answer, ok := srv.all.Elicit(ctx, Question{Server: srv.config.Name, Message: message, Schema: request.Params.RequestedSchema})
	if !ok {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	return &mcp.ElicitResult{Action: "accept", Content: answer}, nil
}

// start opens the server for the first time and makes its tools.
func (srv *server) start(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { srv.wire.drop(false) })
	defer stop()
	session, definitions, err := srv.open(ctx, "")
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		srv.down = srv.secrets.remove(reason(err))
		return
	}
	names := assignNames(srv.config.Name, ownNames(definitions))
	l := &listing{server: srv}
	for _, d := range srv.dropped {
		l.withhold(d[0], d[1])
	}
	srv.hashes = hashAll(definitions)
	l.offer(definitions, names)
	srv.session, srv.tools, srv.notices = session, l.tools, l.notices
}

func ownNames(definitions []*mcp.Tool) []string {
	names := make([]string, len(definitions))
	for i, t := range definitions {
		names[i] = t.Name
	}
	return names
}

// hashAll leaves out what cannot be hashed, so that it matches no pin and no earlier definition.
func hashAll(definitions []*mcp.Tool) map[string]string {
	hashes := make(map[string]string, len(definitions))
	for _, t := range definitions {
		if hash, err := definitionHash(t); err == nil {
			hashes[t.Name] = hash
		}
	}
	return hashes
}

// open connects and reads the whole list of tools, sorted by name. revision is what the server spoke before, if known.
func (srv *server) open(ctx context.Context, revision string) (*mcp.ClientSession, []*mcp.Tool, error) {
	// Without somebody to answer there is nothing to wait for between calls. With somebody, servers of the earlier
	// revisions may send their question over a stream of its own.
	transport := &mcp.StreamableClientTransport{
		Endpoint:             srv.config.URL,
		HTTPClient:           &http.Client{Transport: srv.wire, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		DisableStandaloneSSE: srv.all.Elicit == nil,
		MaxEventSize:         maxBody,
	}
	srv.mu.Lock()
	srv.dropped = nil
	srv.mu.Unlock()
	session, err := srv.client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return nil, nil, err
	}
	definitions, err := listTools(ctx, session)
	if err != nil {
		srv.discard(session)
		return nil, nil, err
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.revision = session.InitializeResult().ProtocolVersion
	return session, definitions, nil
}

// listTools reads every page. A cursor that comes again, and a list that is too long, end it with an error.
func listTools(ctx context.Context, session *mcp.ClientSession) ([]*mcp.Tool, error) {
	var all []*mcp.Tool
	cursors := map[string]bool{}
	for cursor := ""; ; {
		page, err := session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			if declares := session.InitializeResult().Capabilities; cursor == "" && rpcError(err) != nil && (declares == nil || declares.Tools == nil) {
				return nil, nil // a server that offers no tools does not know the method
			}
			return nil, fmt.Errorf("list tools: %w", err)
		}
		all = append(all, page.Tools...)
		cursor = page.NextCursor
		if cursor == "" {
			break
		}
		if cursors[cursor] || len(cursors) >= maxPages || len(all) > maxTools {
			return nil, errPages
		}
		cursors[cursor] = true
	}
	if len(all) > maxTools {
		return nil, errPages
	}
	slices.SortStableFunc(all, func(a, b *mcp.Tool) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// list returns copies of the tools in use.
func (srv *server) list() []Tool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.closed || srv.down != "" {
		return nil
	}
	copies := make([]Tool, len(srv.tools))
	for i, t := range srv.tools {
		t.InputSchema = bytes.Clone(t.InputSchema)
		t.CommandArguments = slices.Clone(t.CommandArguments)
		copies[i] = t
	}
	return copies
}

// lostError is the answer of a server that was taken out or closed.
type lostError struct{ why string }

func (e *lostError) Error() string { return e.why }

// current returns the session to use, opening one if there is none or if the one in hand is stale.
func (srv *server) current(ctx context.Context, stale *mcp.ClientSession) (*mcp.ClientSession, error) {
	session, err := srv.usable(stale)
	if session != nil || err != nil {
		return session, err
	}
	select {
	case srv.opening <- struct{}{}:
		defer func() { <-srv.opening }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if session, err := srv.usable(stale); session != nil || err != nil {
		return session, err
	}
	limited, cancel := context.WithTimeout(ctx, srv.all.Deadline)
	defer cancel()
	srv.mu.Lock()
	revision := srv.revision
	srv.mu.Unlock()
	session, definitions, err := srv.open(limited, revision)
	if err != nil {
		return nil, err
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.closed {
		srv.discard(session)
		return nil, &lostError{"the job has ended"}
	}
	srv.session, srv.hashes = session, hashAll(definitions)
	return session, nil
}

// usable returns the session in hand unless it is the stale one, which it gives up.
func (srv *server) usable(stale *mcp.ClientSession) (*mcp.ClientSession, error) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	switch {
	case srv.closed:
		return nil, &lostError{"the job has ended"}
	case srv.down != "":
		return nil, &lostError{srv.down}
	}
	if stale != nil && srv.session == stale {
		srv.session = nil
		srv.discard(stale)
	}
	return srv.session, nil
}

// discard closes a session that is not used any more, without waiting.
func (srv *server) discard(session *mcp.ClientSession) {
	srv.closers.Go(func() { _ = session.Close() }) // the server may not even know it any more
}

// succeeded and failed count failures in a row; too many take the server out.
func (srv *server) succeeded() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.failures = 0
}

func (srv *server) failed(err error) {
	srv.mu.Lock()
	srv.failures++
	lost := srv.failures == maxFailures && srv.down == "" && !srv.closed
	if lost {
		srv.down = srv.secrets.remove(fmt.Sprintf("it failed %d times in a row, the last time by %s", maxFailures, reason(err)))
	}
	down := srv.down
	srv.mu.Unlock()
	if lost && srv.all.Notify != nil {
		srv.all.Notify(Notice{Code: "mcp-lost", Server: srv.config.Name,
			Message: fmt.Sprintf("the MCP server %q is not used any more in this job: %s", srv.config.Name, down)})
	}
}

// close ends the session within closeGrace, then every connection. It waits for a session that is being opened, and keeps
// others from being opened.
func (srv *server) close() {
	srv.mu.Lock()
	session := srv.session
	srv.session, srv.closed = nil, true
	srv.mu.Unlock()
	timer := time.AfterFunc(closeGrace, func() { srv.wire.drop(true) })
	defer timer.Stop()
	srv.telling.Wait()
	if session != nil {
		srv.discard(session)
	}
	srv.opening <- struct{}{}
	srv.closers.Wait()
	srv.wire.drop(true)
}
