package kernel_test

import (
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/provider/openairesponses"
)

var responsesDialect = dialect{api: job.APIOpenAIResponses, adapter: openairesponses.New, voice: responsesVoice{}, faults: responsesFaults,
	stops: map[string]string{"stop": "", "tools": "", "length": "max_output_tokens", "filter": "content_filter"}}

// responsesVoice writes the words of the Responses API. A stop reason means that the response is incomplete.
type responsesVoice struct{}

func (responsesVoice) text(w *faultWriter, words string) {
	for i, word := range strings.Split(words, " ") {
		if i > 0 {
			word = " " + word
		}
		w.event("response.output_text.delta", fmt.Sprintf(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":%q}`, word))
	}
}

func (responsesVoice) openCall(w *faultWriter, name, arguments string) {
	item := func(status, arguments string) string {
		return fmt.Sprintf(`{"id":"fc_1","type":"function_call","call_id":"call_1","name":%q,"status":%q,"arguments":%q}`, name, status, arguments)
	}
	w.event("response.output_item.added", `{"type":"response.output_item.added","output_index":1,"item":`+item("in_progress", "")+`}`)
	w.event("response.function_call_arguments.delta", fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":1,"delta":%q}`, arguments))
	w.owed = append(w.owed, `{"type":"response.output_item.done","output_index":1,"item":`+item("completed", arguments)+`}`)
}

func (responsesVoice) finish(w *faultWriter, stop string) {
	for _, data := range w.owed {
		w.event("response.output_item.done", data)
	}
	status, details := "completed", "null"
	if stop != "" {
		status, details = "incomplete", fmt.Sprintf(`{"reason":%q}`, stop)
	}
	w.event("response."+status, fmt.Sprintf(`{"type":"response.%s","response":{"id":"r1","model":"m","status":%q,"incomplete_details":%s,"output":[],`+
		`"usage":{"input_tokens":10,"output_tokens":5}}}`, status, status, details))
}

func (responsesVoice) fault(w *faultWriter) {
	w.event("error", `{"type":"error","code":"server_is_overloaded","message":"Overloaded","param":null}`)
}

// failed ends the response with an error of the code.
func failed(code string) reply {
	return func(w *faultWriter) {
		w.text("lorem")
		w.event("response.failed", fmt.Sprintf(`{"type":"response.failed","response":{"status":"failed","error":{"code":%q,"message":"Sorry."},"output":[]}}`, code))
	}
}

var responsesFaults = []wireFault{
	{name: "14c only the mark of another API comes", replies: []reply{func(w *faultWriter) { w.text(wholeAnswer); w.raw("[DONE]") }},
		reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "21 the response failed", replies: []reply{failed("server_error")}, reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "21b the response failed once", replies: []reply{failed("server_error"), whole}, requests: 2},
	{name: "21c the response failed for its prompt", replies: []reply{failed("invalid_prompt")}, reason: job.ReasonError, code: job.CodeAnswerRefused, requests: 1},
	{name: "22 a tool call never finished", replies: []reply{func(w *faultWriter) { w.call("ls", `{}`); w.owed = nil; w.finish("tools") }, whole}, requests: 2},
}
