package bedrock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/llm/llmtest"
)

// BenchmarkCall is one call of 20 pieces over loopback, with an API key and with a signature, after a short history and
// after one of a mebibyte; the server's work is part of it.
func BenchmarkCall(b *testing.B) {
	reply := llmtest.Reply{Stop: llmtest.Ends}
	for range 20 {
		reply.Text = append(reply.Text, "lorem ipsum ")
	}
	stream := strings.Join(events(reply), "")
	for _, account := range []llm.Account{{APIKey: "k", Region: "eu-west-1"}, {SigningKey: testKey, Region: "eu-west-1"}} {
		for _, size := range []int{1 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("signed=%v/bytes=%d", account.SigningKey != nil, size), func(b *testing.B) {
				server := llmtest.NewServer(b)
				server.StreamType = llmtest.FrameStream
				account.BaseURL = server.URL
				p, err := New(account)
				if err != nil {
					b.Fatal(err)
				}
				c, err := p.Converse(llm.Opening{Model: llm.Model{ID: "m"}})
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Append(llm.UserText(strings.Repeat("lorem ", size/6))); err != nil {
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
}
