package llmtest

import (
	"fmt"
	"strings"
)

func dataEvent(text string) string { return "data: " + text + "\n\n" }

// chatDelta returns an event in the shape of the API, with one delta.
func chatDelta(members string) string {
	return dataEvent(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1782321917,"model":"exercise-1-0107",` +
		`"service_tier":"default","choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}],"usage":null,` +
		`"obfuscation":"` + strings.Repeat("x", len(members)%7) + `"}`)
}

func chatFinish(reason string) string {
	return dataEvent(`{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`)
}

// ChatEvents returns the events of a reply as the Chat Completions API of OpenAI sends them, with padding.
func ChatEvents(r Reply) []string {
	all := []string{chatDelta(`"role":"assistant","content":"","refusal":null`)}
	for _, text := range r.Thinking {
		all = append(all, chatDelta(`"reasoning_content":`+quote(text)))
	}
	for _, text := range r.Text {
		all = append(all, chatDelta(`"content":`+quote(text)))
	}
	for i, c := range r.Calls {
		all = append(all, chatDelta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]`,
			i, quote(c.ID), quote(c.Name))))
		for _, piece := range c.Arguments {
			all = append(all, chatDelta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, quote(piece))))
		}
	}
	reason := map[Stop]string{Ends: "stop", Calls: "tool_calls", Cut: "length",
		Refuses: "content_filter", Strange: "out_of_ink"}[r.Stop]
	usage := fmt.Sprintf(`{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d}}}`, r.Input+r.CacheRead, r.Output, r.Input+r.CacheRead+r.Output, r.CacheRead)
	return append(all, chatFinish(reason), dataEvent(usage), dataEvent("[DONE]"))
}
