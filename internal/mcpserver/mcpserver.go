// Package mcpserver offers agents as tools of an MCP server: a program that speaks the protocol calls an agent as it calls
// any tool, and gets the answer of a run. The package knows runs through the client of the API only, so it works wherever
// a server can be reached, with what the key of the client permits. The official SDK speaks the protocol, in both of its
// revisions, over standard input and output and over HTTP.
//
// A call is a run: it is durable, people see it, and when the caller gives the call up the run is cancelled.
package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
)

// Runs starts and watches runs; *client.Client does.
type Runs interface {
	// StartRun starts a run; key makes a second request the first one.
	StartRun(ctx context.Context, request wire.RunRequest, key string) (run.Run, error)
	// Run returns a run as it is now.
	Run(ctx context.Context, id string) (run.Run, error)
	// Events yields the events of a run after one of them, until the run ends.
	Events(ctx context.Context, id string, after int64) iter.Seq2[run.Event, error]
	// CancelRun wants a run to end.
	CancelRun(ctx context.Context, id, cause string) (run.Run, error)
}

// Agent is an agent that is offered.
type Agent struct {
	// Name is that of the agent and of the tool, Description what the model that calls it is told.
	Name, Description string
}

// Config is what a server is made of. Runs and at least one agent are required.
type Config struct {
	Runs   Runs
	Agents []Agent
	// Project is where the runs work; "" is none.
	Project string
	// Version is that of the program.
	Version string
	// Logger gets what goes wrong; nil drops it.
	Logger *slog.Logger
}

// cancelWithin is how long it may take to cancel the run of a call that was given up.
const cancelWithin = 10 * time.Second

// New returns an MCP server with a tool for each agent. It does no input or output.
func New(config Config) (*mcp.Server, error) {
	if config.Runs == nil || len(config.Agents) == 0 {
		return nil, errors.New("an MCP server needs a server of runs and at least one agent")
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "hozo", Title: "Agents of hozo", Version: config.Version}, &mcp.ServerOptions{
		Instructions: "Each tool is an agent: it works on a task by itself, which may take minutes, and answers with text.",
		Capabilities: &mcp.ServerCapabilities{},
		Logger:       config.Logger,
	})
	for _, a := range config.Agents {
		c := &caller{config: config, agent: a}
		server.AddTool(&mcp.Tool{Name: a.Name, Description: a.Description, InputSchema: json.RawMessage(inputSchema), OutputSchema: json.RawMessage(outputSchema)}, c.call)
	}
	return server, nil
}

const inputSchema = `{"type":"object","properties":{"task":{"type":"string","minLength":1,"description":"What the agent shall do, with everything it has to know."}},"required":["task"],"additionalProperties":false}`

const outputSchema = `{"type":"object","properties":{"run":{"type":"string"},"answer":{"type":"string"},"outputs":{"type":"array","items":{"type":"string"}}},"required":["run","answer","outputs"]}`

// caller makes runs of the calls of one tool.
type caller struct {
	config Config
	agent  Agent
}

// answer is the structured result of a call.
type answer struct {
	Run     string   `json:"run"`
	Answer  string   `json:"answer"`
	Outputs []string `json:"outputs"`
}

func (c *caller) call(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var input map[string]json.RawMessage
	var task string
	if json.Unmarshal(request.Params.Arguments, &input) != nil || len(input) != 1 || json.Unmarshal(input["task"], &task) != nil || task == "" {
		return failed(`the arguments are an object with one text, "task"`), nil
	}
	text, err := json.Marshal(map[string]string{"task": task})
	if err != nil {
		return nil, err
	}
	started, err := c.config.Runs.StartRun(ctx, wire.RunRequest{Agent: c.agent.Name, Project: c.config.Project, Input: text}, "")
	if err != nil {
		return failed("the run could not be started: " + err.Error()), nil
	}
	if err := c.watch(ctx, request, started.ID); err != nil {
		if ctx.Err() != nil {
			c.cancel(ctx, started.ID)
		}
		return nil, err
	}
	ended, err := c.config.Runs.Run(ctx, started.ID)
	if err != nil {
		return nil, err
	}
	return result(ended)
}

// watch tells the caller how a run goes on, until it ends.
func (c *caller) watch(ctx context.Context, request *mcp.CallToolRequest, id string) error {
	token, n := request.Params.GetProgressToken(), 0.0
	for e, err := range c.config.Runs.Events(ctx, id, 0) {
		if err != nil {
			return err
		}
		if e.Type != job.EventToolCall || token == nil {
			continue
		}
		n++
		progress := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: toolOf(e.Line)}
		if err := request.Session.NotifyProgress(ctx, progress); err != nil {
			c.config.Logger.DebugContext(ctx, "progress could not be told", "run", id, "error", err)
		}
	}
	return ctx.Err()
}

// toolOf is the name of the tool that an event tells of.
func toolOf(line []byte) string {
	if e, err := job.ParseEvent(line); err == nil {
		if d, ok := e.Data.(*job.ToolCallData); ok {
			return d.Tool
		}
	}
	return ""
}

// cancel ends the run of a call that nobody waits for any more.
func (c *caller) cancel(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
	defer cancel()
	if _, err := c.config.Runs.CancelRun(ctx, id, "the caller gave the call up"); err != nil {
		c.config.Logger.WarnContext(ctx, "the run of a call that was given up could not be cancelled", "run", id, "error", err)
	}
}

// result is what a caller gets of a run that has ended.
func result(r run.Run) (*mcp.CallToolResult, error) {
	if r.State != run.Completed {
		why := r.Message
		if why == "" {
			why = string(r.State)
		}
		return failed(fmt.Sprintf("run %s: %s", r.ID, why)), nil
	}
	var completed job.CompletedData
	if err := json.Unmarshal(r.Outcome, &completed); err != nil {
		return nil, fmt.Errorf("read the outcome of the run: %w", err)
	}
	structured := answer{Run: r.ID, Answer: completed.Answer, Outputs: completed.Outputs}
	if structured.Outputs == nil {
		structured.Outputs = []string{}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: completed.Answer}}, StructuredContent: structured}, nil
}

func failed(message string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: message}}, IsError: true}
}

// Handler serves MCP over HTTP at any path. Every caller has to give an API key as a bearer token; serverOf makes the server
// that works with it. Requests of pages of other sites are refused.
func Handler(serverOf func(key string) (*mcp.Server, error), logger *slog.Logger) http.Handler {
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		server, err := serverOf(keyOf(r))
		if err != nil {
			logger.WarnContext(r.Context(), "a caller could not be served", "error", err)
		}
		return server
	}, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, Logger: logger})
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if keyOf(r) == "" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="hozo"`)
			http.Error(w, "an API key is required as a bearer token", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
}

// keyOf returns the bearer token of a request, "" without one.
func keyOf(r *http.Request) string {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}
