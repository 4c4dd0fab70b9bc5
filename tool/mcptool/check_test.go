package mcptool_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/tool/mcptool"
)

func TestEveryProblemOfTheServersComesAtOnce(t *testing.T) {
	t.Parallel()
	good := "https://mcp.example/mcp"
	servers := []mcptool.Server{
		{Name: "docs", URL: good}, {Name: "docs", URL: good}, {Name: "Docs", URL: good}, {Name: "a_b", URL: good}, {Name: "", URL: good},
		{Name: strings.Repeat("a", 33), URL: good}, {Name: "1a", URL: good}, {Name: "slow", URL: good, Timeout: -time.Second},
		{Name: "late", URL: good, Timeout: time.Hour},
		{Name: "gate", URL: good, AllowedTools: []string{"a", "a", "", "get_*"}, Pins: map[string]string{"a/b": "xyz", "c": strings.Repeat("0f", 32)}},
	}
	problems := mcptool.Check(servers, []string{"read", "mcp__docs__*", "mcp__docs__search", "mcp__dosc__x", "mcp__docs", "mcp____x", "mcp__docs__*", "mcp__docs__get_*"}, false)
	for _, want := range []struct{ code, at string }{
		{"duplicate-server", "/mcp/servers/1/name"}, {"server-name-invalid", "/mcp/servers/2/name"}, {"server-name-invalid", "/mcp/servers/3/name"},
		{"server-name-invalid", "/mcp/servers/4/name"}, {"server-name-invalid", "/mcp/servers/5/name"}, {"server-name-invalid", "/mcp/servers/6/name"},
		{"out-of-range", "/mcp/servers/7/timeoutSec"}, {"out-of-range", "/mcp/servers/8/timeoutSec"}, {"duplicate-tool", "/mcp/servers/9/allowedTools/1"},
		{"empty", "/mcp/servers/9/allowedTools/2"}, {"pattern-unsupported", "/mcp/servers/9/allowedTools/3"}, {"pin-invalid", "/mcp/servers/9/pins/a~1b"},
		{"unknown-server", "/agent/tools/3"}, {"tool-name-invalid", "/agent/tools/4"}, {"tool-name-invalid", "/agent/tools/5"},
		{"duplicate-tool", "/agent/tools/6"}, {"tool-name-invalid", "/agent/tools/7"},
	} {
		if !problems.Has(want.code, want.at) {
			t.Errorf("no %s at %s", want.code, want.at)
		}
	}
	if len(problems) != 17 {
		t.Errorf("%d problems: %v", len(problems), problems)
	}
	for _, p := range problems {
		if p.Code == "unknown-server" && p.Hint != `did you mean "docs"?` {
			t.Errorf("hint = %q", p.Hint)
		}
	}
}

func TestAServerThatTheAgentDoesNotNameIsNotContacted(t *testing.T) {
	t.Parallel()
	named, other := &fake{}, &fake{}
	c := one(listen(t, named))
	c.Servers = append(c.Servers, mcptool.Server{Name: "other", URL: listen(t, other), Required: true})
	for _, allow := range [][]string{nil, {}, {"read", "mcp"}} {
		c.Allow = allow
		if s, notices := connect(t, c); len(s.Tools()) != 0 || len(notices) != 0 || len(named.seen())+len(other.seen()) != 0 {
			t.Errorf("%v: tools %v, notices %v", allow, names(s), notices)
		}
	}
	c.Allow = []string{"mcp__docs__look"}
	if s, _ := connect(t, c); strings.Join(names(s), " ") != "mcp__docs__look" || len(other.seen()) != 0 {
		t.Errorf("tools %v, the other server saw %v", names(s), other.seen())
	}
}
