// Package hostserver lends tools to jobs: it is the other end of the connection that a job calls its host. A program that
// starts jobs makes one Server with all of its tools, writes the declarations of those that a job may use into the job's
// document, and connects the server once for each job.
//
// Who is calling is known by the connection and never by what a call says. The context given to Connect reaches every
// tool, so that whatever the program knows about a job travels there; a tool that was not lent to a job does not exist
// for it. A call says its id, which together with the job's is the key under which a tool that must not act twice
// remembers what it did.
//
// Arguments are coerced and validated before a tool sees them, results are bounded before they are sent, and a panic of
// a tool is the failure of one call. A job that ends, is aborted or is killed ends the contexts of its calls.
package hostserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/hosttool"
)

// Tool is a tool to lend. New makes one.
type Tool struct {
	// Declaration is what the documents of jobs say about the tool.
	Declaration job.HostTool
	// Run does the work of one call, with arguments that fit the schema of Declaration. It must return when ctx ends, and
	// several goroutines may call it at once. ctx holds the values of the context of Server.Connect.
	Run func(ctx context.Context, call *Call) Result
}

// New makes a tool whose arguments decode into A.
func New[A any](declaration job.HostTool, run func(ctx context.Context, call *Call, arguments A) Result) Tool {
	return Tool{Declaration: declaration, Run: func(ctx context.Context, call *Call) Result {
		var a A
		if err := json.Unmarshal(call.Arguments, &a); err != nil {
			return Errorf("the arguments do not fit: %v", err)
		}
		return run(ctx, call, a)
	}}
}

// Call is one call of a job.
type Call struct {
	// Run is the job that calls, as Connect was told, and ID the id of the call in it. Together they are the key of the
	// call: a job that does not know whether a call was made makes it again under the same key.
	Run, ID string
	// Tool is the name of the tool.
	Tool string
	// Arguments fit the tool's schema.
	Arguments json.RawMessage

	progress func(ctx context.Context, message string)
}

// Progress tells the job that the call is still being worked on, so that it goes on waiting. message is for people; it
// may be empty and is cut if it is long. What cannot be told is dropped.
func (c *Call) Progress(ctx context.Context, message string) { c.progress(ctx, message) }

// Config is what a Server is built from.
type Config struct {
	// Tools are all tools of the program. Each job gets those that Run.Tools names.
	Tools []Tool
	// Version is what jobs are told about this program; empty means "dev".
	Version string
	// Log gets what goes wrong inside: panics of tools and results that are too large, with the key of the call and
	// without arguments. Nil drops it.
	Log *slog.Logger
}

// Server serves the tools of a program to its jobs. It is safe for concurrent use and holds nothing about a job beyond
// its connection.
type Server struct {
	server *mcp.Server
	tools  []lent
	byName map[string]int
	log    *slog.Logger
}

// lent is a tool with the validator of its arguments.
type lent struct {
	Tool
	fit tool.Tool
}

// NewServer returns a Server. The error lists every tool whose declaration a job would refuse, or which cannot run.
func NewServer(c Config) (*Server, error) {
	s := &Server{byName: make(map[string]int, len(c.Tools)), log: c.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.add(c.Tools); err != nil {
		return nil, err
	}
	version := c.Version
	if version == "" {
		version = "dev"
	}
	s.server = mcp.NewServer(&mcp.Implementation{Name: "hozo-host", Version: version},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	s.server.AddReceivingMiddleware(s.onlyLent)
	for i := range s.tools {
		t := &s.tools[i]
		d := &t.Declaration
		s.server.AddTool(&mcp.Tool{Name: d.Name, Description: d.Description, InputSchema: d.InputSchema}, s.handler(t))
	}
	return s, nil
}

func (s *Server) add(tools []Tool) error {
	entries := make([]hosttool.Entry, len(tools))
	for i, t := range tools {
		entries[i] = hosttool.Entry(t.Declaration)
	}
	problems := hosttool.Check(entries, nil, nil, nil)
	for i, t := range tools {
		d := t.Declaration
		if t.Run == nil {
			problems.Add("missing", fmt.Sprintf("/host/%d", i), "the tool %q cannot run", d.Name)
			continue
		}
		fit, err := tool.Raw(tool.Declaration{
			Name: d.Name, Description: d.Description, InputSchema: d.InputSchema, Effect: tool.Effect(d.Effect), Boundary: outside,
		}, notHere)
		if err != nil {
			continue // Check has told
		}
		s.byName[d.Name] = len(s.tools)
		s.tools = append(s.tools, lent{Tool: t, fit: fit})
	}
	return problems.Err("serve host tools")
}

// outside is the boundary of a tool of which only the schema is used.
var outside = tool.Boundary{Reads: "none", Writes: "none", Network: "none", Processes: "none", Secrets: "none"}

// notHere stands for the work of a tool of which only the schema is used.
func notHere(context.Context, *tool.Env, json.RawMessage) tool.Result {
	return tool.Errorf("the tool does not run here")
}

// Declarations returns what a job's document says about the tools of these names, in the order of Config.Tools, so that
// documents do not depend on the order of names. An unknown name is an error. A document needs those that its agent
// names and those that check its answer.
func (s *Server) Declarations(names ...string) ([]job.HostTool, error) {
	var all []job.HostTool
	for i := range s.tools {
		if slices.Contains(names, s.tools[i].Declaration.Name) {
			all = append(all, s.tools[i].Declaration)
		}
	}
	return all, s.known(names)
}

func (s *Server) known(names []string) error {
	var unknown []error
	for _, name := range names {
		if _, ok := s.byName[name]; !ok {
			unknown = append(unknown, fmt.Errorf("there is no host tool %q", name))
		}
	}
	return errors.Join(unknown...)
}
