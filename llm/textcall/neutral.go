package textcall

import (
	"slices"
	"strings"

	"github.com/hozo-run/hozo/llm"
)

// joiner is an invisible character that takes a mark its meaning and leaves it readable.
const joiner = "\u200d"

// closers are texts besides the marks that would end or fake a part of the dialog.
var closers = []string{"</tool_call>", "<tool_response>", "</tool_response>", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[ARGS]", "[CALL_ID]",
	"<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|message|>", "<|call|>", "<｜tool▁output"}

// neutralText returns text in which no mark is one any more.
func neutralText(text string) string {
	var b strings.Builder
	done := 0
	for at := 0; at < len(text); at++ {
		if !mayBegin(text[at]) {
			continue
		}
		_, marked := markAt(text, at)
		if marked || slices.ContainsFunc(closers, func(c string) bool { return strings.HasPrefix(text[at:], c) }) {
			b.WriteString(text[done : at+1])
			b.WriteString(joiner)
			done = at + 1
		}
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// neutral returns a message of tool results whose text calls nothing; m is not changed.
func neutral(m llm.Message) llm.Message {
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		if m.Parts[i].ToolResult == nil {
			continue
		}
		result := *m.Parts[i].ToolResult
		result.Content = slices.Clone(result.Content)
		for j := range result.Content {
			if result.Content[j].Type == llm.PartText {
				result.Content[j].Text = neutralText(result.Content[j].Text)
			}
		}
		m.Parts[i].ToolResult = &result
	}
	return m
}
