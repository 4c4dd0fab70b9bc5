package mcplender_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/kernel/mcplender"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/tool/mcptool/mcptest"
)

const secret = "Bearer mcp-canary-11"

// newServer returns an MCP server of the official SDK and a count of the requests that carried the secret header.
func newServer(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	return newServerWith(t, nil)
}

func newServerWith(t *testing.T, options *mcp.StreamableHTTPOptions) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	type query struct {
		Q string `json:"q"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, nil)
	answer := func(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found " + q.Q}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "lookup", Description: "Looks up.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, answer)
	mcp.AddTool(server, &mcp.Tool{Name: "update", Description: "Updates."}, answer)
	mcp.AddTool(server, &mcp.Tool{Name: "erase", Description: "Erases."}, answer)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
	authorised := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == secret {
			authorised.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s, authorised
}

func run(t *testing.T, tools []string, servers []job.MCPServer, script string, more ...tool.Tool) ([]*job.Event, job.Outcome) {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"source", "out"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fixture, err := scripted.FromYAML([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := tool.NewRegistry(append(filetool.Tools(), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := kernel.New(kernel.Config{Adapters: map[string]llm.Adapter{job.APIScripted: scripted.New}, Tools: registry,
		Models:  func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id}, true },
		Lenders: []kernel.Lender{mcplender.New(mcplender.Options{AllowPrivate: true})}})
	if err != nil {
		t.Fatal(err)
	}
	handle, err := rt.Start(t.Context(), &job.Spec{APIVersion: job.APIVersion, ID: "job-1", Task: "Go.", MCP: &job.MCP{Servers: servers},
		Agent:     job.Definition{ID: "a", Version: "1", Instructions: "Be useful.", Tools: tools},
		Model:     job.ModelRef{Provider: "p", ID: "m"},
		Providers: map[string]job.ProviderConfig{"p": {API: job.APIScripted, Script: fixture}},
		Workspace: job.Workspace{Root: dir, ReadOnly: []string{filepath.Join(dir, "source")}, OutDir: filepath.Join(dir, "out")},
		Limits:    job.Limits{TimeoutSec: 60}}, job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	var events []*job.Event
	for e := range handle.Events() {
		events = append(events, e)
	}
	return events, handle.Wait()
}

func text(events []*job.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.Write(e.Line())
		b.WriteByte('\n')
	}
	return b.String()
}

const calls = `
responses:
- parts:
  - call: {name: mcp__s__lookup, arguments: {q: bread}}
  - call: {name: mcp__s__erase, arguments: {q: all}}
- text: done
`

func TestAJobUsesTheToolsOfAServerThatTheAgentNames(t *testing.T) {
	t.Parallel()
	server, authorised := newServer(t)
	events, outcome := run(t, []string{"read", "mcp__s__*"}, []job.MCPServer{
		{Name: "s", URL: server.URL, Headers: map[string]string{"Authorization": secret}, AllowedTools: []string{"update"}},
		{Name: "unnamed", URL: "http://127.0.0.1:1/"},
	}, calls)
	if outcome.Completed == nil {
		t.Fatalf("outcome = %+v", outcome.Failed)
	}
	if diff := cmp.Diff([]string{"read", "mcp__s__lookup", "mcp__s__update"}, events[0].Data.(*job.StartedData).Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	all := text(events)
	for _, want := range []string{`"tool":"mcp__s__lookup","success":true`, `"code":"unknown-tool"`, `"name":"hozo.mcp"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in the events:\n%s", want, all)
		}
	}
	if strings.Contains(all, "mcp-canary") || authorised.Load() == 0 {
		t.Errorf("the header went to %d requests; it must be in no event:\n%s", authorised.Load(), all)
	}
	if strings.Contains(all, "unnamed") {
		t.Error("a server that the agent does not name was contacted")
	}
}

