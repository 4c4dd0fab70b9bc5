package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// keyed sends the key of the tests with every request.
type keyed struct{ key string }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return http.DefaultTransport.RoundTrip(r)
}

func (s *site) mcp(key string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	return client.Connect(s.t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: keyed{key}}}, nil)
}

// use calls a tool and returns its text.
func use(t *testing.T, c *mcp.ClientSession, tool string, arguments any) (string, bool) {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

func TestTheAgentIsAnMCPServer(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	c, err := s.mcp(testKey)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var names []string
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"get_artifact", "get_run", "run_agent"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	text, failed := use(t, c, "run_agent", map[string]any{"input": "Events in Porto Velo", "mode": "auto", "wait": true})
	var ran runJSON
	if err := json.Unmarshal([]byte(text), &ran); err != nil || failed || ran.Status != "completed" {
		t.Fatalf("run_agent gave %s (%v)", text, err)
	}
	if text, failed = use(t, c, "get_run", map[string]any{"runId": ran.RunID}); failed || !strings.Contains(text, `"status":"completed"`) {
		t.Errorf("get_run gave %s", text)
	}
	_, report := s.report(ran.RunID)
	if text, failed = use(t, c, "get_artifact", map[string]any{"runId": ran.RunID}); failed || text != report {
		t.Errorf("get_artifact gave %s", text)
	}
}

func TestMCPCallsThatFailSayWhy(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	c, err := s.mcp(testKey)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, call := range map[string]struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		"no input":    {"run_agent", map[string]any{"input": ""}, "the input is missing"},
		"a bad mode":  {"run_agent", map[string]any{"input": "x", "mode": "fast"}, `there is no mode "fast"`},
		"no run":      {"get_run", map[string]any{"runId": "run_x"}, `there is no run "run_x"`},
		"no artifact": {"get_artifact", map[string]any{"runId": "run_x"}, `there is no run "run_x"`},
		"no id":       {"get_run", map[string]any{}, "runId"},
	} {
		result, err := c.CallTool(context.Background(), &mcp.CallToolParams{Name: call.tool, Arguments: call.arguments})
		text := ""
		switch {
		case err != nil:
			text = err.Error()
		case result.IsError:
			text = result.Content[0].(*mcp.TextContent).Text
		}
		if !strings.Contains(text, call.want) {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestMCPNeedsTheKey(t *testing.T) {
	t.Parallel()
	s := openSite(t, nil)
	if c, err := s.mcp("key-of-somebody-else-0000"); err == nil {
		c.Close()
		t.Error("a client without the key is connected")
	}
	if r := s.do(http.MethodPost, "/mcp", `{}`, "Origin", "https://elsewhere.example.com", "Sec-Fetch-Site", "cross-site"); r.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another site is answered with %d", r.StatusCode)
	}
}
