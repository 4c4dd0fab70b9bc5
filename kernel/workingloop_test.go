package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/kernel/workingmemory"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/tool"
)

// stepsJob is the spec of a job in steps, with more fields.
func stepsJob(more string) []byte {
	return []byte(`{"loop":{"kind":"working-memory"},"agent":{"id":"tester","version":"1","instructions":"Be exact.","tools":["run","read"]}` + more + `}`)
}

// runSteps runs a job in steps to its end and returns the bodies of its requests as well.
func runSteps(t *testing.T, overlay []byte, yaml string) (events []*job.Event, outcome job.Outcome, requests []string, out string) {
	t.Helper()
	spec := newSpec(t, t.TempDir(), overlay, script(t, yaml))
	h, err := newRuntime(t, func(body []byte) { requests = append(requests, string(body)) }).Start(t.Context(), spec, job.Ports{})
	must(t, err)
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome = h.Wait()
	checkStream(t, events, outcome)
	return events, outcome, requests, spec.Workspace.OutDir
}

// dataOf returns the data of all events of one type.
func dataOf[D any](events []*job.Event) []*D {
	var all []*D
	for _, e := range events {
		if d, ok := e.Data.(*D); ok {
			all = append(all, d)
		}
	}
	return all
}

// documentOf is a document with long reasoning, so that a shrink shows.
const documentOf = `## Objective

Begin.

## Plan / TODO

- [ ] go on

## Findings

- 42.5 %% of the 120 people came, see https://example.com/a?id=7 (EV-2071)

## Reasoning & progress

%s

## Coverage & confidence

Coverage: 40 %%
Confidence: 0.5
`

func longDocument() string {
	return fmt.Sprintf(documentOf, strings.Repeat("- and so it went on\n", 150))
}

