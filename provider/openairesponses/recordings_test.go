package openairesponses

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
	Parts              []content
	Usage              llm.Usage
	Stop               llm.StopReason
	RawStop, Model, ID string
}

type content struct {
	Kind, Text, ID, Name string
	Item, Arguments      any
}

// TestRecordings compares every recorded exchange of the API family with a naive reading of the same JSON. Items of tools
// that run at the provider are left out of the comparison and counted.
func TestRecordings(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	llmtest.PlayRecordings(t, llmtest.Playback{
		Path:   Path,
		Decode: func(r io.Reader) (llm.Response, error) { return wire.Decode(r, testDecoder(nil)) },
		Whole: func(body []byte) (llm.Response, error) {
			d := testDecoder(nil)
			return d.Close(d.Whole(body))
		},
		Finish: func(event string) bool { return strings.Contains(event, "event: response.completed") },
		Check: func(t *testing.T, name string, x llmtest.Recorded, got llm.Response) {
			if diff := cmp.Diff(naive(t, x, counts), outcomeOf(t, got)); diff != "" {
				t.Errorf("%s: (-recorded +decoded)\n%s", name, diff)
			}
		},
	})
	t.Logf("compared without: %v", counts)
}

func testDecoder(sink llm.Sink) *decoder {
	return newDecoder(llm.Origin{API: API, Model: "m"}, nil, sink)
}

func outcomeOf(t *testing.T, r llm.Response) outcome {
	t.Helper()
	o := outcome{Usage: r.Usage, Stop: r.Stop, RawStop: r.RawStop, Model: r.ServedModel, ID: r.ID}
	for _, p := range r.Message.Parts {
		c := content{Kind: string(p.Type), Text: p.Text}
		switch p.Type {
		case llm.PartThinking:
			c.Item = decodeJSON(t, p.Signature)
		case llm.PartToolCall:
			c.ID, c.Name, c.Arguments = p.ToolCall.ProviderID, p.ToolCall.Name, decodeJSON(t, string(p.ToolCall.Arguments))
		}
		o.Parts = append(o.Parts, c)
	}
	return o
}

func decodeJSON(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// naive reads a recorded exchange with encoding/json and plain loops: of a stream, the finished items and the last event.
func naive(t *testing.T, x llmtest.Recorded, counts map[string]int) outcome {
	t.Helper()
	final, streamed := map[string]any{}, map[string]string{}
	var items []any
	if x.Streamed {
		for line := range strings.Lines(x.Body) {
			data, ok := strings.CutPrefix(line, "data:")
			if !ok {
				continue
			}
			e := decodeJSON(t, data).(map[string]any)
			switch e["type"] {
			case "response.completed":
				final = e["response"].(map[string]any)
			case "response.output_item.done":
				items = append(items, e["item"])
			default:
				streamed[str(e["type"])] += str(e["delta"])
			}
		}
	} else {
		final = decodeJSON(t, x.Body).(map[string]any)
		items = final["output"].([]any)
	}
	o := outcome{RawStop: str(final["status"]), Model: str(final["model"]), ID: str(final["id"]), Stop: llm.StopEnd}
	text := ""
	for _, raw := range items {
		c := naiveItem(t, raw.(map[string]any))
		switch c.Kind {
		case "":
			counts["left out: "+str(raw.(map[string]any)["type"])]++
			continue
		case "tool-call":
			o.Stop = llm.StopTools
		case "text":
			text += c.Text
		}
		o.Parts = append(o.Parts, c)
	}
	if x.Streamed && text != streamed["response.output_text.delta"] {
		t.Errorf("%s: the recorded deltas are not the recorded text", x.Name)
	}
	usage := final["usage"].(map[string]any)
	cached := number(usage["input_tokens_details"], "cached_tokens")
	o.Usage = llm.Usage{Input: number(usage, "input_tokens") - cached, CacheRead: cached, Output: number(usage, "output_tokens"),
		Reasoning: number(usage["output_tokens_details"], "reasoning_tokens")}
	return o
}

func naiveItem(t *testing.T, item map[string]any) content {
	t.Helper()
	switch item["type"] {
	case "message":
		return content{Kind: "text", Text: naiveTexts(item["content"], "")}
	case "reasoning":
		return content{Kind: "thinking", Text: naiveTexts(item["summary"], "\n\n"), Item: item}
	case "function_call":
		return content{Kind: "tool-call", ID: str(item["call_id"]) + "|" + str(item["id"]), Name: str(item["name"]),
			Arguments: decodeJSON(t, str(item["arguments"]))}
	}
	return content{}
}

func naiveTexts(parts any, between string) string {
	var texts []string
	for _, p := range parts.([]any) {
		texts = append(texts, str(p.(map[string]any)["text"]))
	}
	return strings.Join(texts, between)
}

func number(object any, key string) int64 {
	m, _ := object.(map[string]any)
	n, _ := m[key].(float64)
	return int64(n)
}

func str(value any) string { text, _ := value.(string); return text }

// TestRecordedThinkingGoesBackAsItCame appends every recorded response that holds encrypted thinking, and finds its items
// in the next request byte by byte, each before the item that it came with.
func TestRecordedThinkingGoesBackAsItCame(t *testing.T) {
	t.Parallel()
	n := 0
	for _, x := range llmtest.Recordings(t, Path) {
		if !x.Streamed || !strings.Contains(x.Body, `"encrypted_content":"`) {
			continue
		}
		r, err := wire.Decode(strings.NewReader(x.Body), testDecoder(nil))
		if err != nil {
			t.Fatal(err)
		}
		messages := []llm.Message{llm.UserText("q"), r.Message, llm.UserText("more")}
		if calls := r.Message.ToolCalls(); len(calls) > 0 {
			messages[2] = tools()
			for _, c := range calls {
				messages[2].Parts = append(messages[2].Parts, result("", c.ProviderID))
			}
		}
		got := sent(t, dialogAt(t, official, llm.Opening{Model: llm.Model{ID: "m", ThinkingLevels: thinks}}), llm.Call{}, messages...)
		for i, p := range r.Message.Parts {
			if p.Type != llm.PartThinking {
				continue
			}
			n++
			_, after, found := strings.Cut(got, p.Signature+",")
			next := `{"type":"message"`
			if call := r.Message.Parts[i+1].ToolCall; call != nil {
				callID, itemID := splitID(call.ProviderID)
				next = `{"type":"function_call","call_id":"` + callID + `","id":"` + itemID + `"`
			}
			if !found || !strings.HasPrefix(after, next) {
				t.Errorf("%s: the request holds the item: %v; want it before %s", x.Name, found, next)
			}
		}
	}
	if n == 0 {
		t.Error("no recorded response holds encrypted thinking")
	}
	t.Logf("%d items went back", n)
}
