package wire

import (
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
)

func TestCallIDs(t *testing.T) {
	t.Parallel()
	call := func(id, providerID string) *llm.ToolCall {
		return &llm.ToolCall{ID: id, ProviderID: providerID, Name: "t"}
	}
	long := strings.Repeat("x", 65)
	for _, tt := range []struct {
		name  string
		ids   CallIDs
		calls []*llm.ToolCall
		same  bool
		want  []string
	}{
		{"a good id is kept", CallIDs{Extra: "_-"}, []*llm.ToolCall{call("1.0", "call_a-B9")}, true, []string{"call_a-B9"}},
		{"an id of another model is not", CallIDs{Extra: "_-"}, []*llm.ToolCall{call("1.0", "call_a")}, false, []string{"call_1_0"}},
		{"an empty id", CallIDs{Extra: "_-"}, []*llm.ToolCall{call("1.0", "")}, true, []string{"call_1_0"}},
		{"a repeated id", CallIDs{Extra: "_-"}, []*llm.ToolCall{call("1.0", "call_0"), call("1.1", "call_0"), call("2.0", "call_0")},
			true, []string{"call_0", "call_1_1", "call_2_0"}},
		{"characters that are not allowed", CallIDs{Extra: "_-"}, []*llm.ToolCall{call("3.0", "functions.read:0")}, true,
			[]string{"call_3_0"}},
		{"characters that are", CallIDs{Extra: "_-.:"}, []*llm.ToolCall{call("3.0", "functions.read:0")}, true,
			[]string{"functions.read:0"}},
		{"too long", CallIDs{Extra: "_-"}, []*llm.ToolCall{call("3.1", long)}, true, []string{"call_3_1"}},
		{"a derived id that is taken", CallIDs{Extra: "_-"}, []*llm.ToolCall{call("9.9", "call_1_0"), call("1.0", "")}, true,
			[]string{"call_1_0", "call_1_0_1"}},
		{"nine letters and digits", CallIDs{Exactly: 9}, []*llm.ToolCall{call("1.0", "abcDEF123")}, true, []string{"abcDEF123"}},
	} {
		tt.ids.NewRound()
		for i, c := range tt.calls {
			if got := tt.ids.Assign(c, tt.same); got != tt.want[i] {
				t.Errorf("%s: call %d got %q, want %q", tt.name, i, got, tt.want[i])
			}
		}
	}
	short := CallIDs{Exactly: 9}
	a, b := short.Assign(call("1.0", "call_x"), true), short.Assign(call("1.1", "call_x"), true)
	if len(a) != 9 || len(b) != 9 || a == b || strings.Trim(a+b, "0123456789abcdef") != "" {
		t.Errorf("derived ids %q and %q, want two of nine letters and digits", a, b)
	}
}

func TestResultsAreMatchedWithinTheirRound(t *testing.T) {
	t.Parallel()
	ids := CallIDs{Extra: "_-"}
	ids.NewRound()
	ids.Assign(&llm.ToolCall{ID: "1.0", ProviderID: "same", Name: "a"}, true)
	if err := ids.Settled(); err == nil || !strings.Contains(err.Error(), "1.0") {
		t.Errorf("error %v, want one that names the open call", err)
	}
	if wire, err := ids.Answer(&llm.ToolResult{CallID: "1.0", ProviderID: "same"}); err != nil || wire != "same" {
		t.Errorf("%q, %v", wire, err)
	}
	ids.NewRound()
	ids.Assign(&llm.ToolCall{ID: "2.0", ProviderID: "same", Name: "a"}, true)
	ids.Assign(&llm.ToolCall{ID: "2.1", ProviderID: "other", Name: "a"}, true)
	ids.Begin()
	if wire, err := ids.Answer(&llm.ToolResult{CallID: "2.1", ProviderID: "other"}); err != nil || wire != "other" {
		t.Errorf("%q, %v", wire, err)
	}
	if _, err := ids.Answer(&llm.ToolResult{CallID: "1.0", ProviderID: "same"}); err == nil {
		t.Error("a result of an earlier round was taken")
	}
	ids.Undo()
	for call, want := range map[string]string{"2.0": "call_2_0", "2.1": "other"} {
		if wire, err := ids.Answer(&llm.ToolResult{CallID: call}); err != nil || wire != want {
			t.Errorf("%s: %q, %v; want %q", call, wire, err, want)
		}
	}
	if err := ids.Settled(); err != nil {
		t.Error(err)
	}
	if _, err := ids.Answer(&llm.ToolResult{CallID: "2.0"}); err == nil {
		t.Error("a second result for one call was taken")
	}
	ids.NewRound()
	ids.Assign(&llm.ToolCall{ProviderID: "p"}, true)
	if wire, err := ids.Answer(&llm.ToolResult{ProviderID: "p"}); err != nil || wire != "p" {
		t.Errorf("without our ids: %q, %v", wire, err)
	}
}
