package anthropic

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

// outcome is what a test compares of a response.
type outcome struct {
	Blocks             []content
	Usage              llm.Usage
	Stop               llm.StopReason
	RawStop, Model, ID string
}

type content struct {
	Kind, Text, Signature, ID, Name string
	Input                           any
}

// TestRecordings compares every recorded exchange of the API family with a naive reading of the same JSON. Blocks of
// tools that run at the provider are left out of the comparison and counted.
func TestRecordings(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	llmtest.PlayRecordings(t, llmtest.Playback{
		Path:   "/v1/messages",
		Decode: func(r io.Reader) (llm.Response, error) { return wire.Decode(r, newDecoder("m", nil)) },
		Whole: func(body []byte) (llm.Response, error) {
			d := newDecoder("m", nil)
			return d.Close(d.Whole(body))
		},
		Finish: func(event string) bool { return strings.Contains(event, "event: message_stop") },
		Check: func(t *testing.T, name string, x llmtest.Recorded, got llm.Response) {
			if diff := cmp.Diff(naive(t, x, counts), outcomeOf(t, got)); diff != "" {
				t.Errorf("%s: (-recorded +decoded)\n%s", name, diff)
			}
		},
	})
	t.Logf("compared without: %v", counts)
}

func outcomeOf(t *testing.T, r llm.Response) outcome {
	t.Helper()
	o := outcome{Usage: r.Usage, Stop: r.Stop, RawStop: r.RawStop, Model: r.ServedModel, ID: r.ID}
	for _, p := range r.Message.Parts {
		b := content{Kind: string(p.Type), Text: p.Text, Signature: p.Signature}
		if p.ToolCall != nil {
			b.ID, b.Name, b.Input = p.ToolCall.ProviderID, p.ToolCall.Name, decodeJSON(t, string(p.ToolCall.Arguments))
		}
		o.Blocks = append(o.Blocks, b)
	}
	return o
}

func decodeJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("arguments: %v", err)
	}
	return v
}

// naive reads a recorded exchange with encoding/json and plain loops.
func naive(t *testing.T, x llmtest.Recorded, counts map[string]int) outcome {
	t.Helper()
	var message map[string]any
	usage := map[string]any{}
	blocks := map[int]map[string]any{}
	inputs := map[int]string{}
	if !x.Streamed {
		if err := json.Unmarshal([]byte(x.Body), &message); err != nil {
			t.Fatal(err)
		}
		usage = message["usage"].(map[string]any)
		for i, b := range message["content"].([]any) {
			blocks[i] = b.(map[string]any)
		}
	}
	for line := range strings.Lines(x.Body) {
		data, ok := strings.CutPrefix(line, "data:")
		if !ok || !x.Streamed {
			continue
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		index, _ := e["index"].(float64)
		delta, _ := e["delta"].(map[string]any)
		switch e["type"] {
		case "message_start":
			message = e["message"].(map[string]any)
			merge(usage, message["usage"])
		case "message_delta":
			merge(message, delta)
			merge(usage, e["usage"])
		case "content_block_start":
			blocks[int(index)] = e["content_block"].(map[string]any)
		case "content_block_delta":
			b := blocks[int(index)]
			for _, key := range []string{"text", "thinking", "signature"} {
				b[key] = str(b[key]) + str(delta[key])
			}
			inputs[int(index)] += str(delta["partial_json"])
		}
	}
	o := outcome{RawStop: str(message["stop_reason"]), Model: str(message["model"]), ID: str(message["id"])}
	for i := range len(blocks) {
		if inputs[i] != "" {
			blocks[i]["input"] = decodeJSON(t, inputs[i])
		}
		if b, ok := naiveBlock(blocks[i]); ok {
			o.Blocks = append(o.Blocks, b)
		} else {
			counts["left out: "+str(blocks[i]["type"])]++
		}
	}
	o.Stop = map[string]llm.StopReason{"end_turn": llm.StopEnd, "tool_use": llm.StopTools, "max_tokens": llm.StopLength}[o.RawStop]
	number := func(key string) int64 { n, _ := usage[key].(float64); return int64(n) }
	o.Usage = llm.Usage{Input: number("input_tokens"), Output: number("output_tokens"),
		CacheRead: number("cache_read_input_tokens"), CacheWrite: number("cache_creation_input_tokens")}
	return o
}

func naiveBlock(b map[string]any) (content, bool) {
	switch b["type"] {
	case "text":
		return content{Kind: "text", Text: str(b["text"])}, true
	case "thinking":
		return content{Kind: "thinking", Text: str(b["thinking"]), Signature: str(b["signature"])}, true
	case "redacted_thinking":
		return content{Kind: "thinking", Signature: str(b["data"])}, true
	case "tool_use":
		return content{Kind: "tool-call", ID: str(b["id"]), Name: str(b["name"]), Input: b["input"]}, true
	}
	return content{}, false
}

func merge(into map[string]any, from any) {
	more, _ := from.(map[string]any)
	for key, value := range more {
		if value != nil {
			into[key] = value
		}
	}
}

func str(value any) string { text, _ := value.(string); return text }
