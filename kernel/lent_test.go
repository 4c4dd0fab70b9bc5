package kernel_test

import (
	"context"
	"errors"
	"slices"
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
)

// fakeLender lends one tool, or fails.
type fakeLender struct {
	err    error
	closed chan struct{}
}

func (*fakeLender) Fields() []string              { return []string{"mcp"} }
func (*fakeLender) Needed(spec *job.Spec) bool    { return slices.ContainsFunc(spec.Agent.Tools, isLent) }
func (*fakeLender) SharedPrompt(*job.Spec) string { return "" }

func (*fakeLender) Claims(_ *job.Spec, name string) bool { return isLent(name) }

func isLent(name string) bool { return strings.HasPrefix(name, "mcp__") }

func (*fakeLender) Check(spec *job.Spec, _ job.Ports, _ []string) problem.List {
	var l problem.List
	if slices.Contains(spec.Agent.Tools, "mcp__nobody__x") {
		l.Add("unknown-server", "/agent/tools/0", "no server %q", "nobody")
	}
	return l
}

func (f *fakeLender) Connect(context.Context, kernel.Loan) (kernel.Lent, []job.Notice, error) {
	return f, []job.Notice{{Code: "from-lender", Message: "one server is slow"}}, f.err
}

func (f *fakeLender) Tools() []tool.Tool {
	type nothing struct{}
	t := tool.New(tool.Declaration{Name: "lent", Description: "Lent.", InputSchema: []byte(`{"type":"object"}`), Effect: tool.EffectExternal,
		Span: job.SpanMCP, Boundary: tool.Boundary{Reads: "none", Writes: "none", Network: "a server", Processes: "none", Secrets: "none"}},
		func(context.Context, *tool.Env, nothing) tool.Result { return tool.Result{Text: "from outside"} })
	return []tool.Tool{t}
}

func (f *fakeLender) Close() { close(f.closed) }

// runtimeWith returns a runtime whose config change has edited.
func runtimeWith(t *testing.T, change func(*kernel.Config)) *kernel.Runtime {
	t.Helper()
	registry, err := tool.NewRegistry(filetool.Tools()...)
	must(t, err)
	config := kernel.Config{
		Adapters: map[string]llm.Adapter{job.APIScripted: scripted.New},
		Models:   func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id}, true },
		Tools:    registry,
	}
	change(&config)
	rt, err := kernel.New(config)
	must(t, err)
	return rt
}

const lentScript = `
responses:
- parts: [{call: {name: lent, arguments: {}}}]
- text: done
`

func TestAJobBorrowsToolsAndGivesThemBack(t *testing.T) {
	t.Parallel()
	f := &fakeLender{closed: make(chan struct{})}
	rt := runtimeWith(t, func(c *kernel.Config) { c.Lenders = []kernel.Lender{f} })
	spec := newSpec(t, t.TempDir(), []byte(`{"agent":{"id":"a","version":"1","instructions":"x","tools":["ls","mcp__s__*"]}}`), script(t, lentScript))
	h, err := rt.Start(t.Context(), spec, job.Ports{})
	must(t, err)
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	checkStream(t, events, outcome)
	<-f.closed
	if outcome.Completed == nil {
		t.Fatalf("outcome = %+v", outcome.Failed)
	}
	if diff := cmp.Diff([]string{"ls", "lent"}, events[0].Data.(*job.StartedData).Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	all := string(lines(events))
	for _, want := range []string{`"code":"from-lender"`, `"name":"hozo.mcp"`, `"tool":"lent","success":true`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in the events:\n%s", want, all)
		}
	}
}

func TestALenderThatIsNotNamedIsNotAsked(t *testing.T) {
	t.Parallel()
	f := &fakeLender{err: errors.New("must not be asked"), closed: make(chan struct{})}
	rt := runtimeWith(t, func(c *kernel.Config) { c.Lenders = []kernel.Lender{f} })
	for _, tools := range []string{"", `,"tools":["ls"]`, `,"tools":[]`} {
		spec := newSpec(t, t.TempDir(), []byte(`{"agent":{"id":"a","version":"1","instructions":"x"`+tools+`}}`), script(t, "responses: [{text: done}]"))
		h, err := rt.Start(t.Context(), spec, job.Ports{})
		must(t, err)
		if o := h.Wait(); o.Completed == nil {
			t.Errorf("tools %q: %+v", tools, o.Failed)
		}
	}
}

