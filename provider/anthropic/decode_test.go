package anthropic

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

// heard is a response as its sink heard it.
type heard struct {
	text string
	last llm.Delta
}

func (h *heard) sink(d llm.Delta) error {
	mark := map[llm.DeltaKind]string{llm.DeltaText: "T", llm.DeltaThinking: "R", llm.DeltaToolName: "N",
		llm.DeltaToolArguments: "A", llm.DeltaToolDone: "D"}[d.Kind]
	if d.Kind != h.last.Kind || d.Index != h.last.Index {
		h.text += " " + mark + string(rune('0'+d.Index)) + ":"
	}
	h.last = llm.Delta{Kind: d.Kind, Index: d.Index}
	h.text += string(d.Text)
	return nil
}

// decode decodes a stream four ways, whole and byte by byte, with and without templates, and checks that they agree.
func decode(t *testing.T, body string) (llm.Response, string, error) {
	t.Helper()
	run := func(plain, bytes bool) (llm.Response, string, error) {
		var h heard
		d := newDecoder("m", h.sink)
		d.plain = plain
		if bytes {
			r, err := wire.Decode(iotest.OneByteReader(strings.NewReader(body)), d)
			return r, h.text, err
		}
		r, err := wire.Decode(strings.NewReader(body), d)
		return r, h.text, err
	}
	r, text, err := run(false, false)
	for _, way := range []struct{ plain, bytes bool }{{true, false}, {false, true}, {true, true}} {
		r2, text2, err2 := run(way.plain, way.bytes)
		if diff := cmp.Diff(r, r2); diff != "" || text != text2 || errText(err) != errText(err2) {
			t.Errorf("decoded another way (%+v): deltas %q and %q, errors %v and %v\n%s", way, text, text2, err, err2, diff)
		}
	}
	return r, strings.TrimSpace(text), err
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func class(err error) llm.Class {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Class
	}
	return ""
}

const noUsage = `{"input_tokens":1,"output_tokens":1}`

// wrap puts blocks between the first event and the last ones.
func wrap(reason string, blocks ...string) string {
	return start(noUsage) + strings.Join(blocks, "") + stop(reason, `{"output_tokens":2}`)
}

