package modeltable

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/llm"
)

// BenchmarkIndex measures what the first look-up of a process pays before it searches.
func BenchmarkIndex(b *testing.B) {
	for b.Loop() {
		if len(newIndex().sections) == 0 {
			b.Fatal("no providers")
		}
	}
}

func TestLinesAreReadAsEncodingJSONReadsThem(t *testing.T) {
	t.Parallel()
	n := 0
	for _, part := range tableIndex().sections {
		for line := range strings.Lines(part.models) {
			if diff := cmp.Diff(decode[llm.Model](line), modelOf(line)); diff != "" {
				t.Errorf("%s (-encoding/json +ours)\n%s", line, diff)
			}
			n++
		}
	}
	if n < 1500 {
		t.Errorf("%d lines; the table has more", n)
	}
}

func TestALineWithAnythingElseIsReadToo(t *testing.T) {
	t.Parallel()
	m := modelOf(`{"id":"a","price":{"inputPerMTok":"1","outputPerMTok":"2","tiers":[{"promptAbove":5,"inputPerMTok":"3","outputPerMTok":"4","cacheReadPerMTok":"0.5"}]},"compat":{"thinkingDialect":"openai"}}`)
	if m.ID != "a" || m.Compat.ThinkingDialect != "openai" || m.Price.Tiers[0].Above != 5 {
		t.Errorf("%+v", m)
	}
}
