package google

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
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

// decode decodes a stream whole and byte by byte and checks that the two agree.
func decode(t *testing.T, body string) (llm.Response, string, error) {
	t.Helper()
	var h, slow heard
	r, err := wire.Decode(strings.NewReader(body), newDecoder("m", h.sink))
	r2, err2 := wire.Decode(iotest.OneByteReader(strings.NewReader(body)), newDecoder("m", slow.sink))
	if diff := cmp.Diff(r, r2); diff != "" || h.text != slow.text || errText(err) != errText(err2) {
		t.Errorf("decoded byte by byte: deltas %q and %q, errors %v and %v\n%s", h.text, slow.text, err, err2, diff)
	}
	return r, strings.TrimSpace(h.text), err
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

func TestPartsOfAnAnswer(t *testing.T) {
	t.Parallel()
	const signature = "c2ln"
	for _, tt := range []struct {
		name, in, deltas string
		want             []llm.Part
	}{
		{"text over events", parts(text("a")) + parts(text("b"), text("c")), "T0:abc", []llm.Part{llm.TextPart("abc")}},
		{"empty texts are no parts", parts(text("")) + parts(text("a")) + parts(thought("")), "T0:a", []llm.Part{llm.TextPart("a")}},
		{"thoughts and text", parts(thought("x")) + parts(thought("y")) + parts(text("a")), "R0:xy T0:a",
			[]llm.Part{{Type: llm.PartThinking, Text: "xy"}, llm.TextPart("a")}},
		{"a signed text stands alone", parts(text("a")) + parts(signed("b", signature)) + parts(text("c")) + parts(text("d")), "T0:abcd",
			[]llm.Part{llm.TextPart("a"), {Type: llm.PartText, Text: "b", Signature: signature}, llm.TextPart("cd")}},
		{"an empty signed text is kept", parts(text("a")) + parts(signed("", signature)), "T0:a",
			[]llm.Part{llm.TextPart("a"), {Type: llm.PartText, Signature: signature}}},
		{"an empty signed thought is kept", parts(`{"thoughtSignature": "c2ln","text": "","thought": true}`) + parts(text("a")), "T0:a",
			[]llm.Part{{Type: llm.PartThinking, Signature: signature}, llm.TextPart("a")}},
		{"the mark of a thought before its text", parts(`{"thought": true,"text": "x"}`), "R0:x", []llm.Part{{Type: llm.PartThinking, Text: "x"}}},
		{"a signature without anything else", parts(`{"thoughtSignature": "c2ln"}`), "", []llm.Part{{Type: llm.PartText, Signature: signature}}},
		{"parts of tools at the provider", parts(`{"executableCode": {"language": "PYTHON","code": "1"}}`, `{"codeExecutionResult": {"output": "1"}}`, text("a")),
			"T0:a", []llm.Part{llm.TextPart("a")}},
		{"null parts and strange shapes", parts("null", "1", `"x"`, "[]", "{}", `{"text": null}`, `{"text": 1}`, `{"functionCall": null}`, `{"functionCall": {}}`) +
			data(`{"candidates": null}`) + data(`{"candidates": [null,{"content": {"parts": null}},{"content": "x"}]}`) + parts(text("a")),
			"T0:a", []llm.Part{llm.TextPart("a")}},
		{"a second candidate, whose number comes last", data(`{"candidates": [{"content": {"parts": [{"text": "a"}]}},{"content": {"parts": [{"text": "z"}]},"finishReason": "SAFETY","index": 1}]}`),
			"T0:a", []llm.Part{llm.TextPart("a")}},
		{"a surrogate pair over two events", parts(`{"text": "a\ud83d"}`) + parts(`{"text": "\ude42"}`), "T0:a🙂", []llm.Part{llm.TextPart("a🙂")}},
		{"events in a list", data(`[{"candidates": [{"content": {"parts": [{"text": "a"}]}}]},{"candidates": [{"content": {"parts": [{"text": "b"}]}}]}]`),
			"T0:ab", []llm.Part{llm.TextPart("ab")}},
		{"unknown events", data(`{"news": 1}`) + data("[DONE]") + parts(text("a")), "T0:a", []llm.Part{llm.TextPart("a")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, deltas, err := decode(t, tt.in+finish("STOP", someUsage)+data("[DONE]"))
			if diff := cmp.Diff(tt.want, r.Message.Parts); diff != "" || err != nil || deltas != tt.deltas || r.Stop != llm.StopEnd {
				t.Errorf("deltas %q, want %q; stop %q, error %v (-want +got)\n%s", deltas, tt.deltas, r.Stop, err, diff)
			}
		})
	}
}

// calls writes the calls of a response on one line.
func calls(r llm.Response) string {
	var all []string
	for _, p := range r.Message.Parts {
		c := p.ToolCall
		if c == nil {
			continue
		}
		text := c.ProviderID + " " + c.Name + " " + string(c.Arguments)
		if c.ArgumentsError != "" {
			text += "!" + c.ArgumentsError
		}
		if p.Signature != "" {
			text += " " + p.Signature
		}
		all = append(all, text)
	}
	return strings.Join(all, " | ")
}

// piece is an event with a piece of a call.
func piece(members string) string { return parts(`{"functionCall": {` + members + `}}`) }

func TestToolCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, calls, deltas string }{
		{"whole", parts(function("a", "f", `{"x": 1}`)), `a f {"x": 1}`, `N0:f A0:{"x": 1} D0:`},
		{"without arguments", parts(function("a", "f", "{}")), `a f {}`, `N0:f A0:{} D0:`},
		{"with arguments of null", parts(function("a", "f", "null")), `a f {}`, `N0:f D0:`},
		{"without an id, mixed with text", parts(text("t"), function("", "f", `{"x": 1}`)) + parts(text("u"), function("", "g", `{"y": 2}`)) + parts(function("", "f", "{}")),
			` f {"x": 1} |  g {"y": 2} |  f {}`, `T0:t N0:f A0:{"x": 1} D0: T0:u N1:g A1:{"y": 2} D1: N2:f A2:{} D2:`},
		{"one id twice", parts(function("a", "f", `{"x": 1}`), function("a", "f", `{"x": 2}`)), `a f {"x": 1} | a f {"x": 2}`,
			`N0:f A0:{"x": 1} D0: N1:f A1:{"x": 2} D1:`},
		{"with a signature on the first of two", parts(strings.Replace(function("a", "f", "{}"), "}}", `},"thoughtSignature": "c2ln"}`, 1), function("b", "g", "{}")),
			`a f {} c2ln | b g {}`, `N0:f A0:{} D0: N1:g A1:{} D1:`},
		{"arguments as the text of another model", parts(function("a", "f", `"{\"x\":\"\\u00e4\"}"`)), `a f {"x":"\u00e4"}`, `N0:f A0:{"x":"\u00e4"} D0:`},
		{"a text that is no object", parts(function("a", "f", `"{\"x\":"`)), `a f !the argument text is not JSON: unexpected end at byte 5`, `N0:f A0:{"x": D0:`},
		{"a list as arguments", parts(function("a", "f", `[1]`)), `a f !the argument text is JSON, but not an object, at byte 0`, `N0:f A0:[1] D0:`},
		{"pieces", piece(`"name": "f","willContinue": true`) +
			piece(`"partialArgs": [{"jsonPath": "$.place","stringValue": "New ","willContinue": true}],"willContinue": true`) +
			piece(`"partialArgs": [{"jsonPath": "$.place","stringValue": "De\"lhi \ud83d"}],"willContinue": true`) +
			piece(`"partialArgs": [{"jsonPath": "$.place","stringValue": "\ude42"},{"jsonPath": "$.n","numberValue": 2}],"willContinue": true`) +
			piece(`"partialArgs": [{"jsonPath": "$['a b'].list[0].on","boolValue": true},{"jsonPath": "$[\"a b\"].list[1]","nullValue": "NULL_VALUE"},{"jsonPath": "$.e","stringValue": ""}],"willContinue": true`) +
			piece(``),
			` f {"place":"New De\"lhi \ud83d\ude42","n":2,"a b":{"list":[{"on":true},null]},"e":""}`,
			`N0:f A0:{"place":"New De\"lhi \ud83d\ude42","n":2,"a b":{"list":[{"on":true},null]},"e":""} D0:`},
		{"pieces of two calls, the first without an end", piece(`"id": "a","name": "f","partialArgs": [{"jsonPath": "$.x","numberValue": 1}],"willContinue": true`) +
			piece(`"id": "b","name": "g","partialArgs": [{"jsonPath": "$.y","numberValue": 2}]`), `a f {"x":1} | b g {"y":2}`, `N0:f A0:{"x":1} D0: N1:g A1:{"y":2} D1:`},
		{"no piece at all", piece(`"name": "f","willContinue": true`) + piece(``), ` f {}`, `N0:f D0:`},
		{"a piece without a value", piece(`"name": "f","partialArgs": [{"jsonPath": "$.x"},{},null]`), ` f {}`, `N0:f D0:`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, deltas, err := decode(t, tt.in+finish("STOP", someUsage))
			if got := calls(r); got != tt.calls || err != nil || r.Stop != llm.StopTools {
				t.Errorf("calls %s, stop %q, error %v; want %s", got, r.Stop, err, tt.calls)
			}
			if deltas != tt.deltas {
				t.Errorf("deltas %s, want %s", deltas, tt.deltas)
			}
		})
	}
}

