package openairesponses

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

// heard is a response as its sink heard it: pieces of one kind joined.
type heard struct {
	text string
	last llm.Delta
}

func (h *heard) sink(d llm.Delta) error {
	if d.Kind != h.last.Kind || d.Index != h.last.Index {
		h.text += fmt.Sprintf(" %c%d:", " TRNAD"[d.Kind], d.Index)
	}
	h.last = llm.Delta{Kind: d.Kind, Index: d.Index}
	h.text += string(d.Text)
	return nil
}

// decode decodes a stream whole, byte by byte and without templates, and checks that they agree.
func decode(t *testing.T, body string) (llm.Response, string, error) {
	t.Helper()
	run := func(plain bool, r io.Reader) (llm.Response, string, error) {
		var h heard
		d := testDecoder(h.sink)
		d.plain = plain
		response, err := wire.Decode(r, d)
		return response, h.text, err
	}
	r, text, err := run(false, strings.NewReader(body))
	for name, other := range map[string]struct {
		plain bool
		r     io.Reader
	}{
		"byte by byte": {false, iotest.OneByteReader(strings.NewReader(body))}, "in full": {true, strings.NewReader(body)},
	} {
		r2, text2, err2 := run(other.plain, other.r)
		if diff := cmp.Diff(r, r2); diff != "" || text != text2 || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Errorf("decoded %s: deltas %q and %q, errors %v and %v\n%s", name, text, text2, err, err2, diff)
		}
	}
	return r, strings.TrimSpace(text), err
}

func at(index int, kind, members string) string {
	return named("response."+kind, fmt.Sprintf(`"output_index":%d,%s`, index, members))
}

func completed(output string) string {
	return named("response.completed", `"response":{"status":"completed","output":[`+output+`]}`)
}

func TestTextIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	message := func(text string) string {
		return `{"type":"message","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"` + text + `"}]}`
	}
	delta := at(0, "output_text.delta", `"content_index":0,"delta":"Hel"`) + at(0, "output_text.delta", `"content_index":0,"delta":"lo"`)
	done := func(text string) string { return at(0, "output_text.done", `"content_index":0,"text":"`+text+`"`) }
	for name, tt := range map[string]struct{ body, text, deltas string }{
		"in pieces":                  {delta + completed(""), "Hello", "T0:Hello"},
		"in pieces and whole thrice": {delta + done("Hello") + at(0, "output_item.done", `"item":`+message("Hello")) + completed(message("Hello")), "Hello", "T0:Hello"},
		"only when it is done":       {done("Hello") + completed(message("Hello")), "Hello", "T0:Hello"},
		"only as an item":            {at(0, "output_item.done", `"item":`+message("Hello")) + completed(""), "Hello", "T0:Hello"},
		"only in the last event":     {completed(message("Hello")), "Hello", "T0:Hello"},
		"the end in the whole only":  {delta + done("Hello!") + completed(""), "Hello!", "T0:Hello!"},
		"the whole corrects it":      {delta + done("Good day") + completed(message("Good day")), "Good day", "T0:Hello"},
		"a rune cut between pieces": {at(0, "output_text.delta", `"delta":"a\ud83d"`) + at(0, "output_text.delta", `"delta":"\ude42"`) + done(`a\ud83d\ude42`) +
			completed(""), "a🙂", "T0:a🙂"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, deltas, err := decode(t, body(tt.body))
			if err != nil || r.Message.Text() != tt.text || deltas != tt.deltas || len(r.Message.Parts) != 1 {
				t.Errorf("text %q in %d parts, deltas %q, error %v; want %q and %q", r.Message.Text(), len(r.Message.Parts), deltas, err, tt.text, tt.deltas)
			}
		})
	}
}

func body(events string) string {
	return named("response.created", `"response":{"id":"resp_1","status":"in_progress","model":"m-1"}`) + events
}

