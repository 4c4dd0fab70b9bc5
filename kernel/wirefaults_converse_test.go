package kernel_test

import (
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/bedrock"
)

var converseDialect = dialect{api: job.APIBedrockConverse, adapter: bedrock.New, voice: converseVoice{}, faults: converseFaults, frames: true,
	stops: map[string]string{"stop": "end_turn", "length": "max_tokens", "tools": "tool_use", "filter": "guardrail_intervened"}}

// converseVoice speaks the wire of Amazon Bedrock: named events in binary frames, and token counts after the finish mark.
type converseVoice struct{}

func (converseVoice) text(w *faultWriter, words string) {
	for i, word := range strings.Split(words, " ") {
		if i > 0 {
			word = " " + word
		}
		w.event("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"text":%q},"p":"abc"}`, word))
	}
}

func (converseVoice) openCall(w *faultWriter, name, arguments string) {
	w.event("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t1","name":%q}}}`, name))
	w.event("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":1,"delta":{"toolUse":{"input":%q}}}`, arguments))
}

func (converseVoice) finish(w *faultWriter, stop string) {
	w.event("messageStop", fmt.Sprintf(`{"stopReason":%q}`, stop))
	w.event("metadata", `{"metrics":{"latencyMs":5},"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}`)
}

func (converseVoice) fault(w *faultWriter) {
	w.write(llmtest.ExceptionFrame("serviceUnavailableException", `{"message":"Bedrock is unable to process your request."}`))
}

// broken is a frame whose text was changed on the way.
func broken() string {
	return strings.Replace(llmtest.Frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"two"}}`), "two", "ten", 1)
}

// converseFaults are the ways in which only this wire breaks.
var converseFaults = []wireFault{
	{name: "21 a frame that was changed on the way", replies: []reply{func(w *faultWriter) { w.text("lorem"); w.write(broken()); w.finish("stop") }},
		reason: job.ReasonError, code: job.CodeProviderFailed, requests: 4},
	{name: "21b a frame that was changed once", replies: []reply{func(w *faultWriter) { w.text("lorem"); w.write(broken()) }, whole}, requests: 2},
	{name: "22 throttled in the stream", replies: []reply{func(w *faultWriter) {
		w.text("lorem")
		w.write(llmtest.ExceptionFrame("throttlingException", `{"message":"Too many tokens, please wait before trying again."}`))
	}, whole}, requests: 2},
	{name: "23 the model breaks off", replies: []reply{func(w *faultWriter) {
		w.text("lorem")
		w.write(llmtest.ExceptionFrame("modelStreamErrorException", `{"message":"The model broke off.","originalStatusCode":500}`))
	}, whole}, requests: 2},
	{name: "24 no token counts after the finish", replies: []reply{func(w *faultWriter) {
		w.text(wholeAnswer)
		w.event("messageStop", `{"stopReason":"end_turn"}`)
	}}, requests: 1},
	{name: "25 a call that the provider could not read", replies: []reply{func(w *faultWriter) { w.finish("malformed_tool_use") }, whole}, requests: 2},
}