func TestARequiredServerThatIsDownEndsTheJobBeforeItsFirstRequest(t *testing.T) {
	t.Parallel()
	f := &fakeLender{err: errors.New(`the required MCP server "s" cannot be used: refused`), closed: make(chan struct{})}
	rt := runtimeWith(t, func(c *kernel.Config) { c.Lenders = []kernel.Lender{f} })
	spec := newSpec(t, t.TempDir(), []byte(`{"agent":{"id":"a","version":"1","instructions":"x","tools":["mcp__s__*"]}}`), script(t, "responses: [{text: never}]"))
	h, err := rt.Start(t.Context(), spec, job.Ports{})
	must(t, err)
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	checkStream(t, events, outcome)
	wantFailure(t, outcome, job.ReasonError, job.CodeToolsUnavailable)
	if outcome.Usage.Requests != 0 {
		t.Errorf("%d requests", outcome.Usage.Requests)
	}
}

func TestSmokeToolPolicyWhatNothingServesIsRefused(t *testing.T) {
	t.Parallel()
	overlay := []byte(`{"mcp":{"servers":[{"name":"s","url":"http://127.0.0.1:1/"}]},"agent":{"id":"a","version":"1","instructions":"x","tools":["mcp__nobody__x"]}}`)
	spec := newSpec(t, t.TempDir(), overlay, script(t, "responses: [{text: never}]"))
	found := runtimeWith(t, func(*kernel.Config) {}).Check(spec)
	if !found.Has("unsupported", "/mcp") || !found.Has("unknown-tool", "/agent/tools/0") {
		t.Errorf("without a lender: %v", found)
	}
	rt := runtimeWith(t, func(c *kernel.Config) { c.Lenders = []kernel.Lender{&fakeLender{}} })
	if found := rt.Check(spec); len(found) != 1 || !found.Has("unknown-server", "/agent/tools/0") {
		t.Errorf("with a lender: %v", found)
	}
}

func TestSmokeToolPolicyTheOperatorWithholdsTools(t *testing.T) {
	t.Parallel()
	rt := runtimeWith(t, func(c *kernel.Config) {
		c.Withheld = map[string]string{"edit": "taken out of the default"}
		c.Refused = map[string]string{"write": "no sandbox"}
	})
	started := func(tools string) (*job.StartedData, string) {
		spec := newSpec(t, t.TempDir(), []byte(`{"agent":{"id":"a","version":"1","instructions":"x"`+tools+`}}`), script(t, "responses: [{text: done}]"))
		h, err := rt.Start(t.Context(), spec, job.Ports{})
		must(t, err)
		var events []*job.Event
		for e := range h.Events() {
			events = append(events, e)
		}
		return events[0].Data.(*job.StartedData), string(lines(events))
	}
	byAbsence, all := started("")
	if diff := cmp.Diff([]string{"read", "ls", "grep", "find"}, byAbsence.Tools); diff != "" || strings.Count(all, "tool-withheld") != 2 {
		t.Errorf("by absence: %s\n%s", diff, all)
	}
	named, _ := started(`,"tools":["edit","read"]`)
	if diff := cmp.Diff([]string{"read", "edit"}, named.Tools); diff != "" {
		t.Error(diff)
	}
	spec := newSpec(t, t.TempDir(), []byte(`{"agent":{"id":"a","version":"1","instructions":"x","tools":["read","write"]}}`), script(t, "responses: [{text: never}]"))
	if found := rt.Check(spec); !found.Has("tool-unavailable", "/agent/tools/1") {
		t.Errorf("a refused tool by name: %v", found)
	}
}