func TestBlocksBecomeParts(t *testing.T) {
	t.Parallel()
	text := func(i int, pieces ...string) string {
		all := blockStart(i, `{"type":"text","text":""}`)
		for _, p := range pieces {
			all += blockDelta(i, "text_delta", "text", p)
		}
		return all + blockStop(i)
	}
	for _, tt := range []struct {
		name, in, deltas string
		want             []llm.Part
	}{
		{"text", text(0, "a", "b"), "T0:ab", []llm.Part{llm.TextPart("ab")}},
		{"two text blocks stay two", text(0, "a") + text(1, "b"), "T0:ab", []llm.Part{llm.TextPart("a"), llm.TextPart("b")}},
		{"an empty block is no part", text(0) + text(1, "b"), "T0:b", []llm.Part{llm.TextPart("b")}},
		{"text, thinking and signature at the beginning of a block", blockStart(0, `{"type":"thinking","thinking":"t","signature":"s"}`) +
			blockStop(0) + blockStart(1, `{"type":"text","text":"a"}`) + blockDelta(1, "text_delta", "text", "b") + blockStop(1), "R0:t T0:ab",
			[]llm.Part{{Type: llm.PartThinking, Text: "t", Signature: "s"}, llm.TextPart("ab")}},
		{"thinking with its signature", blockStart(0, `{"type":"thinking","thinking":"","signature":""}`) + blockDelta(0, "thinking_delta", "thinking", "x") +
			blockDelta(0, "thinking_delta", "thinking", "y") + blockDelta(0, "signature_delta", "signature", "c2ln") + blockStop(0), "R0:xy",
			[]llm.Part{{Type: llm.PartThinking, Text: "xy", Signature: "c2ln"}}},
		{"a signature without thinking", blockStart(0, `{"type":"thinking","thinking":"","signature":""}`) + blockDelta(0, "signature_delta", "signature", "c2ln") +
			blockStop(0), "", []llm.Part{{Type: llm.PartThinking, Signature: "c2ln"}}},
		{"redacted thinking", blockStart(0, `{"type":"redacted_thinking","data":"ZGF0YQ=="}`) + blockStop(0) + text(1, "a"), "T0:a",
			[]llm.Part{{Type: llm.PartThinking, Signature: "ZGF0YQ==", Redacted: true}, llm.TextPart("a")}},
		{"blocks and events of unknown types", named("fancy_new_event", `{"type":"fancy_new_event","x":[1]}`) + blockStart(0, `{"type":"server_tool_use","id":"s","name":"web"}`) +
			blockDelta(0, "input_json_delta", "partial_json", "{}") + blockStop(0) + text(1, "a"), "T0:a", []llm.Part{llm.TextPart("a")}},
		{"a delta without the beginning of its block", blockDelta(0, "text_delta", "text", "a"), "T0:a", []llm.Part{llm.TextPart("a")}},
		{"a surrogate pair over two events", blockStart(0, `{"type":"text","text":""}`) +
			padded("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"a\ud83d"}`) +
			padded("content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"\ude42"}`) + blockStop(0), "T0:a🙂", []llm.Part{llm.TextPart("a🙂")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, deltas, err := decode(t, wrap("end_turn", tt.in))
			if diff := cmp.Diff(tt.want, r.Message.Parts); diff != "" || err != nil || deltas != tt.deltas {
				t.Errorf("deltas %q, want %q; error %v (-want +got)\n%s", deltas, tt.deltas, err, diff)
			}
		})
	}
}

func TestToolCalls(t *testing.T) {
	t.Parallel()
	begin := func(i int, id, name, input string) string {
		return blockStart(i, `{"type":"tool_use","id":"`+id+`","name":"`+name+`","input":`+input+`}`)
	}
	piece := func(i int, text string) string { return blockDelta(i, "input_json_delta", "partial_json", text) }
	for _, tt := range []struct{ name, in, calls, deltas string }{
		{"in pieces", begin(0, "a", "f", "{}") + piece(0, "") + piece(0, `{"x":`) + piece(0, `1}`) + blockStop(0), `a f {"x":1}`, `N0:f A0:{"x":1} D0:`},
		{"without arguments", begin(0, "a", "f", "{}") + blockStop(0), `a f {}`, `N0:f A0:{} D0:`},
		{"arguments at the beginning", begin(0, "a", "f", `{"x":1}`) + blockStop(0), `a f {"x":1}`, `N0:f A0:{"x":1} D0:`},
		{"arguments twice: the pieces count", begin(0, "a", "f", `{"x":1}`) + piece(0, `{"x":2}`) + blockStop(0), `a f {"x":2}`, `N0:f A0:{"x":2} D0:`},
		{"input null", begin(0, "a", "f", "null") + blockStop(0), `a f {}`, `N0:f D0:`},
		{"two, interleaved", begin(1, "a", "f", "{}") + begin(2, "b", "g", "{}") + piece(1, `{"x"`) + piece(2, `{"y"`) + piece(1, `:1}`) + piece(2, `:2}`) +
			blockStop(1) + blockStop(2), `a f {"x":1} | b g {"y":2}`, `N0:f A0:{"x" N1:g A1:{"y" A0::1} A1::2} D0: D1:`},
		{"one id twice", begin(0, "a", "f", "{}") + piece(0, `{"x":1}`) + blockStop(0) + begin(1, "a", "f", "{}") + piece(1, `{"x":2}`) + blockStop(1),
			`a f {"x":1} | a f {"x":2}`, `N0:f A0:{"x":1} D0: N1:f A1:{"x":2} D1:`},
		{"no id", begin(0, "", "f", "{}") + blockStop(0), ` f {}`, `N0:f A0:{} D0:`},
		{"a block that is never ended", begin(0, "a", "f", "{}") + piece(0, `{"x":1}`), `a f {"x":1}`, `N0:f A0:{"x":1} D0:`},
		{"arguments that are no object", begin(0, "a", "f", "{}") + piece(0, `{"x":`) + blockStop(0), `a f !the argument text is not JSON: unexpected end at byte 5`, `N0:f A0:{"x": D0:`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, deltas, err := decode(t, wrap("tool_use", tt.in))
			var calls []string
			for _, c := range r.Message.ToolCalls() {
				text := c.ProviderID + " " + c.Name + " " + string(c.Arguments)
				if c.ArgumentsError != "" {
					text += "!" + c.ArgumentsError
				}
				calls = append(calls, text)
			}
			if got := strings.Join(calls, " | "); got != tt.calls || err != nil || r.Stop != llm.StopTools {
				t.Errorf("calls %s, stop %q, error %v; want %s", got, r.Stop, err, tt.calls)
			}
			if deltas != tt.deltas {
				t.Errorf("deltas %s, want %s", deltas, tt.deltas)
			}
		})
	}
	r, deltas, err := decode(t, wrap("max_tokens", begin(0, "a", "write", "{}")+piece(0, `{"text":"half`)+blockStop(0)))
	if err != nil || r.Stop != llm.StopLength || strings.Contains(deltas, "D0") || r.Message.ToolCalls()[0].ArgumentsError == "" {
		t.Errorf("cut at the limit: %+v, deltas %s, error %v", r, deltas, err)
	}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"end_turn": "end", "stop_sequence": "end", "pause_turn": "end", "tool_use": "tools", "max_tokens": "length",
		"refusal": "refused", "sensitive": "refused", "model_context_window_exceeded": "context-overflow", "out_of_ink": "unknown-stop",
	} {
		r, _, err := decode(t, wrap(reason, blockDelta(0, "text_delta", "text", "a")))
		if got := string(r.Stop) + string(class(err)); got != want || r.RawStop != reason || r.Message.Text() != "a" {
			t.Errorf("%s: %q with raw %q, want %q", reason, got, r.RawStop, want)
		}
		if err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("%s is not named in %v", reason, err)
		}
	}
	explained := start(noUsage) + named("message_delta", `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"not allowed"}}}`) +
		named("message_stop", `{"type":"message_stop"}`)
	if _, _, err := decode(t, explained); class(err) != llm.ClassRefused || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("error %v, want the explanation", err)
	}
}

