// Mcpserver is the server for which clients of MCP are measured: the official Go SDK's, with one tool, over streamable
// HTTP on a loopback port. It prints its address and then serves until it is killed.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	add := &mcp.Tool{Name: "add", Description: "Add two integers and return the sum.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	mcp.AddTool(server, add, func(_ context.Context, _ *mcp.CallToolRequest, s sum) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strconv.Itoa(s.A + s.B)}}}, nil, nil
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatalf("mcpserver: %v", err)
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	// Without sessions, as the revision of the protocol wants it in which the clients are measured.
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	log.Fatal(http.Serve(listener, handler))
}
