package kernel_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/hozo-run/hozo/job"
)

// guardedCommands is a job whose command needs a decision each time, and writing at its first use.
const guardedCommands = `
-- job.json --
{"approvals":{"tools":{"run":"always","write":"first-use","ls":"never"}}}
-- script.yaml --
responses:
- parts:
  - call: {name: ls, arguments: {}}
  - call: {name: run, arguments: {command: one}}
  - call: {name: write, arguments: {path: a, content: a}}
  - call: {name: write, arguments: {path: b, content: b}}
  - call: {name: run, arguments: {command: two}}
- text: "{{ range calls \"run\" }}{{ .text }}; {{ end }}done"
-- events --
`

// waitsOf are the waits of a suspended attempt.
func waitsOf(t *testing.T, outcome job.Outcome) []job.Wait {
	t.Helper()
	if outcome.Suspended == nil || outcome.Completed != nil || outcome.Failed != nil || outcome.ExitCode() != job.ExitSuspended {
		t.Fatalf("the attempt is not suspended: %+v", outcome)
	}
	return outcome.Suspended.Waits
}

func decided(waits []job.Wait, verdict string) []job.Decision {
	var all []job.Decision
	for _, w := range waits {
		all = append(all, job.Decision{WaitID: w.WaitID, Hash: w.Hash, Verdict: verdict})
	}
	return all
}

// next runs the attempt after those that the journal holds.
func next(t *testing.T, archive *txtar.Archive, before *memoryJournal, decisions ...job.Decision) ([]*job.Event, job.Outcome, *memoryJournal) {
	t.Helper()
	frames := before.all()
	spec := resumed(t, archive, 2, frames, before.states[len(before.states)-1])
	spec.Resume.Decisions = decisions
	journal := &memoryJournal{earlier: frames}
	events, outcome := attempt(t, spec, journal)
	return events, outcome, journal
}

func TestACallThatNeedsADecisionSuspendsTheJobUntilThereIsOne(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(guardedCommands))
	first := &memoryJournal{}
	events, outcome := attempt(t, specFrom(t, archive), first)
	var asked []string
	for _, w := range waitsOf(t, outcome) {
		asked = append(asked, w.CallID+" "+w.Tool+" "+string(w.Arguments))
	}
	want := []string{`1.1 run {"command":"one"}`, `1.2 write {"path":"a","content":"a"}`, `1.4 run {"command":"two"}`}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if last := events[len(events)-1]; last.Type != job.EventSuspended {
		t.Errorf("the attempt ends with %s", last.Type)
	}
	if got := render(t, events, false); !strings.Contains(got, `tool.result {"callId":"1.0"`) || strings.Contains(got, `"callId":"1.1","input"`) {
		t.Errorf("the calls before the first that waits have run, and no other:\n%s", got)
	}

	later, outcome, journal := next(t, archive, first, decided(waitsOf(t, outcome), job.VerdictApprove)...)
	if outcome.Completed == nil || outcome.Completed.Answer != "ran one; ran two; done" {
		t.Fatalf("outcome = %+v\n%s", outcome, render(t, later, false))
	}
	if diff := cmp.Diff([]string{"a", "b"}, outcome.Completed.Outputs); diff != "" {
		t.Error(diff)
	}
	all := joined(t, events, later)
	if n := len(slices.DeleteFunc(slices.Clone(all), func(e *job.Event) bool { return e.Type != job.EventStarted })); n != 1 {
		t.Errorf("job.started was emitted %d times", n)
	}
	replayed(t, journal.all())
}

