package textcall

import (
	"strings"
	"testing"
)

// BenchmarkReply reads a reply of 100 kB that ends with a call: the whole of it, and as it streams in small pieces.
func BenchmarkReply(b *testing.B) {
	text := strings.Repeat("A sentence with a {brace}, a [link](x) and a < sign.\n", 2000) + timeCall
	offer := NewOffer(offerTools())
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if r := Parse(text, offer, Options{}); len(r.Calls) != 1 {
				b.Fatalf("%+v", r)
			}
		}
	})
	b.Run("hold", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if n := shownOf(offer, text, 5); n != len(text)-len(timeCall) {
				b.Fatalf("%d bytes are shown", n)
			}
		}
	})
}
