package google

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

const benchEvents = 1000

// benchStream is a long answer in the shape of the API: each event holds a few words and all the counts so far.
func benchStream() string {
	var b strings.Builder
	for i := range benchEvents {
		b.WriteString(data(fmt.Sprintf(`{"candidates": [{"content": {"parts": [{"text": " lorem ipsum dolor sit amet, consetetur sadipscing elitr"}],"role": "model"},"index": 0}],`+
			`"usageMetadata": {"promptTokenCount": 646,"candidatesTokenCount": %d,"totalTokenCount": %d,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 646}],`+
			`"thoughtsTokenCount": 68},"modelVersion": "gemini-3.1-pro-preview","responseId": "UwCzaaGdI_aEz7IPqoinwQM"}`, 12*i, 12*i+714)))
	}
	return b.String() + finish("STOP", someUsage)
}

func BenchmarkDecode(b *testing.B) {
	sink := func(llm.Delta) error { return nil }
	body := benchStream()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Decode(strings.NewReader(body), newDecoder("m", sink)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchEvents, "ns/event")
}

// BenchmarkCall is one call of 20 deltas over loopback, with a history of some turns; the server's work is part of it.
func BenchmarkCall(b *testing.B) {
	reply := llmtest.Reply{Stop: llmtest.Calls, Calls: []llmtest.ReplyCall{{ID: "call_1", Name: "add", Arguments: []string{`{"a":1,"b":2}`}}}}
	for range 20 {
		reply.Text = append(reply.Text, "lorem ipsum ")
	}
	stream := strings.Join(events(reply), "")
	for _, turns := range []int{0, 200} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			server := llmtest.NewServer(b)
			p, err := New(llm.Account{BaseURL: server.URL})
			if err != nil {
				b.Fatal(err)
			}
			c, err := p.Converse(llm.Opening{Model: llm.Model{ID: "m"}, System: "System."})
			if err != nil {
				b.Fatal(err)
			}
			for range turns {
				if err := c.Append(llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.TextPart("lorem ipsum dolor sit amet")}}); err != nil {
					b.Fatal(err)
				}
			}
			if err := c.Append(llm.UserText("q")); err != nil {
				b.Fatal(err)
			}
			answer := llmtest.Stream(stream)
			b.ReportAllocs()
			for b.Loop() {
				server.Queue(answer)
				if _, err := c.Stream(b.Context(), llm.Call{}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