func TestThinkingIsKeptAsTheItemThatCame(t *testing.T) {
	t.Parallel()
	item := func(encrypted string) string {
		return `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]` + encrypted + `}`
	}
	const sealed = `,"encrypted_content":"gAAA="`
	pieces := at(0, "reasoning_summary_text.delta", `"summary_index":0,"delta":"a"`) + at(0, "reasoning_summary_text.done", `"summary_index":0,"text":"a"`) +
		at(0, "reasoning_summary_text.delta", `"summary_index":1,"delta":"b"`)
	for name, tt := range map[string]struct {
		body, text, signature string
		redacted              bool
	}{
		"summaries are one text":                {pieces + at(0, "output_item.done", `"item":`+item(sealed)), "a\n\nb", item(sealed), false},
		"the summary comes with the item":       {at(0, "output_item.done", `"item":`+item(sealed)), "a\n\nb", item(sealed), false},
		"encrypted in the last event only":      {pieces + at(0, "output_item.done", `"item":`+item("")) + completed(item(sealed)), "a\n\nb", item(sealed), false},
		"the item in the last event only":       {completed(item(sealed)), "a\n\nb", item(sealed), false},
		"encrypted twice, the first one counts": {at(0, "output_item.done", `"item":`+item(sealed)) + completed(item(`,"encrypted_content":"other"`)), "a\n\nb", item(sealed), false},
		"no text to read": {at(0, "output_item.done", `"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"x"}`), "",
			`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"x"}`, true},
		"plain text of an open model": {at(0, "reasoning_text.delta", `"content_index":0,"delta":"open"`) +
			at(0, "output_item.done", `"item":{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"open"}]}`), "open",
			`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"open"}]}`, false},
		"summary and an empty text of one item": {pieces + at(0, "reasoning_text.delta", `"summary_index":1,"delta":""`) + at(0, "reasoning_summary_text.delta", `"summary_index":1,"delta":"c"`) +
			at(0, "output_item.done", `"item":`+item(sealed)), "a\n\nbc", item(sealed), false},
		"text and summary of one item": {at(0, "reasoning_text.delta", `"delta":"a"`) + at(0, "reasoning_summary_text.delta", `"delta":"s"`) +
			at(0, "output_item.done", `"item":`+item(sealed)), "a", item(sealed), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := tt.body
			if !strings.Contains(b, "response.completed") {
				b += completed("")
			}
			r, _, err := decode(t, body(b))
			want := []llm.Part{{Type: llm.PartThinking, Text: tt.text, Signature: tt.signature, Redacted: tt.redacted}}
			if diff := cmp.Diff(want, r.Message.Parts); diff != "" || err != nil {
				t.Errorf("error %v\n%s", err, diff)
			}
		})
	}
}

