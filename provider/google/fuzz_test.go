package google

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
)

// FuzzGoogleDecode checks that a stream is decoded the same whole and byte by byte, and that nothing in it makes the
// decoder panic or report what is not valid.
func FuzzGoogleDecode(f *testing.F) {
	for _, r := range []llmtest.Reply{
		{Text: []string{"a", "b\n\"", "🙂"}, Stop: llmtest.Ends},
		{Thinking: []string{"x", "y"}, Signature: "c2ln", Text: []string{"a"}, Stop: llmtest.Cut},
		{Calls: []llmtest.ReplyCall{{ID: "1", Name: "f", Arguments: []string{"{\"a\"", ":1}"}}, {ID: "1", Name: "g"}}, Stop: llmtest.Calls},
	} {
		f.Add(strings.Join(events(r), ""))
	}
	f.Add(parts(`{"text": "a\ud83d"}`) + parts(`{"text": "\ude42"}`) + parts(signed("", "c2ln")) + finish("STOP", someUsage))
	f.Add(parts(function("a", "f", `"{\"x\":"`)) + finish("MAX_TOKENS", `{"promptTokenCount": -1,"thoughtsTokenCount": 1e99}`))
	f.Add(piece(`"name": "f","willContinue": true`) + piece(`"partialArgs": [{"jsonPath": "$.a[0]['b']","stringValue": "x"},{"jsonPath": "$.n","numberValue": 1}],"willContinue": true`) +
		piece(``) + finish("STOP", someUsage))
	f.Add(data(`{"promptFeedback": {"blockReason": "SAFETY"}}`) + data(`[{"error": {"code": 429,"details": [{"retryDelay": "1s"}]}}]`))
	f.Fuzz(func(t *testing.T, body string) {
		r, deltas, err := decode(t, body)
		if !utf8.ValidString(deltas) {
			t.Errorf("deltas %q are not valid", deltas)
		}
		if (err == nil) != (r.Stop != "") {
			t.Errorf("stop %q beside error %v", r.Stop, err)
		}
		for _, p := range r.Message.Parts {
			if !utf8.ValidString(p.Text) || !utf8.ValidString(p.Signature) {
				t.Errorf("text %q or signature %q is not valid", p.Text, p.Signature)
			}
			if c := p.ToolCall; c != nil && (c.Arguments == nil) == (c.ArgumentsError == "") {
				t.Errorf("call %+v has both or neither of arguments and an error", c)
			} else if c != nil && c.Arguments != nil && !isObject(c.Arguments) {
				t.Errorf("arguments %s are no object", c.Arguments)
			}
		}
		if u := r.Usage; u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite != 0 || u.Reasoning < 0 || u.Reasoning > u.Output {
			t.Errorf("usage %+v", u)
		}
	})
}

func isObject(raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}

// FuzzGoogleSchema checks that a schema without its constants is JSON whenever the schema is, and holds none.
func FuzzGoogleSchema(f *testing.F) {
	f.Add(`{"properties": {"a": {"const": "x"},"const": {"anyOf": [{"const": 1,"enum": [1]}]}}}`)
	f.Add(`{"$defs": [1],"items": null,"const": {"const": "x"},"not": "x"}`)
	f.Fuzz(func(t *testing.T, schema string) {
		if !isObject(json.RawMessage(schema)) || strings.Contains(schema, `\`) {
			return
		}
		out := appendSchema(nil, llm.ToolSpec{InputSchema: json.RawMessage(schema)})
		if !json.Valid(out) {
			t.Fatalf("%s became %s", schema, out)
		}
		var root map[string]any
		if err := json.Unmarshal(out, &root); err != nil {
			t.Fatal(err)
		}
		if _, text := root["const"].(string); text {
			t.Errorf("%s became %s", schema, out)
		}
	})
}

// FuzzGooglePart checks a part of an answer against a reading of it by encoding/json.
func FuzzGooglePart(f *testing.F) {
	for _, seed := range []string{text("a\n\"🙂"), thought("x"), signed("", "c2ln"), function("a", "f", `{"x": [1,{"y": null}]}`), function("", "f", `"{}"`), "null", "[]",
		`{"text": 1}`, `{"functionCall": {"name": "f","partialArgs": [{"jsonPath": "$.a","stringValue": "x"}]}}`, `{"functionCall": {"name": "f","args": null},"thought": true}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if strings.ContainsAny(raw, "\r\n\\") || !utf8.ValidString(raw) {
			return
		}
		r, _, err := decode(t, parts(raw)+finish("STOP", someUsage))
		if !json.Valid([]byte(`{"parts":[` + raw + `]}`)) {
			if err == nil && !json.Valid([]byte(strings.TrimPrefix(strings.TrimSpace(parts(raw)), "data: "))) {
				t.Errorf("%s was taken for JSON", raw)
			}
			return
		}
		var part map[string]any
		if json.Unmarshal([]byte(raw), &part) != nil || part == nil || strings.Count(raw, `"text"`) > 1 || strings.Count(raw, `"functionCall"`) > 1 || strings.Count(raw, `"thought"`) > 1 {
			return
		}
		call, called := part["functionCall"].(map[string]any)
		said, _ := part["text"].(string)
		if isThought, _ := part["thought"].(bool); isThought || called {
			said = ""
		}
		if r.Message.Text() != said {
			t.Errorf("%s: text %q, want %q (error %v)", raw, r.Message.Text(), said, err)
		}
		arguments, whole := call["args"].(map[string]any)
		if calls := r.Message.ToolCalls(); whole && strings.Count(raw, `"args"`) == 1 && err == nil {
			var got map[string]any
			if len(calls) != 1 || json.Unmarshal(calls[0].Arguments, &got) != nil || !cmp.Equal(got, arguments) {
				t.Errorf("%s: calls %+v, want arguments %v", raw, calls, arguments)
			}
		}
	})
}
