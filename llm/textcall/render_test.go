package textcall

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
)

// single are the forms that hold one call only.
var single = map[Format]bool{Llama3Builtin: true, GigaChat: true, ReAct: true}

func TestCallsReadBackAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	arguments := json.RawMessage(`{"city":"O'slo \"x\" <b> {y} [z], \\d\nnext","days":3,"hours":[6,12]}`)
	for _, id := range llm.TextCallFormats() {
		format := Format(id)
		calls := []llm.Part{{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "1.0", Name: "get_weather", Arguments: arguments}}}
		if !single[format] {
			calls = append(calls, llm.Part{Type: llm.PartToolCall, ToolCall: &llm.ToolCall{ID: "1.1", Name: "get_time", Arguments: json.RawMessage(`{"zone":"CET"}`)}})
		}
		m := rendered(format, llm.Message{Role: llm.RoleAssistant, Parts: calls})
		r := Parse(m.Text(), NewOffer(offerTools()), Options{})
		var got []string
		for _, c := range r.Calls {
			got = append(got, c.Name+string(c.Arguments)+c.ArgumentsError)
		}
		want := []string{"get_weather" + string(arguments), `get_time{"zone":"CET"}`}[:len(calls)]
		if diff := cmp.Diff(want, got); diff != "" || r.Repaired {
			t.Errorf("%s: written as\n%s\nread as %+v\n%s", format, m.Text(), seenOf(r), diff)
		}
		if r.Format != format && !(format == Llama3JSON && r.Format == Llama3JSON) && format != Generic {
			t.Errorf("%s is read as %s", format, r.Format)
		}
	}
}

func TestTheHistoryIsTextForServersWithoutTools(t *testing.T) {
	t.Parallel()
	f := &fake{response: saying("[TOOL_CALLS]get_time[ARGS]{}")}
	d := open(t, f, func(o *llm.Opening) { o.Model.ID, o.Model.Compat.ToolsAsText = "ministral-8b", new(true) })
	if len(f.opening.Tools) != 0 || !strings.HasPrefix(f.opening.System, "You help.\n\n# Tools\n") {
		t.Fatalf("opened with %d tools and %q", len(f.opening.Tools), f.opening.System)
	}
	for _, want := range []string{`{"name":"get_time","description":"The time.","parameters":{"type":"object","properties":{"zone":{"type":"string"}}}}`,
		`[TOOL_CALLS]tool_name[ARGS]{"argument_name":"value"}`} {
		if !strings.Contains(f.opening.System, want) {
			t.Errorf("the prompt lacks %s:\n%s", want, f.opening.System)
		}
	}
	r, _ := stream(t, d)
	r.Message.ToolCalls()[0].ID = "1.0"
	history := []llm.Message{llm.UserText("What time is it?"), r.Message,
		{Role: llm.RoleTool, Parts: []llm.Part{{Type: llm.PartToolResult, ToolResult: &llm.ToolResult{CallID: "1.0", Name: "get_time", IsError: true,
			Content: []llm.Part{llm.TextPart("no [TOOL_CALLS] here"), {Type: llm.PartImage, Image: &llm.Image{}}}}}}}}
	for _, m := range history {
		if err := d.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.messages[1]; len(got.ToolCalls()) != 0 || got.Text() != "[TOOL_CALLS]get_time[ARGS]{}" {
		t.Errorf("the call is sent as %+v", got)
	}
	result := f.messages[2]
	id := regexp.MustCompile(`^\[TOOL_RESULTS\]\{"call_id":"[0-9a-z]{9}","error":"no \[` + joiner + `TOOL_CALLS\] here"\}\[/TOOL_RESULTS\]$`)
	if result.Role != llm.RoleUser || len(result.Parts) != 2 || !id.MatchString(result.Parts[0].Text) || result.Parts[1].Type != llm.PartImage {
		t.Errorf("the result is sent as %+v", result)
	}
}

func TestTheHistoryKeepsTheFormOfTheFirstCall(t *testing.T) {
	t.Parallel()
	f := &fake{}
	d := open(t, f, func(o *llm.Opening) { o.Model.Compat.ToolsAsText = new(true) })
	for i, format := range []string{"", "react", "harmony"} {
		call := &llm.ToolCall{ID: string(rune('0' + i)), Name: "get_time", Arguments: json.RawMessage(`{}`), TextFormat: format}
		if err := d.Append(llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.TextPart("Now."), {Type: llm.PartToolCall, ToolCall: call}}}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, m := range f.messages {
		got = append(got, m.Text())
	}
	want := []string{"Now.\n<tool_call>\n{\"name\":\"get_time\",\"arguments\":{}}\n</tool_call>", "Now.\nAction: get_time\nAction Input: {}",
		"Now.\nAction: get_time\nAction Input: {}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIDsOfMistralAreNineLettersAndDigits(t *testing.T) {
	t.Parallel()
	for id, own := range map[string]string{"1.0": "", "2.0": "Ab3dE6gH9", "3.0": "call_12345"} {
		got := shortID(id, own)
		if !mistralID(got) || mistralID(own) && got != own || got != shortID(id, own) {
			t.Errorf("%s %s has the id %s", id, own, got)
		}
	}
}
