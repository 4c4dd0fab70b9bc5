package mcptool_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// everything starts the reference server of the protocol, which others wrote, and returns its URL. The test is skipped
// where the server has not been fetched.
func everything(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MCP_CACHE")
	if dir == "" {
		dir = filepath.Join("..", "..", ".cache", "mcp")
	}
	script, err := filepath.Abs(filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		t.Skip("the npm package @modelcontextprotocol/server-everything is missing: run tool/mcptool/conformance/fetch.sh, which needs npm")
	}
	node := filepath.Join(filepath.Dir(script), "..", "..", "..", ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			t.Skip("node is missing: install Node.js to test against the reference server")
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close() // the server needs the port
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, node, script, "streamableHttp")
	server.Env = []string{fmt.Sprintf("PORT=%d", port), "HOST=127.0.0.1", "PATH=" + os.Getenv("PATH")}
	output, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		_ = server.Wait() // it was killed
		<-drained
	})
	ready := make(chan struct{})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(output)
		for waiting := true; lines.Scan(); {
			if waiting && strings.Contains(lines.Text(), "listening") {
				waiting = false
				close(ready)
			}
		}
	}()
	select {
	case <-ready:
	case <-drained:
		t.Fatal("the reference server ended before it listened")
	}
	return fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
}

// TestTheReferenceServer uses the server that the authors of the protocol keep, by its own tools.
func TestTheReferenceServer(t *testing.T) {
	t.Parallel()
	url := everything(t)
	c := one(url, allowed("echo", "get-sum", "get-tiny-image", "get-resource-links", "get-resource-reference", "get-structured-content",
		"get-annotated-message", "trigger-long-running-operation", "get-env"), timeout(20*time.Second))
	c.Servers[0].Required = true
	c.Deadline = time.Minute
	s, notices := connect(t, c)
	t.Logf("tools %v, notices %v", names(s), notices)
	for _, call1 := range []struct{ tool, arguments, want string }{
		{"echo", `{"message":"hello"}`, "Echo: hello"},
		{"get-sum", `{"a":"2","b":3}`, "The sum of 2 and 3 is 5."},
		{"get-tiny-image", `{}`, "shown as image 1 of this result"},
		{"get-resource-links", `{"count":2}`, "[link to a resource: "},
		{"get-structured-content", `{"location":"Chicago"}`, `"temperature"`},
		{"get-annotated-message", `{"messageType":"error","includeImage":true}`, "Error"},
		{"trigger-long-running-operation", `{"duration":1,"steps":4}`, "completed"},
	} {
		got := call(t.Context(), t, s, "mcp__docs__"+call1.tool, call1.arguments)
		if got.IsError || !strings.Contains(got.Text, call1.want) {
			t.Errorf("%s: %.400v", call1.tool, got)
		}
	}
	if got := call(t.Context(), t, s, "mcp__docs__get-tiny-image", `{}`); len(got.Images) != 1 || got.Images[0].MediaType != "image/png" {
		t.Errorf("images = %d", len(got.Images))
	}
	for _, tl := range s.Tools() {
		if strings.Contains(tl.Name, "sampling") || strings.Contains(tl.Name, "elicitation") {
			t.Errorf("%s is offered although nothing was declared for it", tl.Name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := call(ctx, t, s, "mcp__docs__trigger-long-running-operation", `{"duration":60,"steps":2}`); !got.IsError {
		t.Errorf("result = %+v", got)
	}
}