// yamlText writes a text as one line of YAML.
func yamlText(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

func TestWhatAWriterDoesWrongEndsInAFold(t *testing.T) {
	t.Parallel()
	good := longDocument()
	text := func(s string) string { return "text: " + yamlText(s) }
	for name, c := range map[string]struct {
		answers  string // a response, of the form of the script without its condition
		fallback bool
		asked    int
		why      string
	}{
		"a good document":       {text(good), false, 1, ""},
		"a fenced document":     {text("```markdown\n" + good + "```"), false, 1, ""},
		"a dropped heading":     {text(strings.Replace(good, "## Findings\n", "", 1)), true, 2, `the heading "## Findings" is missing`},
		"a changed objective":   {text(strings.Replace(good, "Begin.", "Begin again.", 1)), true, 2, "copy it from the old document"},
		"a shrink by 60 %":      {text(fmt.Sprintf(documentOf, strings.Repeat("- and so it went on\n", 50))), true, 2, "shrank from"},
		"a lost figure":         {text(strings.Replace(good, "42.5 %", "some", 1)), true, 2, `"42.5 %" of the old findings is gone`},
		"a lost URL":            {text(strings.Replace(good, "https://example.com/a?id=7", "the site", 1)), true, 2, "https://example.com/a?id=7"},
		"a tool marker":         {text(good + "<tool_call>"), true, 2, "the mark of a tool call"},
		"a call":                {"parts: [{call: {name: run, arguments: {}}}]", true, 2, `calls the tool "run"`},
		"an empty answer":       {"parts: []", true, 2, "the answer is empty"},
		"50 KB":                 {text(good + strings.Repeat("more and more ", 3600)), true, 2, "more than 8000"},
		"an answer that is cut": {"{text: x, stop: length}", true, 2, "not written to its end"},
		"a timeout":             {"{text: x, stall: {afterDeltas: 0}}", true, 2, "no progress for 30 s"},
		"a lost connection":     {"error: {class: connection}", true, 2, "the writer failed"},
		"refused credentials":   {"error: {class: auth, status: 401}", true, 1, "the writer failed"},
		"characters for ever":   {text(strings.Repeat("x", 150_001)), true, 1, "the writer failed: stopped: one turn produced 150k characters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := "{" + c.answers + "}"
			if strings.HasPrefix(c.answers, "{") {
				answer = c.answers
			}
			synctest.Test(t, func(t *testing.T) {
				events, outcome, requests, _ := runSteps(t, stepsJob(`,"limits":{"timeoutSec":6000,"idleTimeoutSec":30}`), `
responses:
- parts: [{call: {name: run, arguments: {objective: begin, command: one}}}]
- {when: {purpose: writer}, text: `+yamlText(good)+`}
- parts: [{call: {name: run, arguments: {objective: go on, command: two}}}]
- {when: {purpose: writer}, repeat: 2, `+strings.TrimPrefix(answer, "{")+`
- {when: {purpose: writer}, text: `+yamlText(good)+`}
- parts: [{call: {name: finish, arguments: {answer: done, confidence: 0.5}}}]
  repeat: 2
`)
				if outcome.Completed == nil || outcome.Completed.Answer != "done" {
					t.Fatalf("the job ended with %+v", outcome)
				}
				updates := dataOf[job.MemoryUpdatedData](events)
				got := updates[1]
				if (got.Mode == "fallback") != c.fallback || !strings.Contains(strings.Join(got.Why, "\n"), c.why) || (c.why == "") != (len(got.Why) == 0) {
					t.Errorf("the step is %s, because of %q", got.Mode, got.Why)
				}
				want := updates[0].Document
				if c.fallback {
					want = strings.Replace(want, "(EV-2071)\n", "(EV-2071)\n- step 2: run: ran two\n", 1)
					want = strings.Replace(want, "\n\n## Coverage", "\n- step 2 was noted without the writer (ok): go on\n\n## Coverage", 1)
				}
				if diff := cmp.Diff(want, got.Document); diff != "" {
					t.Errorf("the document (-want +got):\n%s", diff)
				}
				asked := 0
				for _, r := range requests {
					if strings.Contains(r, "Step 2 has ended") {
						asked++
					}
				}
				if asked != c.asked {
					t.Errorf("the writer was asked %d times, want %d", asked, c.asked)
				}
				if next := requests[slices.IndexFunc(requests, func(r string) bool { return strings.Contains(r, "This is step 3") })]; c.fallback && !strings.Contains(next, "step 2: run: ran two") {
					t.Error("the next step is not shown the fold")
				}
			})
		})
	}
}

func TestAFinishMayStateAnObjectiveLikeAnyOtherCall(t *testing.T) {
	t.Parallel()
	events, outcome, _, _ := runSteps(t, stepsJob(""), `
responses:
- parts: [{call: {name: finish, arguments: {objective: to end it, answer: done, confidence: 0}}}]
`)
	if outcome.Completed == nil || outcome.Completed.Answer != "done" {
		t.Fatalf("the job ended with %+v", outcome)
	}
	steps := dataOf[job.StepRecordedData](events)
	if len(steps) != 1 || steps[0].Objective != "to end it" || steps[0].Status != "ok" {
		t.Errorf("the steps are %+v", steps)
	}
}

func TestASecondAnswerOfTheWriterIsTaken(t *testing.T) {
	t.Parallel()
	good := longDocument()
	events, _, requests, _ := runSteps(t, stepsJob(""), `
responses:
- parts: [{call: {name: run, arguments: {objective: begin, command: one}}}]
- {when: {purpose: writer, lastMessage: {contains: "Step 1 has ended"}}, text: "## Objective"}
- {when: {purpose: writer, lastMessage: {contains: "The answer cannot be used:\n- the heading"}}, text: `+yamlText(good+"<!-- dropped: nothing -->")+`}
- {when: {purpose: writer}, text: `+yamlText(good)+`}
- {repeat: 2, parts: [{call: {name: finish, arguments: {answer: done, confidence: 0.5}}}]}
`)
	got := dataOf[job.MemoryUpdatedData](events)[0]
	if got.Mode != "writer" || len(got.Why) == 0 || strings.Contains(got.Document, "dropped") {
		t.Errorf("the step is %s, because of %q:\n%s", got.Mode, got.Why, got.Document)
	}
	if !strings.Contains(requests[2], `"## Objective"`) || !strings.Contains(requests[2], "cannot be used") {
		t.Errorf("the second request does not hold the first answer and what is wrong with it:\n%s", requests[2])
	}
}

