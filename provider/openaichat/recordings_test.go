package openaichat

import (
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

// outcome is what a test compares of a response.
type outcome struct {
	Text, Thinking string
	Calls          []call
	Usage          llm.Usage
	Billed         llm.MicroUSD
	Stop           llm.StopReason
	RawStop, Model string
	ID             string
}

type call struct {
	ID, Name  string
	Arguments any
}

// TestRecordings compares every recorded exchange of the API family with a naive reading of the same JSON.
func TestRecordings(t *testing.T) {
	t.Parallel()
	llmtest.PlayRecordings(t, llmtest.Playback{
		Path: "/chat/completions",
		Decode: func(r io.Reader) (llm.Response, error) {
			return wire.Decode(r, newDecoder(llm.Origin{API: API, Model: "m"}, false, nil))
		},
		Whole: func(body []byte) (llm.Response, error) {
			d := newDecoder(llm.Origin{API: API, Model: "m"}, false, nil)
			return d.Close(d.Whole(body))
		},
		Finish: hasFinish,
		Check: func(t *testing.T, name string, x llmtest.Recorded, got llm.Response) {
			if diff := cmp.Diff(naive(t, x), outcomeOf(t, got)); diff != "" {
				t.Errorf("%s: (-recorded +decoded)\n%s", name, diff)
			}
		},
	})
}

func outcomeOf(t *testing.T, r llm.Response) outcome {
	t.Helper()
	o := outcome{Usage: r.Usage, Stop: r.Stop, RawStop: r.RawStop, Model: r.ServedModel, ID: r.ID, Text: r.Message.Text()}
	if r.Billed != nil {
		o.Billed = *r.Billed
	}
	for _, p := range r.Message.Parts {
		switch p.Type {
		case llm.PartThinking:
			o.Thinking += p.Text
		case llm.PartToolCall:
			o.Calls = append(o.Calls, call{p.ToolCall.ProviderID, p.ToolCall.Name, decodeJSON(t, string(p.ToolCall.Arguments))})
		}
	}
	return o
}

func decodeJSON(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		text = "{}"
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("arguments: %v", err)
	}
	return v
}

func hasFinish(event string) bool {
	return strings.Contains(event, `"finish_reason":"`) || strings.Contains(event, `"finish_reason": "`)
}

// naive reads a recorded exchange with encoding/json and plain loops.
func naive(t *testing.T, x llmtest.Recorded) outcome {
	t.Helper()
	var o outcome
	args := map[float64]string{}
	var order []float64
	calls := map[float64]*call{}
	var usage map[string]any
	for _, text := range naiveEvents(x) {
		var event map[string]any
		if err := json.Unmarshal([]byte(text), &event); err != nil {
			t.Fatalf("%s: recorded event: %v", x.Name, err)
		}
		o.ID = first(o.ID, event["id"])
		o.Model = first(o.Model, event["model"])
		if u, ok := event["usage"].(map[string]any); ok {
			usage = u
		}
		for _, c := range list(event["choices"]) {
			o.RawStop = first(o.RawStop, c["finish_reason"])
			delta, ok := c["delta"].(map[string]any)
			if !ok {
				delta, _ = c["message"].(map[string]any)
			}
			o.Text += first("", delta["content"])
			o.Thinking += naiveThinking(delta)
			for i, tc := range list(delta["tool_calls"]) {
				index, ok := tc["index"].(float64)
				if !ok {
					index = float64(i)
				}
				if calls[index] == nil {
					calls[index] = &call{}
					order = append(order, index)
				}
				f := tc["function"].(map[string]any)
				calls[index].ID = first(calls[index].ID, tc["id"])
				calls[index].Name = first(calls[index].Name, f["name"])
				args[index] += first("", f["arguments"])
			}
		}
	}
	for _, index := range order {
		calls[index].Arguments = decodeJSON(t, args[index])
		o.Calls = append(o.Calls, *calls[index])
	}
	o.Stop = map[string]llm.StopReason{"stop": llm.StopEnd, "tool_calls": llm.StopTools, "length": llm.StopLength}[o.RawStop]
	o.Usage, o.Billed = naiveUsage(usage)
	return o
}

func naiveEvents(x llmtest.Recorded) []string {
	if !x.Streamed {
		return []string{x.Body}
	}
	var events []string
	for line := range strings.Lines(x.Body) {
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:")
		if ok && strings.TrimSpace(data) != "[DONE]" {
			events = append(events, data)
		}
	}
	return events
}

// naiveThinking takes the thinking of a delta from the first place that has any.
func naiveThinking(delta map[string]any) string {
	for _, field := range []string{"reasoning_content", "reasoning"} {
		if text := first("", delta[field]); text != "" {
			return text
		}
	}
	text := ""
	for _, d := range list(delta["reasoning_details"]) {
		text += first(first("", d["text"]), d["summary"])
	}
	return text
}

func naiveUsage(u map[string]any) (llm.Usage, llm.MicroUSD) {
	number := func(m any, key string) int64 {
		inner, _ := m.(map[string]any)
		n, _ := inner[key].(float64)
		return int64(n)
	}
	prompt, completion := number(u, "prompt_tokens"), number(u, "completion_tokens")
	cached := number(u["prompt_tokens_details"], "cached_tokens")
	reasoning := number(u["completion_tokens_details"], "reasoning_tokens")
	usage := llm.Usage{Input: prompt - cached, CacheRead: cached, Output: completion, Reasoning: reasoning}
	if reasoning > 0 && (number(u, "total_tokens") != prompt+completion || reasoning > completion) {
		usage.Output += reasoning
	}
	cost, _ := u["cost"].(float64)
	return usage, llm.MicroUSD(math.Ceil(math.Round(cost*1e9) / 1e3))
}

func first(have string, value any) string {
	if text, ok := value.(string); ok && have == "" {
		return text
	}
	return have
}

func list(value any) []map[string]any {
	var all []map[string]any
	items, _ := value.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
