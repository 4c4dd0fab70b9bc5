package workingmemory_test

import (
	"strings"
	"testing"

	"github.com/hozo-run/hozo/kernel/workingmemory"
)

func TestTheReportOfAFinishedLoop(t *testing.T) {
	t.Parallel()
	got := workingmemory.Report{
		Status: workingmemory.ReportFinished, Agent: "events", Version: "3", Steps: 12, Fallbacks: 1, Tokens: 34567, CostMicroUSD: 12500,
		Finish:   &workingmemory.Finish{Answer: "One concert: **A**, 3 May 2026.\n", Confidence: .95, Gaps: []string{`the price is "unknown": nobody says`}},
		Degraded: []string{"web research is unavailable in this run: tls"}, Document: old(t),
	}.Markdown()
	golden(t, "finished.md", got)
	if !strings.HasSuffix(got, old(t).String()) {
		t.Error("the document does not stand there verbatim")
	}
}

func TestTheReportOfALoopThatWasStopped(t *testing.T) {
	t.Parallel()
	golden(t, "max-loops.md", workingmemory.Report{
		Status: workingmemory.ReportMaxLoops, Reason: "max-turns", Message: "stopped after the limit of 12 turns\n---\n", Agent: "events", Version: "3",
		Steps: 12, Document: old(t),
	}.Markdown())
}

func TestTheReportOfALoopThatNeverBegan(t *testing.T) {
	t.Parallel()
	got := workingmemory.Report{Status: workingmemory.ReportAborted, Reason: "aborted", Agent: "a: b", Document: workingmemory.New(task)}.Markdown()
	for _, want := range []string{"status: \"aborted\"\n", "agent: \"a: b\"\n", "steps: 0\n", "confidence: 0\n", "There is no finished result.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
