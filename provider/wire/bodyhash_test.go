package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestTheHashOfABodyGrowsWithIt(t *testing.T) {
	t.Parallel()
	var g growingHash
	grown := []byte("head")
	for name, body := range map[string]func() Body{
		"one piece":             func() Body { return Body{[]byte("head")} },
		"a tail":                func() Body { return Body{[]byte("head"), []byte("tail")} },
		"no piece":              func() Body { return nil },
		"another beginning":     func() Body { return Body{[]byte("hea!"), []byte("tail")} },
		"a shorter beginning":   func() Body { return Body{[]byte("he"), nil, []byte("x")} },
		"moved memory":          func() Body { return Body{[]byte(strings.Repeat("head", 100)), []byte("tail")} },
		"memory that has grown": func() Body { grown = append(grown, " and more"...); return Body{grown, []byte("tail")} },
	} {
		for range 3 {
			b := body()
			sum := sha256.Sum256(b.Bytes())
			if got := g.sum(b); got != hex.EncodeToString(sum[:]) {
				t.Errorf("%s: %s, want %x", name, got, sum)
			}
		}
	}
}

// BenchmarkBodyHash is what the signature of a request costs in a dialog of a mebibyte that has grown by a message.
func BenchmarkBodyHash(b *testing.B) {
	message, tail := []byte(strings.Repeat("x", 2<<10)), []byte("]}]}")
	for _, grows := range []bool{true, false} {
		name := "whole"
		if grows {
			name = "grown"
		}
		b.Run(name, func(b *testing.B) {
			var before growingHash
			history := append(make([]byte, 0, 4<<20), strings.Repeat("x", 1<<20)...)
			before.sum(Body{history, tail})
			b.ReportAllocs()
			for b.Loop() {
				var g growingHash
				if grows {
					state, err := before.state.Clone()
					if err != nil {
						b.Fatal(err)
					}
					g = growingHash{seen: before.seen, state: state}
				}
				g.sum(Body{append(history, message...), tail})
			}
		})
	}
}
