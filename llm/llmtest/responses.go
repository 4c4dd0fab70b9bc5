package llmtest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// responsesScript writes the events of a response, with padding and a count as the API sends them.
type responsesScript struct {
	events []string
	index  int
}

func (s *responsesScript) add(kind, members string) {
	s.events = append(s.events, namedEvent("response."+kind, members+fmt.Sprintf(`,"obfuscation":"%s","output_index":%d,"sequence_number":%d`,
		strings.Repeat("x", len(members)%7), s.index, len(s.events))))
}

func (s *responsesScript) end(status, details string, r Reply) {
	s.events = append(s.events, namedEvent("response."+status, fmt.Sprintf(`"response":{"status":%q,"id":"resp_1","model":"exercise-1-0107",`+
		`"error":null,"incomplete_details":%s,"output":[],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},`+
		`"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}}`,
		status, details, r.Input+r.CacheRead, r.CacheRead, r.Output, r.Input+r.CacheRead+r.Output)))
}

// ResponsesEvents returns the events of a reply as the Responses API of OpenAI sends them: text and arguments in pieces and
// then whole, with padding and a count. The item of a call with the id "x" has the id "fc_x".
func ResponsesEvents(r Reply) []string {
	s := &responsesScript{}
	s.add("created", `"response":{"id":"resp_1","status":"in_progress","model":"exercise-1-0107","output":[],"usage":null}`)
	if len(r.Thinking) > 0 {
		s.thinking(r)
	}
	if len(r.Text) > 0 {
		s.text(r)
	}
	for _, c := range r.Calls {
		s.call(c, r.Stop == Cut)
	}
	switch r.Stop {
	case Cut:
		s.end("incomplete", `{"reason":"max_output_tokens"}`, r)
	case Refuses:
		s.end("incomplete", `{"reason":"content_filter"}`, r)
	case Strange:
		s.end("incomplete", `{"reason":"out_of_ink"}`, r)
	default:
		s.end("completed", "null", r)
	}
	return s.events
}

func (s *responsesScript) thinking(r Reply) {
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

func (s *responsesScript) text(r Reply) {
	s.add("output_item.added", `"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	for _, text := range r.Text {
		s.add("output_text.delta", `"item_id":"msg_1","content_index":0,"delta":`+quote(text))
	}
	all := quote(strings.Join(r.Text, ""))
	s.add("output_text.done", `"item_id":"msg_1","content_index":0,"text":`+all)
	s.add("output_item.done", `"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text",`+
		`"annotations":[],"text":`+all+`}]}`)
	s.index++
}

func (s *responsesScript) call(c ReplyCall, cut bool) {
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

// namedEvent returns an event that says its type twice, as the Responses API does.
func namedEvent(kind, members string) string {
	return "event: " + kind + "\ndata: " + `{"type":"` + kind + `",` + members + "}\n\n"
}

func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
