package openaichat

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

// heard is a response as its sink heard it: pieces of one kind joined, calls closed with a semicolon.
type heard struct {
	text string
	last llm.Delta
}

func (h *heard) sink(d llm.Delta) error {
	mark := map[llm.DeltaKind]string{llm.DeltaText: "T:", llm.DeltaThinking: "R:", llm.DeltaToolName: "N:",
		llm.DeltaToolArguments: "A:", llm.DeltaToolDone: "D:"}[d.Kind]
	if d.Kind != h.last.Kind || d.Index != h.last.Index {
		h.text += " " + strings.Replace(mark, ":", string(rune('0'+d.Index))+":", 1)
	}
	h.last = llm.Delta{Kind: d.Kind, Index: d.Index}
	h.text += string(d.Text)
	return nil
}

// decode decodes a stream four ways, whole and byte by byte, with and without templates, and checks that they agree.
func decode(t *testing.T, body string) (llm.Response, string, error) {
	t.Helper()
	return decodeWith(t, body, false)
}

func decodeWith(t *testing.T, body string, missingFinish bool) (llm.Response, string, error) {
	t.Helper()
	run := func(plain, bytes bool) (llm.Response, string, error) {
		var h heard
		d := newDecoder(llm.Origin{API: API, Model: "m"}, missingFinish, h.sink)
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

// part is an event with a delta and nothing else.
func part(members string) string { return data(`{"choices":[{"delta":{` + members + `}}]}`) }

func tool(pieces string) string { return part(`"tool_calls":[` + pieces + `]`) }

const ended = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"

func TestToolCallsAreAssembled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, calls, deltas string }{
		{"in pieces", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`) +
			tool(`{"index":0,"function":{"arguments":"{\"x\""}}`) + tool(`{"index":0,"function":{"arguments":":1}"}}`),
			`a f {"x":1}`, `N0:f A0:{"x":1} D0:`},
		{"whole in one event", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`),
			`a f {} | b g {"y":2}`, `N0:f N1:g A1:{"y":2} A0:{} D0: D1:`},
		{"all with index 0, told apart by ids", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`) +
			tool(`{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`),
			`a f {"x":1} | b g {"y":2}`, `N0:f A0:{"x":1} D0: N1:g A1:{"y":2} D1:`},
		{"all with index 0, pieces interleaved", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`) +
			tool(`{"index":0,"id":"b","function":{"name":"g","arguments":""}}`) + tool(`{"index":0,"id":"a","function":{"arguments":"{\"x\""}}`) +
			tool(`{"index":0,"id":"b","function":{"arguments":"{\"y\""}}`) + tool(`{"index":0,"id":"a","function":{"arguments":":1}"}}`) +
			tool(`{"index":0,"id":"b","function":{"arguments":":2}"}}`),
			`a f {"x":1} | b g {"y":2}`, `N0:f A0:{"x" N1:g A1:{"y" A0::1} A1::2} D0: D1:`},
		{"a gap before and between the indexes", tool(`{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}`) +
			tool(`{"index":7,"id":"b","function":{"name":"g","arguments":"{}"}}`), `a f {} | b g {}`, `N0:f A0:{} D0: N1:g A1:{} D1:`},
		{"without index", tool(`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`) + part(`"content":"text"`) +
			tool(`{"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`), `a f {"x":1} | b g {"y":2}`,
			`N0:f A0:{"x":1} T0:text D0: N1:g A1:{"y":2} D1:`},
		{"without index and id", tool(`{"function":{"name":"f","arguments":"{\"x\""}}`) + tool(`{"function":{"arguments":":1}"}}`) +
			tool(`{"function":{"name":"f","arguments":"{\"x\":2}"}}`), ` f {"x":1} |  f {"x":2}`,
			`N0:f A0:{"x":1} D0: N1:f A1:{"x":2} D1:`},
		{"index null", tool(`{"index":null,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), `a f {"x":1}`, `N0:f A0:{"x":1} D0:`},
		{"a late id", tool(`{"index":0,"function":{"name":"f","arguments":"{"}}`) + tool(`{"index":0,"id":"a","function":{"arguments":"}"}}`),
			`a f {}`, `N0:f A0:{} D0:`},
		{"no id", tool(`{"index":0,"function":{"name":"f","arguments":"{}"}}`), ` f {}`, `N0:f A0:{} D0:`},
		{"an empty id", tool(`{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}`), ` f {}`, `N0:f A0:{} D0:`},
		{"one id for two calls", tool(`{"index":0,"id":"call_0","function":{"name":"f","arguments":"{\"x\":1}"}}`) +
			tool(`{"index":1,"id":"call_0","function":{"name":"f","arguments":"{\"x\":2}"}}`),
			`call_0 f {"x":1} | call_0 f {"x":2}`, `N0:f A0:{"x":1} D0: N1:f A1:{"x":2} D1:`},
		{"one id and one index for two calls", tool(`{"index":0,"id":"call_0","function":{"name":"f","arguments":"{\"x\":1}"}}`) +
			tool(`{"index":0,"id":"call_0","function":{"name":"f","arguments":"{\"x\":2}"}}`),
			`call_0 f {"x":1} | call_0 f {"x":2}`, `N0:f A0:{"x":1} D0: N1:f A1:{"x":2} D1:`},
		{"id and name in every piece", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`) +
			tool(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`), `a f {"x":1}`, `N0:f A0:{"x":1} D0:`},
		{"an id that changes within a call", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`) +
			tool(`{"index":0,"id":"zzz","function":{"arguments":"}"}}`), `a f {}`, `N0:f A0:{} D0:`},
		{"a late name", tool(`{"index":0,"id":"a","function":{"arguments":"{\"x\""}}`) + tool(`{"index":0,"function":{"name":"f","arguments":":1}"}}`),
			`a f {"x":1}`, `N0:f A0:{"x":1} D0:`},
		{"a late name of the first of two", tool(`{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}`) +
			tool(`{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`) + tool(`{"index":0,"function":{"name":"f"}}`),
			`a f {"x":1} | b g {"y":2}`, `N0:f A0:{"x":1} D0: N1:g A1:{"y":2} D1:`},
		{"a name in pieces", tool(`{"index":0,"id":"a","function":{"name":"get_"}}`) + tool(`{"index":0,"function":{"name":"weather","arguments":"{}"}}`),
			`a get_weather {}`, `N0:get_weather A0:{} D0:`},
		{"no name", tool(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), `a  {}`, `N0: A0:{} D0:`},
		{"arguments as an object", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x": [1, "y"]}}}`),
			`a f {"x": [1, "y"]}`, `N0:f A0:{"x": [1, "y"]} D0:`},
		{"arguments null", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`), `a f {}`, `N0:f D0:`},
		{"empty arguments", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), `a f {}`, `N0:f D0:`},
		{"blank arguments", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":" \n"}}`), `a f {}`, "N0:f A0: \n D0:"},
		{"an empty object and then more", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) +
			tool(`{"index":0,"function":{"arguments":"{\"path\":"}}`) + tool(`{"index":0,"function":{"arguments":"\"a.txt\"}"}}`),
			`a f {"path":"a.txt"}`, `N0:f A0:{"path":"a.txt"} D0:`},
		{"the old form", part(`"function_call":{"name":"f","arguments":"{\"x\""}`) + part(`"function_call":{"arguments":":1}"}`),
			` f {"x":1}`, `N0:f A0:{"x":1} D0:`},
		{"text, quotes and emoji in odd pieces", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\\"}}`) +
			tool(`{"index":0,"function":{"arguments":"\"\ud83d"}}`) + tool(`{"index":0,"function":{"arguments":"\ude42\\\\\"}"}}`),
			`a f {"x":"\"🙂\\"}`, `N0:f A0:{"x":"\"🙂\\"} D0:`},
		{"null in every place", part(`"tool_calls":null`) + tool(`null`) + data(`{"choices":null}`) + data(`{"choices":[null]}`) +
			data(`{"choices":[{"delta":null}]}`) + tool(`{"index":0,"id":"a","function":null}`) +
			tool(`{"index":0,"id":null,"function":{"name":"f","arguments":"{}"}}`), `a f {}`, `N0:f A0:{} D0:`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, deltas, err := decode(t, tt.in+ended)
			if err != nil || r.Stop != llm.StopTools {
				t.Fatalf("stop %q, error %v", r.Stop, err)
			}
			var calls []string
			for _, c := range r.Message.ToolCalls() {
				calls = append(calls, c.ProviderID+" "+c.Name+" "+string(c.Arguments))
			}
			if got := strings.Join(calls, " | "); got != tt.calls {
				t.Errorf("calls  %s\nwant   %s", got, tt.calls)
			}
			if deltas != tt.deltas {
				t.Errorf("deltas %s\nwant   %s", deltas, tt.deltas)
			}
		})
	}
}

