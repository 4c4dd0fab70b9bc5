package scripted_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
)

func discard(llm.Delta) error { return nil }

// BenchmarkDeltas streams one text of 1,000 deltas.
func BenchmarkDeltas(b *testing.B) {
	c := benchExchange(b, `{"responses":[{"text":"`+strings.Repeat("x", 4000)+`","chunkBytes":4,"repeat":"forever"}]}`)
	for b.Loop() {
		if _, err := c.Stream(b.Context(), llm.Call{}, discard); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall streams one tool call, as each turn of a loop does.
func BenchmarkCall(b *testing.B) {
	c := benchExchange(b, `{"responses":[{"parts":[{"call":{"name":"read","arguments":{"path":"a.txt"}}}],"repeat":"forever"}]}`)
	for b.Loop() {
		if _, err := c.Stream(b.Context(), llm.Call{}, discard); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNew makes the provider of a job with a small script.
func BenchmarkNew(b *testing.B) {
	script := json.RawMessage(`{"responses":[{"parts":[{"call":{"name":"read","arguments":{"path":"a.txt"}}}],"repeat":10},{"text":"done"}]}`)
	for b.Loop() {
		if _, err := scripted.New(llm.Account{Script: script}); err != nil {
			b.Fatal(err)
		}
	}
}

func benchExchange(b *testing.B, script string) llm.Dialog {
	b.Helper()
	p, err := scripted.New(llm.Account{Script: json.RawMessage(script)})
	if err != nil {
		b.Fatal(err)
	}
	c, err := p.Converse(llm.Opening{Model: llm.Model{ID: "m"}})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Append(llm.UserText("go")); err != nil {
		b.Fatal(err)
	}
	return c
}
