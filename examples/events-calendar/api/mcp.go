package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

// The arguments of the MCP tools.
type (
	runAgentInput struct {
		Input string `json:"input" jsonschema:"which events are wanted: a place, a time, a kind"`
		Mode  string `json:"mode,omitempty" jsonschema:"auto puts valid events into the calendar, review (the default) proposes them to people"`
		Wait  bool   `json:"wait,omitempty" jsonschema:"answer when the run has ended; otherwise at once"`
	}
	runIDInput struct {
		RunID string `json:"runId" jsonschema:"the id of the run, as run_agent gave it"`
	}
)

// runOutput is a run as MCP clients see it: plain fields only, whose schema every client understands.
type runOutput struct {
	RunID   string  `json:"runId"`
	Status  string  `json:"status" jsonschema:"queued, running, completed, stopped (by a limit), failed or aborted"`
	Mode    string  `json:"mode"`
	Answer  string  `json:"answer,omitempty" jsonschema:"what the agent said at the end"`
	Failure string  `json:"failure,omitempty" jsonschema:"why the run was not completed"`
	Missing string  `json:"missing,omitempty" jsonschema:"what the run had to do without, one a line"`
	Steps   int64   `json:"steps"`
	CostUSD float64 `json:"costUsd"`
}

func output(r run.Run) runOutput {
	o := runOutput{RunID: r.ID, Status: string(r.Status), Mode: string(r.Mode), Answer: r.Answer, Steps: r.Steps, CostUSD: float64(r.Usage.CostMicroUSD) / 1e6}
	if r.Failure != nil {
		o.Failure = string(r.Failure.Reason) + ": " + r.Failure.Message
	}
	for i, d := range r.Degraded {
		if i > 0 {
			o.Missing += "\n"
		}
		o.Missing += d.Message
	}
	return o
}

// mcpHandler serves the agent as tools of an MCP server over streamable HTTP. It keeps no sessions: the API key comes with
// each request.
func (s *surface) mcpHandler() http.Handler {
	version := s.Version
	if version == "" {
		version = "dev"
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "events-calendar", Title: "Events calendar", Version: version}, nil)
	yes, no := true, false
	mcp.AddTool(server, &mcp.Tool{
		Name: "run_agent", Title: "Run the agent",
		Description: "Starts a run of the events calendar agent, which researches events and proposes them for the calendar. Answers with the run.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &yes},
	}, s.runAgent)
	mcp.AddTool(server, &mcp.Tool{
		Name: "get_run", Title: "Show a run",
		Description: "Shows a run: its status, what it had to do without, its answer and what it cost.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}, s.getRun)
	mcp.AddTool(server, &mcp.Tool{
		Name: "get_artifact", Title: "Read the report of a run",
		Description: "Returns the Calendar Report of a run that has ended, as Markdown.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}, s.getArtifact)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody, Logger: s.Log, PropagateRequestCancellation: true})
	return http.NewCrossOriginProtection().Handler(handler)
}

func (s *surface) runAgent(ctx context.Context, _ *mcp.CallToolRequest, in runAgentInput) (*mcp.CallToolResult, runOutput, error) {
	started, err := s.submit(ctx, runRequest{Input: in.Input, Mode: run.Mode(in.Mode)}, "")
	if err == nil && in.Wait {
		started, err = s.Runs.Wait(ctx, started.ID)
	}
	return nil, output(started), s.told(err)
}

func (s *surface) getRun(ctx context.Context, _ *mcp.CallToolRequest, in runIDInput) (*mcp.CallToolResult, runOutput, error) {
	found, err := s.Runs.Find(ctx, in.RunID)
	return nil, output(found), s.told(err)
}

func (s *surface) getArtifact(ctx context.Context, _ *mcp.CallToolRequest, in runIDInput) (*mcp.CallToolResult, any, error) {
	report, err := s.Runs.Report(ctx, in.RunID)
	if err != nil {
		return nil, nil, s.told(err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: report}}}, nil, nil
}

// told is what a client is told of an error: problems as they are, faults of this program only by name.
func (s *surface) told(err error) error {
	if problem.KindOf(err) != problem.Internal {
		return err
	}
	s.Log.Error("an MCP call failed inside", "error", err)
	return errors.New("the call failed inside")
}