func TestArgumentsThatAreNoObjectAreReportedAndKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ arguments, want string }{
		"a raw line feed in a string": {"{\"a\":\"secret\nx\"}", "the argument text is not JSON: a control character in a string at byte 12"},
		"a trailing comma":            {`{"a":"secret",}`, "the argument text is not JSON: a comma before a closing bracket at byte 14"},
		"cut":                         {`{"a":1`, "the argument text is not JSON: no comma or closing bracket at byte 6"},
		"a list":                      {`["secret"]`, "the argument text is JSON, but not an object, at byte 0"},
		"two objects":                 {`{"a":1}{"b":2}`, "the argument text is not JSON: text after the value at byte 7"},
		"words":                       {`secret`, "the argument text is not JSON: an unexpected character at byte 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, err := decode(t, tool(`{"index":0,"id":"a","function":{"name":"f","arguments":`+string(wire.AppendString(nil, tt.arguments))+`}}`)+ended)
			if err != nil {
				t.Fatal(err)
			}
			c := r.Message.ToolCalls()[0]
			if c.ArgumentsError != tt.want || c.Arguments != nil || c.RawArguments != tt.arguments {
				t.Errorf("%+v, want error %q", c, tt.want)
			}
			if strings.Contains(c.ArgumentsError, "secret") {
				t.Errorf("the error quotes the arguments: %s", c.ArgumentsError)
			}
		})
	}
}

