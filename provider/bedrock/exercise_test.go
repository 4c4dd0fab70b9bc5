package bedrock

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
		New: New, API: API, Path: "/model/exercise-1/converse-stream", Events: events, Thinks: true, Frames: true,
		Finish: func(event string) bool { return strings.Contains(event, "messageStop") },
		Fault: func() string {
			return llmtest.ExceptionFrame("serviceUnavailableException", `{"message":"Bedrock is unable to process your request."}`)
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

// padded returns a frame with a last member that hides how long the text is, as the API sends them.
func padded(event, members string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return llmtest.Frame(event, `{`+members+`,"p":"`+letters[:3+len(members)%40]+`"}`)
}

func start(index int, id, name string) string {
	return padded("contentBlockStart", fmt.Sprintf(`"contentBlockIndex":%d,"start":{"toolUse":{"name":%s,"toolUseId":%s}}`, index, quote(name), quote(id)))
}

func piece(index int, delta string) string {
	return padded("contentBlockDelta", fmt.Sprintf(`"contentBlockIndex":%d,"delta":%s`, index, delta))
}

func text(index int, text string) string { return piece(index, `{"text":`+quote(text)+`}`) }

func thinking(index int, member, text string) string {
	return piece(index, `{"reasoningContent":{"`+member+`":`+quote(text)+`}}`)
}

func argument(index int, text string) string {
	return piece(index, `{"toolUse":{"input":`+quote(text)+`}}`)
}

func stopBlock(index int) string {
	return padded("contentBlockStop", fmt.Sprintf(`"contentBlockIndex":%d`, index))
}

func stop(reason string) string { return padded("messageStop", `"stopReason":`+quote(reason)) }

func metadata(usage string) string {
	return padded("metadata", `"metrics":{"latencyMs":551},"usage":`+usage)
}

func events(r llmtest.Reply) []string {
	all := []string{padded("messageStart", `"role":"assistant"`)}
	index := 0
	block := func(pieces ...string) {
		all = append(append(all, pieces...), stopBlock(index))
		index++
	}
	if len(r.Thinking) > 0 {
		var pieces []string
		for _, text := range r.Thinking {
			pieces = append(pieces, thinking(index, "text", text))
		}
		block(append(pieces, thinking(index, "signature", r.Signature))...)
	}
	if len(r.Text) > 0 {
		var pieces []string
		for _, t := range r.Text {
			pieces = append(pieces, text(index, t))
		}
		block(pieces...)
	}
	for _, c := range r.Calls {
		pieces := []string{start(index, c.ID, c.Name)}
		for _, text := range c.Arguments {
			pieces = append(pieces, argument(index, text))
		}
		block(pieces...)
	}
	reason := map[llmtest.Stop]string{llmtest.Ends: "end_turn", llmtest.Calls: "tool_use", llmtest.Cut: "max_tokens",
		llmtest.Refuses: "guardrail_intervened", llmtest.Strange: "out_of_ink"}[r.Stop]
	return append(all, stop(reason), metadata(fmt.Sprintf(`{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d,"cacheReadInputTokens":%d,"cacheWriteInputTokens":0}`,
		r.Input, r.Output, r.Input+r.Output+r.CacheRead, r.CacheRead)))
}
