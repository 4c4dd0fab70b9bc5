package workingmemory_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/kernel/workingmemory"
)

func TestFoldAddsTwoLines(t *testing.T) {
	t.Parallel()
	got := workingmemory.Fold(old(t), workingmemory.Folding{
		Step: 2, Tool: "grep", Objective: "find\nthe date", Outcome: "a.md:3:  on\n\n# 3 May ", Status: workingmemory.StatusOK,
	}, 8000)
	want := page(task, plan, findings+"\n- step 2: grep: a.md:3: on # 3 May",
		reason+"\n- step 2 was noted without the writer (ok): find the date", coverage)
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFoldTakesAnyOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ outcome, want string }{
		"nothing":      {" \n", "- step 1: read: (nothing)"},
		"long":         {strings.Repeat("é", 301), "- step 1: read: " + strings.Repeat("é", 300) + "…"},
		"a heading":    {"\n## Findings\n", "- step 1: read: ## Findings"},
		"a fence":      {"```\ncode", "- step 1: read: ``` code"},
		"a tool call":  {"<tool_call>{}", "- step 1: read: <\u200dtool_call>{}"},
		"a comment":    {"<!-- dropped: a -->", "- step 1: read: <!\u200d-- dropped: a --\u200d>"},
		"not UTF-8":    {"a\xff", "- step 1: read: a�"},
		"our bounds":   {"</working-memory>", "- step 1: read: <\u200d/working-memory>"},
		"white space":  {strings.Repeat(" ", 1<<20), "- step 1: read: (nothing)"},
		"other script": {"演奏会は五月三日", "- step 1: read: 演奏会は五月三日"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := workingmemory.Fold(workingmemory.New(task), workingmemory.Folding{Step: 1, Tool: "read", Outcome: c.outcome, Status: "ok"}, 8000)
			if diff := cmp.Diff(c.want, got.Section(workingmemory.Findings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkDocument(t, got, task, 8000)
		})
	}
}

// A writer that never answers: the document stays within its limit, newest outcomes stay, and it says that lines are gone.
func TestFoldHoldsTheLimitOverManySteps(t *testing.T) {
	t.Parallel()
	d, limit := old(t), int64(1000)
	for step := range int64(300) {
		d = workingmemory.Fold(d, workingmemory.Folding{
			Step: step + 2, Tool: "read", Objective: "look", Outcome: strings.Repeat("長い結果 ", 100), Status: workingmemory.StatusOK,
		}, limit)
		checkDocument(t, d, task, limit)
	}
	text := d.String()
	for _, want := range []string{findings, "- step 301: read: ", "step 301 was noted", "- [ ] check dates", "Confidence: 0.6"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is gone:\n%s", want, text)
		}
	}
	if strings.Count(text, "older lines are left out") != 1 {
		t.Errorf("it does not say once that lines are gone:\n%s", text)
	}
	if strings.Contains(text, "- step 2: ") {
		t.Errorf("the oldest outcome is still there:\n%s", text)
	}
}

// What gives way first is what costs least: progress, then outcomes that were folded in, then what is done.
func TestFoldGivesWayInOrder(t *testing.T) {
	t.Parallel()
	lines := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+strings.Repeat(" and more", 6)+"\n", i)
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	from := mustRevise(t, workingmemory.New(task), page(task, lines("- [x] done %d", 10)+"\n"+lines("- [ ] open %d", 10),
		lines("- known %d", 10)+"\n"+lines("- step %d: read: folded", 10), lines("- went %d", 10), coverage))
	folding := workingmemory.Folding{Step: 99, Tool: "read", Objective: "look", Outcome: "found", Status: workingmemory.StatusOK}
	whole := workingmemory.Fold(from, folding, 8000).Tokens()
	groups := []string{"- went ", ": read: folded", "- [x] done ", "- known ", "- [ ] open "}
	for _, c := range []struct {
		less int64
		left [5]int
	}{
		{0, [5]int{10, 10, 10, 10, 10}}, {80, [5]int{3, 10, 10, 10, 10}}, {150, [5]int{2, 7, 10, 10, 10}}, {250, [5]int{2, 2, 10, 10, 10}},
		{400, [5]int{2, 0, 4, 10, 10}}, {500, [5]int{2, 0, 0, 8, 10}}, {650, [5]int{2, 0, 0, 0, 8}},
	} {
		text := workingmemory.Fold(from, folding, whole-c.less).String()
		var left [5]int
		for i, group := range groups {
			left[i] = strings.Count(text, group)
		}
		if left != c.left {
			t.Errorf("with %d tokens less there are left %v, want %v of %q", c.less, left, c.left, groups)
		}
		if !strings.Contains(text, "- step 99: read: found") || strings.Contains(text, "left out") != (c.less > 0) {
			t.Errorf("with %d tokens less the document is\n%s", c.less, text)
		}
	}
}

