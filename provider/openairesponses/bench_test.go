package openairesponses

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/wire"
)

const benchPieces = 5000

// benchStream is a long answer in the shape of OpenAI, which pads and counts every event.
func benchStream() string {
	var b strings.Builder
	for i := range benchPieces {
		fmt.Fprintf(&b, "event: response.output_text.delta\n"+`data: {"type":"response.output_text.delta","content_index":0,"delta":" lorem",`+
			`"item_id":"msg_065915db01d8635a016a3c125c524c81a39e48ac0ebbcb6b30","logprobs":[],"obfuscation":"%s","output_index":1,"sequence_number":%d}`+"\n\n",
			strings.Repeat("x", 3+i%9), i)
	}
	return b.String() + completed("")
}

func BenchmarkDecode(b *testing.B) {
	body := benchStream()
	for name, plain := range map[string]bool{"templates": false, "lexer": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := testDecoder(func(llm.Delta) error { return nil })
				d.plain = plain
				if _, err := wire.Decode(strings.NewReader(body), d); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchPieces, "ns/event")
		})
	}
}

// TestAPieceAllocatesNothing decodes streams of two lengths: what the longer one allocates beside its text is not more.
func TestAPieceAllocatesNothing(t *testing.T) {
	whole := benchStream()
	half := whole[:strings.Index(whole, `"sequence_number":2500}`)]
	half = half[:strings.LastIndex(half, "event:")] + completed("")
	for _, plain := range []bool{false, true} {
		allocs := func(body string) float64 {
			return testing.AllocsPerRun(5, func() {
				d := testDecoder(nil)
				d.plain = plain
				if _, err := wire.Decode(strings.NewReader(body), d); err != nil {
					t.Error(err)
				}
			})
		}
		if less, more := allocs(half), allocs(whole); more-less > 10 {
			t.Errorf("plain %v: 2500 more pieces take %.0f more allocations", plain, more-less)
		}
	}
}
