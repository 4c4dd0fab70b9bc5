package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/tool/scripttool"
)

// goodSummary is a summary that a script can give as often as it is asked for one.
const goodSummary = `
- when: {purpose: compaction}
  repeat: forever
  text: "## Aim\nSUMMARY-CANARY\n## Rules\nnone\n## Done\nnone\n## Under way\nnone\n## Decided\nnone\n## Next\nnone\n## Exact details\nnone"
  usage: {input: 700, output: 60}
`

// longJob is a spec whose model has this window and whose history is about half of it, so that pruning is not enough.
func longJob(t *testing.T, window int, responses string, overlay string) *job.Spec {
	t.Helper()
	dir := t.TempDir()
	spec := newSpec(t, dir, []byte(overlay), script(t, "responses:"+goodSummary+responses))
	spec.Task = "The task, word for word."
	spec.Agent.Tools = []string{"read", "mcp__a__very_long_name"}
	spec.History = []llm.Message{llm.UserText(strings.Repeat("Earlier. ", window*2/9)),
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.TextPart("Yes.")}}}
	config := spec.Providers["p"]
	size, answer := int64(window), int64(400)
	config.Models = map[string]job.ModelConfig{"m": {ContextWindow: &size, MaxOutputTokens: &answer, Price: &llm.Price{Input: 1e6, Output: 1e7}}}
	spec.Providers["p"] = config
	for i := range 4 {
		path := filepath.Join(dir, "source", fmt.Sprintf("%d.txt", i))
		must(t, os.WriteFile(path, bytes.Repeat([]byte(fmt.Sprintf("file %d\n", i)), 600), 0o644))
	}
	return spec
}

// longRuntime has the file tools, scripts, and a tool with a long name.
func longRuntime(t *testing.T, sent *requests) *kernel.Runtime {
	t.Helper()
	boundary := tool.Boundary{Reads: "none", Writes: "none", Network: "none", Processes: "none", Secrets: "none"}
	type nothing struct{}
	named := tool.New(tool.Declaration{Name: "mcp__a__very_long_name", Description: "Says something long.", Effect: tool.EffectRead, Boundary: boundary,
		InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *tool.Env, nothing) tool.Result {
		return tool.Result{Text: strings.Repeat("long ", 400)}
	})
	registry, err := tool.NewRegistry(append(filetool.Tools(), named, scripttool.New(scripttool.Options{}))...)
	must(t, err)
	return runtimeWith(t, func(c *kernel.Config) {
		c.Tools = registry
		c.Adapters = map[string]llm.Adapter{job.APIScripted: scripted.Adapter{OnRequest: sent.observe}.New}
	})
}

// play runs a job to its end.
func play(t *testing.T, rt *kernel.Runtime, spec *job.Spec, ports job.Ports) ([]*job.Event, job.Outcome) {
	t.Helper()
	h, err := rt.Start(t.Context(), spec, ports)
	must(t, err)
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	checkStream(t, events, outcome)
	return events, outcome
}

func call(name, arguments string, prompt int) string {
	return fmt.Sprintf("- parts: [{call: {name: %s, arguments: %s}}]\n  usage: {input: %d, output: 20}\n", name, arguments, prompt)
}

// compactions returns the compactions of a job.
func compactions(events []*job.Event) []*job.CompactionData {
	var all []*job.CompactionData
	for _, e := range events {
		if d, ok := e.Data.(*job.CompactionData); ok {
			all = append(all, d)
		}
	}
	return all
}

// sentBody is a request of the scripted provider.
type sentBody struct {
	System   string
	Tools    []llm.ToolSpec
	Messages []llm.Message
}

func bodiesOf(t *testing.T, sent *requests) []sentBody {
	t.Helper()
	all := make([]sentBody, len(sent.bodies))
	for i, raw := range sent.bodies {
		must(t, json.Unmarshal(raw, &all[i]))
	}
	return all
}

// Some servers report no tokens at all, or only those that they did not have in their cache.
func TestAWindowFillsAlthoughTheProviderCountsTooLittle(t *testing.T) {
	t.Parallel()
	for _, counted := range []int{0, 40} {
		turns := ""
		for i := range 4 {
			turns += call("read", fmt.Sprintf("{path: source/%d.txt}", i), counted)
		}
		sent := &requests{}
		spec := longJob(t, 4000, turns+"- text: Done.\n", "{}")
		events, outcome := play(t, longRuntime(t, sent), spec, job.Ports{})
		if outcome.Completed == nil || len(compactions(events)) == 0 {
			t.Errorf("%d tokens counted: %d compactions, the job ended with %+v", counted, len(compactions(events)), outcome)
		}
	}
}

