package workingmemory_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/kernel/workingmemory"
)

func TestLimitIsTheSmallestThatApplies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ window, configured, want int64 }{
		{0, 0, 8000}, {200_000, 0, 8000}, {32_768, 0, 8000}, {16_384, 0, 4096}, {8192, 3000, 2048}, {8192, 1000, 1000},
		{200_000, 20_000, 8000}, {512, 0, 256}, {0, 1, 256}, {-1, -1, 8000},
	} {
		if got := workingmemory.Limit(c.window, c.configured); got != c.want {
			t.Errorf("Limit(%d, %d) = %d, want %d", c.window, c.configured, got, c.want)
		}
	}
}

func TestTheFirstDocumentIsADocument(t *testing.T) {
	t.Parallel()
	d := workingmemory.New(task)
	checkDocument(t, d, task, 8000)
	want := "## Objective\n\n" + task + "\n\n## Plan / TODO\n\n## Findings\n\n## Reasoning & progress\n\n- started\n\n" +
		"## Coverage & confidence\n\nCoverage: 0 %\nConfidence: 0\n"
	if diff := cmp.Diff(want, d.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d.Hash() != workingmemory.New(task).Hash() || d.Hash() == workingmemory.New("x").Hash() {
		t.Error("the hash is not that of the text")
	}
}

func TestALongTaskIsCutInTheDocument(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]string{
		"ASCII": strings.Repeat("word ", 2000), "three bytes a character": strings.Repeat("演奏会 ", 2000),
	} {
		objective, whole := workingmemory.ObjectiveOf(long, 1000)
		if whole || len(objective) > 2000 || !utf8.ValidString(objective) || !strings.Contains(objective, "characters in all") {
			t.Errorf("%s: whole %t, %d bytes: %q", name, whole, len(objective), objective)
		}
		checkDocument(t, workingmemory.New(objective), objective, 1000)
	}
	if objective, whole := workingmemory.ObjectiveOf(" a\r\n", 1000); objective != " a\r\n" || !whole {
		t.Errorf("a short task becomes %q", objective)
	}
}

func TestRestoreRefusesWhatIsNoDocument(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "another objective": workingmemory.New("other").String(), "a heading less": strings.Replace(old(t).String(), "## Findings\n", "", 1),
	} {
		if _, err := workingmemory.Restore(text, task); err == nil {
			t.Errorf("%s: Restore accepts it", name)
		}
	}
}

func TestTheDocumentSaysWhatIsOpenAndHowSureItIs(t *testing.T) {
	t.Parallel()
	d := mustRevise(t, workingmemory.New(task), page(task, "- [x] a\n- [ ] b\n  * [ ] c \nno item [ ] d", findings, reason, coverage))
	if diff := cmp.Diff([]string{"b", "c"}, d.OpenItems()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string][2]float64{
		"Coverage: 40 %\nConfidence: 0.6":              {.4, .6},
		"**Coverage:** 75%\n**Confidence:** 80%":       {.75, .8},
		"- Coverage – 3\n- confidence = 0,5":           {.03, .5},
		"Confidence: 1\nCoverage: 1.0":                 {1, 1},
		"Confidence: 900 %\nsome coverage of 12 sites": {-1, 1},
		"0": {-1, -1},
		"Our confidence rests on 2 sources. Coverage 5": {-1, -1},
	} {
		d := mustRevise(t, workingmemory.New(task), page(task, plan, findings, reason, text))
		for i, read := range []func() (float64, bool){d.Coverage, d.Confidence} {
			got, ok := read()
			if !ok {
				got = -1
			}
			if got != want[i] {
				t.Errorf("%q: %v, want %v", text, got, want[i])
			}
		}
	}
}
