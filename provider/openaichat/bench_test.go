package openaichat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
	"github.com/hozo-run/hozo/provider/wire"
)

const benchChunks = 5000

// benchStream is a long answer in the shape of a server that sends nothing but the text, or of OpenAI itself, which
// pads each event.
func benchStream(padded bool) string {
	var b strings.Builder
	for i := range benchChunks {
		tail := "}"
		if padded {
			tail = fmt.Sprintf(`,"usage":null,"obfuscation":"%s"}`, strings.Repeat("x", 3+i%9))
		}
		b.WriteString(data(`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"fake","choices":[{"index":0,"delta":{"content":" lorem"},"finish_reason":null}]` + tail))
	}
	return b.String() + finish("stop") + data("[DONE]")
}

func BenchmarkDecode(b *testing.B) {
	sink := func(llm.Delta) error { return nil }
	for _, bench := range []struct {
		name          string
		padded, plain bool
	}{{"templates", false, false}, {"templates/padded", true, false}, {"lexer", false, true}} {
		body := benchStream(bench.padded)
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := newDecoder(llm.Origin{API: API, Model: "m"}, false, sink)
				d.plain = bench.plain
				if _, err := wire.Decode(strings.NewReader(body), d); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchChunks, "ns/chunk")
		})
	}
	b.Run("encoding-json", func(b *testing.B) {
		body := benchStream(false)
		b.ReportAllocs()
		for b.Loop() {
			if n := plainDecode(body); n != 6*benchChunks {
				b.Fatalf("%d bytes", n)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchChunks, "ns/chunk")
	})
}

// plainDecode is what a client does without any of this: a line scanner and encoding/json into a struct.
func plainDecode(body string) int {
	n := 0
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		line, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(line) == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string `json:"content"`
					ToolCalls []struct {
						Index    int    `json:"index"`
						ID       string `json:"id"`
						Function struct {
							Name      string `json:"name"`
							Arguments string `json:"arguments"`
						} `json:"function"`
					} `json:"tool_calls"`
				} `json:"delta"`
				FinishReason *string `json:"finish_reason"`
			} `json:"choices"`
		}
		if json.Unmarshal(line, &chunk) == nil && len(chunk.Choices) > 0 {
			n += len(chunk.Choices[0].Delta.Content)
		}
	}
	return n
}

// BenchmarkCall is one call of 20 deltas over loopback, with a history of some turns; the server's work is part of it.
func BenchmarkCall(b *testing.B) {
	reply := llmtest.Reply{Stop: llmtest.Calls, Calls: []llmtest.ReplyCall{{ID: "call_1", Name: "add", Arguments: []string{`{"a":1,`, `"b":2}`}}}}
	for range 20 {
		reply.Text = append(reply.Text, "lorem ipsum ")
	}
	stream := strings.Join(llmtest.ChatEvents(reply), "")
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
