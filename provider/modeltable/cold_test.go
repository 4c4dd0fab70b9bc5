package modeltable

import "testing"

// BenchmarkSplit measures what the first look-up of a process pays before it searches.
func BenchmarkSplit(b *testing.B) {
	for b.Loop() {
		if len(split()) == 0 {
			b.Fatal("no providers")
		}
	}
}
