package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// shown returns what a person sees of a job without a terminal.
func shown(t *testing.T, outcome job.Outcome, flags runFlags, events ...job.EventPayload) (stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	p := &program{stdout: &out, stderr: &log, getenv: func(string) string { return "" }}
	s := p.newShow(&flags)
	for i, data := range events {
		if err := s.event(job.NewEvent(int64(i+1), time.Unix(1, 0), "j", "", data)); err != nil {
			t.Fatal(err)
		}
	}
	s.finish(outcome, "out")
	return out.String(), log.String()
}

func started(model job.ModelTag) *job.StartedData {
	return &job.StartedData{Agent: job.AgentTag{ID: "clerk", Version: "3"}, Model: model}
}

func TestProgressTellsWhatHappened(t *testing.T) {
	t.Parallel()
	real := job.ModelTag{Provider: "openai", ID: "gpt-x", Thinking: llm.LevelHigh}
	tests := map[string]struct {
		event job.EventPayload
		want  string
	}{
		"start":              {started(real), "clerk@3 with openai/gpt-x (thinking high)"},
		"start of a script":  {started(job.ModelTag{Provider: "offline", ID: "surveyor", Simulated: true}), "clerk@3 with offline/surveyor (a script, no language model)"},
		"notice":             {&job.Notice{Code: "thinking-clamped", Message: "using high"}, "note: using high"},
		"text between calls": {&job.MessageData{Turn: 1, Text: "I look.\nThen I write.\n"}, "  I look.\n  Then I write."},
		"final text":         {&job.MessageData{Turn: 1, Text: "The answer.", Final: true}, ""},
		"a broken answer":    {&job.MessageDiscardedData{Turn: 1, Try: 1, Why: "connection lost"}, "the answer broke off and is asked for again: connection lost"},
		"an allowed call":    {&job.ToolCallData{CallID: "1.0", Tool: "read", Input: json.RawMessage(`{"path":"a"}`), Allowed: true}, ""},
		"a blocked call": {&job.ToolCallData{CallID: "1.0", Tool: "shell", Input: json.RawMessage(`{"command":"rm -rf /"}`), Code: "blocked", Reason: "matches rm"},
			`shell "rm -rf /": blocked: matches rm`},
		"a result":        {&job.ToolResultData{CallID: "1.0", Tool: "read", Success: true, Summary: "a, lines 1-3"}, "read: a, lines 1-3"},
		"a failed result": {&job.ToolResultData{CallID: "1.0", Tool: "read", Summary: "no such file"}, "read: no such file"},
		"a retry": {&job.SpanData{Name: job.SpanRetry, Attributes: map[string]any{"class": "overloaded", "waitMs": 446, "try": 1}},
			"the request failed (overloaded) and is made again after 446 ms"},
		"another span":          {&job.SpanData{Name: job.SpanTurn}, ""},
		"a step":                {&job.StepRecordedData{Step: 3, CallID: "3.0", Objective: "see\nall", Tool: "read", Status: "ok"}, `step 3, read: see\nall`},
		"a step that failed":    {&job.StepRecordedData{Step: 4, CallID: "4.0", Tool: "finish", Status: "error"}, "step 4, finish (error)"},
		"a step without a call": {&job.StepRecordedData{Step: 5, Status: "none"}, "step 5 (none)"},
		"a document":            {&job.MemoryUpdatedData{Step: 3, Mode: "writer", Document: "## Objective\n"}, "working memory: rewritten, 13 bytes"},
		"a folded step": {&job.MemoryUpdatedData{Step: 3, Mode: "fallback", Why: []string{"it is too short", "it is too short"}, Document: "x"},
			"working memory: the outcome was folded in without the writer: it is too short"},
		"a step folded for many reasons": {&job.MemoryUpdatedData{Step: 3, Mode: "fallback", Why: []string{"a", "b", "a", "b", "c"}, Document: "x"},
			"working memory: the outcome was folded in without the writer: a and 2 other faults"},
		"a shorter dialog": {&job.CompactionData{Turn: 3, Reason: "threshold", Kind: "summary", TokensBefore: 12345, TokensAfter: 678},
			"the dialog was made shorter (threshold, summary): 12,345 tokens became 678"},
		"a file": {&job.OutputData{CallID: "1.0", Path: "a\x1b[2J.md", Bytes: 12345}, `wrote a\x1b[2J.md (12,345 bytes)`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			s := (&program{stdout: &log, stderr: &log, getenv: func(string) string { return "" }}).newShow(&runFlags{})
			if err := s.event(job.NewEvent(1, time.Unix(1, 0), "j", "", test.event)); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(log.String(), "\n"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWorkInsideOfCallsIsIndentedBelowThem(t *testing.T) {
	t.Parallel()
	call := func(id, tool string) *job.ToolCallData {
		return &job.ToolCallData{CallID: id, Turn: 1, Tool: tool, Input: json.RawMessage(`{"objective":"look"}`), Allowed: true}
	}
	result := func(id, tool string) *job.ToolResultData {
		return &job.ToolResultData{CallID: id, Tool: tool, Success: true, Summary: "done"}
	}
	asked := &job.UsageData{Total: job.TotalUsage{Requests: 1, Compactions: 2}}
	var log bytes.Buffer
	s := (&program{stdout: &log, stderr: &log, getenv: func(string) string { return "" }}).newShow(&runFlags{})
	for i, e := range []struct {
		parent string
		data   job.EventPayload
	}{
		{"", call("1.0", "outer")}, {"", call("1.1", "other")},
		{"1.0", asked}, {"1.0", &job.MessageData{Turn: 7, Text: "I look.\nThen I ask."}},
		{"1.0", call("1.0/1.0", "inner")}, {"1.0/1.0", asked}, {"1.0/1.0", call("1.0/1.0/1.0", "read")}, {"1.0/1.0", result("1.0/1.0/1.0", "read")},
		{"1.0", result("1.0/1.0", "inner")},
		{"1.1", asked}, {"1.1", &job.MessageData{Turn: 1, Text: "Well."}}, {"1.1", asked},
		{"1.0", &job.Notice{Message: "again"}},
		{"", result("1.1", "other")}, {"", result("1.0", "outer")},
	} {
		if err := s.event(job.NewEvent(int64(i+1), time.Unix(1, 0), "j", e.parent, e.data)); err != nil {
			t.Fatal(err)
		}
	}
	want := `outer objective=look
    I look.
    Then I ask.
  inner objective=look
    read: done
  inner: done
other objective=look
    Well.
outer objective=look
  note: again
other: done
outer: done
`
	if got := log.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s.tally.turn != 1 {
		t.Errorf("the job is in turn %d: turns of subagents are their own", s.tally.turn)
	}
	log.Reset()
	s.tally.steps, s.tally.folded = 3, 1
	s.finish(job.Outcome{Completed: &job.CompletedData{}, Usage: asked.Total}, "out")
	for _, line := range []string{"  subagents: inner (1 call), other (1 call), outer (1 call)\n", "  working memory: 3 steps, 1 without the writer\n", "  compactions: 2\n"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("%q is not in\n%s", line, log.String())
		}
	}
}

func TestWorkThatGoesOnInsideACallNamesTheCall(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := (&program{stdout: &log, stderr: &log, getenv: func(string) string { return "" }}).newShow(&runFlags{})
	for i, e := range []struct {
		parent string
		data   job.EventPayload
	}{
		{"", &job.ResumedData{Attempt: 2, Turn: 1}}, {"1.0", &job.UsageData{}}, {"1.0", &job.Notice{Message: "on"}},
		{"", &job.ToolResultData{CallID: "1.0", Tool: "helper", Success: true, Summary: "finished"}},
		{"", &job.ToolCallData{CallID: "2.0", Turn: 2, Tool: "judge", Input: json.RawMessage(`{}`), Allowed: true}}, {"2.0", &job.UsageData{}},
	} {
		if err := s.event(job.NewEvent(int64(i+1), time.Unix(1, 0), "j", e.parent, e.data)); err != nil {
			t.Fatal(err)
		}
	}
	if want := "resumed in turn 1, attempt 2\ncall 1.0\n  note: on\nhelper: finished\n"; log.String() != want {
		t.Errorf("got %q, want %q", log.String(), want)
	}
	// The second call had not ended when the job was stopped.
	s.finish(job.Outcome{Failed: &job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted}}, "out")
	if want := "  subagents: helper (1 call), judge (1 call)\n"; !strings.Contains(log.String(), want) {
		t.Errorf("%q is not in\n%s", want, log.String())
	}
}

func TestASuspendedJobIsToldWithWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	outcome := job.Outcome{Suspended: &job.SuspendedData{Waits: []job.Wait{{CallID: "1.0", Tool: "write", WaitID: "w_1", Arguments: json.RawMessage(`{"path":"a"}`)}}}}
	for _, quiet := range []bool{false, true} {
		var log bytes.Buffer
		s := (&program{stdout: &log, stderr: &log, getenv: func(string) string { return "" }}).newShow(&runFlags{quiet: quiet})
		s.journal = "a.journal"
		if err := s.event(job.NewEvent(1, time.Unix(1, 0), "j", "", outcome.Suspended)); err != nil {
			t.Fatal(err)
		}
		s.finish(outcome, "out")
		for _, want := range []string{suspension(1), "w_1", "write", "hozo resume a.journal"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("quiet %v: %q is not in\n%s", quiet, want, log.String())
			}
		}
	}
}