func TestArgumentsOfAnotherTypeAreReported(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`[1]`, `5`, `true`} {
		r, _, err := decode(t, tool(`{"index":0,"id":"a","function":{"name":"f","arguments":`+value+`}}`)+ended)
		if err != nil || r.Message.ToolCalls()[0].ArgumentsError == "" {
			t.Errorf("%s: %+v, %v", value, r.Message.ToolCalls()[0], err)
		}
	}
}

func TestACallCutByTheOutputLimitIsNotDone(t *testing.T) {
	t.Parallel()
	cut := tool(`{"index":0,"id":"a","function":{"name":"write","arguments":"{\"text\":\"half"}}`)
	r, deltas, err := decode(t, cut+finish("length"))
	if err != nil || r.Stop != llm.StopLength || strings.Contains(deltas, "D0:") || r.Message.ToolCalls()[0].ArgumentsError == "" {
		t.Errorf("length: stop %q, deltas %s, error %v", r.Stop, deltas, err)
	}
	r, _, err = decode(t, cut+finish("tool_calls"))
	if err != nil || r.Message.ToolCalls()[0].ArgumentsError == "" {
		t.Errorf("relabelled by a router: %+v, error %v", r.Message.ToolCalls()[0], err)
	}
}

func TestThinkingComesFromOnePlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, thinking, field string }{
		{"reasoning_content", part(`"reasoning_content":"a"`) + part(`"reasoning_content":"b"`), "ab", "reasoning_content"},
		{"reasoning", part(`"reasoning":"a"`), "a", "reasoning"},
		{"reasoning_text", part(`"reasoning_text":"a"`), "a", "reasoning_text"},
		{"two keys at once", part(`"reasoning":"a","reasoning_content":"a"`) + part(`"reasoning":"b","reasoning_content":"b"`), "ab", "reasoning_content"},
		{"one key and its details", part(`"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]`), "a", "reasoning"},
		{"details alone", part(`"reasoning_details":[{"type":"reasoning.summary","summary":"a"},{"type":"reasoning.encrypted","data":"zz"}]`),
			"a", "reasoning_details"},
		{"an object", part(`"reasoning_content":{"text":"a"}`), "a", "reasoning_content"},
		{"empty strings", part(`"reasoning_content":""`) + part(`"reasoning":""`), "", ""},
		{"null", part(`"reasoning_content":null,"reasoning":null`), "", ""},
		{"parts of content", part(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]`), "a", "reasoning_details"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _, err := decode(t, tt.in+part(`"content":"answer"`)+finish("stop"))
			if err != nil || r.Message.Text() != "answer" {
				t.Fatalf("text %q, error %v", r.Message.Text(), err)
			}
			thinking, field := "", ""
			for _, p := range r.Message.Parts {
				if p.Type == llm.PartThinking {
					thinking += p.Text
					field = p.Field
				}
			}
			if thinking != tt.thinking || field != tt.field {
				t.Errorf("thinking %q in %q, want %q in %q", thinking, field, tt.thinking, tt.field)
			}
		})
	}
}

func TestThinkingComesBeforeTextOfTheSameEvent(t *testing.T) {
	t.Parallel()
	_, deltas, err := decode(t, part(`"content":"b","reasoning_content":"a"`)+finish("stop"))
	if want := "R0:a T0:b"; deltas != want || err != nil {
		t.Errorf("deltas %s, error %v; want %s", deltas, err, want)
	}
}

func TestContentShapes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"escapes after plain text", part(`"content":"a"`) + part(`"content":"b\n\"\\\u00e4"`) + part(`"content":"c"`), "ab\n\"\\äc"},
		{"a list of parts", part(`"content":[{"type":"text","text":"a"},"b"]`), "ab"},
		{"null and empty", part(`"content":null`) + part(`"content":""`) + part(`"content":"a"`), "a"},
		{"a second choice", data(`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"NO"}}]}`) +
			data(`{"choices":[{"index":1,"delta":{"content":"NO"},"finish_reason":"length"}]}`), "a"},
		{"the index after the delta", data(`{"choices":[{"delta":{"content":"NO"},"index":1}]}`) + part(`"content":"a"`), "a"},
		{"the whole text again as a message", part(`"content":"a"`) + part(`"content":"b"`) +
			data(`{"choices":[{"message":{"role":"assistant","content":"ab"}}]}`), "ab"},
		{"the whole text again with the finish mark", part(`"content":"a"`) + part(`"content":"b"`) +
			data(`{"choices":[{"delta":{"content":"ab"},"finish_reason":"stop"}]}`), "ab"},
		{"a last piece with the finish mark", part(`"content":"a"`) + part(`"content":"b"`) +
			data(`{"choices":[{"delta":{"content":"c"},"finish_reason":"stop"}]}`), "abc"},
		{"one repeated word is no repetition", part(`"content":"ha"`) + data(`{"choices":[{"delta":{"content":"ha"},"finish_reason":"stop"}]}`), "haha"},
		{"a message without deltas", data(`{"choices":[{"message":{"role":"assistant","content":"ab"}}]}`), "ab"},
		{"padding of changing size", data(`{"choices":[{"delta":{"content":"a"}}],"obfuscation":"xx"}`) +
			data(`{"choices":[{"delta":{"content":"b"}}],"obfuscation":"y"}`) + data(`{"choices":[{"delta":{"content":"c"}}],"obfuscation":""}`), "abc"},
		{"another member after the text", part(`"content":"a"`) + data(`{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}`), "ab"},
		{"a surrogate pair over two events", part(`"content":"a\ud83d"`) + part(`"content":"\ude42b"`), "a🙂b"},
		{"a rune over two events", part("\"content\":\"a\xf0\x9f\"") + part("\"content\":\"\x99\x82b\""), "a🙂b"},
		{"a lone surrogate", part(`"content":"a\ud83d"`) + part(`"content":"b"`), "a\uFFFDb"},
		{"a surrogate at the end", part(`"content":"a\ud83d"`), "a\uFFFD"},
		{"line separators", part("\"content\":\"a\u2028b\u2029\""), "a\u2028b\u2029"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, deltas, err := decode(t, tt.in+finish("stop"))
			if err != nil || r.Message.Text() != tt.want || deltas != strings.TrimSpace("T0:"+tt.want) {
				t.Errorf("text %q, deltas %q, error %v; want %q", r.Message.Text(), deltas, err, tt.want)
			}
		})
	}
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"stop": "end", "end": "end", "eos": "end", "length": "length", "max_tokens": "length", "tool_calls": "tools", "function_call": "tools",
		"content_filter": "refused", "refusal": "refused", "sensitive": "refused",
		"error": "provider", "network_error": "provider", "malformed_function_call": "provider", "MALFORMED_FUNCTION_CALL": "provider",
		"model_context_window_exceeded": "context-overflow", "out_of_ink": "unknown-stop",
	} {
		r, _, err := decode(t, part(`"content":"a"`)+finish(reason))
		got := string(r.Stop) + string(class(err))
		if got != want || r.RawStop != reason || r.Message.Text() != "a" {
			t.Errorf("%s: %q with raw %q, want %q", reason, got, r.RawStop, want)
		}
		if err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("%s is not named in %v", reason, err)
		}
	}
}

func TestARefusalTextIsARefusal(t *testing.T) {
	t.Parallel()
	_, _, err := decode(t, part(`"refusal":"I can"`)+part(`"refusal":"not."`)+finish("stop"))
	if class(err) != llm.ClassRefused || !strings.Contains(err.Error(), "I cannot.") {
		t.Errorf("error %v", err)
	}
}

func TestEndsOfAStream(t *testing.T) {
	t.Parallel()
	const text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
	for _, tt := range []struct {
		name, in      string
		missingFinish bool
		want          string
	}{
		{"in mid-text", text, false, "truncated"},
		{"before anything", "", false, "truncated"},
		{"comments only", ": ping\n\n: ping\n\n", false, "truncated"},
		{"usage only", data(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`), false, "truncated"},
		{"within the finish mark", text + strings.TrimSuffix(finish("stop"), "\n\n"), false, "truncated"},
		{"[DONE] without a finish reason", text + data("[DONE]"), false, "truncated"},
		{"the same where it is usual", text + data("[DONE]"), true, "end"},
		{"the same without [DONE]", text, true, "truncated"},
		{"the same after a call", tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + data("[DONE]"), true, "tools"},
		{"without [DONE]", text + finish("stop"), false, "end"},
		{"an empty finish reason", text + finish("") + data("[DONE]"), false, "truncated"},
		{"CRLF, comments and ids", strings.ReplaceAll(": ping\nid: 7\n"+text+": ping\n\n"+finish("stop"), "\n", "\r\n"), false, "end"},
		{"no space after data:", strings.ReplaceAll(text+finish("stop"), "data: ", "data:"), false, "end"},
		{"an event over several lines", "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]}\n\n" + finish("stop"), false, "end"},
		{"an event that is not JSON", text + data(`{"id":"c1","object":"chat.comp`) + finish("stop"), false, "malformed"},
		{"an event that is no object", text + data(`[1]`) + finish("stop"), false, "malformed"},
		{"a page", "<html>\n<body>\n\n</body></html>", false, "malformed"},
		{"an error object", text + data(`{"error":{"message":"Overloaded","code":529}}`), false, "overloaded"},
		{"an error inside a choice", text + data(`{"choices":[{"delta":{},"finish_reason":"error","error":{"code":502,"message":"x"}}]}`), false, "overloaded"},
		{"an error as a string", text + data(`{"error":"gone"}`), false, "provider"},
		{"a flat error", text + data(`{"object":"error","message":"prompt is too long","code":400}`), false, "context-overflow"},
		{"an error that is null", text + data(`{"error":null,"choices":[]}`) + finish("stop"), false, "end"},
		{"data after [DONE]", text + finish("stop") + data("[DONE]") + data("junk"), false, "end"},
		{"an empty data field", "data:\n\n" + text + "data: \n\n" + finish("stop"), false, "end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _, err := decodeWith(t, tt.in, tt.missingFinish)
			if got := string(r.Stop) + string(class(err)); got != tt.want {
				t.Errorf("%q, error %v; want %q", got, err, tt.want)
			}
			if err != nil && r.Stop != "" {
				t.Errorf("stop %q beside an error", r.Stop)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	usage := func(members string) string { return data(`{"choices":[],"usage":{` + members + `}}`) }
	for _, tt := range []struct {
		name, in string
		want     llm.Usage
		reported bool
	}{
		{"cached tokens are part of the prompt", usage(`"prompt_tokens":1000,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":900}`),
			llm.Usage{Input: 100, CacheRead: 900, Output: 50}, true},
		{"cache hits of DeepSeek", usage(`"prompt_tokens":1000,"completion_tokens":5,"prompt_cache_hit_tokens":900,"prompt_cache_miss_tokens":100`),
			llm.Usage{Input: 100, CacheRead: 900, Output: 5}, true},
		{"cached tokens beside the prompt", usage(`"prompt_tokens":10,"completion_tokens":5,"cached_tokens":4`),
			llm.Usage{Input: 6, CacheRead: 4, Output: 5}, true},
		{"cache writes", usage(`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":3}`),
			llm.Usage{Input: 5, CacheRead: 2, CacheWrite: 3, Output: 5}, true},
		{"reasoning is part of the completion", usage(`"prompt_tokens":1,"completion_tokens":500,"completion_tokens_details":{"reasoning_tokens":400}`),
			llm.Usage{Input: 1, Output: 500, Reasoning: 400}, true},
		{"unless the total says otherwise", usage(`"prompt_tokens":496,"completion_tokens":77,"total_tokens":694,"completion_tokens_details":{"reasoning_tokens":121}`),
			llm.Usage{Input: 496, Output: 198, Reasoning: 121}, true},
		{"more cached than prompted", usage(`"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":20}`),
			llm.Usage{CacheRead: 20, Output: 5}, true},
		{"negative counts", usage(`"prompt_tokens":-10,"completion_tokens":-5`), llm.Usage{}, true},
		{"running totals: the last one counts", usage(`"prompt_tokens":10,"completion_tokens":1`) + usage(`"prompt_tokens":10,"completion_tokens":2`) +
			data(`{"choices":[],"usage":null}`), llm.Usage{Input: 10, Output: 2}, true},
		{"in the choice", data(`{"choices":[{"delta":{},"usage":{"prompt_tokens":10,"completion_tokens":3}}]}`), llm.Usage{Input: 10, Output: 3}, true},
		{"an empty object changes nothing", usage(`"prompt_tokens":10,"completion_tokens":1`) + usage(``), llm.Usage{Input: 10, Output: 1}, true},
		{"null", data(`{"choices":[],"usage":null}`), llm.Usage{}, false},
		{"none", "", llm.Usage{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _, err := decode(t, part(`"content":"a"`)+finish("stop")+tt.in)
			if err != nil || r.Usage != tt.want || r.UsageReported != tt.reported {
				t.Errorf("%+v (reported %v), error %v; want %+v", r.Usage, r.UsageReported, err, tt.want)
			}
			cut, _, err := decode(t, tt.in+part(`"content":"a"`))
			if err == nil || cut.Usage != tt.want {
				t.Errorf("a cut response reports %+v, want %+v", cut.Usage, tt.want)
			}
		})
	}
}

func TestTheBilledPrice(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]llm.MicroUSD{
		`"cost":0.000106,"cost_details":{"upstream_inference_cost":0.000106}`:          106,
		`"cost":0.00001,"is_byok":true,"cost_details":{"upstream_inference_cost":0.5}`: 500_010,
		`"cost":9.19e-05`: 92, `"cost":0`: 0,
		`"cost":null`: -1, `"cost":-1`: -1, `"x":1`: -1,
	} {
		r, _, err := decode(t, finish("stop")+data(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,`+members+`}}`))
		got := llm.MicroUSD(-1)
		if r.Billed != nil {
			got = *r.Billed
		}
		if err != nil || got != want {
			t.Errorf("%s: %d, error %v; want %d", members, got, err, want)
		}
	}
}
