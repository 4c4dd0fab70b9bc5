package workingmemory_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/kernel/workingmemory"
)

func TestParseFinish(t *testing.T) {
	t.Parallel()
	got, err := workingmemory.ParseFinish(json.RawMessage(`{"answer":"# Done\n","confidence":0.75,"gaps":[" one ",""]}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(workingmemory.Finish{Answer: "# Done\n", Confidence: .75, Gaps: []string{"one"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for arguments, says := range map[string]string{
		`{"confidence":1}`:                            `"answer" is missing`,
		`{"answer":" ","confidence":1}`:               `"answer" is missing`,
		`{"answer":"x"}`:                              `"confidence" must be`,
		`{"answer":"x","confidence":1.1}`:             `"confidence" must be`,
		`{"answer":"x","confidence":-0.1}`:            `"confidence" must be`,
		`{"answer":"x","confidence":"sure"}`:          "do not fit",
		`{"answer":"x","confidence":1e999}`:           "do not fit",
		`[]`:                                          "do not fit",
		`{"answer":"","confidence":7}`:                "from 0 to 1",
		`{"answer":"x","confidence":1,"gaps":"none"}`: "do not fit",
	} {
		if _, err := workingmemory.ParseFinish(json.RawMessage(arguments)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", arguments, err, says)
		}
	}
}

func TestAFinishIsHeldAgainstTheDocument(t *testing.T) {
	t.Parallel()
	done := "- [x] search"
	for name, c := range map[string]struct {
		plan, coverage string
		finish         workingmemory.Finish
		halfLeft       bool
		objections     []string // what each says
		calibrated     float64
	}{
		"as sure as the document":    {done, "Confidence: 0.9", workingmemory.Finish{Confidence: .95}, true, nil, .95},
		"the document says no more":  {done, "Confidence: 0.7", workingmemory.Finish{Confidence: .9}, false, nil, .9},
		"surer than the document":    {done, "Confidence: 0.3", workingmemory.Finish{Confidence: .9}, false, []string{"0.9 is more than 0.5, what the document's own confidence of 0.3"}, .5},
		"no confidence stated":       {done, "1 of 2", workingmemory.Finish{Confidence: 1}, true, nil, 1},
		"sure in spite of gaps":      {done, "Confidence: 1", workingmemory.Finish{Confidence: .95, Gaps: []string{"x"}}, true, []string{"0.95 is more than 0.9"}, .9},
		"modest with gaps":           {done, "Confidence: 0.6", workingmemory.Finish{Confidence: .6, Gaps: []string{"x"}}, true, nil, .6},
		"open items early":           {plan, "Confidence: 0.6", workingmemory.Finish{Confidence: .6}, true, []string{"open items: check dates"}, .6},
		"open items late":            {plan, "Confidence: 0.6", workingmemory.Finish{Confidence: .6}, false, nil, .6},
		"open items and quite sure":  {plan, "Confidence: 1", workingmemory.Finish{Confidence: 1}, true, []string{"open items", "more than 0.9"}, .9},
		"less sure than it might be": {done, "Confidence: 0.9", workingmemory.Finish{Confidence: .1}, true, nil, .1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := mustRevise(t, workingmemory.New(task), page(task, c.plan, findings, reason, c.coverage))
			got := c.finish.Objections(d, c.halfLeft)
			if len(got) != len(c.objections) {
				t.Fatalf("objections are %q, want %q", got, c.objections)
			}
			for i, says := range c.objections {
				if !strings.Contains(got[i], says) {
					t.Errorf("objection %q does not say %q", got[i], says)
				}
			}
			if got := c.finish.Calibrated(d); got != c.calibrated {
				t.Errorf("calibrated %v, want %v", got, c.calibrated)
			}
		})
	}
}

func TestRecallShowsAnOutcomeInPieces(t *testing.T) {
	t.Parallel()
	step := workingmemory.Step{N: 3, Tool: "read", Objective: "see", Arguments: json.RawMessage(`{"path":"a"}`), Status: workingmemory.StatusOK}
	var outcome strings.Builder
	for i := range 3000 {
		outcome.WriteString(strings.Repeat(string(rune('a'+i%26)), 2) + "話\n")
	}
	whole := outcome.String()
	var joined strings.Builder
	recall := workingmemory.Recall{N: 3}
	for range 10 {
		text, err := recall.Show(step, whole)
		if err != nil {
			t.Fatal(err)
		}
		if n := utf8.RuneCountInString(text); n > 8000 {
			t.Fatalf("%d characters are more than a writer is shown", n)
		}
		head, piece, _ := strings.Cut(text, ":\n")
		if !strings.Contains(head, "Step 3: read (ok)\nObjective: see\nArguments: {\"path\":\"a\"}\nOutcome, 12000 characters") {
			t.Fatalf("the head is %q", head)
		}
		piece, _, more := strings.Cut(piece, "\n[call recall_step with n 3 and offset ")
		joined.WriteString(piece)
		if !more {
			break
		}
		recall.Offset = int64(utf8.RuneCountInString(joined.String()))
	}
	if joined.String() != whole {
		t.Errorf("the pieces do not make the outcome: %d of %d bytes", joined.Len(), len(whole))
	}
	recall.Offset = 12000
	if _, err := recall.Show(step, whole); err == nil || !strings.Contains(err.Error(), "12000 characters") {
		t.Errorf("beyond the end: %v", err)
	}
	recall.Offset = 0
	if text, err := recall.Show(workingmemory.Step{N: 1, Status: "none"}, ""); err != nil || !strings.HasPrefix(text, "Step 1: no call (none)") {
		t.Errorf("a step without a call: %q, %v", text, err)
	}
}

func TestParseRecall(t *testing.T) {
	t.Parallel()
	if got, err := workingmemory.ParseRecall(json.RawMessage(`{"n":2,"offset":10}`), 3); err != nil || got != (workingmemory.Recall{N: 2, Offset: 10}) {
		t.Errorf("ParseRecall = %v, %v", got, err)
	}
	for arguments, says := range map[string]string{
		`{"n":3}`: "the steps so far are 1 to 2", `{"n":0}`: "no step 0", `{}`: "no step 0", `{"n":1,"offset":-1}`: "negative", `{"n":"x"}`: "do not fit",
	} {
		if _, err := workingmemory.ParseRecall(json.RawMessage(arguments), 3); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", arguments, err, says)
		}
	}
	if _, err := workingmemory.ParseRecall(json.RawMessage(`{"n":1}`), 1); err == nil || !strings.Contains(err.Error(), "no earlier step") {
		t.Errorf("in the first step: %v", err)
	}
}
