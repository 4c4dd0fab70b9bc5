// Mcpgo calls a tool of an MCP server through mark3labs/mcp-go.
package main

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/hozo-run/hozo/bench/harness"
)

func main() { harness.Calls("mcp-go", connect) }

func connect(ctx context.Context, url string) (func(ctx context.Context, a, b int) (string, error), error) {
	c, err := client.NewStreamableHttpClient(url)
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return nil, err
	}
	if _, err := c.ListTools(ctx, mcp.ListToolsRequest{}); err != nil {
		return nil, err
	}
	return func(ctx context.Context, a, b int) (string, error) {
		var request mcp.CallToolRequest
		request.Params.Name, request.Params.Arguments = "add", map[string]any{"a": a, "b": b}
		result, err := c.CallTool(ctx, request)
		if err != nil {
			return "", err
		}
		text, ok := result.Content[0].(mcp.TextContent)
		if !ok {
			return "", fmt.Errorf("the result is a %T", result.Content[0])
		}
		return text.Text, nil
	}, nil
}
