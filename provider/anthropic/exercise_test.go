package anthropic

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

func TestMain(m *testing.M) { os.Exit(llmtest.Main(m, wire.CloseIdle)) }

func TestExercise(t *testing.T) {
	t.Parallel()
	llmtest.Exercise(t, llmtest.Setup{
		New: New, API: API, Path: "/v1/messages", Events: events, Thinks: true,
		Finish: func(event string) bool { return strings.Contains(event, "message_stop") },
		Fault: func() string {
			return named("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
		},
	})
}

func named(event, data string) string { return "event: " + event + "\ndata: " + data + "\n\n" }

func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// padded returns an event with spaces before its last bracket, as the API sends them.
func padded(event, members string) string {
	return named(event, `{"type":"`+event+`",`+members+strings.Repeat(" ", len(members)%5)+`}`)
}

func start(usage string) string {
	return padded("message_start", `"message":{"model":"exercise-1-0107","id":"msg_1","type":"message","role":"assistant",`+
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":`+usage+`}`)
}

func blockStart(index int, block string) string {
	return padded("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, index, block))
}

func blockDelta(index int, kind, key, text string) string {
	return padded("content_block_delta", fmt.Sprintf(`"index":%d,"delta":{"type":"%s","%s":%s}`, index, kind, key, quote(text)))
}

func blockStop(index int) string {
	return padded("content_block_stop", fmt.Sprintf(`"index":%d`, index))
}

func stop(reason, usage string) string {
	return padded("message_delta", `"delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":`+usage) +
		named("message_stop", `{"type":"message_stop"}`)
}

func events(r llmtest.Reply) []string {
	all := []string{
		start(fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":1}`,
			r.Input, r.CacheRead)),
		named("ping", `{"type": "ping"}`),
	}
	index := 0
	block := func(begin string, pieces ...string) {
		all = append(append(append(all, blockStart(index, begin)), pieces...), blockStop(index))
		index++
	}
	if len(r.Thinking) > 0 {
		var pieces []string
		for _, text := range r.Thinking {
			pieces = append(pieces, blockDelta(index, "thinking_delta", "thinking", text))
		}
		block(`{"type":"thinking","thinking":"","signature":""}`,
			append(pieces, blockDelta(index, "signature_delta", "signature", r.Signature))...)
	}
	if len(r.Text) > 0 {
		var pieces []string
		for _, text := range r.Text {
			pieces = append(pieces, blockDelta(index, "text_delta", "text", text))
		}
		block(`{"type":"text","text":""}`, pieces...)
	}
	for _, c := range r.Calls {
		var pieces []string
		for _, text := range c.Arguments {
			pieces = append(pieces, blockDelta(index, "input_json_delta", "partial_json", text))
		}
		block(fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, quote(c.ID), quote(c.Name)), pieces...)
	}
	reason := map[llmtest.Stop]string{llmtest.Ends: "end_turn", llmtest.Calls: "tool_use", llmtest.Cut: "max_tokens",
		llmtest.Refuses: "refusal", llmtest.Strange: "out_of_ink"}[r.Stop]
	last := stop(reason, fmt.Sprintf(`{"output_tokens":%d}`, r.Output))
	delta, end, _ := strings.Cut(last, "\n\n")
	return append(all, delta+"\n\n", end)
}