func TestWithoutADecisionTheJobStaysSuspended(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(guardedCommands))
	first := &memoryJournal{}
	_, outcome := attempt(t, specFrom(t, archive), first)
	waits := waitsOf(t, outcome)
	for name, decisions := range map[string][]job.Decision{
		"no decision":              nil,
		"another hash":             {{WaitID: waits[0].WaitID, Hash: strings.Repeat("0", 64), Verdict: job.VerdictApprove}},
		"another wait":             {{WaitID: "w0", Hash: waits[0].Hash, Verdict: job.VerdictApprove}},
		"only a later call's turn": decided(waits[1:], job.VerdictApprove),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, outcome, _ := next(t, archive, first, decisions...)
			if diff := cmp.Diff(waits, waitsOf(t, outcome)); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecisionsOtherThanApproval(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(guardedCommands))
	first := &memoryJournal{}
	_, outcome := attempt(t, specFrom(t, archive), first)
	waits := waitsOf(t, outcome)
	edited := decided(waits, job.VerdictApprove)
	edited[0].Arguments = json.RawMessage(`{"command":"mended"}`)
	unfit := decided(waits, job.VerdictApprove)
	unfit[0].Arguments = json.RawMessage(`{"command":{"a":[]}}`)
	rejected := decided(waits, job.VerdictApprove)
	rejected[0] = job.Decision{WaitID: waits[0].WaitID, Hash: waits[0].Hash, Verdict: job.VerdictReject, Rationale: "too dangerous"}
	withdrawn := decided(waits, job.VerdictWithdraw)
	for name, c := range map[string]struct {
		decisions []job.Decision
		answer    string
		code      string
		told      string
	}{
		"edited arguments run instead":       {edited, "ran mended; ran two; done", "", `"arguments":{"command":"mended"}`},
		"edited arguments are checked":       {unfit, "", "", `"code":"invalid-arguments"`},
		"a rejected call is told so":         {rejected, "", "", "does not want it: too dangerous"},
		"a withdrawn call ends the job":      {withdrawn, "", job.CodeApprovalWithdrawn, ""},
		"the rest is asked for again, alone": {decided(waits[:1], job.VerdictApprove), "", "suspended", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, outcome, journal := next(t, archive, first, c.decisions...)
			switch {
			case c.code == "suspended":
				if diff := cmp.Diff(waits[1:], waitsOf(t, outcome)); diff != "" {
					t.Errorf("waits (-want +got):\n%s", diff)
				}
			case c.code != "":
				if outcome.Failed == nil || outcome.Failed.Code != c.code || outcome.Failed.Reason != job.ReasonAborted {
					t.Errorf("outcome = %+v", outcome)
				}
			case outcome.Completed == nil || c.answer != "" && outcome.Completed.Answer != c.answer:
				t.Errorf("outcome = %+v", outcome)
			}
			found := false
			for _, line := range journal.frames {
				found = found || strings.Contains(string(line), c.told)
			}
			if !found {
				t.Errorf("no frame holds %s", c.told)
			}
			if outcome.Suspended == nil {
				replayed(t, journal.all())
			}
		})
	}
}

func TestTheHashOfAWaitIsBoundToTheExactCall(t *testing.T) {
	t.Parallel()
	call := job.CallIdentity{Run: "r", CallID: "1.0", AgentID: "a", AgentVersion: "1", Tool: "t", ToolVersion: "2", Arguments: json.RawMessage(`{"b":1,"a":2}`)}
	same := call
	same.Arguments = json.RawMessage(`{ "a": 2.0, "b": 1 }`)
	if call.Hash() != same.Hash() || len(call.Hash()) != 64 {
		t.Errorf("the same arguments in another form have another hash")
	}
	seen := map[string]bool{call.Hash(): true}
	for _, change := range []func(*job.CallIdentity){
		func(c *job.CallIdentity) { c.Run = "s" }, func(c *job.CallIdentity) { c.CallID = "1.1" }, func(c *job.CallIdentity) { c.AgentID = "b" },
		func(c *job.CallIdentity) { c.AgentVersion = "2" }, func(c *job.CallIdentity) { c.Tool = "u" }, func(c *job.CallIdentity) { c.ToolVersion = "3" },
		func(c *job.CallIdentity) { c.Arguments = json.RawMessage(`{"b":1,"a":3}`) },
	} {
		other := call
		change(&other)
		if seen[other.Hash()] {
			t.Errorf("%+v has the hash of another call", other)
		}
		seen[other.Hash()] = true
	}
}

func TestADetachedAttemptGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(`
-- job.json --
{}
-- script.yaml --
responses:
- parts: [{call: {name: write, arguments: {path: a, content: a}}}]
- text: the end
-- events --
`))
	var h job.Handle
	ready := make(chan struct{})
	first := &memoryJournal{}
	first.late = func(stored chan<- error) { // the attempt has to end while its first call begins
		if frameOf(t, first.frames[len(first.frames)-1]).Type == job.FrameCallStarted {
			<-ready
			h.Detach()
		}
		stored <- nil
	}
	spec := specFrom(t, archive)
	first.out = spec.Workspace.OutDir
	var err error
	if h, err = newRuntime(t, nil).Start(t.Context(), spec, job.Ports{Journal: first}); err != nil {
		t.Fatal(err)
	}
	close(ready)
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	if waits := waitsOf(t, outcome); len(waits) != 0 {
		t.Errorf("the attempt waits for %v", waits)
	}
	later, outcome, journal := next(t, archive, first)
	if outcome.Completed == nil || outcome.Completed.Answer != "the end" {
		t.Errorf("outcome = %+v", outcome)
	}
	replayed(t, journal.all())
	calls := 0
	for _, e := range joined(t, events, later) {
		if e.Type == job.EventToolCall {
			calls++
		}
	}
	if calls != 1 {
		t.Errorf("the call was made %d times", calls)
	}
}

