package mcptool_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/tool/mcptool"
)

func TestNamesOfToolsAreStableAndTakenByEveryService(t *testing.T) {
	t.Parallel()
	for original, want := range map[string]string{
		"search":                 "mcp__docs__search",
		"get-page_2":             "mcp__docs__get-page_2",
		"Read":                   "mcp__docs__Read",
		"read":                   "mcp__docs__read",
		"mcp__other__x":          "mcp__docs__mcp__other__x",
		"a.b":                    "mcp__docs__a_b_e04bd6ad",
		"rеad":                   "mcp__docs__r_ad_2f176f20", // a Cyrillic е
		strings.Repeat("n", 53):  "mcp__docs__" + strings.Repeat("n", 53),
		strings.Repeat("n", 54):  "mcp__docs__" + strings.Repeat("n", 44) + "_c85e9e6a",
		strings.Repeat("n", 300): "mcp__docs__" + strings.Repeat("n", 44) + "_432fe318",
	} {
		if got := mcptool.ShownName("docs", original); got != want {
			t.Errorf("ShownName(%q) = %q, want %q", original, got, want)
		}
	}
}

func TestClashingNamesAreToldApart(t *testing.T) {
	t.Parallel()
	dotted := mcptool.ShownName("docs", "a.b")
	twin := strings.TrimPrefix(dotted, "mcp__docs__") // a tool that calls itself like the hashed form of another
	got := mcptool.AssignNames("docs", []string{"a.b", twin, "a_b", "a-b", "x", "x"})
	if got["a.b"] == got[twin] || got["a.b"] != dotted || got["a_b"] != "mcp__docs__a_b" || got["a-b"] != "mcp__docs__a-b" {
		t.Errorf("names = %v", got)
	}
	if _, ok := got["x"]; ok {
		t.Error("a name that is listed twice stands for a tool")
	}
	if diff := cmp.Diff(got, mcptool.AssignNames("docs", []string{"x", "a-b", twin, "x", "a_b", "a.b"})); diff != "" {
		t.Errorf("names depend on the order:\n%s", diff)
	}
}

func FuzzShownName(f *testing.F) {
	for _, name := range []string{"search", "a.b", "рead", "", strings.Repeat("x", 200), "a\x00b", "__", "*"} {
		f.Add("docs", name)
	}
	f.Add("a-server-with-a-name-of-32-letter", "get_everything_there_is")
	f.Fuzz(func(t *testing.T, server, original string) {
		if len(server) > 32 || strings.Trim(server, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return
		}
		got := mcptool.ShownName(server, original)
		if len(got) > 64 || !strings.HasPrefix(got, "mcp__"+server+"__") || strings.Trim(got, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("ShownName(%q, %q) = %q", server, original, got)
		}
		if got != mcptool.ShownName(server, original) {
			t.Error("the name is not stable")
		}
	})
}
