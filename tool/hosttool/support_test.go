package hosttool_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/hosttool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func entry(name, effect string) hosttool.Entry {
	return hosttool.Entry{Name: name, Description: "Does " + name + ".", Effect: effect, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// serve opens a session with a server that has one tool, "act", as a host that is none of ours would serve it.
func serve(t *testing.T, c hosttool.Config, act mcp.ToolHandler) *hosttool.Session {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "act", InputSchema: json.RawMessage(`{"type":"object"}`)}, act)
	ours, theirs := net.Pipe()
	if _, err := server.Connect(t.Context(), &mcp.IOTransport{Reader: ours, Writer: ours}, nil); err != nil {
		t.Fatal(err)
	}
	if c.Run == "" {
		c.Run = "job-1"
	}
	if c.Entries == nil {
		c.Entries = []hosttool.Entry{entry("act", "external")}
	}
	s, err := hosttool.Open(t.Context(), theirs, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// act calls the first tool of a session.
func act(ctx context.Context, s *hosttool.Session) tool.Result {
	return s.Tools()[0].Run(ctx, &tool.Env{CallID: "1.0"}, json.RawMessage(`{}`))
}

func text(words string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: words}}}
}

func env(callID string) *tool.Env { return &tool.Env{CallID: callID} }

// gate is a connection that stops reading when closed is set.
type gate struct {
	net.Conn
	closed atomic.Bool
	ended  chan struct{}
}

// Read implements io.Reader.
func (g *gate) Read(p []byte) (int, error) {
	if g.closed.Load() {
		<-g.ended
		return 0, io.EOF
	}
	return g.Conn.Read(p)
}