func TestWhatAModelIsToldAfterACompaction(t *testing.T) {
	t.Parallel()
	sent := &requests{}
	spec := longJob(t, 4000, call("mcp__a__very_long_name", "{}", 900)+call("read", "{path: source/0.txt}", 1450)+call("read", "{path: source/1.txt}", 1900)+
		call("read", "{path: source/2.txt}", 2700)+"- text: Done.\n  usage: auto\n", `{"context":[{"label":"notes","data":"context, word for word","place":"before-task"}]}`)
	events, outcome := play(t, longRuntime(t, sent), spec, job.Ports{})
	if outcome.Completed == nil || len(compactions(events)) != 1 {
		t.Fatalf("outcome %+v with %d compactions", outcome, len(compactions(events)))
	}
	bodies := bodiesOf(t, sent)
	first, last := bodies[0], bodies[len(bodies)-1]
	if first.System != last.System || !cmp.Equal(first.Tools, last.Tools) {
		t.Error("the prompt or the declared tools have changed")
	}
	for i, want := range []string{"context, word for word", "The task, word for word.", "SUMMARY-CANARY"} {
		if !strings.Contains(last.Messages[i].Text(), want) {
			t.Errorf("message %d lacks %q: %s", i, want, last.Messages[i].Text())
		}
	}
	frame := last.Messages[2].Text()
	if !strings.Contains(frame, "\nmcp__a__very_long_name\n") || !strings.Contains(frame, "\nsource/0.txt\n") {
		t.Errorf("names are missing from the message of the summary:\n%s", frame)
	}
	if bytes.Contains(sent.bodies[len(sent.bodies)-1], []byte("Earlier. Earlier.")) {
		t.Error("the history is still sent")
	}
	summariser := bodies[4]
	if len(summariser.Tools) != 0 || len(summariser.Messages) != 1 || summariser.System == first.System {
		t.Errorf("the request for the summary has %d tools and %d messages", len(summariser.Tools), len(summariser.Messages))
	}
}

func TestCompactionsAreInTheTotals(t *testing.T) {
	t.Parallel()
	spec := longJob(t, 4000, call("mcp__a__very_long_name", "{}", 2000)+call("read", "{path: source/0.txt}", 2700)+"- text: Done.\n  usage: {input: 1500, output: 3}\n", `{}`)
	events, outcome := play(t, longRuntime(t, &requests{}), spec, job.Ports{})
	var tokens llm.Usage
	var cost llm.MicroUSD
	summaries := 0
	for _, e := range events {
		switch d := e.Data.(type) {
		case *job.UsageData:
			tokens.Add(d.Call.Tokens)
			cost += d.Call.CostMicroUSD
			if d.Call.Purpose == llm.PurposeCompaction {
				summaries++
			}
		case *job.SpanData:
			if d.Name == job.SpanCompaction {
				checkCompactionSpan(t, d, compactions(events)[0])
			}
		}
	}
	total := outcome.Usage
	if total.Tokens != tokens || total.CostMicroUSD != cost || summaries == 0 {
		t.Errorf("the total is %+v at %s, the %d summaries and turns add up to %+v at %s", total.Tokens, total.CostMicroUSD, summaries, tokens, cost)
	}
	if total.Compactions != 1 || total.Turns != 3 || total.Requests != int64(3+summaries) {
		t.Errorf("%d compactions, %d turns, %d requests", total.Compactions, total.Turns, total.Requests)
	}
	if peak := *total.ContextPeakPct; peak != 68 {
		t.Errorf("the window was %g %% full at most", peak)
	}
}

func checkCompactionSpan(t *testing.T, d *job.SpanData, want *job.CompactionData) {
	t.Helper()
	got := fmt.Sprint(d.Attributes["tokensBefore"], d.Attributes["tokensAfter"], d.Attributes["messages"], d.Attributes["reason"], d.Attributes["turn"])
	if got != fmt.Sprint(want.TokensBefore, want.TokensAfter, want.Messages, want.Reason, want.Turn) || d.Status != job.SpanOK || d.DurationMS < 0 {
		t.Errorf("the span is %+v, the event %+v", d, want)
	}
}