func TestEndsOfAStream(t *testing.T) {
	t.Parallel()
	begun := start(noUsage) + blockStart(0, `{"type":"text","text":""}`) + blockDelta(0, "text_delta", "text", "a")
	stopped, _, _ := strings.Cut(stop("end_turn", "{}"), "event: message_stop")
	end := named("message_stop", `{"type":"message_stop"}`)
	for _, tt := range []struct{ name, in, want string }{
		{"in mid-text", begun, "truncated"},
		{"before anything", "", "truncated"},
		{"pings only", named("ping", `{"type":"ping"}`), "truncated"},
		{"with a stop reason but no message_stop", begun + stopped, "truncated"},
		{"with message_stop but no stop reason", begun + end, "truncated"},
		{"with a stop reason of null", begun + named("message_delta", `{"type":"message_delta","delta":{"stop_reason":null}}`) + end, "truncated"},
		{"whole", begun + stopped + end, "end"},
		{"within the last event", begun + stopped + strings.TrimSuffix(end, "\n\n"), "truncated"},
		{"types in the event name only", strings.ReplaceAll(begun+stopped+end, `"type":"message_`, `"kind":"message_`), "end"},
		{"CRLF and comments", strings.ReplaceAll(": x\n"+begun+": y\n\n"+stopped+end, "\n", "\r\n"), "end"},
		{"an error event", begun + named("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "overloaded"},
		{"an API error", begun + named("error", `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`), "provider"},
		{"an error without its type", begun + named("error", `{"error":{"type":"rate_limit_error","message":"slow"}}`), "rate-limit"},
		{"an event that is not JSON", begun + named("content_block_delta", `{"type":"content_blo`) + stopped + end, "malformed"},
		{"an event that is no object", begun + named("x", `"y"`) + stopped + end, "malformed"},
		{"a page", "<html>\n<body>\n\n</body></html>", "malformed"},
		{"data after the end", begun + stopped + end + "data: [DONE]\n\n", "end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _, err := decode(t, tt.in)
			if got := string(r.Stop) + string(class(err)); got != tt.want {
				t.Errorf("%q, error %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, first, last string
		want              llm.Usage
	}{
		{"four buckets", `{"input_tokens":100,"cache_read_input_tokens":900,"cache_creation_input_tokens":50,"output_tokens":1}`, `{"output_tokens":7}`,
			llm.Usage{Input: 100, CacheRead: 900, CacheWrite: 50, Output: 7}},
		{"the last event overwrites", `{"input_tokens":1,"output_tokens":1}`, `{"input_tokens":10,"cache_read_input_tokens":3,"output_tokens":7}`,
			llm.Usage{Input: 10, CacheRead: 3, Output: 7}},
		{"but not by null or by silence", `{"input_tokens":10,"cache_read_input_tokens":3,"output_tokens":1}`, `{"input_tokens":null,"output_tokens":7}`,
			llm.Usage{Input: 10, CacheRead: 3, Output: 7}},
		{"writes of an hour", `{"input_tokens":1,"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":30},"output_tokens":1}`,
			`{"output_tokens":7}`, llm.Usage{Input: 1, CacheWrite: 50, CacheWrite1h: 30, Output: 7}},
		{"writes without their sum", `{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":30},"output_tokens":1}`,
			`{"output_tokens":7}`, llm.Usage{Input: 1, CacheWrite: 50, CacheWrite1h: 30, Output: 7}},
		{"thinking is part of the output", `{"input_tokens":1,"output_tokens":1}`, `{"output_tokens":70,"output_tokens_details":{"thinking_tokens":60}}`,
			llm.Usage{Input: 1, Output: 70, Reasoning: 60}},
		{"negative counts", `{"input_tokens":-1,"output_tokens":-1,"cache_read_input_tokens":-5}`, `{}`, llm.Usage{}},
	} {
		r, _, err := decode(t, start(tt.first)+blockDelta(0, "text_delta", "text", "a")+stop("end_turn", tt.last))
		if err != nil || r.Usage != tt.want || !r.UsageReported {
			t.Errorf("%s: %+v (reported %v), error %v; want %+v", tt.name, r.Usage, r.UsageReported, err, tt.want)
		}
	}
	r, _, err := decode(t, start(`null`)+stop("end_turn", `null`))
	if err != nil || r.UsageReported {
		t.Errorf("without usage: reported %v, error %v", r.UsageReported, err)
	}
	r, _, err = decode(t, start(`{"input_tokens":9,"output_tokens":1}`))
	if err == nil || r.Usage.Input != 9 || r.ServedModel != "exercise-1-0107" || r.ID != "msg_1" {
		t.Errorf("a cut response reports %+v", r)
	}
}

func TestAnAnswerThatWasNotStreamed(t *testing.T) {
	t.Parallel()
	d := newDecoder("m", nil)
	r, err := d.Close(d.Whole([]byte(`{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"a"},` +
		`{"type":"tool_use","id":"t","name":"f","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`)))
	if err != nil || r.Stop != llm.StopTools || r.Message.Text() != "a" || string(r.Message.ToolCalls()[0].Arguments) != `{"x":1}` {
		t.Errorf("%+v, %v", r, err)
	}
	for body, want := range map[string]llm.Class{
		`{"type":"error","error":{"type":"overloaded_error"}}`: llm.ClassOverloaded,
		`{"hello":1}`:       llm.ClassMalformed,
		`{"type":"message"`: llm.ClassMalformed,
	} {
		d := newDecoder("m", nil)
		if _, err := d.Close(d.Whole([]byte(body))); class(err) != want {
			t.Errorf("%s: error %v, want %s", body, err, want)
		}
	}
}

// FuzzAnthropicDecode checks that a stream is decoded the same whole and byte by byte, with the templates and without,
// and that nothing in it makes the decoder panic or report text that is not valid.
func FuzzAnthropicDecode(f *testing.F) {
	for _, r := range []llmtest.Reply{
		{Text: []string{"a", "b\n\"", "🙂"}, Stop: llmtest.Ends},
		{Thinking: []string{"x", "y", "z"}, Signature: "s", Text: []string{"a"}, Stop: llmtest.Cut},
		{Calls: []llmtest.ReplyCall{{ID: "1", Name: "f", Arguments: []string{"{\"a\"", ":1}"}}, {ID: "1", Name: "g"}}, Stop: llmtest.Calls},
	} {
		f.Add(strings.Join(events(r), ""))
	}
	f.Add(blockDelta(0, "text_delta", "text", "a") + blockDelta(0, "text_delta", "text", "b") + named("error", `{"error":{}}`))
	f.Add(blockDelta(1, "input_json_delta", "partial_json", "{") + blockStart(1, `{"type":"tool_use","input":[]}`) + blockStop(1))
	f.Fuzz(func(t *testing.T, body string) {
		r, deltas, err := decode(t, body)
		if !utf8.ValidString(deltas) {
			t.Errorf("deltas %q are not valid", deltas)
		}
		if (err == nil) != (r.Stop != "") {
			t.Errorf("stop %q beside error %v", r.Stop, err)
		}
		for _, p := range r.Message.Parts {
			if c := p.ToolCall; c != nil && (c.Arguments == nil) == (c.ArgumentsError == "") {
				t.Errorf("call %+v has both or neither of arguments and an error", c)
			}
		}
	})
}

// BenchmarkDecode decodes a long answer in the shape of the API.
func BenchmarkDecode(b *testing.B) {
	const chunks = 5000
	body := start(noUsage) + blockStart(0, `{"type":"text","text":""}`)
	var pieces strings.Builder
	for i := range chunks {
		pieces.WriteString(named("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" lorem"}`+
			strings.Repeat(" ", i%15)+`}`))
	}
	body += pieces.String() + blockStop(0) + stop("end_turn", `{"output_tokens":5000}`)
	for name, plain := range map[string]bool{"templates": false, "lexer": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := newDecoder("m", func(llm.Delta) error { return nil })
				d.plain = plain
				if _, err := wire.Decode(strings.NewReader(body), d); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/chunk")
		})
	}
}