func TestThinkingOfSeveralItemsStaysApart(t *testing.T) {
	t.Parallel()
	thought := func(i int) string {
		return at(i, "reasoning_summary_text.delta", fmt.Sprintf(`"delta":"t%d"`, i)) +
			at(i, "output_item.done", fmt.Sprintf(`"item":{"id":"rs_%d","type":"reasoning","summary":[],"encrypted_content":"e%d"}`, i, i))
	}
	call := at(1, "output_item.done", `"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`)
	r, deltas, err := decode(t, body(thought(0)+call+thought(2)+at(3, "output_text.delta", `"delta":"x"`)+completed("")))
	var got []string
	for _, p := range r.Message.Parts {
		got = append(got, string(p.Type)+" "+p.Text+" "+p.Signature)
	}
	want := []string{`thinking t0 {"id":"rs_0","type":"reasoning","summary":[],"encrypted_content":"e0"}`, "tool-call  ",
		`thinking t2 {"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"e2"}`, "text x "}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || deltas != "R0:t0 N0:f A0:{} D0: R0:t2 T0:x" {
		t.Errorf("deltas %q, error %v\n%s", deltas, err, diff)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	added := func(i int, id string) string {
		return at(i, "output_item.added", fmt.Sprintf(`"item":{"id":"fc_%s","type":"function_call","call_id":"%s","name":"f","status":"in_progress","arguments":""}`, id, id))
	}
	item := func(id, arguments string) string {
		return fmt.Sprintf(`{"id":"fc_%s","type":"function_call","call_id":"%s","name":"f","status":"completed","arguments":"%s"}`, id, id, arguments)
	}
	for name, tt := range map[string]struct{ body, calls, deltas string }{
		"pieces of two calls at once": {added(0, "a") + added(1, "b") + at(1, "function_call_arguments.delta", `"delta":"{\"b\":"`) +
			at(0, "function_call_arguments.delta", `"delta":"{\"a\":1}"`) + at(1, "function_call_arguments.delta", `"delta":"2}"`) +
			at(0, "output_item.done", `"item":`+item("a", `{\"a\":1}`)) + at(1, "output_item.done", `"item":`+item("b", `{\"b\":2}`)) + completed(""),
			`a|fc_a {"a":1}; b|fc_b {"b":2}`, `N0:f N1:f A1:{"b": A0:{"a":1} A1:2} D0: D1:`},
		"arguments only when they are done": {added(0, "a") + at(0, "function_call_arguments.done", `"arguments":"{\"a\":1}"`) +
			at(0, "output_item.done", `"item":`+item("a", `{\"a\":1}`)) + completed(""), `a|fc_a {"a":1}`, `N0:f A0:{"a":1} D0:`},
		"the whole corrects the pieces": {added(0, "a") + at(0, "function_call_arguments.delta", `"delta":"{\"a\":9"`) +
			at(0, "output_item.done", `"item":`+item("a", `{\"a\":1}`)) + completed(""), `a|fc_a {"a":1}`, `N0:f A0:{"a":9 D0:`},
		"finished by the last event":       {added(0, "a") + completed(item("a", `{\"a\":1}`)), `a|fc_a {"a":1}`, `N0:f A0:{"a":1} D0:`},
		"only in the last event":           {completed(item("a", "")), `a|fc_a {}`, `N0:f D0:`},
		"without the id of the item":       {completed(`{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`), `a {}`, `N0:f A0:{} D0:`},
		"a call of a tool at the provider": {completed(`{"type":"web_search_call","id":"ws_1","status":"completed"}`), ``, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, deltas, err := decode(t, body(tt.body))
			var got []string
			for _, c := range r.Message.ToolCalls() {
				got = append(got, c.ProviderID+" "+string(c.Arguments))
			}
			if text := strings.Join(got, "; "); err != nil || text != tt.calls || deltas != tt.deltas {
				t.Errorf("calls %q, deltas %q, error %v; want %q and %q", text, deltas, err, tt.calls, tt.deltas)
			}
			if stop := r.Stop; (stop == llm.StopTools) != (tt.calls != "") {
				t.Errorf("stop %q", stop)
			}
		})
	}
}

