package llm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryCallOfAHistoryIsAnswered(t *testing.T) {
	t.Parallel()
	asks := func(ids ...string) Message {
		m := Message{Role: RoleAssistant}
		for _, id := range ids {
			m.Parts = append(m.Parts, Part{Type: PartToolCall, ToolCall: &ToolCall{ID: id, ProviderID: "p" + id, Name: "f"}})
		}
		return m
	}
	answer := func(id, text string) Part {
		return Part{Type: PartToolResult, ToolResult: &ToolResult{CallID: id, ProviderID: "p" + id, Name: "f", Content: []Part{TextPart(text)}, IsError: text == noResult}}
	}
	tool := func(parts ...Part) Message { return Message{Role: RoleTool, Parts: parts} }
	user := UserText("q")
	for name, tt := range map[string]struct{ in, want []Message }{
		"whole":                         {[]Message{user, asks("1"), tool(answer("1", "a"))}, []Message{user, asks("1"), tool(answer("1", "a"))}},
		"no result before a question":   {[]Message{user, asks("1"), user}, []Message{user, asks("1"), tool(answer("1", noResult)), user}},
		"no result at the end":          {[]Message{user, asks("1", "2"), tool(answer("2", "b"))}, []Message{user, asks("1", "2"), tool(answer("1", noResult), answer("2", "b"))}},
		"results in another order":      {[]Message{asks("1", "2"), tool(answer("2", "b"), answer("1", "a"))}, []Message{asks("1", "2"), tool(answer("1", "a"), answer("2", "b"))}},
		"results in two messages":       {[]Message{asks("1", "2"), tool(answer("1", "a")), tool(answer("2", "b"))}, []Message{asks("1", "2"), tool(answer("1", "a"), answer("2", "b"))}},
		"a result twice":                {[]Message{asks("1"), tool(answer("1", "a"), answer("1", "b")), user}, []Message{asks("1"), tool(answer("1", "a")), user}},
		"a result that answers nothing": {[]Message{user, tool(answer("9", "a")), asks("1"), tool(answer("9", "a"))}, []Message{user, asks("1"), tool(answer("1", noResult))}},
		"a result in the wrong place":   {[]Message{asks("1"), user, tool(answer("1", "a"))}, []Message{asks("1"), tool(answer("1", noResult)), user}},
		"nothing":                       {nil, []Message{}},
	} {
		if diff := cmp.Diff(tt.want, Answered(tt.in)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