func TestFoldDoesNotCutACodeBlock(t *testing.T) {
	t.Parallel()
	block := "```sh\n## not a heading\n" + strings.Repeat("line of code\n", 40) + "```"
	d := mustRevise(t, workingmemory.New(task), page(task, plan, "- one\n"+block+"\n- two", reason, coverage))
	for step := range int64(20) {
		d = workingmemory.Fold(d, workingmemory.Folding{Step: step + 1, Outcome: strings.Repeat("x ", 100), Status: "none"}, 300)
		checkDocument(t, d, task, 300)
	}
}

// Whatever a document holds and whatever comes in, a fold keeps the objective and the headings and holds the limit.
func TestFoldAlwaysLeavesADocument(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	scraps := []string{"word ", "\n", "- [x] done\n", "- [ ] open\n", "```\n", "~~~\n", "## Findings\n", "### sub\n", "演奏会", "\r\n", "<tool_call>",
		"- step 3: read: x\n", "https://example.com/ ", "\t", "-->", "<!-- dropped: ", strings.Repeat("long line ", 50)}
	hostile := false
	text := func(most int) string {
		from := scraps
		if !hostile {
			from = scraps[:4]
		}
		var b strings.Builder
		for range random.IntN(most) {
			b.WriteString(from[random.IntN(len(from))])
		}
		return b.String()
	}
	accepted := 0
	for round := range 1000 {
		hostile = round%2 == 0
		limit := workingmemory.Limit(0, int64(256+random.IntN(2000)))
		objective, _ := workingmemory.ObjectiveOf("x"+text(60), limit)
		d := workingmemory.New(objective)
		r := workingmemory.Revise(d, page(objective, text(20), text(40), text(20), "1 "+text(5)), 1<<20)
		if len(r.Problems) == 0 {
			d = r.Document
			accepted++
		}
		for step := range int64(3) {
			d = workingmemory.Fold(d, workingmemory.Folding{Step: step + 1, Tool: "read", Objective: text(9), Outcome: text(99), Status: "ok"}, limit)
			checkDocument(t, d, objective, limit)
		}
		if t.Failed() {
			t.Fatalf("limit %d", limit)
		}
	}
	if accepted < 400 {
		t.Errorf("only %d of the random documents were good ones; the test looks at too little", accepted)
	}
}

func FuzzFold(f *testing.F) {
	f.Add("a task", page("a task", plan, findings, reason, coverage), "outcome", "objective", uint16(300))
	f.Add("## Findings\n```", "", "```\n## x", "\n", uint16(0))
	f.Fuzz(func(t *testing.T, objective, document, outcome, why string, limit uint16) {
		most := workingmemory.Limit(0, int64(limit))
		objective, _ = workingmemory.ObjectiveOf(strings.ToValidUTF8(objective, ""), most)
		d := workingmemory.New(objective)
		if r := workingmemory.Revise(d, document, 1<<30); len(r.Problems) == 0 {
			d = r.Document
		}
		for step := range int64(2) {
			d = workingmemory.Fold(d, workingmemory.Folding{Step: step + 1, Tool: "read", Objective: why, Outcome: outcome, Status: "ok"}, most)
			checkDocument(t, d, objective, most)
		}
	})
}

func ExampleFold() {
	d := workingmemory.New("Count the files.")
	d = workingmemory.Fold(d, workingmemory.Folding{Step: 1, Tool: "ls", Objective: "see what is there", Outcome: "a\nb\n", Status: "ok"}, 8000)
	fmt.Print(d)
	// Output:
	// ## Objective
	//
	// Count the files.
	//
	// ## Plan / TODO
	//
	// ## Findings
	//
	// - step 1: ls: a b
	//
	// ## Reasoning & progress
	//
	// - started
	// - step 1 was noted without the writer (ok): see what is there
	//
	// ## Coverage & confidence
	//
	// Coverage: 0 %
	// Confidence: 0
}
