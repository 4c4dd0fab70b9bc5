package mcptool_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestToolsOfAServerAreCalledInBothErasOfTheProtocol(t *testing.T) {
	t.Parallel()
	for era, modern := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			server := sdkServer()
			server.AddTool(&mcp.Tool{Name: "search", Description: "Finds pages.", InputSchema: object, Annotations: reading()}, said("three pages"))
			server.AddTool(&mcp.Tool{Name: "Delete.page", InputSchema: object}, said("deleted"))
			server.AddTool(&mcp.Tool{Name: "drop", InputSchema: object}, said("dropped"))
			s, notices := connect(t, one(listen(t, sdkHandler(server, modern)), allowed("Delete.page")))
			if diff := cmp.Diff([]string{"mcp__docs__Delete_page_e6b117e8", "mcp__docs__search"}, names(s)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"mcp-tool-withheld"}, codes(notices)); diff != "" {
				t.Error(diff, notices)
			}
			if got := call(t.Context(), t, s, "mcp__docs__search", `{}`); got.Text != "three pages" || got.IsError {
				t.Errorf("result = %+v", got)
			}
		})
	}
}