// A run of 300 steps whose writer adds 500 characters a step and once 50 KB: nothing grows but the document, and that has a
// limit. The same work in a transcript shows the difference.
func TestRequestsStayFlatOverThreeHundredSteps(t *testing.T) {
	t.Parallel()
	const steps = 300
	call := `{name: run, arguments: {objective: go on, command: '{{ lastMessage | capture "This is step ([0-9]+)" }} ` + strings.Repeat("y", 500) + `'}}`
	for name, writer := range map[string]string{
		"a writer that keeps to the limit": `{{ $d := lastMessage | capture "(?s)<working-memory>\n(.*)</working-memory>" }}` +
			`{{ $old := $d | capture "(?s)## Findings\n\n(.*?)\n*## Reasoning" | lines | tail 6 | join "\n" }}` +
			`{{ if lastMessage | contains "Step 150 has ended" }}{{ $old = repeat 50000 "z" }}{{ end }}` +
			`{{ $d | capture "(?s)^(.*?)## Findings" }}## Findings{{ "\n\n" }}{{ $old }}{{ "\n" }}- {{ repeat 500 "x" }}{{ "\n\n" }}{{ $d | capture "(?s)(## Reasoning.*)$" }}`,
		"a writer that does not": `{{ $d := lastMessage | capture "(?s)<working-memory>\n(.*)</working-memory>" }}` +
			`{{ $n := 500 }}{{ if lastMessage | contains "Step 150 has ended" }}{{ $n = 50000 }}{{ end }}` +
			`{{ $d | replace "## Reasoning" (print "- " (repeat $n "x") "\n\n## Reasoning") }}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, outcome, requests, _ := runSteps(t, []byte(`{"loop":{"kind":"working-memory","writer":{"maxTokens":1500}},"limits":{"timeoutSec":6000,"maxTurns":301},
"agent":{"id":"tester","version":"1","instructions":"Be exact.","tools":["run"]}}`), `
responses:
- {when: {lastMessage: {contains: "This is step 301,"}}, parts: [{call: {name: finish, arguments: {answer: done, confidence: 0}}}]}
- {when: {purpose: writer}, repeat: forever, text: `+yamlText(writer)+`}
- {repeat: forever, parts: [{call: `+call+`}]}
`)
			if outcome.Completed == nil {
				t.Fatalf("the job failed: %+v", outcome.Failed)
			}
			updates := dataOf[job.MemoryUpdatedData](events)
			fallbacks := 0
			for _, u := range updates {
				d, err := workingmemory.Restore(u.Document, "Begin.")
				if err != nil || d.Tokens() > 1500 {
					t.Fatalf("step %d leaves %d tokens: %v", u.Step, d.Tokens(), err)
				}
				if u.Mode == "fallback" {
					fallbacks++
				}
			}
			first := 0
			for _, u := range dataOf[job.UsageData](events) {
				if strings.HasSuffix(u.Call.ID, ".writer.1") {
					first++
				}
			}
			if len(updates) != steps || first != steps {
				t.Errorf("%d documents, %d requests to the writer, want %d of each", len(updates), first, steps)
			}
			if strings.HasSuffix(name, "limit") && fallbacks != 1 {
				t.Errorf("%d folds, want that of the 50 KB", fallbacks)
			}
			tenth, last := requestOf(requests, 10), requestOf(requests, 300)
			if float64(len(last)) > 1.5*float64(len(tenth)) {
				t.Errorf("the request of step 300 has %d bytes, that of step 10 has %d", len(last), len(tenth))
			}
		})
	}
	t.Run("a transcript", func(t *testing.T) {
		t.Parallel()
		_, _, requests, _ := runSteps(t, []byte(`{"agent":{"id":"tester","version":"1","instructions":"Be exact.","tools":["run"]}}`), `
responses:
- {repeat: 300, parts: [{call: {name: run, arguments: {command: '{{ turn }} `+strings.Repeat("y", 500)+`'}}}]}
- text: done
`)
		if tenth, last := len(requests[9]), len(requests[299]); last < 5*tenth {
			t.Errorf("the request of turn 300 has %d bytes, that of turn 10 has %d; the comparison shows nothing", last, tenth)
		}
	})
}

// requestOf returns the request of a step.
func requestOf(requests []string, step int) string {
	mark := regexp.MustCompile(fmt.Sprintf(`This is step %d[,;. ]`, step))
	for _, r := range requests {
		if mark.MatchString(r) {
			return r
		}
	}
	return ""
}

func TestTheReportIsLeftHoweverTheLoopEnds(t *testing.T) {
	t.Parallel()
	good := longDocument()
	begin := "responses:\n- parts: [{call: {name: run, arguments: {objective: begin, command: one}}}]\n- {when: {purpose: writer}, repeat: forever, text: " + yamlText(good) + "}\n"
	for name, c := range map[string]struct{ more, script, status, says string }{
		"finish":    {"", "- {repeat: 2, parts: [{call: {name: finish, arguments: {answer: all of it, confidence: 0.5, gaps: [one]}}}]}", "finished", "all of it"},
		"max turns": {`,"limits":{"timeoutSec":60,"maxTurns":2}`, "- parts: [{call: {name: run, arguments: {objective: again, command: two}}}]", "max-loops", "stopped after the limit of 2 turns"},
		"error":     {"", "- error: {class: auth, status: 401}", "failed", "There is no finished result"},
		"loop":      {"", "- {repeat: forever, parts: [{call: {name: run, arguments: {objective: again, command: one}}}]}", "failed", "same arguments 12 times"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, _, _, out := runSteps(t, stepsJob(c.more), begin+c.script)
			data, err := os.ReadFile(filepath.Join(out, workingmemory.ReportFile))
			must(t, err)
			documents := dataOf[job.MemoryUpdatedData](events)
			for _, want := range []string{"status: \"" + c.status + "\"\n", c.says, documents[len(documents)-1].Document} {
				if !bytes.Contains(data, []byte(want)) {
					t.Errorf("the report does not hold %q:\n%s", want, data)
				}
			}
		})
	}
}

func TestTheReportTakesNoNameOfTheAgents(t *testing.T) {
	t.Parallel()
	overlay := []byte(`{"loop":{"kind":"working-memory"},"agent":{"id":"tester","version":"1","instructions":"x","tools":["write"]}}`)
	_, outcome, _, out := runSteps(t, overlay, `
responses:
- parts: [{call: {name: write, arguments: {objective: write, path: working-memory.md, content: mine}}}]
- {when: {purpose: writer}, text: `+yamlText(longDocument())+`}
- {when: {purpose: writer}, text: `+yamlText(longDocument())+`}
- {repeat: 2, parts: [{call: {name: finish, arguments: {answer: done, confidence: 0.5}}}]}
`)
	if diff := cmp.Diff([]string{"2-working-memory.md", "working-memory.md"}, outcome.Completed.Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if data, err := os.ReadFile(filepath.Join(out, "working-memory.md")); err != nil || string(data) != "mine" {
		t.Errorf("the file of the agent is %q, %v", data, err)
	}
}

func TestMoneyThatEndsAtTheWriterLeavesTheLastGoodDocument(t *testing.T) {
	t.Parallel()
	overlay := stepsJob(`,"limits":{"timeoutSec":60,"maxCostUsd":0.05}`)
	events, outcome, _, out := runSteps(t, overlay, `
model: {price: {inputPerMTok: 1, outputPerMTok: 1}}
responses:
- parts: [{call: {name: run, arguments: {objective: begin, command: one}}}]
- {when: {purpose: writer}, text: `+yamlText(longDocument())+`}
- {parts: [{call: {name: run, arguments: {objective: go on, command: two}}}], billedUsd: 0.0467}
`)
	if outcome.Failed == nil || outcome.Failed.Reason != job.ReasonBudget {
		t.Fatalf("the job ended with %+v", outcome)
	}
	documents := dataOf[job.MemoryUpdatedData](events)
	data, err := os.ReadFile(filepath.Join(out, workingmemory.ReportFile))
	must(t, err)
	if len(documents) != 1 || !bytes.Contains(data, []byte(documents[0].Document)) || !bytes.Contains(data, []byte("steps: 2\n")) {
		t.Errorf("%d documents; the report is\n%s", len(documents), data)
	}
}

func TestAWriterCanBeAnotherModel(t *testing.T) {
	t.Parallel()
	spec := newSpec(t, t.TempDir(), []byte(`{"loop":{"kind":"working-memory","writer":{"model":{"provider":"w","id":"small"}}},
"agent":{"id":"tester","version":"1","instructions":"x","tools":["run"]},"providers":{"p":{"api":"scripted"},"w":{"api":"scripted"}}}`), script(t, `
responses:
- parts: [{call: {name: run, arguments: {objective: begin, command: one}}}]
- {parts: [{call: {name: finish, arguments: {answer: done, confidence: 0.5}}}], repeat: 2}
`))
	writer := spec.Providers["w"]
	writer.Script = script(t, "model: {contextWindow: 2000}\nresponses: [{repeat: forever, text: "+yamlText(fmt.Sprintf(documentOf, "- went on"))+"}]")
	spec.Providers["w"] = writer
	var requests []string
	h, err := newRuntime(t, func(body []byte) { requests = append(requests, string(body)) }).Start(t.Context(), spec, job.Ports{})
	must(t, err)
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	if outcome := h.Wait(); outcome.Completed == nil {
		t.Fatalf("the job failed: %+v", outcome.Failed)
	}
	for _, u := range dataOf[job.UsageData](events) {
		if want := map[llm.Purpose]string{llm.PurposeTurn: "m", llm.PurposeWriter: "small"}[u.Call.Purpose]; u.Call.Model != want {
			t.Errorf("the request for %s went to %q", u.Call.Purpose, u.Call.Model)
		}
	}
	if !strings.Contains(strings.Join(requests, "\n"), "may have at most 500 tokens") {
		t.Error("the document is not bounded by the smaller window")
	}
}

func TestWhatAJobInStepsMayNotAskFor(t *testing.T) {
	t.Parallel()
	rt := runtimeWith(t, func(c *kernel.Config) {
		type nothing struct{}
		scripts := tool.New(tool.Declaration{Name: "scripts", Description: "x", InputSchema: []byte(`{"type":"object"}`), Effect: tool.EffectRead,
			Boundary: tool.Boundary{Reads: "none", Writes: "none", Network: "none", Processes: "none", Secrets: "none"},
			Describe: func([]llm.ToolSpec) string { return "x" }},
			func(context.Context, *tool.Env, nothing) tool.Result { return tool.Result{} })
		registry, err := tool.NewRegistry(append(c.Tools.Tools(), scripts)...)
		must(t, err)
		c.Tools = registry
		c.Models = func(_, _, id string) (llm.Model, bool) {
			m := llm.Model{ID: id, Price: &llm.Price{}}
			if id == "unpriced" {
				m.Price = nil
			}
			return m, true
		}
	})
	for name, c := range map[string]struct{ overlay, want string }{
		"scripts": {`{"agent":{"id":"a","version":"1","instructions":"x","tools":["ls","scripts"]}}`, "/agent/tools/1"},
		"a subagent that has the name of a tool of the loop": {`{"subagents":[{"name":"finish","description":"x","agent":{"id":"s","version":"1","instructions":"x"}}]}`, "/subagents"},
		"a writer of an unknown price":                       {`{"loop":{"kind":"working-memory","writer":{"model":{"provider":"p","id":"unpriced"}}},"limits":{"timeoutSec":60,"maxCostUsd":1}}`, "/limits/maxCostUsd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(t, t.TempDir(), []byte(c.overlay), script(t, "responses: []"))
			if spec.Loop == nil {
				spec.Loop = &job.Loop{Kind: job.LoopWorkingMemory}
			}
			_, err := rt.Start(t.Context(), spec, job.Ports{})
			if found := problem.Of(err); !slices.ContainsFunc(found, func(p problem.Problem) bool { return p.Pointer == c.want }) {
				t.Errorf("the problems are %v, want one at %s", found, c.want)
			}
		})
	}
	spec := newSpec(t, t.TempDir(), []byte(`{"loop":{"kind":"working-memory"}}`), script(t, "responses: [{text: x, repeat: forever}]"))
	h, err := rt.Start(t.Context(), spec, job.Ports{})
	must(t, err)
	started := (<-h.Events()).Data.(*job.StartedData)
	h.Discard()
	h.Wait()
	if slices.Contains(started.Tools, "scripts") || !slices.Contains(started.Tools, "read") || !slices.Contains(started.Tools, "finish") {
		t.Errorf("an agent that names no tools is offered %v", started.Tools)
	}
}

// A subagent in steps gives its document to its parent, whose writer sees it; what its tools said stays with it.
func TestASubagentInStepsGivesItsDocument(t *testing.T) {
	t.Parallel()
	child := strings.Replace(fmt.Sprintf(documentOf, "- asked around"), "Begin.", "ask around", 1)
	overlay := `{"loop":{"kind":"working-memory"},"agent":{"id":"tester","version":"1","instructions":"PARENT","tools":[]},
"subagents":[{"name":"research","description":"Looks things up.","loop":{"kind":"working-memory"},"agent":{"id":"r","version":"1","instructions":"CHILD","tools":["run"]}}]}`
	events, outcome, requests, out := runSteps(t, []byte(overlay), `
responses:
- when: {purpose: turn}
  parts: [{call: {name: research, arguments: {objective: ask around}}}]
- when: {purpose: subagent}
  parts: [{call: {name: run, arguments: {objective: ask, command: CANARY}}}]
- {when: {purpose: writer, lastMessage: {contains: "ran CANARY"}}, text: `+yamlText(child)+`}
- when: {purpose: subagent}
  parts: [{call: {name: finish, arguments: {answer: somebody knew, confidence: 0.5}}}]
- {when: {purpose: writer, lastMessage: {contains: finish was not accepted}}, text: `+yamlText(child)+`}
- when: {purpose: subagent}
  parts: [{call: {name: finish, arguments: {answer: somebody knew, confidence: 0.5}}}]
- {when: {purpose: writer, lastMessage: {contains: "- asked around"}}, text: `+yamlText(fmt.Sprintf(documentOf, "- research says so"))+`}
- {when: {purpose: writer}, text: `+yamlText(fmt.Sprintf(documentOf, "- research says so"))+`}
- {when: {purpose: turn}, repeat: 2, parts: [{call: {name: finish, arguments: {answer: done, confidence: 0.5}}}]}
`)
	if outcome.Completed == nil {
		t.Fatalf("the job failed: %+v", outcome.Failed)
	}
	for _, r := range requests {
		parent := strings.Contains(r, "PARENT") || strings.Contains(r, `Tool: research`)
		if parent && strings.Contains(r, "CANARY") {
			t.Errorf("a request of the parent holds what a tool said to its subagent:\n%s", r)
		}
		if strings.Contains(r, "Tool: research") && !(strings.Contains(r, "- asked around") && strings.Contains(r, "status: finished") && strings.Contains(r, "somebody knew")) {
			t.Errorf("the writer of the parent does not see the document of the subagent:\n%s", r)
		}
	}
	for _, e := range events {
		if d, ok := e.Data.(*job.MemoryUpdatedData); ok && (e.ParentCallID == "1.0") != strings.Contains(d.Document, "ask around") {
			t.Errorf("a document of call %q is\n%s", e.ParentCallID, d.Document)
		}
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) != 1 {
		t.Errorf("the output directory holds %v, %v", entries, err)
	}
}

// judgeLender judges answers and lends nothing.
type judgeLender struct{ *fakeLender }

func (judgeLender) Needed(*job.Spec) bool { return true }
func (judgeLender) Tools() []tool.Tool    { return nil }
func (judgeLender) Judges() bool          { return true }
func (judgeLender) Close()                {}

func (j judgeLender) Connect(context.Context, kernel.Loan) (kernel.Lent, []job.Notice, error) {
	return j, nil, nil
}

func (judgeLender) Judge(_ context.Context, _ int64, answer string) *kernel.Judgement {
	if strings.Contains(answer, "SECRET") {
		return &kernel.Judgement{Check: "no-secrets", Failed: true, Message: "it tells"}
	}
	return nil
}

func TestAFinishThatMayNotStandIsInNoEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		stands bool
	}{"it tells": {"the SECRET", false}, "it does not": {"nothing", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt := runtimeWith(t, func(c *kernel.Config) { c.Lenders = []kernel.Lender{judgeLender{}} })
			spec := newSpec(t, t.TempDir(), []byte(`{"loop":{"kind":"working-memory"},"agent":{"id":"a","version":"1","instructions":"x","tools":["ls"]}}`), script(t, `
responses:
- parts: [{text: "I found `+c.answer+`"}, {call: {name: finish, arguments: {answer: "`+c.answer+`", confidence: 0.9}}}]
- {when: {purpose: writer}, text: `+yamlText(workingmemory.New("Begin.").String())+`}
- parts: [{text: "It is `+c.answer+`"}, {call: {name: finish, arguments: {answer: "`+c.answer+`", confidence: 0.1}}}]
`))
			h, err := rt.Start(t.Context(), spec, job.Ports{})
			must(t, err)
			var events []*job.Event
			for e := range h.Events() {
				events = append(events, e)
			}
			outcome := h.Wait()
			checkStream(t, events, outcome)
			if c.stands != (outcome.Completed != nil) {
				t.Fatalf("the job ended with %+v", outcome)
			}
			if all := string(lines(events)); strings.Contains(all, "SECRET") || strings.Contains(all, `"final":true`) != c.stands {
				t.Errorf("the events are\n%s", all)
			}
			if !c.stands && outcome.Failed.Code != job.CodeAnswerCheckFailed {
				t.Errorf("the code is %s", outcome.Failed.Code)
			}
			if data, err := os.ReadFile(filepath.Join(spec.Workspace.OutDir, workingmemory.ReportFile)); err != nil || bytes.Contains(data, []byte("SECRET")) {
				t.Errorf("the report is %s, %v", data, err)
			}
		})
	}
}

func TestAFinishCanHaveATypedAnswer(t *testing.T) {
	t.Parallel()
	overlay := stepsJob(`,"output":{"schema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}},"name":"count"}`)
	finish := func(answer string) string {
		return "- {repeat: 1, when: {purpose: turn}, parts: [{call: {name: finish, arguments: {answer: '" + answer + "', confidence: 0.2}}}]}\n"
	}
	writer := "- {when: {purpose: writer}, repeat: forever, text: " + yamlText(workingmemory.New("Begin.").String()) + "}\n"
	_, outcome, requests, _ := runSteps(t, overlay, "responses:\n"+finish("seven")+writer+finish(`{"n":7}`))
	if outcome.Completed == nil || string(outcome.Completed.Output) != `{"n":7}` {
		t.Errorf("the job ended with %+v", outcome)
	}
	if !strings.Contains(requests[2], "does not fit the JSON Schema of the output") {
		t.Errorf("the model is not told what is wrong:\n%s", requests[2])
	}
	_, outcome, _, _ = runSteps(t, overlay, "responses:\n"+finish("seven")+writer+finish("eight"))
	if outcome.Failed == nil || outcome.Failed.Code != job.CodeOutputSchema {
		t.Errorf("the job ended with %+v", outcome)
	}
}
