package mcptool_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkCall compares a call of a tool with the same bytes sent by hand. The server is in the same process and the
// same in both.
func BenchmarkCall(b *testing.B) {
	server := sdkServer()
	server.AddTool(&mcp.Tool{Name: "quick", InputSchema: object, Annotations: reading()}, said(strings.Repeat("x", 100)))
	url := listen(b, sdkHandler(server, true))
	b.Run("tool", func(b *testing.B) {
		s, _ := connect(b, one(url))
		quick := find(b, s, "mcp__docs__quick")
		b.ReportAllocs()
		for b.Loop() {
			if got := quick.Run(b.Context(), nil, []byte(`{}`)); got.IsError {
				b.Fatal(got.Text)
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		b.ReportAllocs()
		for b.Loop() {
			request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "quick"} {
				request.Header.Set(name, value)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				b.Fatal(err)
			}
			answer, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil || !strings.Contains(string(answer), "xxx") {
				b.Fatal(string(answer))
			}
		}
		http.DefaultClient.CloseIdleConnections()
	})
}
