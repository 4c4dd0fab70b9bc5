package kernel_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel/workingmemory"
)

// twoSteps is a job in steps with one command before its end.
const twoSteps = `
-- job.json --
{"loop":{"kind":"working-memory"},"agent":{"id":"tester","version":"1","instructions":"x","tools":["run"]}APPROVALS}
-- script.yaml --
responses:
- parts: [{call: {name: run, arguments: {objective: begin, command: one}}}]
- {when: {purpose: writer}, repeat: forever, text: '{{ lastMessage | capture "(?s)<working-memory>\n(.*?)</working-memory>" }}'}
- parts: [{call: {name: finish, arguments: {answer: done, confidence: 0.1}}}]
-- events --
`

// stepsOf are the records of steps in a journal.
func stepsOf(t *testing.T, frames [][]byte) []workingmemory.Step {
	t.Helper()
	var steps []workingmemory.Step
	for _, line := range frames {
		f := frameOf(t, line)
		if f.Type != job.FrameStep {
			continue
		}
		var frame job.StepFrame
		must(t, json.Unmarshal(f.Data, &frame))
		s, err := workingmemory.ParseStep(frame.Step)
		must(t, err)
		steps = append(steps, s)
	}
	return steps
}

func TestAStepIsInTheJournalBeforeAndAfterTheDocumentIsRewritten(t *testing.T) {
	t.Parallel()
	journal := &memoryJournal{}
	attempt(t, specFrom(t, txtar.Parse([]byte(strings.Replace(twoSteps, "APPROVALS", "", 1)))), journal)
	steps := stepsOf(t, journal.frames)
	if len(steps) != 3 {
		t.Fatalf("there are %d records of steps", len(steps))
	}
	first, second, end := steps[0], steps[1], steps[2]
	if first.Settled() || !second.Settled() || end.Settled() || first.N != 1 || second.N != 1 || end.N != 2 {
		t.Fatalf("the records are %+v", steps)
	}
	if first.Objective != "begin" || first.Tool != "run" || string(first.Arguments) != `{"command":"one"}` || first.Output.Text != "ran one" ||
		first.Status != workingmemory.StatusOK || first.Kind != workingmemory.KindFunction || first.CallID != "1.0" || first.Source != "structured" {
		t.Errorf("the first record is %+v", first)
	}
	if second.Mode != workingmemory.ModeWriter || second.Tries != 1 || second.Usage.Total() <= first.Usage.Total() || first.Usage.Total() == 0 {
		t.Errorf("the second record is %+v", second)
	}
	if end.Kind != workingmemory.KindFinish || end.Before != second.After {
		t.Errorf("the last record is %+v", end)
	}
	// The writer is asked when the outcome is stored, and the next step when the document is.
	var order []string
	for _, line := range journal.frames {
		if f := frameOf(t, line); f.Type == job.FrameMessage || f.Type == job.FrameStep || f.Type == job.FrameCallFinished {
			order = append(order, string(f.Type))
		}
	}
	if diff := cmp.Diff([]string{"message", "call.finished", "step", "message", "step", "message", "step"}, order); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}

func TestACallInStepsCanWaitForADecision(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(strings.Replace(twoSteps, "APPROVALS", `,"approvals":{"tools":{"run":"always"}}`, 1)))
	first := &memoryJournal{}
	events, outcome := attempt(t, specFrom(t, archive), first)
	waits := waitsOf(t, outcome)
	if len(waits) != 1 || string(waits[0].Arguments) != `{"command":"one"}` || len(stepsOf(t, first.frames)) != 0 {
		t.Fatalf("the waits are %+v", waits)
	}
	later, outcome, journal := next(t, archive, first, decided(waits, job.VerdictApprove)...)
	if outcome.Completed == nil {
		t.Fatalf("the job ended with %+v", outcome)
	}
	if recorded := dataOf[job.StepRecordedData](joined(t, events, later)); len(recorded) != 2 || recorded[0].Status != "ok" {
		t.Errorf("the steps are %+v", recorded)
	}
	replayed(t, journal.all())

	_, outcome, journal = next(t, archive, first, decided(waits, job.VerdictReject)...)
	if steps := stepsOf(t, journal.all()); outcome.Completed == nil || steps[0].Status != workingmemory.StatusError || !strings.HasPrefix(steps[0].Output.Text, "rejected") {
		t.Errorf("a rejected call leaves the step %+v", steps)
	}
}

func TestAnInterruptedCallIsAStepOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(strings.Replace(twoSteps, "APPROVALS", "", 1)))
	whole := &memoryJournal{}
	attempt(t, specFrom(t, archive), whole)
	cut := 1 + slices.IndexFunc(whole.frames, func(line []byte) bool { return frameOf(t, line).Type == job.FrameCallStarted })
	spec := resumed(t, archive, 2, whole.frames[:cut], whole.states[cut-1])
	journal := &memoryJournal{earlier: whole.frames[:cut]}
	events, outcome := attempt(t, spec, journal)
	if outcome.Completed == nil {
		t.Fatalf("the job ended with %+v", outcome)
	}
	if got := dataOf[job.StepRecordedData](events)[0]; got.Status != "unknown" {
		t.Errorf("the step is %+v", got)
	}
	if steps := stepsOf(t, journal.frames); !strings.Contains(steps[0].Output.Text, "may have had its effect or not") {
		t.Errorf("the outcome of the step is %q", steps[0].Output.Text)
	}
}

// A fork may have another limit for its document than the job it comes from: what was written then still stands.
func TestAForkOfAJobInStepsTakesItsDocument(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 300)
	archive := txtar.Parse([]byte(`
-- job.json --
{"loop":{"kind":"working-memory"},"agent":{"id":"tester","version":"1","instructions":"x","tools":["run"]}}
-- script.yaml --
responses:
- parts: [{call: {name: run, arguments: {objective: begin, command: one}}}]
- {when: {purpose: writer, lastMessage: {contains: "Step 1 has ended"}}, text: '{{ lastMessage | capture "(?s)<working-memory>\n(.*?)</working-memory>" | replace "- started" "- ` + long + `" }}'}
- parts: [{call: {name: run, arguments: {objective: go on, command: two}}}]
- {when: {purpose: writer}, repeat: forever, text: "## Objective"}
- parts: [{call: {name: finish, arguments: {answer: done, confidence: 0.1}}}]
-- events --
`))
	whole := &memoryJournal{}
	attempt(t, specFrom(t, archive), whole)
	cut := slices.IndexFunc(whole.frames, func(line []byte) bool {
		var m job.MessageFrame
		f := frameOf(t, line)
		return f.Type == job.FrameMessage && json.Unmarshal(f.Data, &m) == nil && m.Turn == 2
	})
	spec := resumed(t, archive, 1, nil, whole.states[cut-1])
	limit := int64(300)
	spec.ID, spec.Loop.Writer = "fork", &job.Writer{MaxTokens: &limit}
	spec.Resume = &job.Resume{Attempt: 1, NextSeq: 1, Fork: true}
	journal := &memoryJournal{earlier: whole.frames[:cut]}
	events, outcome := attempt(t, spec, journal)
	if outcome.Completed == nil {
		t.Fatalf("the job ended with %+v", outcome)
	}
	checkStream(t, events, outcome)
	steps := stepsOf(t, journal.frames)
	if !strings.Contains(steps[1].Document, long[:200]) || steps[1].Mode != workingmemory.ModeWriter {
		t.Errorf("the document of the first step is not the recorded one: %+v", steps[1])
	}
	if d := steps[3]; d.Mode != workingmemory.ModeFallback || int64(len(d.Document)) > 4*limit || strings.Contains(d.Document, long[:200]) {
		t.Errorf("the fork's own step does not keep its limit: %+v", d)
	}
	if !bytes.Contains(bytes.Join(journal.frames, nil), []byte(`"thread":"/writer"`)) {
		t.Error("the fork does not record its writer")
	}
}
