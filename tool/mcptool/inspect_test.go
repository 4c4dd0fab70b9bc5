package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hozo-run/hozo/tool/mcptool"
)

func TestInspectShowsEveryToolWithItsClaims(t *testing.T) {
	t.Parallel()
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			server := sdkServer()
			server.AddTool(&mcp.Tool{Name: "look", Description: "Looks with key-of-mine-1.", InputSchema: object, Annotations: reading()}, said("x"))
			no := false
			server.AddTool(&mcp.Tool{Name: "change", InputSchema: object, Annotations: &mcp.ToolAnnotations{DestructiveHint: &no}}, said("x"))
			c := one(listen(t, sdkHandler(server, modern)))
			c.Servers[0].Headers = map[string]string{"X-Key": "key-of-mine-1"}
			c.Allow = nil
			got, _, err := mcptool.Inspect(t.Context(), c)
			if err != nil || len(got) != 2 {
				t.Fatalf("%d tools, %v", len(got), err)
			}
			change, look := got[0], got[1]
			if change.ReadOnly || change.Destructive || !change.OpenWorld || !look.ReadOnly || !look.Destructive {
				t.Errorf("claims: %+v, %+v", change, look)
			}
			if strings.Contains(look.Description, "key-of-mine-1") {
				t.Errorf("the description holds the credential: %q", look.Description)
			}
			wire, err := json.Marshal(map[string]any{"name": "change", "inputSchema": object, "annotations": map[string]any{"destructiveHint": false}})
			if err != nil {
				t.Fatal(err)
			}
			if want, err := mcptool.DefinitionHash(wire); err != nil || change.Hash != want {
				t.Errorf("hash %s, want %s, %v", change.Hash, want, err)
			}
		})
	}
}

func TestInspectSaysWhyAServerCannotBeUsed(t *testing.T) {
	t.Parallel()
	c := one(listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })))
	_, _, err := mcptool.Inspect(t.Context(), c)
	if lost, ok := errors.AsType[*mcptool.UnavailableError](err); !ok || len(lost.Reasons) != 1 {
		t.Errorf("error = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := mcptool.Inspect(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error after the end of the context = %v", err)
	}
}
