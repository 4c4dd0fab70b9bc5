package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/provider/google"
)

var googleDialect = dialect{api: job.APIGoogleGenerate, adapter: google.New, voice: googleVoice{}, faults: googleFaults,
	stops: map[string]string{"stop": "STOP", "length": "MAX_TOKENS", "tools": "STOP", "filter": "SAFETY"}}

// googleVoice speaks the wire of Gemini. Its events have no names, a call comes in one part, and the finish reason is the
// only mark of an end.
type googleVoice struct{}

func (googleVoice) part(w *faultWriter, part string) {
	w.raw(`{"candidates":[{"content":{"parts":[` + part + `],"role":"model"},"index":0}],"modelVersion":"m","responseId":"r1"}`)
}

func (v googleVoice) text(w *faultWriter, words string) {
	for i, word := range strings.Split(words, " ") {
		if i > 0 {
			word = " " + word
		}
		v.part(w, fmt.Sprintf(`{"text":%q}`, word))
	}
}

// openCall sends arguments that are no JSON as text, as servers in front of other models do.
func (v googleVoice) openCall(w *faultWriter, name, arguments string) {
	if !json.Valid([]byte(arguments)) {
		arguments = fmt.Sprintf("%q", arguments)
	}
	v.part(w, fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, name, arguments))
}

func (googleVoice) finish(w *faultWriter, stop string) {
	w.raw(fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":%q,"index":0}],`+
		`"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}}`, stop))
}

func (googleVoice) fault(w *faultWriter) {
	w.raw(`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`)
}

// googleFaults are the ways in which only this wire breaks.
var googleFaults = []wireFault{
	{name: "21 a malformed function call for ever", replies: []reply{func(w *faultWriter) { w.finish("MALFORMED_FUNCTION_CALL") }},
		reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "21b a malformed function call once", replies: []reply{func(w *faultWriter) { w.finish("MALFORMED_FUNCTION_CALL") }, whole}, requests: 2},
	{name: "22 a blocked prompt", replies: []reply{func(w *faultWriter) { w.raw(`{"promptFeedback":{"blockReason":"SAFETY"}}`) }},
		reason: job.ReasonError, code: job.CodeAnswerRefused, requests: 1},
	{name: "23 the events as one list", replies: []reply{func(w *faultWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.write(`[{"candidates":[{"content":{"parts":[{"text":"lorem ipsum dolor"}]}}]},` + "\n" +
			`{"candidates":[{"content":{"parts":[{"text":" sit amet"}]},"finishReason":"STOP"}]}]`)
	}}, requests: 1},
}
