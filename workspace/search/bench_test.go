package search

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// prose is log-like text in which every letter is common.
func prose(size int) []byte {
	words := strings.Fields("the quick brown fox jumps over lazy dog error timeout warning info request response id session Holmes Watson")
	rng := rand.New(rand.NewPCG(1, 1))
	var b bytes.Buffer
	for b.Len() < size {
		for range 10 {
			b.WriteString(words[rng.IntN(len(words))])
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d\n", rng.IntN(100_000))
	}
	return b.Bytes()
}

func BenchmarkSearch(b *testing.B) {
	text := prose(8 << 20)
	for _, pattern := range []string{"rareliteralhere", "[0-9]{5} Sherlock", "(?i)watson zzz", "panic|recover|fatal", "[A-Z][a-z]+son [0-9]{6}", `\bt\w+t [0-9]{7}$`} {
		b.Run(pattern, func(b *testing.B) {
			p, err := Compile(pattern, Options{})
			if err != nil {
				b.Fatal(err)
			}
			s := p.NewSearcher(Config{})
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := s.Search(context.Background(), bytes.NewReader(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
