package openaichat

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
		New: New, API: API, Base: "/v1", Path: "/chat/completions", Events: events, Thinks: true,
		Finish: func(event string) bool { return strings.Contains(event, `"finish_reason":"`) },
		Fault: func() string {
			return data(`{"error":{"message":"Overloaded","type":"overloaded_error","code":529}}`)
		},
	})
}

func data(text string) string { return "data: " + text + "\n\n" }

func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// delta returns an event in the shape of the API, with one delta.
func delta(members string) string {
	return data(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1782321917,"model":"exercise-1-0107",` +
		`"service_tier":"default","choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}],"usage":null,` +
		`"obfuscation":"` + strings.Repeat("x", len(members)%7) + `"}`)
}

func finish(reason string) string {
	return data(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`)
}

func events(r llmtest.Reply) []string {
	all := []string{delta(`"role":"assistant","content":"","refusal":null`)}
	for _, text := range r.Thinking {
		all = append(all, delta(`"reasoning_content":`+quote(text)))
	}
	for _, text := range r.Text {
		all = append(all, delta(`"content":`+quote(text)))
	}
	for i, c := range r.Calls {
		all = append(all, delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]`,
			i, quote(c.ID), quote(c.Name))))
		for _, piece := range c.Arguments {
			all = append(all, delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, quote(piece))))
		}
	}
	reason := map[llmtest.Stop]string{llmtest.Ends: "stop", llmtest.Calls: "tool_calls", llmtest.Cut: "length",
		llmtest.Refuses: "content_filter", llmtest.Strange: "out_of_ink"}[r.Stop]
	usage := fmt.Sprintf(`{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d}}}`, r.Input+r.CacheRead, r.Output, r.Input+r.CacheRead+r.Output, r.CacheRead)
	return append(all, finish(reason), data(usage), data("[DONE]"))
}
