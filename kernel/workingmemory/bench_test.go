package workingmemory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hozo-run/hozo/kernel/workingmemory"
)

// BenchmarkRevise checks a document at its limit: what the loop does between two steps beside asking models.
func BenchmarkRevise(b *testing.B) {
	var lines strings.Builder
	for i := range 200 {
		fmt.Fprintf(&lines, "- Concert %d takes place on 2026-05-%02d for %d people, see https://example.com/events/%d and ask for EV-%d.\n", i, i%28+1, 100+i, i, 4000+i)
	}
	answer := page(task, plan, lines.String(), reason, coverage)
	first := workingmemory.Revise(workingmemory.New(task), answer, 8000)
	if len(first.Problems) > 0 {
		b.Fatal(first.Problems)
	}
	b.SetBytes(int64(len(answer)))
	for b.Loop() {
		if r := workingmemory.Revise(first.Document, answer, 8000); len(r.Problems) > 0 {
			b.Fatal(r.Problems)
		}
	}
}
