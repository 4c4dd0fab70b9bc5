// Package hosttool lends a job the tools of whoever started it. The caller serves them as an MCP server at the other end
// of one connection; this package is the client of that server. What the model sees of a tool comes from the job
// document and never from the server, so that requests begin with the same bytes in every job and nothing waits for the
// connection: it is made in the background and awaited by the first call.
//
// Each call carries its key, the job and the id of the call, which stays the same when a call is made again. It carries
// nothing about what the job may do: the host knows which job is at the other end and decides by that. A host that is
// gone, slow or wrong makes calls fail and never the job.
//
// Besides calls the package holds what goes with lent tools: the check of the document (Check), the paragraph about
// research tools in the prompt (ResearchBlock), the comparison of what leaves with what was read (Leaks), and the
// verdicts on an answer (Session.Check). It knows no tool by name.
package hosttool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
)

// The keys of _meta that both sides of the connection use.
const (
	// MetaRun and MetaCallID are strings and together the key of a call.
	MetaRun    = "hozo/run"
	MetaCallID = "hozo/callId"
	// MetaSuspend is set on a result that is not there yet: an object with the string waitId.
	MetaSuspend = "hozo/suspend"
)

// The sizes that both sides keep to. A line above MaxLineBytes ends the connection, so that each side checks what it
// sends before it does.
const (
	// MaxArgumentBytes bounds the arguments of a call, as JSON.
	MaxArgumentBytes = 1 << 20
	// MaxResultBytes bounds the result of a call, as JSON.
	MaxResultBytes = 2 << 20
	// MaxLineBytes bounds one message of the protocol.
	MaxLineBytes = 4 << 20
)

const (
	// defaultTimeout is how long a call may be without an answer or progress.
	defaultTimeout = 60 * time.Second
	// maxTimeout is the longest time of one call, whatever progress it reports.
	maxTimeout = 10 * time.Minute
	// connectTimeout is how long the host may take to answer for the first time.
	connectTimeout = 30 * time.Second
	// writeGrace is how long the end of a call may wait for a host that does not read.
	writeGrace = time.Second
)

// ErrLost is the error of a Session whose host cannot be reached any more, or never could.
var ErrLost = errors.New("the connection to the host is lost")

// Config says what is lent. It must have passed Check.
type Config struct {
	// Run is the id of the job, one half of the key of every call.
	Run string
	// Entries are the tools for the model, in the order in which they are offered; see Granted.
	Entries []Entry
	// Timeout is how long a call may be without an answer or progress; 0 means 60 seconds. Ten times that, and 10 minutes
	// at most, is the limit of a call that reports progress.
	Timeout time.Duration
	// Version is what the host is told about this program; empty means "dev".
	Version string
	// Lost is called once, from another goroutine, when the host is lost before Close; nil means that nobody wants to know.
	Lost func(why error)
}

// Tool is a tool of the host.
type Tool struct {
	tool.Tool
	// Version, Idempotent and Egress are those of the entry.
	Version            string
	Idempotent, Egress bool
}

// Session is the connection of one job to its host. Its methods may be called by several goroutines at once.
type Session struct {
	conn    *closingConn
	config  Config
	timeout time.Duration
	tools   []Tool

	tokens    atomic.Int64
	reporters sync.Map // progress token (string) → func()

	// ready is closed when the host has answered, or is lost; session and failure are set by then.
	ready   chan struct{}
	session *mcp.ClientSession
	failure error
	// lost is closed when the connection has ended.
	lost   chan struct{}
	closed atomic.Bool
}

// Open takes conn over and connects to the host at its other end in the background: a Session exists at once, whether
// the host is there or not. The error is a *problem.Error if the entries have not passed Check; conn is then closed. The
// caller must close the session.
func Open(ctx context.Context, conn io.ReadWriteCloser, c Config) (*Session, error) {
	s := &Session{conn: &closingConn{ReadWriteCloser: conn}, config: c, timeout: c.Timeout, ready: make(chan struct{}), lost: make(chan struct{})}
	if s.timeout <= 0 {
		s.timeout = defaultTimeout
	}
	if err := s.declare(); err != nil {
		return nil, errors.Join(err, s.conn.Close())
	}
	go s.connect(context.WithoutCancel(ctx))
	return s, nil
}

// declare makes the tools.
func (s *Session) declare() error {
	var problems problem.List
	for i := range s.config.Entries {
		e := &s.config.Entries[i]
		made, err := tool.Raw(e.declaration(), s.runner(e))
		if err != nil {
			problems.Add("host-tool-invalid", fmt.Sprintf("/host/%d", i), "%v", err)
			continue
		}
		s.tools = append(s.tools, Tool{Tool: made, Version: e.Version, Idempotent: e.Idempotent, Egress: e.Egress})
	}
	return problems.Err("open host tools")
}

// connect makes the connection and watches it until it ends.
func (s *Session) connect(ctx context.Context) {
	defer close(s.lost)
	version := s.config.Version
	if version == "" {
		version = "dev"
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "hozo", Version: version}, &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ProgressNotificationHandler: s.progress,
		MultiRoundTrip:              &mcp.MultiRoundTripOptions{Disabled: true},
	})
	client.AddReceivingMiddleware(refuseRequests)
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	// A host that does not read would hold the first message for good.
	stop := context.AfterFunc(limited, func() { s.conn.Close() })
	s.session, s.failure = client.Connect(limited, &mcp.IOTransport{Reader: s.conn, Writer: s.conn, MaxLineLength: MaxLineBytes}, nil)
	stop()
	cancel()
	if s.failure != nil {
		s.conn.Close()
		close(s.ready)
		s.report(s.failure)
		return
	}
	close(s.ready)
	// What ended the connection is told in general terms only: the SDK does not always know.
	_ = s.session.Wait()
	s.conn.Close()
	s.report(ErrLost)
}

func (s *Session) report(why error) {
	if !s.closed.Load() && s.config.Lost != nil {
		s.config.Lost(why)
	}
}

// refuseRequests lets through what a client must answer and refuses everything else that a server may ask for.
func refuseRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		switch {
		case method == "ping", method == "notifications/progress":
			return next(ctx, method, request)
		case strings.HasPrefix(method, "notifications/"):
			return nil, nil
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "a job does not offer " + method}
	}
}

func (s *Session) progress(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
	if report, ok := s.reporters.Load(request.Params.ProgressToken); ok {
		report.(func())()
	}
}

// Tools returns the tools in the order of the entries. The slice is the caller's. It is the same before the host has
// answered, and after it is lost.
func (s *Session) Tools() []Tool { return slices.Clone(s.tools) }

// Close ends the connection and returns when nothing of it is left. Calls in flight fail, and the host sees the end of
// the connection.
func (s *Session) Close() {
	s.closed.Store(true)
	s.conn.Close()
	<-s.lost
}

// closingConn is a connection that is closed once, whoever does it first.
type closingConn struct {
	io.ReadWriteCloser
	once sync.Once
	err  error
}

// Close implements io.Closer.
func (c *closingConn) Close() error {
	c.once.Do(func() { c.err = c.ReadWriteCloser.Close() })
	return c.err
}
