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
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/tool/scripttool"
)

// serverLender lends a tool that scripts may call, and one that they may not.
type serverLender struct{ dropped *bool }

func (serverLender) Fields() []string                                         { return []string{"mcp"} }
func (serverLender) Needed(*job.Spec) bool                                    { return true }
func (serverLender) SharedPrompt(*job.Spec) string                            { return "" }
func (serverLender) Claims(_ *job.Spec, name string) bool                     { return isLent(name) }
func (serverLender) Check(*job.Spec, job.Ports, []string) (none problem.List) { return }
func (l serverLender) Connect(context.Context, kernel.Loan) (kernel.Lent, []job.Notice, error) {
	return l, nil, nil
}
func (serverLender) Close() {}

func (l serverLender) Tools() []tool.Tool {
	boundary := tool.Boundary{Reads: "none", Writes: "none", Network: "a server", Processes: "none", Secrets: "none"}
	type nothing struct{}
	look := tool.New(tool.Declaration{Name: "mcp__s__look", Description: "Looks.", InputSchema: []byte(`{"type":"object","properties":{"q":{"type":"string"}}}`),
		Effect: tool.EffectRead, Scripted: true, Boundary: boundary},
		func(context.Context, *tool.Env, nothing) tool.Result {
			return tool.Result{Text: "for models", Structured: json.RawMessage(`{"seen":["NESTED-CANARY",2]}`)}
		})
	drop := tool.New(tool.Declaration{Name: "mcp__s__drop", Description: "Drops.", InputSchema: []byte(`{"type":"object"}`), Effect: tool.EffectExternal, Boundary: boundary},
		func(context.Context, *tool.Env, nothing) tool.Result {
			*l.dropped = true
			return tool.Result{Text: "gone"}
		})
	return []tool.Tool{look, drop}
}

// scriptJob runs a job whose model calls codemode once with each code and answers then. It returns its events, its
// requests and whether the tool that scripts may not call was called.
func scriptJob(t *testing.T, codes ...string) (events []*job.Event, sent *requests, dropped bool) {
	t.Helper()
	registry, err := tool.NewRegistry(append(filetool.Tools(), scripttool.New(scripttool.Options{}))...)
	must(t, err)
	sent = &requests{}
	adapter := scripted.Adapter{OnRequest: sent.observe}
	rt := runtimeWith(t, func(c *kernel.Config) {
		c.Adapters = map[string]llm.Adapter{job.APIScripted: adapter.New}
		c.Tools = registry
		c.Lenders = []kernel.Lender{serverLender{&dropped}}
	})
	var responses []map[string]any
	for _, code := range codes {
		call := map[string]any{"name": "codemode", "arguments": map[string]any{"code": code}}
		responses = append(responses, map[string]any{"parts": []any{map[string]any{"call": call}}})
	}
	play, err := json.Marshal(map[string]any{"responses": append(responses, map[string]any{"text": "done"})})
	must(t, err)
	dir := t.TempDir()
	spec := newSpec(t, dir, nil, play)
	for i := range 3 {
		must(t, os.WriteFile(filepath.Join(dir, "source", fmt.Sprintf("%d.txt", i)), []byte("first\nFILE-CANARY\nthird\n"), 0o644))
	}
	h, err := rt.Start(t.Context(), spec, job.Ports{})
	must(t, err)
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	checkStream(t, events, outcome)
	if outcome.Completed == nil {
		t.Fatalf("outcome = %+v", outcome.Failed)
	}
	return events, sent, dropped
}

// told returns the summaries of events: their type and what they say of calls.
func told(events []*job.Event) []string {
	var all []string
	for _, e := range events {
		line := ""
		switch d := e.Data.(type) {
		case *job.ToolCallData:
			line = fmt.Sprintf("call %s %s %s", d.CallID, d.Tool, d.Code)
		case *job.ToolResultData:
			line = fmt.Sprintf("result %s %s %t", d.CallID, d.Tool, d.Success)
		case *job.SourceReadData:
			line = fmt.Sprintf("read %s %s %d nested=%t", d.CallID, d.Path, d.From, d.Nested)
		default:
			continue
		}
		all = append(all, strings.TrimSpace(line+" in "+e.ParentCallID))
	}
	return all
}

