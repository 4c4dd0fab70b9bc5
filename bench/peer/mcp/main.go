// Mcp calls a tool of an MCP server through one of three clients, named by CLIENT: "hozo" is that of jobs, with names
// mapped, addresses and arguments checked and results bounded; "go-sdk" is the official Go SDK's, which hozo's is built
// on; "raw" is no client: it sends the bytes of the request and takes the text out of the answer, as a figure to stand
// below the others.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/bench/harness"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/mcptool"
)

func main() {
	name := os.Getenv("CLIENT")
	connect, ok := map[string]harness.Connect{"hozo": connectHozo, "go-sdk": connectSDK, "raw": connectRaw}[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "mcp: CLIENT is %q, want hozo, go-sdk or raw\n", name)
		os.Exit(2)
	}
	harness.Calls(name, connect)
}

type call = func(ctx context.Context, a, b int) (string, error)

// connectHozo calls as the kernel does: the arguments of the model are checked, then the tool runs.
func connectHozo(ctx context.Context, url string) (call, error) {
	session, notices, err := mcptool.Connect(ctx, mcptool.Config{Servers: []mcptool.Server{{Name: "bench", URL: url, Required: true}},
		Allow: []string{"mcp__bench__*"}, AllowPrivate: true})
	if err != nil {
		return nil, err
	}
	tools := session.Tools()
	if len(tools) != 1 {
		return nil, fmt.Errorf("there are %d tools, want 1: %v", len(tools), notices)
	}
	add, env := &tools[0], &tool.Env{CallID: "1.0"}
	return func(ctx context.Context, a, b int) (string, error) {
		arguments, err := add.PrepareArguments(fmt.Appendf(nil, `{"a":%d,"b":%d}`, a, b))
		if err != nil {
			return "", err
		}
		result := add.Run(ctx, env, arguments)
		if result.IsError {
			return "", fmt.Errorf("the call failed: %s", result.Text)
		}
		return result.Text, nil
	}, nil
}

func connectSDK(ctx context.Context, url string) (call, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return nil, err
	}
	if _, err := session.ListTools(ctx, nil); err != nil {
		return nil, err
	}
	return func(ctx context.Context, a, b int) (string, error) {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: map[string]int{"a": a, "b": b}})
		if err != nil {
			return "", err
		}
		text, ok := result.Content[0].(*mcp.TextContent)
		if !ok {
			return "", fmt.Errorf("the result is a %T", result.Content[0])
		}
		return text.Text, nil
	}, nil
}

// revision is that of the protocol which the other two agree upon with the server.
const revision = "2026-07-28"

func connectRaw(_ context.Context, url string) (call, error) {
	id := 0
	return func(ctx context.Context, a, b int) (string, error) {
		id++
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add","arguments":{"a":%d,"b":%d},"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"`+revision+`","io.modelcontextprotocol/clientCapabilities":{}}}}`, id, a, b)
		answer, err := post(ctx, url, body)
		if err != nil {
			return "", err
		}
		var response struct {
			Result struct {
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"result"`
		}
		if err := json.Unmarshal(answer, &response); err != nil || len(response.Result.Content) == 0 {
			return "", fmt.Errorf("the answer is %s (%w)", strconv.Quote(string(answer)), err)
		}
		return response.Result.Content[0].Text, nil
	}, nil
}

// post sends a request and returns the message that answers it, be it the body or the data of an event.
func post(ctx context.Context, url string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": "add"} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if _, data, ok := bytes.Cut(answer, []byte("data: ")); ok {
		answer = data
	}
	return answer, err
}
