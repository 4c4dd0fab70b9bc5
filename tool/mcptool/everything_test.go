package mcptool_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/tool/mcptool/mcptest"
)

// TestTheReferenceServer uses the server that the authors of the protocol keep, by its own tools.
func TestTheReferenceServer(t *testing.T) {
	t.Parallel()
	url := mcptest.Everything(t)
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