func TestScriptsCallThroughTheKernel(t *testing.T) {
	t.Parallel()
	events, sent, _ := scriptJob(t, `const text = await tools.read({path: "source/0.txt", offset: 2, limit: "1"});
const seen = (await tools.mcp__s__look({q: "x"})).seen;
await tools.read({path: 5, nonsense: 1}).catch(e => console.log(e.message.split("\n")[0]));
return text.includes("FILE-") + " " + seen[1]`)
	calls := told(events)
	id := strings.Fields(calls[0])[1]
	want := []string{
		"call " + id + " codemode  in",
		"call " + id + "/1 read  in " + id, "result " + id + "/1 read true in " + id, "read " + id + "/1 source/0.txt 2 nested=true in " + id,
		"call " + id + "/2 mcp__s__look  in " + id, "result " + id + "/2 mcp__s__look true in " + id,
		"call " + id + "/3 read invalid-arguments in " + id, "result " + id + "/3 read false in " + id,
		"result " + id + " codemode true in",
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	requests := sent.all()
	for _, canary := range []string{"FILE-CANARY", "NESTED-CANARY"} {
		if bytes.Contains(requests, []byte(canary)) {
			t.Errorf("%s, which the script kept, went to the model", canary)
		}
	}
	if !bytes.Contains(requests, []byte(`true 2\n\nConsole:\nthe arguments do not fit the tool read:`)) {
		t.Errorf("what the script returned did not go to the model:\n%s", requests)
	}
}

func TestScriptsReachNothingThatChanges(t *testing.T) {
	t.Parallel()
	events, _, dropped := scriptJob(t, `await tools.mcp__s__drop({})`, `await tools.write({path: "x", content: "y"})`, `await tools.codemode({code: "return 1"})`)
	if dropped {
		t.Error("a script changed something")
	}
	for _, line := range told(events) {
		if strings.Contains(line, "/1") || strings.HasPrefix(line, "result") && !strings.Contains(line, "codemode false") {
			t.Errorf("unexpected: %s", line)
		}
	}
}

// TestSpansOfScriptsNest follows the spans from a nested call up to the job.
func TestSpansOfScriptsNest(t *testing.T) {
	t.Parallel()
	events, _, _ := scriptJob(t, `await tools.ls({}); return {nested: {value: 1}}`)
	spans := map[string]*job.SpanData{}
	var nested *job.SpanData
	for _, e := range events {
		if s, ok := e.Data.(*job.SpanData); ok {
			spans[s.ID] = s
			if s.Attributes["tool"] == "ls" {
				nested = s
			}
		}
	}
	if nested == nil {
		t.Fatal("the nested call has no span")
	}
	var names []string
	for s := nested; s != nil; s = spans[s.ParentID] {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"hozo.tool", "hozo.codemode", "hozo.tool", "hozo.turn", "hozo.job"}, names); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

// TestTheLoopGuardDoesNotCountScripts repeats one call fifty times, which from the model would end the job.
func TestTheLoopGuardDoesNotCountScripts(t *testing.T) {
	t.Parallel()
	events, _, _ := scriptJob(t, `let n = 0; for (let i = 0; i < 50; i++) { await tools.ls({}); n++ } return n`)
	if n := len(told(events)); n != 102 {
		t.Errorf("%d events of calls, want 102", n)
	}
}

// TestTheDescriptionOfCodemode looks at what the model is told: the callees, byte for byte the same in two jobs.
func TestTheDescriptionOfCodemode(t *testing.T) {
	t.Parallel()
	describe := func() string {
		_, sent, _ := scriptJob(t, `return 1`)
		var request struct{ Tools []llm.ToolSpec }
		first, _, _ := bytes.Cut(sent.all(), []byte("\n"))
		must(t, json.Unmarshal(first, &request))
		for _, s := range request.Tools {
			if s.Name == scripttool.Name {
				return s.Description
			}
		}
		t.Fatalf("codemode is not declared: %s", first)
		return ""
	}
	text := describe()
	for _, want := range []string{"  read(args: {\n", "  ls(args?: {\n", "  grep(args: {\n", "  find(args: {\n", "  mcp__s__look(args?: { q?: string }): Promise<any>;"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	for _, not := range []string{"mcp__s__drop", "write(", "edit(", "codemode("} {
		if strings.Contains(text, not) {
			t.Errorf("%q stands in the description", not)
		}
	}
	if again := describe(); again != text {
		t.Error("another job is told something else")
	}
}
