package google

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
	Kind, Text, Signature, ID, Name string
	Arguments                       any
}

// TestRecordings compares every recorded exchange with a naive reading of the same JSON. Vertex AI answers in the same
// form at another address, which the adapter does not speak to; its exchanges show the decoder alone and are counted apart.
func TestRecordings(t *testing.T) {
	t.Parallel()
	hosts := map[string]int{}
	llmtest.PlayRecordings(t, llmtest.Playback{
		Path:   "enerateContent",
		Decode: func(r io.Reader) (llm.Response, error) { return wire.Decode(r, newDecoder("m", nil)) },
		Whole: func(body []byte) (llm.Response, error) {
			d := newDecoder("m", nil)
			return d.Close(d.Whole(body))
		},
		Finish: func(event string) bool { return strings.Contains(event, `"finishReason"`) },
		Check: func(t *testing.T, name string, x llmtest.Recorded, got llm.Response) {
			if name == x.Name {
				hosts[x.Host]++
			}
			if diff := cmp.Diff(naive(t, x), outcomeOf(t, got)); diff != "" {
				t.Errorf("%s: (-recorded +decoded)\n%s", name, diff)
			}
		},
	})
	t.Logf("compared, by host: %v", hosts)
}

func outcomeOf(t *testing.T, r llm.Response) outcome {
	t.Helper()
	o := outcome{Usage: r.Usage, Stop: r.Stop, RawStop: r.RawStop, Model: r.ServedModel, ID: r.ID}
	for _, p := range r.Message.Parts {
		c := content{Kind: string(p.Type), Text: p.Text, Signature: p.Signature}
		if p.ToolCall != nil {
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

// answer is the form of an event and of a response that was not streamed, for encoding/json.
type answer struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text             string
				Thought          bool
				ThoughtSignature string
				FunctionCall     *struct {
					ID, Name string
					Args     map[string]any
				}
			}
		}
		FinishReason string
	}
	UsageMetadata struct {
		PromptTokenCount, CandidatesTokenCount, ThoughtsTokenCount, CachedContentTokenCount int64
	}
	ModelVersion, ResponseID string
}

// naive reads a recorded exchange with encoding/json and plain loops.
func naive(t *testing.T, x llmtest.Recorded) outcome {
	t.Helper()
	bodies := []string{x.Body}
	if x.Streamed {
		bodies = nil
		for line := range strings.Lines(x.Body) {
			if data, ok := strings.CutPrefix(line, "data:"); ok {
				bodies = append(bodies, data)
			}
		}
	}
	o := outcome{}
	for _, body := range bodies {
		var a answer
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			t.Fatal(err)
		}
		o.add(&a)
	}
	calls := false
	for _, c := range o.Parts {
		calls = calls || c.Name != ""
	}
	o.Stop = map[string]llm.StopReason{"STOP": llm.StopEnd, "MAX_TOKENS": llm.StopLength}[o.RawStop]
	if calls && o.RawStop == "STOP" {
		o.Stop = llm.StopTools
	}
	return o
}

func (o *outcome) add(a *answer) {
	o.Model, o.ID = a.ModelVersion, a.ResponseID
	u := a.UsageMetadata
	o.Usage = llm.Usage{Input: u.PromptTokenCount - u.CachedContentTokenCount, CacheRead: u.CachedContentTokenCount,
		Output: u.CandidatesTokenCount + u.ThoughtsTokenCount, Reasoning: u.ThoughtsTokenCount}
	for _, candidate := range a.Candidates {
		o.RawStop += candidate.FinishReason
		for _, p := range candidate.Content.Parts {
			c := content{Kind: "text", Text: p.Text, Signature: p.ThoughtSignature}
			switch {
			case p.FunctionCall != nil:
				c.Kind, c.ID, c.Name, c.Arguments = "tool-call", p.FunctionCall.ID, p.FunctionCall.Name, map[string]any{}
				if p.FunctionCall.Args != nil {
					c.Arguments = p.FunctionCall.Args
				}
			case p.Thought:
				c.Kind = "thinking"
			}
			if c.Kind != "tool-call" && c.Text == "" && c.Signature == "" {
				continue
			}
			if n := len(o.Parts) - 1; n >= 0 && c.Name == "" && c.Signature == "" && o.Parts[n].Kind == c.Kind && o.Parts[n].Signature == "" {
				o.Parts[n].Text += c.Text
				continue
			}
			o.Parts = append(o.Parts, c)
		}
	}
}
