package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/calendar"
	"github.com/hozo-run/hozo/examples/events-calendar/memory"
	"github.com/hozo-run/hozo/examples/events-calendar/prompt"
	"github.com/hozo-run/hozo/examples/events-calendar/report"
	"github.com/hozo-run/hozo/examples/events-calendar/run"
)

const document = "## Objective\n\nFind events.\n\n## Plan / TODO\n\n- done\n\n## Findings\n\n- Spring Concert, 50 % sold\n\n## Reasoning & progress\n\n- step 1\n\n## Coverage & confidence\n\nCoverage: 80 %\nConfidence: 0.7\n"

func content() report.Content {
	start := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	end := start.Add(1500 * time.Millisecond)
	lesson := func(id, title string) memory.Lesson {
		return memory.Lesson{ID: id, Draft: memory.Draft{Title: title, Text: "because"}}
	}
	return report.Content{
		Agent: "events-calendar", AgentVersion: "1", Document: document,
		Run: run.Run{ID: "run_a", Status: run.Completed, Mode: run.Auto, Input: "Events in\nPorto Velo", Answer: "Two events.\n# Not a heading",
			Model:    run.Model{Provider: "script", ID: "demo", Simulated: true},
			Prompts:  []prompt.Prompt{{Ref: prompt.Ref{Name: "a", Label: "production"}, Source: "langfuse", Version: "7", SHA256: "00"}},
			Applied:  []memory.Lesson{lesson("le_1", "Applied lesson")},
			Learned:  []memory.Lesson{lesson("le_2", "Learned lesson")},
			Degraded: []job.Notice{{Code: "mcp-unavailable", Message: "tls: the connection could not be secured"}},
			Usage:    job.TotalUsage{Turns: 5, Requests: 9, CostMicroUSD: 1500, Tokens: llm.Usage{Input: 100, Output: 20}},
			Steps:    4, StartedAt: &start, EndedAt: &end},
		Steps: []run.Step{{N: 1, Tool: "research", Status: "ok", Objective: "find concerts"}, {N: 2, Tool: "mcp__search__search", Status: "ok", ParentCallID: "1.0"}},
		Results: []calendar.Result{
			{Title: "Spring | Concert", Date: "2027-03-20", Outcome: calendar.Created, ID: "ev_1", Status: calendar.Approved},
			{Title: "<script>", Date: "soon", Outcome: calendar.Invalid, Problems: problem.List{{Code: "date-invalid", Pointer: "/date", Message: "soon is no day"}}},
			{Title: "Spring | Concert", Date: "2027-03-20", Outcome: calendar.Updated, ID: "ev_1", Status: calendar.Approved},
			{Title: "Market", Date: "2027-03-10", Outcome: calendar.Unchanged, ID: "ev_2", Status: calendar.Approved},
			{Title: "Market", Date: "2027-03-10", Outcome: calendar.Kept, ID: "ev_3", Status: calendar.Rejected},
		},
	}
}

func render(t *testing.T, c report.Content) (report.Front, string) {
	t.Helper()
	text, err := report.Render(c)
	if err != nil {
		t.Fatal(err)
	}
	front, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if !ok {
		t.Fatalf("no frontmatter:\n%s", text)
	}
	var f report.Front
	decoder := yaml.NewDecoder(strings.NewReader(front))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil {
		t.Fatal(err)
	}
	return f, body
}

func TestTheFrontmatterHoldsTheFigures(t *testing.T) {
	t.Parallel()
	got, _ := render(t, content())
	eighty := 80
	want := report.Front{Kind: "calendar-report", Run: "run_a", Status: "completed", Mode: "auto", Agent: "events-calendar", AgentVersion: "1",
		Model: "script/demo", Simulated: true,
		Coverage: report.Coverage{Percent: &eighty, FirstDay: "2027-03-10", LastDay: "2027-03-20",
			Degraded: []report.Notice{{Code: "mcp-unavailable", Message: "tls: the connection could not be secured"}}},
		Counts: report.Counts{Created: 1, Unchanged: 1, Kept: 1, Invalid: 1, Approved: 2},
		ThisRun: report.ThisRun{StartedAt: "2027-03-01T09:00:00Z", EndedAt: "2027-03-01T09:00:01Z", Steps: 4, Turns: 5, Requests: 9, Input: 100, Output: 20,
			CostUSD: 0.0015, DurationMS: 1500},
		Memory:  report.Memory{Applied: []string{"le_1"}, Learned: []string{"le_2"}},
		Prompts: []report.Prompt{{Name: "a", Label: "production", Source: "langfuse", Version: "7", SHA256: "00"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheBodyTellsPeople(t *testing.T) {
	t.Parallel()
	_, body := render(t, content())
	for what, want := range map[string]string{
		"the document, word for word": document,
		"a title as text":             `| 2027-03-20 | Spring \| Concert | created | approved | ev_1 |`,
		"markup of others as text":    "- &lt;script> (soon)\n  - `/date` soon is no day",
		"what was missing":            "- mcp-unavailable: tls: the connection could not be secured",
		"the lessons applied":         "## Lessons applied\n\n- le_1 **Applied lesson**: because",
		"the lessons learned":         "## Lessons learned\n\n- le_2 **Learned lesson**: because",
		"the answer as a quotation":   "> Two events.\n> # Not a heading",
		"that the model is a script":  "no language model",
		"the steps of a subagent":     "- 1. research (ok): find concerts\n  - 2. mcp\\_\\_search\\_\\_search (ok)",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing: %q in\n%s", what, want, body)
		}
	}
}

func TestARunWithoutAnythingHasAReport(t *testing.T) {
	t.Parallel()
	for status, c := range map[run.Status]struct {
		failure run.Failure
		want    string
	}{
		run.Stopped: {run.Failure{Reason: job.ReasonMaxTurns, Code: "max-turns", Message: "24 turns"}, "**stopped by a limit** (max-turns): 24 turns"},
		run.Failed:  {run.Failure{Reason: job.ReasonError, Code: "provider-auth", Message: "refused"}, "**failed** (error, provider-auth): refused"},
		run.Aborted: {run.Failure{Reason: job.ReasonAborted, Code: "aborted", Message: "enough"}, "**aborted** (aborted, aborted): enough"},
	} {
		front, body := render(t, report.Content{Run: run.Run{ID: "run_a", Status: status, Failure: &c.failure}})
		if front.Reason != string(c.failure.Reason) || front.Coverage.Percent != nil || front.Memory.Applied == nil || front.Coverage.Degraded == nil {
			t.Errorf("%s: %+v", status, front)
		}
		if !strings.Contains(body, c.want) || !strings.Contains(body, "kept no working-memory document") {
			t.Errorf("%s:\n%s", status, body)
		}
	}
}

func TestReportsAreStable(t *testing.T) {
	t.Parallel()
	first, err := report.Render(content())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if again, err := report.Render(content()); err != nil || again != first {
			t.Fatal("the same run gives another report", err)
		}
	}
}