func TestScriptsHaveTheToolsThatOnlyReadAndTheModelTheOthers(t *testing.T) {
	t.Parallel()
	server, _ := newServer(t)
	script := tool.New(tool.Declaration{Name: "script", Description: "Runs a script.", InputSchema: []byte(`{"type":"object"}`), Effect: tool.EffectRead,
		Boundary: tool.Boundary{Reads: "none", Writes: "none", Network: "none", Processes: "none", Secrets: "none"},
		Describe: func(callees []llm.ToolSpec) string {
			names := make([]string, len(callees))
			for i, c := range callees {
				names[i] = c.Name
			}
			return "Calls " + strings.Join(names, " ") + "."
		}},
		func(ctx context.Context, env *tool.Env, _ struct{}) tool.Result {
			found := env.Nested(ctx, "mcp__s__lookup", []byte(`{"q":"bread"}`))
			refused := env.Nested(ctx, "mcp__s__update", []byte(`{"q":"x"}`))
			return tool.Result{Text: found.Text + "; " + refused.Text}
		})
	events, outcome := run(t, []string{"script", "mcp__s__*"}, []job.MCPServer{{Name: "s", URL: server.URL, AllowedTools: []string{"update"}}}, `
responses:
- parts: [{call: {name: script, arguments: {}}}, {call: {name: mcp__s__lookup, arguments: {q: direct}}}]
- text: done
`, script)
	if diff := cmp.Diff([]string{"script", "mcp__s__update"}, events[0].Data.(*job.StartedData).Tools); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
	all := text(events)
	for _, want := range []string{`"parentCallId":"1.0","data":{"callId":"1.0/1","turn":1,"tool":"mcp__s__lookup"`, `"callId":"1.0/1","tool":"mcp__s__lookup","success":true`,
		`"callId":"1.0/2","turn":1,"tool":"mcp__s__update","input":{"q":"x"},"allowed":false`,
		`"callId":"1.1","turn":1,"tool":"mcp__s__lookup","input":{"q":"direct"},"allowed":false,"code":"unknown-tool"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in the events:\n%s", want, all)
		}
	}
	if outcome.Completed == nil {
		t.Errorf("outcome = %+v", outcome.Failed)
	}
}

func TestAJobUsesTheReferenceServer(t *testing.T) {
	t.Parallel()
	url := mcptest.Everything(t)
	events, outcome := run(t, []string{"mcp__every__*"}, []job.MCPServer{
		{Name: "every", URL: url, Required: true, AllowedTools: []string{"echo", "get-sum"}},
	}, `
responses:
- parts: [{call: {name: mcp__every__echo, arguments: {message: hello}}}, {call: {name: mcp__every__get-sum, arguments: {a: 2, b: 3}}}]
- text: '{{ range calls "mcp__every__echo" }}{{ .text }}{{ end }}; {{ range calls "mcp__every__get-sum" }}{{ .text }}{{ end }}'
`)
	if outcome.Completed == nil || outcome.Completed.Answer != "Echo: hello; The sum of 2 and 3 is 5." {
		t.Errorf("outcome = %+v %+v\n%s", outcome.Completed, outcome.Failed, text(events))
	}
}

// TestAJobUsesBothRevisionsOfTheProtocol has one server that speaks the newest revision, which is stateless, and one that
// speaks those with sessions only.
func TestAJobUsesBothRevisionsOfTheProtocol(t *testing.T) {
	t.Parallel()
	modern, _ := newServerWith(t, &mcp.StreamableHTTPOptions{Stateless: true})
	legacy, _ := newServer(t)
	events, outcome := run(t, []string{"mcp__modern__lookup", "mcp__legacy__lookup"}, []job.MCPServer{
		{Name: "modern", URL: modern.URL, Required: true}, {Name: "legacy", URL: legacy.URL, Required: true},
	}, `
responses:
- parts: [{call: {name: mcp__modern__lookup, arguments: {q: new}}}, {call: {name: mcp__legacy__lookup, arguments: {q: old}}}]
- text: '{{ range calls "mcp__modern__lookup" }}{{ .text }}{{ end }}; {{ range calls "mcp__legacy__lookup" }}{{ .text }}{{ end }}'
`)
	if outcome.Completed == nil || outcome.Completed.Answer != "found new; found old" {
		t.Errorf("outcome = %+v %+v\n%s", outcome.Completed, outcome.Failed, text(events))
	}
}

func TestAServerThatIsDown(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	for name, required := range map[string]bool{"costs its tools": false, "ends the job if it is required": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, outcome := run(t, []string{"read", "mcp__s__lookup"}, []job.MCPServer{{Name: "s", URL: down.URL, Required: required}}, "responses: [{text: done}]")
			switch {
			case required && (outcome.Failed == nil || outcome.Failed.Code != job.CodeToolsUnavailable || outcome.Usage.Requests != 0):
				t.Errorf("outcome = %+v", outcome)
			case !required && (outcome.Completed == nil || !strings.Contains(text(events), `"code":"mcp-unavailable"`)):
				t.Errorf("outcome = %+v\n%s", outcome, text(events))
			}
		})
	}
}