func TestACallThatIsCutAtTheLimitIsNotDone(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"text":   parts(function("a", "write", `"{\"text\":\"half"`)),
		"pieces": piece(`"name": "write","partialArgs": [{"jsonPath": "$.text","stringValue": "half"}],"willContinue": true`),
	} {
		r, deltas, err := decode(t, in+finish("MAX_TOKENS", someUsage))
		if err != nil || r.Stop != llm.StopLength || strings.Contains(deltas, "D0") || r.Message.ToolCalls()[0].ArgumentsError == "" {
			t.Errorf("%s: %+v, deltas %s, error %v", name, r.Message.ToolCalls(), deltas, err)
		}
	}
}

func TestPiecesThatDoNotFitAreAnError(t *testing.T) {
	t.Parallel()
	for _, pieces := range []string{
		`{}`, `[{"stringValue":"x"}]`, `[{"jsonPath":"","stringValue":"x"}]`, `[{"jsonPath":"$","stringValue":"x"}]`, `[{"jsonPath":"x","stringValue":"x"}]`,
		`[{"jsonPath":"$x","stringValue":"x"}]`, `[{"jsonPath":"$.","stringValue":"x"}]`, `[{"jsonPath":"$.a..b","stringValue":"x"}]`, `[{"jsonPath":"$[","stringValue":"x"}]`,
		`[{"jsonPath":"$.a[","stringValue":"x"}]`, `[{"jsonPath":"$.a[1","stringValue":"x"}]`, `[{"jsonPath":"$.a[*]","stringValue":"x"}]`, `[{"jsonPath":"$.a[-1]","stringValue":"x"}]`,
		`[{"jsonPath":"$['a","stringValue":"x"}]`, `[{"jsonPath":"$['a'x","stringValue":"x"}]`, `[{"jsonPath":"$.a[1]","stringValue":"gap"}]`, `[{"jsonPath":"$[0]","stringValue":"a list at the root"}]`,
		`[{"jsonPath":"$.a[99999999999999999999]","stringValue":"x"}]`, `[{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a.b","stringValue":"x"}]`,
		`[{"jsonPath":"$.a.b","stringValue":"x"},{"jsonPath":"$.a","stringValue":"x"}]`, `[{"jsonPath":"$.a.b","stringValue":"x"},{"jsonPath":"$.a[0]","stringValue":"x"}]`,
		`[{"jsonPath":"$` + strings.Repeat(".a", deepest+1) + `","stringValue":"x"}]`,
	} {
		_, _, err := decode(t, piece(`"name": "f","partialArgs": `+pieces)+finish("STOP", someUsage))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Class != llm.ClassMalformed || !e.Retryable() {
			t.Errorf("%s: error %v, want a malformed response", pieces, err)
		}
	}
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"STOP": "end", "FUNCTION_CALL": "end", "MAX_TOKENS": "length", "CONTINUATION": "length",
		"SAFETY": "refused", "RECITATION": "refused", "LANGUAGE": "refused", "BLOCKLIST": "refused", "PROHIBITED_CONTENT": "refused", "SPII": "refused",
		"IMAGE_SAFETY": "refused", "IMAGE_PROHIBITED_CONTENT": "refused", "IMAGE_RECITATION": "refused",
		"MALFORMED_FUNCTION_CALL": "provider", "UNEXPECTED_TOOL_CALL": "provider", "TOO_MANY_TOOL_CALLS": "provider", "MALFORMED_RESPONSE": "provider",
		"OTHER": "provider", "NO_IMAGE": "provider", "IMAGE_OTHER": "provider", "MISSING_THOUGHT_SIGNATURE": "invalid-request",
		"FINISH_REASON_UNSPECIFIED": "unknown-stop", "OUT_OF_INK": "unknown-stop", "stop": "unknown-stop",
	} {
		r, _, err := decode(t, parts(text("a"))+finish(reason, someUsage))
		if got := string(r.Stop) + string(class(err)); got != want || r.RawStop != reason || r.Message.Text() != "a" {
			t.Errorf("%s: %q with raw %q, want %q", reason, got, r.RawStop, want)
		}
		if err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("%s is not named in %v", reason, err)
		}
		if r.Usage.Input != 7 || r.Usage.Output != 2 {
			t.Errorf("%s: usage %+v; what such an answer cost is lost", reason, r.Usage)
		}
	}
}