func TestACallThatNeverFinishedIsAFault(t *testing.T) {
	t.Parallel()
	begun := at(0, "output_item.added", `"item":{"id":"fc_a","type":"function_call","call_id":"a","name":"f","arguments":""}`) +
		at(0, "function_call_arguments.delta", `"delta":"{\"a\":1}"`)
	for name, end := range map[string]string{
		"and is not in the output":      completed(""),
		"and the output says so itself": completed(`{"id":"fc_a","type":"function_call","call_id":"a","name":"f","status":"in_progress","arguments":"{\"a\":1}"}`),
	} {
		_, _, err := decode(t, body(begun+end))
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class != llm.ClassMalformed || !e.Retryable() || !strings.Contains(e.Message, "tool call") {
			t.Errorf("a call that never finished %s: error %v", name, err)
		}
	}
	r, _, err := decode(t, body(begun+named("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`)))
	if err != nil || r.Stop != llm.StopLength {
		t.Errorf("a call cut at the output limit: stop %q, error %v", r.Stop, err)
	}
}

func TestHowAResponseEnds(t *testing.T) {
	t.Parallel()
	end := func(event, members string) string { return named("response."+event, `"response":{`+members+`}`) }
	for name, tt := range map[string]struct {
		events    string
		class     llm.Class // "" is a good end
		stop      llm.StopReason
		raw, says string
	}{
		"completed":               {end("completed", `"status":"completed"`), "", llm.StopEnd, "completed", ""},
		"without a status":        {end("completed", `"id":"r"`), "", llm.StopEnd, "completed", ""},
		"done by another name":    {end("done", `"status":"completed"`), "", llm.StopEnd, "completed", ""},
		"after the mark of chat":  {end("completed", `"status":"completed"`) + "data: [DONE]\n\n", "", llm.StopEnd, "completed", ""},
		"cut":                     {end("incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`), "", llm.StopLength, "max_output_tokens", ""},
		"filtered":                {end("incomplete", `"status":"incomplete","incomplete_details":{"reason":"content_filter"}`), llm.ClassRefused, "", "content_filter", "content_filter"},
		"cut for another reason":  {end("incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_tool_calls"}`), llm.ClassUnknownStop, "", "max_tool_calls", "max_tool_calls"},
		"cut for no reason":       {end("incomplete", `"status":"incomplete"`), "", llm.StopLength, "incomplete", ""},
		"a status nobody knows":   {end("done", `"status":"resting"`), llm.ClassUnknownStop, "", "resting", "resting"},
		"failed":                  {end("failed", `"status":"failed","error":{"code":"server_error","message":"Sorry."}`), llm.ClassProvider, "", "failed", "Sorry."},
		"failed for its length":   {end("failed", `"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`), llm.ClassContextOverflow, "", "failed", "exceeds"},
		"failed for its rate":     {end("failed", `"status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow."}`), llm.ClassRateLimit, "", "failed", "Slow."},
		"failed for its prompt":   {end("failed", `"status":"failed","error":{"code":"invalid_prompt","message":"Flagged."}`), llm.ClassRefused, "", "failed", "Flagged."},
		"failed for no reason":    {end("failed", `"status":"failed","error":null`), llm.ClassProvider, "", "failed", "failed"},
		"cancelled":               {end("cancelled", `"status":"cancelled"`), llm.ClassProvider, "", "cancelled", "cancelled"},
		"an error event":          {named("error", `"code":"rate_limit_exceeded","message":"Slow.","param":null`), llm.ClassRateLimit, "", "", "Slow."},
		"a nested error event":    {named("error", `"error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"x"}`), llm.ClassContextOverflow, "", "", "x"},
		"an error without a type": {"data: {\"error\":{\"message\":\"Overloaded\",\"code\":529}}\n\n", llm.ClassOverloaded, "", "", "Overloaded"},
		"no end":                  {"", llm.ClassTruncated, "", "", "response.completed"},
		"only the mark of chat":   {"data: [DONE]\n\n", llm.ClassTruncated, "", "", "response.completed"},
		"not JSON":                {"data: {\"type\":\"secret\n\n", llm.ClassMalformed, "", "", "not JSON"},
		"no object":               {"data: [1]\n\n", llm.ClassMalformed, "", "", "not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, err := decode(t, body(at(0, "output_text.delta", `"delta":"one"`)+tt.events))
			e, _ := errors.AsType[*llm.Error](err)
			if (err == nil) != (tt.class == "") || err != nil && (e == nil || e.Class != tt.class || !strings.Contains(e.Message, tt.says)) {
				t.Errorf("error %v, want class %q and %q", err, tt.class, tt.says)
			}
			if r.Stop != tt.stop || r.RawStop != tt.raw || r.Message.Text() != "one" {
				t.Errorf("stop %q (%q), text %q; want %q (%q) and what had arrived", r.Stop, r.RawStop, r.Message.Text(), tt.stop, tt.raw)
			}
		})
	}
}

func TestARefusalIsNoAnswer(t *testing.T) {
	t.Parallel()
	item := `{"type":"message","id":"m","content":[{"type":"refusal","refusal":"I will not."}]}`
	for name, events := range map[string]string{
		"in pieces": at(0, "refusal.delta", `"delta":"I will"`) + at(0, "refusal.delta", `"delta":" not."`) +
			at(0, "refusal.done", `"refusal":"I will not."`) + completed(item),
		"whole": completed(item),
	} {
		_, deltas, err := decode(t, body(events))
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class != llm.ClassRefused || e.Message != "the model refused: I will not." || deltas != "" {
			t.Errorf("%s: deltas %q, error %v", name, deltas, err)
		}
	}
}

func TestBodiesThatWereNotStreamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body  string
		class llm.Class
	}{
		"a response":        {`{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"one"}]}]}`, ""},
		"still running":     {`{"object":"response","status":"queued","output":[]}`, llm.ClassTruncated},
		"failed":            {`{"object":"response","status":"failed","error":{"code":"server_error","message":"x"},"output":[]}`, llm.ClassProvider},
		"an error":          {`{"error":{"code":"rate_limit_exceeded","message":"x"}}`, llm.ClassRateLimit},
		"another API":       {`{"choices":[]}`, llm.ClassMalformed},
		"a list":            {`[1]`, llm.ClassMalformed},
		"not JSON":          {`{"status":`, llm.ClassMalformed},
		"text after it all": {`{"status":"completed","output":[]} x`, llm.ClassMalformed},
	} {
		d := testDecoder(nil)
		r, err := d.Close(d.Whole([]byte(tt.body)))
		e, _ := errors.AsType[*llm.Error](err)
		if tt.class == "" && (err != nil || r.Message.Text() != "one") || tt.class != "" && (e == nil || e.Class != tt.class) {
			t.Errorf("%s: text %q, error %v; want class %q", name, r.Message.Text(), err, tt.class)
		}
	}
}

func TestUsageAndPrice(t *testing.T) {
	t.Parallel()
	price := &llm.Price{Input: 1_000_000, Output: 10_000_000}
	const usage = `"usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":200,"cache_write_tokens":100},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30}}`
	for name, tt := range map[string]struct {
		members string
		price   *llm.Price
		usage   llm.Usage
		billed  llm.MicroUSD // 0 is none
	}{
		"the default tier":     {usage + `,"service_tier":"default"`, price, llm.Usage{Input: 700, CacheRead: 200, CacheWrite: 100, Output: 50, Reasoning: 30}, 0},
		"flex":                 {usage + `,"service_tier":"flex"`, price, llm.Usage{Input: 700, CacheRead: 200, CacheWrite: 100, Output: 50, Reasoning: 30}, 750},
		"priority":             {usage + `,"service_tier":"priority"`, price, llm.Usage{Input: 700, CacheRead: 200, CacheWrite: 100, Output: 50, Reasoning: 30}, 3000},
		"priority of one more": {usage + `,"service_tier":"priority","model":"gpt-5.5-2026"`, price, llm.Usage{Input: 700, CacheRead: 200, CacheWrite: 100, Output: 50, Reasoning: 30}, 3750},
		"no price is known":    {usage + `,"service_tier":"flex"`, nil, llm.Usage{Input: 700, CacheRead: 200, CacheWrite: 100, Output: 50, Reasoning: 30}, 0},
		"the server bills":     {`"usage":{"input_tokens":1,"output_tokens":2,"cost":0.5},"service_tier":"flex"`, price, llm.Usage{Input: 1, Output: 2}, 500_000},
		"more cached than sent": {`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":20},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":9}}`, price,
			llm.Usage{CacheRead: 20, Output: 5, Reasoning: 5}, 0},
		"none": {`"usage":null,"service_tier":"flex"`, price, llm.Usage{}, 0},
	} {
		d := newDecoder(llm.Origin{}, tt.price, nil)
		r, err := wire.Decode(strings.NewReader(named("response.completed", `"response":{"status":"completed",`+tt.members+`}`)), d)
		var billed llm.MicroUSD
		if r.Billed != nil {
			billed = *r.Billed
		}
		if err != nil || r.Usage != tt.usage || billed != tt.billed || r.UsageReported != (tt.usage != llm.Usage{}) {
			t.Errorf("%s: usage %+v, billed %d, error %v; want %+v and %d", name, r.Usage, billed, err, tt.usage, tt.billed)
		}
	}
}

func TestWhatIsKeptOfAResponseIsBounded(t *testing.T) {
	t.Parallel()
	mebibyte := strings.Repeat("x", 1<<20)
	for name, event := range map[string]string{
		"text":      at(0, "output_text.delta", `"delta":"`+mebibyte+`"`),
		"thinking":  at(0, "reasoning_text.delta", `"delta":"`+mebibyte+`"`),
		"refusals":  at(0, "refusal.delta", `"delta":"`+mebibyte+`"`),
		"arguments": at(0, "function_call_arguments.delta", `"delta":"`+mebibyte+`"`),
		"items":     at(0, "output_item.done", `"item":{"type":"reasoning","summary":[],"encrypted_content":"`+mebibyte+`"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all strings.Builder
			for i := range 18 {
				all.WriteString(strings.Replace(event, `"output_index":0`, fmt.Sprintf(`"output_index":%d`, i), 1))
			}
			_, err := wire.Decode(strings.NewReader(all.String()), testDecoder(nil))
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || !errors.Is(err, wire.ErrTooLarge) || e.Retryable() {
				t.Errorf("error %v, want a final one that wraps ErrTooLarge", err)
			}
		})
	}
}

// FuzzResponsesDecode checks that a stream is decoded the same whole, byte by byte and without templates, and that nothing in it makes the
// decoder panic, report text that is not valid, or keep an item that is no JSON.
func FuzzResponsesDecode(f *testing.F) {
	for _, r := range []llmtest.Reply{
		{Text: []string{"a", "b\n\"", "🙂"}, Stop: llmtest.Ends},
		{Thinking: []string{"x", "y"}, Signature: "c2ln", Text: []string{"a"}, Stop: llmtest.Cut},
		{Calls: []llmtest.ReplyCall{{ID: "1", Name: "f", Arguments: []string{"{\"a\"", ":1}"}}, {ID: "1", Name: "g"}}, Stop: llmtest.Calls},
	} {
		f.Add(strings.Join(llmtest.ResponsesEvents(r), ""))
	}
	f.Add(at(0, "output_text.delta", `"delta":"a\ud83d"`) + at(0, "output_text.done", `"text":"b"`) + completed(`{"type":"message","content":[{"text":"c"}]}`))
	f.Add(at(1, "output_item.done", `"item":{"type":"reasoning","summary":[{"text":"a"},7]}`) + completed(`1,{"type":"reasoning","encrypted_content":"x"}`))
	f.Add(at(0, "output_text.delta", `"delta":"a","sequence_number":9`) + at(0, "output_text.delta", `"delta":"b","sequence_number":10`) +
		at(0, "output_text.delta", `"delta":"c","sequence_number":011`))
	f.Fuzz(func(t *testing.T, text string) {
		r, deltas, err := decode(t, text)
		if !utf8.ValidString(deltas) || (err == nil) != (r.Stop != "") {
			t.Errorf("deltas %q, stop %q beside error %v", deltas, r.Stop, err)
		}
		for _, p := range r.Message.Parts {
			if !utf8.ValidString(p.Text) {
				t.Errorf("text %q is not valid", p.Text)
			}
			if p.Type == llm.PartThinking && p.Signature != "" && !json.Valid([]byte(p.Signature)) {
				t.Errorf("item %q is not JSON", p.Signature)
			}
			if c := p.ToolCall; c != nil && (c.Arguments == nil) == (c.ArgumentsError == "") {
				t.Errorf("call %+v has both or neither of arguments and an error", c)
			}
		}
	})
}
