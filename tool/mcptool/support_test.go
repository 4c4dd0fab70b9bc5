package mcptool_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/mcptool"
)

// eras are the two ways in which the SDK's server speaks: each request on its own, or sessions of the earlier revisions.
var eras = map[string]bool{"modern": true, "legacy": false}

// object is the least input schema.
var object = json.RawMessage(`{"type":"object"}`)

func reading() *mcp.ToolAnnotations { return &mcp.ToolAnnotations{ReadOnlyHint: true} }

// said is a handler that answers with a text.
func said(text string) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
}

// sdkServer returns the server of the SDK with an instruction that must never reach a model.
func sdkServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{Instructions: "CANARY-INSTRUCTIONS"})
}

// sdkHandler serves it over HTTP.
func sdkHandler(s *mcp.Server, modern bool) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: modern,
		PropagateRequestCancellation: true})
}

// listen serves a handler on a loopback port for the time of the test.
func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections() // nothing may be left, but a server that waits would hide which test left it
		server.Close()
	})
	return server.URL + "/mcp"
}

// one is a configuration with the server "docs", all of whose tools the agent may use.
func one(url string, change ...func(*mcptool.Server)) mcptool.Config {
	s := mcptool.Server{Name: "docs", URL: url}
	for _, f := range change {
		f(&s)
	}
	return mcptool.Config{Servers: []mcptool.Server{s}, Allow: []string{"read", "mcp__docs__*"}, AllowPrivate: true}
}

func allowed(names ...string) func(*mcptool.Server) {
	return func(s *mcptool.Server) { s.AllowedTools = names }
}

// connect opens a session that ends with the test.
func connect(t testing.TB, c mcptool.Config) (*mcptool.Session, []mcptool.Notice) {
	t.Helper()
	s, notices, err := mcptool.Connect(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, notices
}

func names(s *mcptool.Session) []string {
	list := []string{}
	for _, tl := range s.Tools() {
		list = append(list, tl.Name)
	}
	return list
}

func find(t testing.TB, s *mcptool.Session, name string) mcptool.Tool {
	t.Helper()
	tools := s.Tools()
	i := slices.IndexFunc(tools, func(tl mcptool.Tool) bool { return tl.Name == name })
	if i < 0 {
		t.Fatalf("there is no tool %s among %v", name, names(s))
	}
	return tools[i]
}

// call runs a tool as the kernel does.
func call(ctx context.Context, t testing.TB, s *mcptool.Session, name, arguments string) tool.Result {
	t.Helper()
	tl := find(t, s, name)
	prepared, err := tl.PrepareArguments(json.RawMessage(arguments))
	if err != nil {
		t.Fatalf("%s: arguments are refused: %v", name, err)
	}
	return tl.Run(ctx, &tool.Env{Images: true, CallID: "1.0"}, prepared)
}

func codes(notices []mcptool.Notice) []string {
	var list []string
	for _, n := range notices {
		list = append(list, n.Code)
	}
	return list
}
