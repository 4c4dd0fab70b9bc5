// Package mcptool lends the tools of MCP servers to a job. Connect opens a session to every server that the agent names,
// over streamable HTTP and in whichever revision of the protocol the server speaks, and makes one tool of each definition
// that may be used: the server claims that it only reads, or the operator allowed it by name.
//
// Everything that a server says is data of a stranger. Names are mapped to a form that cannot stand for a tool of the
// kernel, descriptions and schemas are cleaned and bounded, results are cut, instructions of a server are dropped, and
// its own requests (sampling, roots, questions to a person) are refused. Headers reach the server's own origin only and
// no text that leaves this package. Connections go to addresses that the dialer has checked after name resolution.
//
// A call that may have changed something is never repeated. When a server forgets the session, only calls that read or
// that the server declares idempotent are sent again, once; for any other the model is told that the outcome is unknown.
package mcptool

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
)

const (
	// defaultDeadline bounds connecting to all servers and reading their lists.
	defaultDeadline = 10 * time.Second
	// defaultTimeout is how long a call may be without progress.
	defaultTimeout = 60 * time.Second
	// maxTimeout is the longest time of one call, whatever progress it reports.
	maxTimeout = 10 * time.Minute
	// closeGrace is how long servers may take to acknowledge the end of their session.
	closeGrace = 2 * time.Second
)

// Server is one MCP server, ready to use.
type Server struct {
	// Name is the label under which the agent names the server: [a-z][a-z0-9-]{0,31}.
	Name string
	// URL is the endpoint, http or https.
	URL string
	// Headers are sent with every request to the origin of URL. Their values are secrets.
	Headers map[string]string
	// Timeout is how long a call may be without an answer or progress; 0 means 60 seconds. Ten times that, and 10 minutes
	// at most, is the limit of a call that reports progress.
	Timeout time.Duration
	// AllowedTools, by the server's own names, may run although the server does not claim that they only read.
	AllowedTools []string
	// Required makes Connect fail if the server cannot be used.
	Required bool
	// Pins hold the expected DefinitionHash by the server's own name of a tool. A tool that differs is withheld.
	Pins map[string]string
}

// Config says which servers to connect and how. It must have passed Check.
type Config struct {
	Servers []Server
	// Allow is the allowlist of the agent. Servers that it does not name are not contacted.
	Allow []string
	// AllowPrivate opens loopback and private addresses. Link-local and metadata addresses stay closed.
	AllowPrivate bool
	// Deadline bounds Connect; 0 means 10 seconds.
	Deadline time.Duration
	// RootCAs verify the certificates of servers; nil means those of the system.
	RootCAs *x509.CertPool
	// Version is what servers are told about this program; empty means "dev".
	Version string
	// TraceParent returns the W3C traceparent to send with a request, "" for none. Nil sends none.
	TraceParent func(ctx context.Context) string
	// Notify takes notices about servers after Connect has returned; several goroutines may call it. Nil drops them.
	Notify func(Notice)
	// Elicit answers questions that a server asks for a person to answer. Nil refuses them: the servers are told that
	// nobody is there.
	Elicit func(ctx context.Context, question Question) (answer map[string]any, ok bool)

	// dial replaces the dialer in tests that run without a network.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Question is what a server wants to ask a person in the middle of a call.
type Question struct {
	Server, Message string
	// Schema is the JSON Schema of the answer as data, nil if the server named none.
	Schema any
}

// Notice is something that people should know about a server. Message holds no secrets.
type Notice struct {
	// Code is one of mcp-unavailable, mcp-tool-withheld, mcp-tool-missing, mcp-text-cleaned, mcp-schema-changed and
	// mcp-lost.
	Code, Server, Message string
}

// Tool is a tool of a server.
type Tool struct {
	tool.Tool
	// Server and Original are the names by which the call goes out; Name is what the model knows.
	Server, Original string
	// ReadOnly says that the server claims that the tool only reads, so that scripts may call it.
	ReadOnly bool
	// Hash is the DefinitionHash of the tool as it was listed.
	Hash string
}

// UnavailableError reports required servers that cannot be used.
type UnavailableError struct {
	// Servers are their names, in order.
	Servers []string
	// Reasons say for each in one line why, without secrets.
	Reasons []string
}

// Error names every server with its reason.
func (e *UnavailableError) Error() string {
	lines := make([]string, len(e.Servers))
	for i, name := range e.Servers {
		lines[i] = fmt.Sprintf("the required MCP server %q cannot be used: %s", name, e.Reasons[i])
	}
	return strings.Join(lines, "; ")
}

// Session is the connections of one job. Its methods may be called by several goroutines at once.
type Session struct {
	servers []*server
	closed  sync.Once
}

// Connect opens the servers that c.Allow names, all at once, and returns their tools in a Session together with notices
// about whatever is missing. A server that cannot be used is an *UnavailableError if it is required, else a notice. The
// caller must close the session. An error of another kind is that of ctx, or a *problem.Error if c has not passed Check.
func Connect(ctx context.Context, c Config) (*Session, []Notice, error) {
	if err := Check(c.Servers, c.Allow, c.AllowPrivate).Err("connect to MCP servers"); err != nil {
		return nil, nil, err
	}
	if c.Deadline <= 0 {
		c.Deadline = defaultDeadline
	}
	s := &Session{}
	for i := range c.Servers {
		if wish := wishFor(c.Servers[i].Name, c.Allow); wish != nil {
			s.servers = append(s.servers, newServer(&c, &c.Servers[i], wish))
		}
	}
	limited, cancel := context.WithTimeout(ctx, c.Deadline)
	defer cancel()
	var group sync.WaitGroup
	for _, srv := range s.servers {
		group.Go(func() { srv.start(limited) })
	}
	group.Wait()
	return s.settle(ctx)
}

// settle collects what the servers reported while they were opened, in the order of the document.
func (s *Session) settle(ctx context.Context) (*Session, []Notice, error) {
	var notices []Notice
	missing := &UnavailableError{}
	for _, srv := range s.servers {
		notices = append(notices, srv.notices...)
		if srv.down == "" {
			continue
		}
		if srv.config.Required {
			missing.Servers = append(missing.Servers, srv.config.Name)
			missing.Reasons = append(missing.Reasons, srv.down)
			continue
		}
		notices = append(notices, Notice{Code: "mcp-unavailable", Server: srv.config.Name, Message: fmt.Sprintf(
			"the MCP server %q cannot be used in this job, its tools are missing: %s", srv.config.Name, srv.down)})
	}
	switch {
	case ctx.Err() != nil:
		s.Close()
		return nil, notices, ctx.Err()
	case len(missing.Servers) > 0:
		s.Close()
		return nil, notices, missing
	}
	return s, notices, nil
}

// Tools returns the tools of all servers that are in use, sorted by name. The list and all it holds belong to the caller.
// It is empty after Close.
func (s *Session) Tools() []Tool {
	var all []Tool
	for _, srv := range s.servers {
		all = append(all, srv.list()...)
	}
	slices.SortFunc(all, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Close ends the sessions and every connection. It takes two seconds at most, whatever the servers do.
func (s *Session) Close() {
	s.closed.Do(func() {
		var group sync.WaitGroup
		for _, srv := range s.servers {
			group.Go(srv.close)
		}
		group.Wait()
	})
}

// kind makes the error one that callers know how to treat.
func (e *UnavailableError) Unwrap() error {
	return &problem.Error{Kind: problem.Unavailable, Op: "connect to MCP servers"}
}
