package scripttool

import (
	"context"
	"encoding/json"
	"flag"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/hozo-run/hozo/tool"
)

// childProgram lets the benchmarks start the real program instead of this test binary.
var childProgram = flag.String("program", "", "the program to start as the child")

// median runs do and a bare spawn of true in turn, and reports the medians of what do returns and of their ratio: the
// machine is busy in the same way for both.
func median(b *testing.B, do func() time.Duration) {
	var ours, ratios []float64
	for b.Loop() {
		began := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		nothing := time.Since(began)
		took := do()
		ours = append(ours, float64(took.Microseconds()))
		ratios = append(ratios, float64(took)/float64(nothing))
	}
	slices.Sort(ours)
	slices.Sort(ratios)
	b.ReportMetric(ours[len(ours)/2], "µs/script")
	b.ReportMetric(ratios[len(ratios)/2], "x-true")
}

// BenchmarkFirstCall measures from the model's call to the first call of its script.
func BenchmarkFirstCall(b *testing.B) {
	l := newLender()
	var first time.Time
	l.add("first", func(context.Context, json.RawMessage) tool.Result {
		first = time.Now()
		return tool.Result{}
	})
	codemode, env := New(Options{Program: *childProgram}), l.env()
	median(b, func() time.Duration {
		began := time.Now()
		if r := codemode.Run(b.Context(), env, json.RawMessage(`{"code": "await tools.first({}); return 1"}`)); r.Text != "1" {
			b.Fatal(r.Text)
		}
		return first.Sub(began)
	})
}

// BenchmarkThousandCalls measures a whole script that makes a thousand calls, one after another.
func BenchmarkThousandCalls(b *testing.B) {
	codemode, env := New(Options{Program: *childProgram, Limits: Limits{Calls: 1000}}), newLender().env()
	median(b, func() time.Duration {
		began := time.Now()
		if r := codemode.Run(b.Context(), env, json.RawMessage(`{"code": "let n = 0; for (let i = 0; i < 1000; i++) n += (await tools.echo({i: 1})).i; return n"}`)); r.Text != "1000" {
			b.Fatal(r.Text)
		}
		return time.Since(began)
	})
}
