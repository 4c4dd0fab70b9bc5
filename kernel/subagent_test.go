package kernel_test

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hozo-run/hozo/job"
)

func TestNothingPassesBetweenAnAgentAndItsSubagentButObjectiveAndReport(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/transcripts/subagent.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var bodies [][]byte
	rt := newRuntime(t, func(body []byte) { bodies = append(bodies, bytes.Clone(body)) })
	h, err := rt.Start(t.Context(), specFrom(t, archive), job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	if outcome := h.Wait(); outcome.Completed == nil {
		t.Fatalf("outcome = %+v", outcome)
	}
	children := 0
	for i, body := range bodies {
		has := func(text string) bool { return bytes.Contains(body, []byte(text)) }
		child := has("Find out.")
		if child {
			children++
		}
		for text, theirs := range map[string]bool{
			"Find out.":                        child,
			"Do what the task says.":           !child,
			"for the parent alone":             !child,
			`"toolResult":{"callId":"1.0/1.0"`: child && has(`"toolResult"`),
		} {
			if has(text) != theirs {
				t.Errorf("request %d (of the subagent: %v) and %q: %v", i+1, child, text, has(text))
			}
		}
		if !has("be brief") {
			t.Errorf("request %d lacks the rules of the job", i+1)
		}
	}
	if children != 3 || len(bodies) != 5 {
		t.Errorf("%d of %d requests are the subagent's", children, len(bodies))
	}
	for _, e := range events {
		inside := strings.HasPrefix(string(e.Type), "job.")
		if usage, ok := e.Data.(*job.UsageData); ok && (usage.Call.Purpose == "subagent") != (e.ParentCallID != "") {
			t.Errorf("usage %s for %q is reported in call %q", usage.Call.ID, usage.Call.Purpose, e.ParentCallID)
		}
		if inside && e.ParentCallID != "" {
			t.Errorf("%s is reported in call %s", e.Type, e.ParentCallID)
		}
	}
}

func TestAnAbortEndsASubagentAndItsParent(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(`
-- job.json --
{"agent":{"id":"tester","version":"1","instructions":"x","tools":[]},
 "subagents":[{"name":"slow","description":"Waits.","agent":{"id":"slow","version":"1","instructions":"Wait.","tools":["hang"]}}]}
-- script.yaml --
responses:
- parts: [{call: {name: slow, arguments: {objective: wait}}}]
- parts: [{call: {name: hang, arguments: {}}}]
- text: never asked
-- events --
`))
	h, err := newRuntime(t, nil).Start(t.Context(), specFrom(t, archive), job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
		if call, ok := e.Data.(*job.ToolCallData); ok && call.Tool == "hang" {
			h.Abort("enough")
		}
	}
	outcome := h.Wait()
	if outcome.Failed == nil || outcome.Failed.Code != job.CodeAborted || outcome.Failed.Message != "enough" {
		t.Errorf("outcome = %+v", outcome.Failed)
	}
	if outcome.Usage.Requests != 2 {
		t.Errorf("%d requests were made", outcome.Usage.Requests)
	}
	if got := render(t, events, false); !strings.Contains(got, `tool.result {"callId":"1.0/1.0"`) || !strings.Contains(got, `tool.result {"callId":"1.0",`) {
		t.Errorf("a call has no result:\n%s", got)
	}
}
