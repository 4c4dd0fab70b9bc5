package openaichat

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hozo-run/hozo/llm/llmtest"
)

// FuzzOpenAIDecode checks that a stream is decoded the same whole and byte by byte, with the templates and without, and
// that nothing in it makes the decoder panic or report text that is not valid.
func FuzzOpenAIDecode(f *testing.F) {
	for _, r := range []llmtest.Reply{
		{Text: []string{"a", "b\n\"", "🙂"}, Stop: llmtest.Ends},
		{Thinking: []string{"x", "y", "z"}, Text: []string{"a"}, Stop: llmtest.Cut},
		{Calls: []llmtest.ReplyCall{{ID: "1", Name: "f", Arguments: []string{"{\"a\"", ":1}"}}, {ID: "1", Name: "g"}}, Stop: llmtest.Calls},
	} {
		f.Add(strings.Join(llmtest.ChatEvents(r), ""))
	}
	f.Add(part(`"content":"a"`) + part(`"content":"a\ud83d"`) + part(`"content":"\ude42"`) + part(`"content":1`))
	f.Add(part(`"content":"a"`) + part(`"content":"b","content":"c"`) + part(`"content":"d"`) + finish("stop"))
	f.Add(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + tool(`{"index":0,"function":{"arguments":{"a":[]}}}`))
	f.Add(part(`"reasoning":"a"`) + part(`"reasoning":{"text":"b"},"reasoning_content":"c"`) + data(`{"error":{"code":429}}`))
	f.Add(part(`"reasoning_details":[{"type":"a","text":"x","index":0}]`) + part(`"reasoning_details":[{"type":"a","data":"\u00e4","index":0},7,{"type":"b"}]`))
	f.Fuzz(func(t *testing.T, body string) {
		r, deltas, err := decode(t, body)
		if !utf8.ValidString(deltas) {
			t.Errorf("deltas %q are not valid", deltas)
		}
		if (err == nil) != (r.Stop != "") {
			t.Errorf("stop %q beside error %v", r.Stop, err)
		}
		for _, p := range r.Message.Parts {
			if !utf8.ValidString(p.Text) {
				t.Errorf("text %q is not valid", p.Text)
			}
			if p.Signature != "" && !json.Valid([]byte(p.Signature)) {
				t.Errorf("proof %q is not JSON", p.Signature)
			}
			if c := p.ToolCall; c != nil && (c.Arguments == nil) == (c.ArgumentsError == "") {
				t.Errorf("call %+v has both or neither of arguments and an error", c)
			} else if c != nil && c.Arguments != nil && !isObject(c.Arguments) {
				t.Errorf("arguments %s are no object", c.Arguments)
			}
		}
		if u := r.Usage; u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 || u.Reasoning < 0 {
			t.Errorf("usage %+v", u)
		}
	})
}

func isObject(raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}

// FuzzFastPath checks an event that a template may take against a reading of it by encoding/json.
func FuzzFastPath(f *testing.F) {
	for _, seed := range []string{"plain", `a\nb`, `"`, `x"},"finish_reason":"length"`, `\u00e4`, "\x01", `\`, "\xff", `","content":"z`} {
		f.Add(seed, "y")
	}
	f.Fuzz(func(t *testing.T, raw, padding string) {
		event := `{"id":"1","choices":[{"index":0,"delta":{"content":"` + raw + `"},"finish_reason":null}],"obfuscation":"` + padding + `"}`
		if strings.ContainsAny(event, "\r\n") {
			return
		}
		first := `{"id":"1","choices":[{"index":0,"delta":{"content":"first "},"finish_reason":null}],"obfuscation":"x"}`
		r, _, err := decode(t, data(first)+data(event)+finish("stop"))
		var want struct {
			Choices []struct {
				Delta        map[string]any
				FinishReason *string `json:"finish_reason"`
			}
		}
		if json.Unmarshal([]byte(event), &want) != nil {
			if err == nil {
				t.Errorf("%s was taken for JSON", event)
			}
			return
		}
		if strings.Count(event, `"content"`) != 1 || strings.Count(event, `:`) != 7 || strings.Contains(event, `\u`) {
			return
		}
		text, _ := want.Choices[0].Delta["content"].(string)
		if err != nil || utf8.ValidString(raw) && r.Message.Text() != "first "+text {
			t.Errorf("%s: text %q, error %v; want %q", event, r.Message.Text(), err, text)
		}
	})
}
