// Package mcptest starts MCP servers that others wrote, for tests of the client and of whole jobs. The servers come from
// npm by tool/mcptool/conformance/fetch.sh; a test that needs one is skipped, and says so, where they have not been
// fetched. Nothing outside of tests imports the package.
package mcptest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Everything starts the reference server of the protocol, which others wrote, and returns its URL. The test is skipped
// where the server has not been fetched.
func Everything(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MCP_CACHE")
	if dir == "" {
		_, here, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(here), "..", "..", "..", ".cache", "mcp")
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
