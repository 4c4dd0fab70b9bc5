package openairesponses

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

func TestMain(m *testing.M) {
	code := m.Run()
	wire.CloseIdle()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestExercise(t *testing.T) {
	t.Parallel()
	llmtest.Exercise(t, llmtest.Setup{
		New: New, API: API, Base: "/v1", Path: Path, Events: events, Thinks: true,
		Finish:     func(event string) bool { return strings.Contains(event, `"response":{"status":`) },
		ProviderID: func(id string) string { return id + "|fc_" + id },
		Fault: func() string {
			return named("error", `"code":"server_is_overloaded","message":"Overloaded","param":null`)
		},
	})
}

func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// named returns an event in the shape of the API.
func named(kind, members string) string {
	return "event: " + kind + "\ndata: " + `{"type":"` + kind + `",` + members + "}\n\n"
}

// script writes the events of a response, with padding and a count as the API sends them.
type script struct {
	events []string
	index  int
}

func (s *script) add(kind, members string) {
	s.events = append(s.events, named("response."+kind, members+fmt.Sprintf(`,"obfuscation":"%s","output_index":%d,"sequence_number":%d`,
		strings.Repeat("x", len(members)%7), s.index, len(s.events))))
}

func (s *script) end(status, details string, r llmtest.Reply) {
	s.events = append(s.events, named("response."+status, fmt.Sprintf(`"response":{"status":%q,"id":"resp_1","model":"exercise-1-0107",`+
		`"error":null,"incomplete_details":%s,"output":[],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},`+
		`"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}}`,
		status, details, r.Input+r.CacheRead, r.CacheRead, r.Output, r.Input+r.CacheRead+r.Output)))
}

func events(r llmtest.Reply) []string {
	s := &script{}
	s.add("created", `"response":{"id":"resp_1","status":"in_progress","model":"exercise-1-0107","output":[],"usage":null}`)
	if len(r.Thinking) > 0 {
		s.thinking(r)
	}
	if len(r.Text) > 0 {
		s.text(r, "completed")
	}
	for _, c := range r.Calls {
		s.call(c, r.Stop == llmtest.Cut)
	}
	switch r.Stop {
	case llmtest.Cut:
		s.end("incomplete", `{"reason":"max_output_tokens"}`, r)
	case llmtest.Refuses:
		s.end("incomplete", `{"reason":"content_filter"}`, r)
	case llmtest.Strange:
		s.end("incomplete", `{"reason":"out_of_ink"}`, r)
	default:
		s.end("completed", "null", r)
	}
	return s.events
}

func (s *script) thinking(r llmtest.Reply) {
	s.add("output_item.added", `"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}`)
	for _, text := range r.Thinking {
		s.add("reasoning_summary_text.delta", `"item_id":"rs_1","summary_index":0,"delta":`+quote(text))
	}
	all := quote(strings.Join(r.Thinking, ""))
	s.add("reasoning_summary_text.done", `"item_id":"rs_1","summary_index":0,"text":`+all)
	s.add("output_item.done", `"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":`+all+
		`}],"encrypted_content":`+quote(r.Signature)+`}`)
	s.index++
}

func (s *script) text(r llmtest.Reply, status string) {
	s.add("output_item.added", `"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	for _, text := range r.Text {
		s.add("output_text.delta", `"item_id":"msg_1","content_index":0,"delta":`+quote(text))
	}
	all := quote(strings.Join(r.Text, ""))
	s.add("output_text.done", `"item_id":"msg_1","content_index":0,"text":`+all)
	s.add("output_item.done", `"item":{"id":"msg_1","type":"message","status":"`+status+`","role":"assistant","content":[{"type":"output_text",`+
		`"annotations":[],"text":`+all+`}]}`)
	s.index++
}

func (s *script) call(c llmtest.ReplyCall, cut bool) {
	item := fmt.Sprintf(`"id":%s,"type":"function_call","call_id":%s,"name":%s`, quote("fc_"+c.ID), quote(c.ID), quote(c.Name))
	s.add("output_item.added", `"item":{`+item+`,"status":"in_progress","arguments":""}`)
	for _, piece := range c.Arguments {
		s.add("function_call_arguments.delta", `"item_id":`+quote("fc_"+c.ID)+`,"delta":`+quote(piece))
	}
	if !cut {
		all := quote(strings.Join(c.Arguments, ""))
		s.add("function_call_arguments.done", `"item_id":`+quote("fc_"+c.ID)+`,"arguments":`+all)
		s.add("output_item.done", `"item":{`+item+`,"status":"completed","arguments":`+all+`}`)
	}
	s.index++
}