// TestTheCountOfBeforeDoesNotCompactAgain is about what the provider counted for a dialog that no longer exists.
func TestTheCountOfBeforeDoesNotCompactAgain(t *testing.T) {
	t.Parallel()
	spec := longJob(t, 4000, call("mcp__a__very_long_name", "{}", 2000)+"- error: {class: context-overflow, message: too long}\n"+
		"- parts: [{call: {name: read, arguments: {path: source/0.txt, limit: 1}}}]\n  usage: none\n- text: Done.\n  usage: none\n", `{}`)
	events, outcome := play(t, longRuntime(t, &requests{}), spec, job.Ports{})
	if outcome.Completed == nil || len(compactions(events)) != 1 {
		t.Errorf("outcome %+v with %d compactions", outcome, len(compactions(events)))
	}
}

func TestNoRequestIsSentTwiceAfterAnOverflow(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]*job.Spec{
		"compacted": longJob(t, 4000, call("mcp__a__very_long_name", "{}", 2000)+"- error: {class: context-overflow, message: too long}\n  repeat: forever\n", `{}`),
		"nothing to leave out": newSpec(t, t.TempDir(), []byte(`{"task":"`+strings.Repeat("long ", 20_000)+`"}`),
			script(t, "responses:\n- error: {class: context-overflow, message: too long}\n  repeat: forever\n")),
		"no summary fits": longJob(t, 4000, "", `{"providers":{"p":{"api":"scripted"}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "no summary fits" {
				config := spec.Providers["p"]
				config.Script = script(t, "responses:\n- error: {class: context-overflow, message: too long}\n  repeat: forever\n")
				spec.Providers["p"] = config
			}
			sent := &requests{}
			_, outcome := play(t, longRuntime(t, sent), spec, job.Ports{})
			wantFailure(t, outcome, job.ReasonContextOverflow, job.CodeContextOverflow)
			seen := map[string]bool{}
			for i, body := range sent.bodies {
				if seen[string(body)] {
					t.Errorf("request %d of %d has been sent before", i+1, len(sent.bodies))
				}
				seen[string(body)] = true
			}
		})
	}
}

func TestTheLoopGuardRemembersAcrossCompactions(t *testing.T) {
	t.Parallel()
	responses := call("mcp__a__very_long_name", "{}", 3100)
	spec := longJob(t, 4000, strings.Replace(responses, "  usage", "  repeat: forever\n  usage", 1), `{}`)
	events, outcome := play(t, longRuntime(t, &requests{}), spec, job.Ports{})
	wantFailure(t, outcome, job.ReasonLoop, job.CodeRepeatedCall)
	if len(compactions(events)) == 0 || outcome.Usage.Turns != 12 {
		t.Errorf("%d compactions in %d turns", len(compactions(events)), outcome.Usage.Turns)
	}
}

// TestDenseTextIsCorrectedByTheProvider is about text of which a quarter of the bytes is far too low an estimate.
func TestDenseTextIsCorrectedByTheProvider(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"minified JSON": strings.Repeat(`{"k":[1,2,{"x":-0.5}],"z":null},`, 60_000/32),
		"Chinese":       strings.Repeat("内核运行一个任务", 60_000/24),
	} {
		spec := longJob(t, 200_000, call("read", "{path: source/dense.txt}", 150_000)+"- error: {class: context-overflow, message: too long}\n- text: Done.\n  usage: auto\n", `{}`)
		must(t, os.WriteFile(filepath.Join(spec.Workspace.ReadOnly[0], "dense.txt"), []byte(text), 0o644))
		events, outcome := play(t, longRuntime(t, &requests{}), spec, job.Ports{})
		got := compactions(events)
		if outcome.Completed == nil || len(got) != 1 || got[0].Reason != "overflow" || got[0].TokensBefore < 200_000 {
			t.Errorf("%s: outcome %+v, compactions %+v", name, outcome, got)
		}
	}
}

func TestTheWindowOfTheJobGoesBeforeThatOfTheTable(t *testing.T) {
	t.Parallel()
	spec := longJob(t, 4000, call("mcp__a__very_long_name", "{}", 3100)+"- text: Done.\n  usage: auto\n", `{}`)
	rt := runtimeWith(t, func(c *kernel.Config) {
		c.Models = func(_, _, id string) (llm.Model, bool) {
			return llm.Model{ID: id, ContextWindow: 1_000_000, Price: &llm.Price{}}, true
		}
		c.Adapters = map[string]llm.Adapter{job.APIScripted: scripted.New}
	})
	spec.Agent.Tools = []string{"read"}
	events, outcome := play(t, rt, spec, job.Ports{})
	if outcome.Completed == nil || len(compactions(events)) != 1 {
		t.Errorf("outcome %+v, %d compactions", outcome, len(compactions(events)))
	}
}

func TestFilesThatScriptsReadAreListed(t *testing.T) {
	t.Parallel()
	sent := &requests{}
	spec := longJob(t, 4000, call("codemode", `{code: "return await tools.read({path: 'source/2.txt'})"}`, 900)+call("read", "{path: source/0.txt}", 1500)+
		call("read", "{path: source/1.txt}", 2000)+call("read", "{path: source/1.txt, limit: 200}", 2700)+"- text: Done.\n  usage: auto\n", `{}`)
	spec.Agent.Tools = append(spec.Agent.Tools, "codemode")
	_, outcome := play(t, longRuntime(t, sent), spec, job.Ports{})
	if last := bodiesOf(t, sent)[len(sent.bodies)-1]; outcome.Completed == nil || !strings.Contains(last.Messages[1].Text(), "\nsource/0.txt\nsource/1.txt\nsource/2.txt\n") {
		t.Errorf("outcome %+v; told %s", outcome, last.Messages[1].Text())
	}
}

// TestASubagentIsCompactedByItself shows that a child has a window of its own, and that its compactions are in the totals of
// the job.
func TestASubagentIsCompactedByItself(t *testing.T) {
	t.Parallel()
	sent := &requests{}
	spec := longJob(t, 4000, call("research", "{objective: Look at both files.}", 400)+
		"- when: {purpose: subagent}\n  parts: [{call: {name: read, arguments: {path: source/0.txt}}}]\n  usage: {input: 1000, output: 20}\n"+
		"- when: {purpose: subagent}\n  parts: [{call: {name: read, arguments: {path: source/1.txt}}}]\n  usage: {input: 3100, output: 20}\n"+
		"- when: {purpose: subagent}\n  text: Both are files.\n  usage: {input: 900, output: 20}\n"+
		"- text: Done.\n  usage: {input: 500, output: 3}\n",
		`{"history":[],"subagents":[{"name":"research","description":"Looks.","agent":{"id":"research","version":"1","instructions":"Look.","tools":["read"]}}]}`)
	spec.History = nil
	events, outcome := play(t, longRuntime(t, sent), spec, job.Ports{})
	if outcome.Completed == nil || outcome.Usage.Compactions != 1 {
		t.Fatalf("outcome %+v", outcome)
	}
	for _, e := range events {
		if e.Type == job.EventCompaction && e.ParentCallID != "1.0" {
			t.Errorf("the compaction is reported below %q", e.ParentCallID)
		}
	}
}

// TestARecordedCompactionIsApplied changes what a compaction recorded, as another version of the program would have made it
// otherwise: the next attempt goes on with what is recorded.
func TestARecordedCompactionIsApplied(t *testing.T) {
	t.Parallel()
	spec := longJob(t, 4000, call("mcp__a__very_long_name", "{}", 2000)+call("read", "{path: source/0.txt}", 2700)+"- text: Done.\n  usage: auto\n", `{}`)
	journal := &memoryJournal{out: spec.Workspace.OutDir}
	if _, outcome := play(t, longRuntime(t, &requests{}), spec, job.Ports{Journal: journal}); outcome.Completed == nil {
		t.Fatalf("outcome %+v", outcome)
	}
	var earlier [][]byte
	for _, line := range journal.frames {
		earlier = append(earlier, bytes.ReplaceAll(line, []byte("The older part of this work"), []byte("OTHER WORDS for this work")))
		if frameOf(t, line).Type == job.FrameCompaction {
			break
		}
	}
	sent := &requests{}
	spec.Resume = &job.Resume{Attempt: 2, NextSeq: frameOf(t, earlier[len(earlier)-1]).Seq + 1}
	again := &memoryJournal{out: spec.Workspace.OutDir, earlier: earlier}
	h, err := longRuntime(t, sent).Start(t.Context(), spec, job.Ports{Journal: again})
	must(t, err)
	if outcome := h.Wait(); outcome.Completed == nil || outcome.Usage.Compactions != 1 {
		t.Fatalf("outcome %+v", outcome)
	}
	if len(sent.bodies) != 1 || !bytes.Contains(sent.bodies[0], []byte("OTHER WORDS")) {
		t.Errorf("%d requests; the first is not what was recorded", len(sent.bodies))
	}
}
