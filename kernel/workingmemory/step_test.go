package workingmemory_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
)

func TestAStepIsRecordedTwice(t *testing.T) {
	t.Parallel()
	first := workingmemory.Step{
		V: workingmemory.StepVersion, N: 4, Agent: "events", CallID: "4.0", Objective: "find the date", Tool: "mcp__web__search",
		Kind: workingmemory.KindMCP, Arguments: json.RawMessage(`{"q":"a"}`), Output: workingmemory.OutputOf("found"), Status: workingmemory.StatusOK,
		Source: "structured", Dropped: []workingmemory.DroppedCall{{Tool: "read", Arguments: json.RawMessage(`{}`)}},
		StartedAt: time.Date(2026, 5, 3, 1, 2, 3, 0, time.UTC), DurationMS: 12, Usage: llm.Usage{Input: 10, Output: 2}, CostMicroUSD: 7,
		Before: workingmemory.New(task).Hash(),
	}
	second := first.Rewritten(old(t), workingmemory.ModeFallback)
	second.Why = []string{"the answer is empty"}
	for _, step := range []workingmemory.Step{first, second} {
		text, err := json.Marshal(step)
		if err != nil {
			t.Fatal(err)
		}
		if step.Settled() != strings.Contains(string(text), `"stmAfter"`) || step.Settled() != strings.Contains(string(text), `"stm":"fallback"`) {
			t.Errorf("the record is %s", text)
		}
		back, err := workingmemory.ParseStep(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step, back); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if document, err := workingmemory.Restore(second.Document, task); err != nil || document != old(t) {
		t.Errorf("the document does not come back: %v", err)
	}
}

func TestParseStepRefusesWhatItCannotTrust(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`{`: "step record", `{"v":2,"n":1}`: "version 2", `{"v":1}`: "count from 1",
		`{"v":1,"n":1,"stmAfter":"00","document":"x"}`: "recorded hash",
	} {
		if _, err := workingmemory.ParseStep([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestLargeOutcomesAreRecordedByHash(t *testing.T) {
	t.Parallel()
	small, large := workingmemory.OutputOf(strings.Repeat("x", 64<<10)), workingmemory.OutputOf(strings.Repeat("x", 64<<10+1))
	if !small.Inline() || small.Text == "" {
		t.Error("64 KB are not in the record")
	}
	if large.Inline() || large.Text != "" || large.Bytes != 64<<10+1 || len(large.SHA256) != 64 {
		t.Errorf("the record of more is %v", large)
	}
	if !workingmemory.OutputOf("").Inline() {
		t.Error("an empty outcome is not in the record")
	}
}