func TestABlockedCallIsToldOnce(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"command":"x"}`: "shell x: unknown-tool: there is no tool\n",
		`{}`:              "shell: unknown-tool: there is no tool\n",
	} {
		var log bytes.Buffer
		s := (&program{stdout: &log, stderr: &log, getenv: func(string) string { return "" }}).newShow(&runFlags{})
		for i, data := range []job.EventPayload{
			&job.ToolCallData{CallID: "1.0", Tool: "shell", Input: json.RawMessage(input), Code: "unknown-tool", Reason: "there is no tool"},
			&job.ToolResultData{CallID: "1.0", Tool: "shell", Summary: "there is no tool"},
		} {
			if err := s.event(job.NewEvent(int64(i+1), time.Unix(1, 0), "j", "", data)); err != nil {
				t.Fatal(err)
			}
		}
		if got := log.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if len(s.active) != 0 {
			t.Errorf("the call counts as running: %q", s.active)
		}
	}
}

func TestSummaryTellsHowItEndedAndWhatItCost(t *testing.T) {
	t.Parallel()
	usage := job.TotalUsage{Tokens: llm.Usage{Input: 12345, CacheRead: 100, CacheWrite: 20, Output: 678}, CostMicroUSD: 1234, Requests: 4, Turns: 3}
	unpriced := usage
	unpriced.Unpriced = true
	completed := &job.CompletedData{Answer: "yes", Outputs: []string{"a.md", "b/c.md"}}
	tests := map[string]struct {
		model   job.ModelTag
		outcome job.Outcome
		event   job.EventPayload
		want    []string
	}{
		"completed": {job.ModelTag{Provider: "p", ID: "m"}, job.Outcome{Completed: completed, Usage: usage}, &job.UsageData{Total: usage},
			[]string{"completed\n", "3 turns, 0 tool calls, 4 requests", "  out/a.md\n  out/b/c.md\n", "12,345 in, 100 from cache, 20 to cache, 678 out\n", "cost: $0.001234\n", "model: p/m\n"}},
		"a price that is not known": {job.ModelTag{Provider: "p", ID: "m"}, job.Outcome{Completed: completed, Usage: unpriced}, &job.UsageData{Total: unpriced},
			[]string{"cost: unpriced\n"}},
		"a script": {job.ModelTag{Provider: "offline", ID: "surveyor", Simulated: true}, job.Outcome{Completed: completed, Usage: usage}, &job.UsageData{Total: usage},
			[]string{"cost: none\n", "model: offline/surveyor (a script, no language model)\n"}},
		"estimated tokens": {job.ModelTag{Provider: "p", ID: "m"}, job.Outcome{Completed: completed, Usage: usage}, &job.UsageData{Total: usage, Call: job.CallUsage{Estimated: true}},
			[]string{"678 out (partly estimated)\n"}},
		"failed": {job.ModelTag{Provider: "p", ID: "m"},
			job.Outcome{Failed: &job.FailedData{Reason: job.ReasonTimeout, Code: job.CodeStalled, Message: "silent for 60 s", Outputs: []string{"half.md"}}, Usage: usage}, &job.UsageData{Total: usage},
			[]string{"failed: timeout (stalled): silent for 60 s\n", "  out/half.md\n"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr := shown(t, test.outcome, runFlags{}, started(test.model), test.event)
			if stdout != "" {
				t.Errorf("standard output: %q", stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in\n%s", want, stderr)
				}
			}
		})
	}
}

func TestQuietRunSaysOnlyWhyItFailed(t *testing.T) {
	t.Parallel()
	model := started(job.ModelTag{Provider: "p", ID: "m"})
	if _, stderr := shown(t, job.Outcome{Completed: &job.CompletedData{}}, runFlags{quiet: true}, model); stderr != "" {
		t.Errorf("standard error: %q", stderr)
	}
	failed := job.Outcome{Failed: &job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted, Message: "interrupted"}}
	if _, stderr := shown(t, failed, runFlags{quiet: true}, model); stderr != "failed: aborted: interrupted\n" {
		t.Errorf("standard error: %q", stderr)
	}
}

func TestLogLinesAreShownBetweenTheEvents(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := (&program{stdout: &log, stderr: &log, getenv: func(string) string { return "" }}).newShow(&runFlags{})
	if n, err := s.Write([]byte("level=WARN msg=\x1b[2J\n")); n != 20 || err != nil {
		t.Errorf("wrote %d bytes: %v", n, err)
	}
	if got := log.String(); got != "log: level=WARN msg=\\x1b[2J\n" {
		t.Errorf("shown: %q", got)
	}
}

// brokenPipe takes nothing.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestReaderOfEventsThatIsGoneIsReported(t *testing.T) {
	t.Parallel()
	s := (&program{stdout: brokenPipe{}, stderr: brokenPipe{}, getenv: func(string) string { return "" }}).newShow(&runFlags{json: true})
	if err := s.event(job.NewEvent(1, time.Unix(1, 0), "j", "", &job.Notice{})); err == nil {
		t.Error("no error")
	}
}