func TestWithoutAJournalNothingCanWait(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(guardedCommands))
	_, err := newRuntime(t, nil).Start(t.Context(), specFrom(t, archive), job.Ports{})
	if err == nil || !strings.Contains(err.Error(), "/approvals: a job without a journal cannot be suspended or resumed") {
		t.Errorf("error = %v", err)
	}
	spec := specFrom(t, archive)
	spec.Approvals.Tools = map[string]string{"run": job.ApproveNever}
	h, err := newRuntime(t, nil).Start(t.Context(), spec, job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	h.Detach() // has no effect
	if outcome := h.Wait(); outcome.Completed == nil {
		t.Errorf("outcome = %+v", outcome)
	}
}

func TestAJournalThatCannotBeWrittenEndsTheJobBeforeAnythingElseHappens(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(strings.Replace(guardedCommands, `"run":"always","write":"first-use",`, "", 1)))
	whole := &memoryJournal{}
	attempt(t, specFrom(t, archive), whole)
	for refused := 1; refused <= len(whole.frames); refused++ {
		journal := &memoryJournal{refuse: refused}
		spec := specFrom(t, archive)
		_, outcome := attempt(t, spec, journal)
		if outcome.Failed == nil || outcome.Failed.Code != job.CodeJournalFailed {
			t.Errorf("frame %d refused: outcome = %+v", refused, outcome)
		}
		if len(journal.frames) != refused-1 {
			t.Errorf("frame %d refused: %d frames were appended", refused, len(journal.frames))
		}
	}
}

func TestAJournalOfSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(strings.Replace(guardedCommands, `"run":"always","write":"first-use",`, "", 1)))
	whole := &memoryJournal{}
	attempt(t, specFrom(t, archive), whole)
	replace := func(n int, old, new string) [][]byte {
		frames := slices.Clone(whole.frames)
		frames[n] = []byte(strings.Replace(string(frames[n]), old, new, 1))
		return frames
	}
	for name, c := range map[string]struct {
		frames [][]byte
		want   string
	}{
		"of another spec":      {replace(0, `"digest":"`, `"digest":"0`), "another spec"},
		"with a gap":           {slices.Delete(slices.Clone(whole.frames), 2, 3), "frame 4 follows frame 2"},
		"of another version":   {replace(1, `"v":1`, `"v":9`), "has version 9"},
		"with a broken frame":  {replace(2, `{`, `[`), "journal frame"},
		"in which things swap": {replace(3, `"callId":"1.0"`, `"callId":"1.7"`), "begins call 1.7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := resumed(t, archive, 2, nil, nil)
			_, outcome := attempt(t, spec, &memoryJournal{earlier: c.frames})
			if outcome.Failed == nil || outcome.Failed.Code != job.CodeJournalDiverged || !strings.Contains(outcome.Failed.Message, c.want) {
				t.Errorf("outcome = %+v", outcome.Failed)
			}
		})
	}
}

func TestAForkGoesOnFromATurnOfAnotherJobWithAnotherPrompt(t *testing.T) {
	t.Parallel()
	archive := txtar.Parse([]byte(`
-- job.json --
{}
-- script.yaml --
responses:
- parts: [{call: {name: write, arguments: {path: a, content: a}}}]
- parts: [{call: {name: write, arguments: {path: b, content: b}}}]
- text: the end
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
	spec.ID, spec.Agent.Instructions = "fork", "Do it in another way."
	spec.Resume = &job.Resume{Attempt: 1, NextSeq: 1, Fork: true}
	journal := &memoryJournal{earlier: whole.frames[:cut]}
	events, outcome := attempt(t, spec, journal)
	if outcome.Completed == nil || outcome.Completed.Answer != "the end" {
		t.Fatalf("outcome = %+v", outcome)
	}
	if diff := cmp.Diff(map[string]string{"a": "a", "b": "b"}, filesOf(spec.Workspace.OutDir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	checkStream(t, events, outcome)
	got := render(t, events, false)
	if !strings.Contains(got, `"code":"forked"`) || strings.Contains(got, `"callId":"1.0"`) || !strings.Contains(got, `"callId":"2.0"`) {
		t.Errorf("events:\n%s", got)
	}
	for i, line := range journal.frames {
		if n := frameOf(t, line).N; n != int64(i+1) {
			t.Errorf("frame %d has the number %d", i+1, n)
		}
	}
	report, err := newRuntime(t, nil).Replay(t.Context(), (&memoryJournal{earlier: journal.frames}).Earlier())
	if err != nil || !report.Ended || report.Differs > 0 || len(report.Requests) != 2 {
		t.Errorf("replay of the requests of the fork's own: %+v, %v", report, err)
	}
}