func TestAMalformedCallMayBeRetriedAndShowsNoArguments(t *testing.T) {
	t.Parallel()
	r, _, err := decode(t, data(`{"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL","finishMessage": "Malformed function call: write(text='secret')","index": 0}],`+
		`"usageMetadata": {"promptTokenCount": 7,"totalTokenCount": 7}}`))
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Class != llm.ClassProvider || !e.Retryable() || strings.Contains(err.Error(), "secret") || len(r.Message.Parts) != 0 || !r.UsageReported {
		t.Errorf("response %+v, error %v", r, err)
	}
}

func TestWhatAProviderExplainsIsInTheError(t *testing.T) {
	t.Parallel()
	_, _, err := decode(t, data(`{"candidates": [{"finishReason": "SAFETY","finishMessage": "not allowed"}]}`))
	if class(err) != llm.ClassRefused || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("error %v, want the explanation", err)
	}
}

func TestABlockedPromptIsRefused(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"SAFETY", "OTHER", "BLOCK_REASON_UNSPECIFIED"} {
		r, _, err := decode(t, data(`{"promptFeedback": {"blockReason": "`+reason+`","safetyRatings": []},"usageMetadata": {"promptTokenCount": 9}}`))
		if class(err) != llm.ClassRefused || !strings.Contains(err.Error(), "prompt") || !strings.Contains(err.Error(), reason) || r.RawStop != reason || r.Usage.Input != 9 {
			t.Errorf("%s: raw stop %q, usage %+v, error %v", reason, r.RawStop, r.Usage, err)
		}
	}
	r, _, err := decode(t, data(`{"promptFeedback": {"safetyRatings": [{"probability": "LOW"}]}}`)+parts(text("a"))+finish("STOP", someUsage))
	if err != nil || r.Message.Text() != "a" {
		t.Errorf("feedback that blocks nothing: %q, error %v", r.Message.Text(), err)
	}
}

func TestEndsOfAStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"before anything", "", "truncated"},
		{"in mid-text", parts(text("a")), "truncated"},
		{"after a whole call", parts(function("a", "f", "{}")), "truncated"},
		{"with its counts but without a reason", parts(text("a")) + data(`{"usageMetadata": `+someUsage+`}`), "truncated"},
		{"with a reason of null", data(`{"candidates": [{"finishReason": null}]}`), "truncated"},
		{"with an empty reason", data(`{"candidates": [{"finishReason": ""}]}`), "truncated"},
		{"with [DONE] alone", parts(text("a")) + data("[DONE]"), "truncated"},
		{"with a reason in each event", strings.Replace(parts(text("a")), `"index"`, `"finishReason": "STOP","index"`, 1) + finish("STOP", someUsage), "end"},
		{"with a second reason, which counts", finish("STOP", someUsage) + finish("MAX_TOKENS", someUsage), "length"},
		{"with counts after the reason", data(`{"candidates": [{"finishReason": "STOP"}]}`) + data(`{"usageMetadata": `+someUsage+`}`), "end"},
		{"not JSON", parts(text("a")) + data(`{"candidates`), "malformed"},
		{"not an object", data("7"), "malformed"},
		{"a list of numbers", data("[7]"), "malformed"},
		{"two values in one event", data("{} {}"), "malformed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _, err := decode(t, tt.in)
			if got := string(r.Stop) + string(class(err)); got != tt.want {
				t.Errorf("%q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

func TestErrorsInTheStream(t *testing.T) {
	t.Parallel()
	const overloaded = `{"error": {"code": 503,"message": "The model is overloaded.","status": "UNAVAILABLE"}}`
	for _, tt := range []struct {
		name, in string
		want     llm.Class
	}{
		{"an event", data(overloaded), llm.ClassOverloaded},
		{"after text", parts(text("a")) + data(overloaded), llm.ClassOverloaded},
		{"in a list", data("[" + overloaded + "]"), llm.ClassOverloaded},
		{"too many requests", data(`{"error": {"code": 429,"message": "You exceeded your current quota","status": "RESOURCE_EXHAUSTED","details": [{"retryDelay": "9s"}]}}`), llm.ClassRateLimit},
		{"an overflow", data(`{"error": {"code": 400,"message": "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status": "INVALID_ARGUMENT"}}`),
			llm.ClassContextOverflow},
		{"without a code", data(`{"error": {"message": "boom","status": "INTERNAL"}}`), llm.ClassProvider},
		{"without the name of its field", parts(text("a")) + "{\r\n  \"error\": {\r\n    \"code\": 429,\r\n    \"message\": \"slow down\"\r\n  }\r\n}\r\n", llm.ClassRateLimit},
		{"a text alone", data(`{"error": "boom"}`), llm.ClassProvider},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := decode(t, tt.in); class(err) != tt.want {
				t.Errorf("error %v, want class %s", err, tt.want)
			}
		})
	}
	if r, _, err := decode(t, data(`{"error": null}`)+finish("STOP", someUsage)); err != nil || r.Stop != llm.StopEnd {
		t.Errorf("an error of null: %v", err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     llm.Usage
	}{
		{"plain", `{"promptTokenCount": 10,"candidatesTokenCount": 3,"totalTokenCount": 13}`, llm.Usage{Input: 10, Output: 3}},
		{"cached tokens are part of the prompt", `{"promptTokenCount": 10,"cachedContentTokenCount": 8,"candidatesTokenCount": 3}`, llm.Usage{Input: 2, CacheRead: 8, Output: 3}},
		{"thoughts are no candidates", `{"promptTokenCount": 10,"candidatesTokenCount": 3,"thoughtsTokenCount": 40,"totalTokenCount": 53}`, llm.Usage{Input: 10, Output: 43, Reasoning: 40}},
		{"unless the total says so", `{"promptTokenCount": 10,"candidatesTokenCount": 43,"thoughtsTokenCount": 40,"totalTokenCount": 53}`, llm.Usage{Input: 10, Output: 43, Reasoning: 40}},
		{"thoughts only", `{"promptTokenCount": 10,"thoughtsTokenCount": 40,"totalTokenCount": 50}`, llm.Usage{Input: 10, Output: 40, Reasoning: 40}},
		{"results of tools at the provider are input", `{"promptTokenCount": 10,"toolUsePromptTokenCount": 5,"cachedContentTokenCount": 4,"candidatesTokenCount": 3,"totalTokenCount": 18}`,
			llm.Usage{Input: 11, CacheRead: 4, Output: 3}},
		{"absurd counts", `{"promptTokenCount": -5,"cachedContentTokenCount": 8,"candidatesTokenCount": "x","thoughtsTokenCount": null}`, llm.Usage{CacheRead: 8}},
		{"as numbers with a point", `{"promptTokenCount": 10.0,"candidatesTokenCount": 3e0}`, llm.Usage{Input: 10, Output: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _, err := decode(t, data(`{"usageMetadata": {"promptTokenCount": 1,"candidatesTokenCount": 0}}`)+finish("STOP", tt.in))
			if err != nil || !r.UsageReported {
				t.Fatalf("reported %v, error %v", r.UsageReported, err)
			}
			if diff := cmp.Diff(tt.want, r.Usage); diff != "" {
				t.Error(diff)
			}
		})
	}
	r, _, err := decode(t, data(`{"candidates": [{"finishReason": "STOP"}],"usageMetadata": null}`))
	if err != nil || r.UsageReported || r.Usage != (llm.Usage{}) {
		t.Errorf("without counts: reported %v, usage %+v, error %v", r.UsageReported, r.Usage, err)
	}
}

func TestResponsesThatWereNotStreamed(t *testing.T) {
	t.Parallel()
	const one = `{"candidates": [{"content": {"parts": [{"text": "a"}]}}],"modelVersion": "v","responseId": "r"}`
	const last = `{"candidates": [{"content": {"parts": [{"text": "b"}]},"finishReason": "STOP"}],"usageMetadata": {"promptTokenCount": 1}}`
	for _, tt := range []struct{ name, in, text, want string }{
		{"whole", last, "b", "end"},
		{"the events as a list, from a proxy that loses the query", "[" + one + ",\r\n" + last + "]", "ab", "end"},
		{"a list that lacks its end", "[" + one + "]", "a", "truncated"},
		{"an error", `{"error": {"code": 503,"message": "x"}}`, "", "overloaded"},
		{"an error in a list", `[{"error": {"code": 503,"message": "x"}}]`, "", "overloaded"},
		{"something else", `{"object": "list"}`, "", "malformed"},
		{"a list of nothing", `[]`, "", "malformed"},
		{"no JSON", `{"candidates": [`, "", "malformed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDecoder("m", nil)
			r, err := d.Close(d.Whole([]byte(tt.in)))
			if got := string(r.Stop) + string(class(err)); got != tt.want || r.Message.Text() != tt.text {
				t.Errorf("text %q, %q (%v); want %q and %q", r.Message.Text(), got, err, tt.text, tt.want)
			}
		})
	}
}
