package hostlender_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/kernel/hostlender"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scopeKey carries the scope of a job from whoever connects it to the tools.
type scopeKey struct{}

// host is a caller with a memory, a web search and two checks.
type host struct {
	server *hostserver.Server
	mu     sync.Mutex
	seen   []string // scope, call id and query of every call
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{}
	type query struct {
		Query string `json:"query"`
	}
	type answer struct {
		Answer string `json:"answer"`
	}
	querySchema := json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],"additionalProperties":false}`)
	answerSchema := json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)
	note := func(ctx context.Context, call *hostserver.Call, text string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		scope, _ := ctx.Value(scopeKey{}).(string)
		h.seen = append(h.seen, scope+" "+call.ID+" "+text)
	}
	server, err := hostserver.NewServer(hostserver.Config{Tools: []hostserver.Tool{
		hostserver.New(job.HostTool{Name: "memory_search", Description: "Searches notes.", InputSchema: querySchema, Effect: "read",
			Research: true, Usage: "Search the memory before anything else."},
			func(ctx context.Context, call *hostserver.Call, q query) hostserver.Result {
				note(ctx, call, q.Query)
				return hostserver.Text("a note about %s", q.Query)
			}),
		hostserver.New(job.HostTool{Name: "web_search", Description: "Searches the web.", InputSchema: querySchema, Effect: "external",
			Egress: true, Research: true, Usage: "Use the web for references only."},
			func(ctx context.Context, call *hostserver.Call, q query) hostserver.Result {
				note(ctx, call, q.Query)
				return hostserver.Errorf("the budget of this job is spent")
			}),
		hostserver.New(job.HostTool{Name: "polite", Description: "Checks the tone.", InputSchema: answerSchema, Effect: "read"},
			func(_ context.Context, _ *hostserver.Call, a answer) hostserver.Result {
				if strings.Contains(a.Answer, "rude") {
					return hostserver.Failedf("it is rude")
				}
				return hostserver.Passed()
			}),
		hostserver.New(job.HostTool{Name: "broken", Description: "Fails inside.", InputSchema: answerSchema, Effect: "read"},
			func(context.Context, *hostserver.Call, answer) hostserver.Result { panic("a fault of the check") }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.server = server
	return h
}

// job runs a spec whose agent names tools, with checks, over an in-memory connection.
func (h *host) job(t *testing.T, tools, checks []string, script string, sent *[][]byte) ([]*job.Event, job.Outcome) {
	t.Helper()
	spec := h.spec(t, tools, checks, script)
	near, far := net.Pipe()
	connection, err := h.server.Connect(context.WithValue(t.Context(), scopeKey{}, "scope-7"), far,
		hostserver.Run{ID: "job-1", Tools: append(append([]string{}, tools...), checks...)})
	if err != nil {
		t.Fatal(err)
	}
	handle, err := newRuntime(t, sent).Start(t.Context(), spec, job.Ports{Host: near})
	if err != nil {
		t.Fatal(err)
	}
	var events []*job.Event
	for e := range handle.Events() {
		events = append(events, e)
	}
	outcome := handle.Wait()
	<-connection.Done() // the job has closed its end
	return events, outcome
}

func (h *host) spec(t *testing.T, tools, checks []string, script string) *job.Spec {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"source", "out"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "source/plan.txt"), []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	declared, err := h.server.Declarations(append(append([]string{}, tools...), checks...)...)
	if err != nil {
		t.Fatal(err)
	}
	fixture, err := scripted.FromYAML([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	spec := &job.Spec{APIVersion: job.APIVersion, ID: "job-1", Task: "Go.", Host: declared,
		Agent:     job.Definition{ID: "a", Version: "1", Instructions: "Be useful.", Tools: append([]string{"read"}, tools...)},
		Model:     job.ModelRef{Provider: "p", ID: "m"},
		Providers: map[string]job.ProviderConfig{"p": {API: job.APIScripted, Script: fixture}},
		Workspace: job.Workspace{Root: dir, ReadOnly: []string{filepath.Join(dir, "source")}, OutDir: filepath.Join(dir, "out")},
		Limits:    job.Limits{TimeoutSec: 60}}
	for _, c := range checks {
		spec.Checks = append(spec.Checks, job.Check{ID: "check-" + c, Tool: c})
	}
	return spec
}

const plan = "The secret plan is to open a second bakery on the corner of the market square in spring.\n"

func newRuntime(t *testing.T, sent *[][]byte) *kernel.Runtime {
	t.Helper()
	registry, err := tool.NewRegistry(filetool.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	adapter := scripted.Adapter{OnRequest: func(body []byte) {
		if sent != nil {
			*sent = append(*sent, bytes.Clone(body))
		}
	}}
	rt, err := kernel.New(kernel.Config{Adapters: map[string]llm.Adapter{job.APIScripted: adapter.New}, Tools: registry,
		Models:  func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id}, true },
		Lenders: []kernel.Lender{hostlender.New("test")}})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func text(events []*job.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.Write(e.Line())
		b.WriteByte('\n')
	}
	return b.String()
}

func TestLentToolsAreCalledByPlainNameWithTheScopeOfTheConnection(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	var sent [][]byte
	events, outcome := h.job(t, []string{"web_search", "memory_search"}, nil, `
responses:
- parts:
  - call: {name: memory_search, arguments: {query: bread}}
  - call: {name: web_search, arguments: {query: flour}}
- text: done
`, &sent)
	if outcome.Completed == nil {
		t.Fatalf("outcome = %+v", outcome.Failed)
	}
	if diff := cmp.Diff([]string{"read", "memory_search", "web_search"}, events[0].Data.(*job.StartedData).Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"scope-7 1.0 bread", "scope-7 1.1 flour"}, h.seen); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	all := text(events)
	if !strings.Contains(all, `"tool":"memory_search","success":true`) || !strings.Contains(all, `"tool":"web_search","success":false,"summary":"the budget`) {
		t.Errorf("events:\n%s", all)
	}
	var request struct {
		System string `json:"system"`
	}
	if err := json.Unmarshal(sent[0], &request); err != nil {
		t.Fatal(err)
	}
	block, note := strings.Index(request.System, "<research-tools>"), strings.Index(request.System, "<workspace>")
	if block < len("Be useful.") || note < block || !strings.Contains(request.System, "Search the memory before anything else.") {
		t.Errorf("the research block stands wrong:\n%s", request.System)
	}
}

func TestContentThatWasReadDoesNotLeave(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	events, outcome := h.job(t, []string{"web_search"}, nil, `
responses:
- parts: [{call: {name: read, arguments: {path: source/plan.txt}}}]
- parts:
  - call: {name: web_search, arguments: {query: "open a second bakery on the corner of the market square in spring"}}
  - call: {name: web_search, arguments: {query: bakery permits}}
- text: done
`, nil)
	if outcome.Completed == nil {
		t.Fatalf("outcome = %+v", outcome.Failed)
	}
	if diff := cmp.Diff([]string{"scope-7 2.1 bakery permits"}, h.seen); diff != "" {
		t.Errorf("calls that left (-want +got):\n%s", diff)
	}
	if !strings.Contains(text(events), `"allowed":false,"code":"blocked"`) {
		t.Errorf("no blocked call in the events:\n%s", text(events))
	}
}

func TestContextCountsAsRead(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	spec := h.spec(t, []string{"web_search"}, nil, `
responses:
- parts: [{call: {name: web_search, arguments: {query: "the quarterly figures are worse than anyone outside knows"}}}]
- text: done
`)
	spec.Context = []job.ContextBlock{{Label: "memo", Place: job.PlaceBeforeTask, Data: "Note: the quarterly figures are worse than anyone outside knows."}}
	near, far := net.Pipe()
	connection, err := h.server.Connect(t.Context(), far, hostserver.Run{ID: "job-1", Tools: []string{"web_search"}})
	if err != nil {
		t.Fatal(err)
	}
	handle, err := newRuntime(t, nil).Start(t.Context(), spec, job.Ports{Host: near})
	if err != nil {
		t.Fatal(err)
	}
	if outcome := handle.Wait(); outcome.Completed == nil {
		t.Errorf("outcome = %+v", outcome.Failed)
	}
	<-connection.Done()
	if len(h.seen) != 0 {
		t.Errorf("calls that left: %q", h.seen)
	}
}

func TestAnAnswerIsHeldUntilItsChecksHavePassed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		checks []string
		answer string
		code   string // "" completes
	}{
		"passes":        {[]string{"polite"}, "a kind answer", ""},
		"fails":         {[]string{"polite"}, "a rude answer", job.CodeAnswerCheckFailed},
		"cannot be run": {[]string{"polite", "broken"}, "a kind answer", job.CodeCheckUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			events, outcome := h.job(t, nil, c.checks, `
responses:
- parts: [{text: "I read first."}, {call: {name: read, arguments: {path: source/plan.txt}}}]
- text: "`+c.answer+`"
  chunkBytes: 4
`, nil)
			all := text(events)
			if !strings.Contains(all, "I read first.") {
				t.Error("the text of a turn that is no answer is missing")
			}
			if c.code == "" {
				if outcome.Completed == nil || outcome.Completed.Answer != c.answer || !strings.Contains(all, `"final":true`) {
					t.Errorf("outcome = %+v, %+v", outcome.Completed, outcome.Failed)
				}
				return
			}
			if outcome.Failed == nil || outcome.Failed.Reason != job.ReasonError || outcome.Failed.Code != c.code {
				t.Errorf("outcome = %+v", outcome)
			}
			if strings.Contains(all, c.answer) || strings.Contains(all, "a ru") {
				t.Errorf("the answer is in an event:\n%s", all)
			}
			if strings.Contains(all, `"tool":"polite"`) || strings.Contains(all, `"tool":"broken"`) {
				t.Errorf("a check is in the events as a tool:\n%s", all)
			}
		})
	}
}

func TestAHostThatIsGoneCostsCallsAndNotTheJob(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	spec := h.spec(t, []string{"memory_search"}, nil, `
responses:
- parts: [{call: {name: memory_search, arguments: {query: bread}}}]
- text: done without it
`)
	near, far := net.Pipe()
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	handle, err := newRuntime(t, nil).Start(t.Context(), spec, job.Ports{Host: near})
	if err != nil {
		t.Fatal(err)
	}
	if outcome := handle.Wait(); outcome.Completed == nil {
		t.Errorf("outcome = %+v", outcome.Failed)
	}
}

func TestASpecWithoutAHostIsRefusedAndTheConnectionOfARefusedJobIsClosed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	spec := h.spec(t, []string{"memory_search"}, []string{"polite"}, "responses: [{text: never}]")
	_, err := newRuntime(t, nil).Start(t.Context(), spec, job.Ports{})
	if found := problem.Of(err); !found.Has("host-missing", "/host") || !found.Has("host-missing", "/checks") {
		t.Errorf("error = %v", err)
	}
	spec.Task = ""
	near, far := net.Pipe()
	if _, err := newRuntime(t, nil).Start(t.Context(), spec, job.Ports{Host: near}); err == nil {
		t.Fatal("not refused")
	}
	if _, err := io.ReadAll(far); err != nil {
		t.Errorf("the connection is still open: %v", err)
	}
}
