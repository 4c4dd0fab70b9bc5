package hostserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/kernel/hostlender"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
)

// eitherRuntime runs jobs that have a model with the kernel and all others without one.
type eitherRuntime struct{}

func (eitherRuntime) Start(ctx context.Context, spec *job.Spec, ports job.Ports) (job.Handle, error) {
	if len(spec.Providers) == 0 {
		return callerRuntime{}.Start(ctx, spec, ports)
	}
	rt, err := newKernel()
	if err != nil {
		return nil, err
	}
	return rt.Start(ctx, spec, ports)
}

func newKernel() (*kernel.Runtime, error) {
	tools, err := tool.NewRegistry(filetool.Tools()...)
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Config{
		Adapters: map[string]llm.Adapter{job.APIScripted: scripted.New},
		Models:   func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id}, true },
		Tools:    tools,
		Lenders:  []kernel.Lender{hostlender.New("test")},
	})
}

// runtimes are the two ways to run a job.
func runtimes(t *testing.T) map[string]job.Runtime {
	t.Helper()
	inProcess, err := newKernel()
	if err != nil {
		t.Fatal(err)
	}
	child, err := jobproc.New(jobproc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]job.Runtime{"in process": inProcess, "in a process of its own": child}
}

const secretFile = "The board has decided to close the northern branch in the spring and to tell nobody before May.\n"

// turns returns the script of a model that makes one call a turn and then answers.
func turns(answer string, calls ...step) json.RawMessage {
	var responses []string
	for _, c := range calls {
		responses = append(responses, fmt.Sprintf(`{"parts":[{"call":{"name":%q,"arguments":%s}}]}`, c.Tool, c.Arguments))
	}
	responses = append(responses, fmt.Sprintf(`{"text":%q}`, answer))
	return json.RawMessage(`{"responses":[` + strings.Join(responses, ",") + `]}`)
}

// modelSpec returns a spec whose agent may use file tools and the notes and the web of the host.
func modelSpec(t *testing.T, s *hostserver.Server, script json.RawMessage, checks ...job.Check) *job.Spec {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"source", "out"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "source", "minutes.md"), []byte(secretFile), 0o600); err != nil {
		t.Fatal(err)
	}
	lent := []string{"memory_search", "memory_write", "web_search"}
	for _, c := range checks {
		lent = append(lent, c.Tool)
	}
	declared, err := s.Declarations(lent...)
	if err != nil {
		t.Fatal(err)
	}
	return &job.Spec{
		APIVersion: job.APIVersion, ID: "job-1",
		Agent: job.Definition{ID: "clerk", Version: "1", Instructions: "Look things up.", Tools: append([]string{"read"}, lent[:3]...)},
		Task:  "Begin.", Model: job.ModelRef{Provider: "p", ID: "m"},
		Providers: map[string]job.ProviderConfig{"p": {API: job.APIScripted, Script: script}},
		Workspace: job.Workspace{Root: dir, ReadOnly: []string{filepath.Join(dir, "source")}, OutDir: filepath.Join(dir, "out")},
		Limits:    job.Limits{TimeoutSec: 600}, Host: declared, Checks: checks,
	}
}

// runModel runs a job under the scope south and returns its events and its outcome.
func runModel(t *testing.T, rt job.Runtime, s *hostserver.Server, spec *job.Spec) ([]*job.Event, job.Outcome) {
	t.Helper()
	host, lent := sockets(t)
	run := hostserver.Run{ID: spec.ID}
	for _, d := range spec.Host {
		run.Tools = append(run.Tools, d.Name)
	}
	server, err := s.Connect(context.WithValue(t.Context(), scopeKey{}, scope{"south"}), host, run)
	if err != nil {
		t.Fatal(err)
	}
	h, err := rt.Start(t.Context(), spec, job.Ports{Host: lent})
	if err != nil {
		t.Fatal(err)
	}
	var events []*job.Event
	for e := range h.Events() {
		events = append(events, e)
	}
	outcome := h.Wait()
	<-server.Done() // the job has closed its end
	return events, outcome
}

// calls returns how each call of a job ended.
func calls(events []*job.Event) []string {
	var all []string
	for _, e := range events {
		switch d := e.Data.(type) {
		case *job.ToolCallData:
			all = append(all, strings.TrimSpace(d.CallID+" "+d.Tool+" "+d.Code))
		case *job.ToolResultData:
			all[len(all)-1] += fmt.Sprintf(" %v", d.Success)
		}
	}
	return all
}

func TestAJobUsesItsHostFromAModelToTheAnswer(t *testing.T) {
	t.Parallel()
	for name, rt := range runtimes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice()
			s := newServer(t, o)
			spec := modelSpec(t, s, turns("The roof leaks.",
				step{"memory_search", `{"query":"roof"}`}, step{"read", `{"path":"source/minutes.md"}`},
				step{"web_search", `{"query":"is it usual to close the northern branch in the spring and to tell nobody"}`},
				step{"web_search", `{"query":"how to close a branch office"}`},
				step{"memory_write", `{"title":"branch","text":"ask first","area":"north"}`},
				step{"web_search", `{"query":"a"}`}, step{"web_search", `{"query":"b"}`}, step{"web_search", `{"query":"c"}`}),
				job.Check{ID: "secrets", Tool: "judge"})
			events, outcome := runModel(t, rt, s, spec)
			want := []string{
				"1.0 memory_search true", "2.0 read true", "3.0 web_search blocked false", "4.0 web_search true", "5.0 memory_write true",
				"6.0 web_search true", "7.0 web_search true", "8.0 web_search false",
			}
			if diff := cmp.Diff(want, calls(events)); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if outcome.Completed == nil || outcome.Completed.Answer != "The roof leaks." {
				t.Errorf("outcome: %+v %+v", outcome.Completed, outcome.Failed)
			}
			if o.keys["job-1 3.0"] != 0 || o.keys["job-1 5.0"] != 1 || len(o.notes["south"]) != 2 || len(o.notes["north"]) != 1 {
				t.Errorf("keys %v, notes %v", o.keys, o.notes)
			}
		})
	}
}

func TestAnAnswerThatDoesNotPassIsInNoEvent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, code string }{
		"failed":      {"The secret is out.", job.CodeAnswerCheckFailed},
		"unavailable": {"A garbled word.", job.CodeCheckUnavailable},
	} {
		for kind, rt := range runtimes(t) {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := newServer(t, newOffice())
				spec := modelSpec(t, s, turns(test.answer, step{"memory_search", `{"query":"roof"}`}), job.Check{ID: "secrets", Tool: "judge"})
				events, outcome := runModel(t, rt, s, spec)
				if outcome.Failed == nil || outcome.Failed.Reason != job.ReasonError || outcome.Failed.Code != test.code {
					t.Errorf("outcome: %+v", outcome.Failed)
				}
				for _, e := range events {
					if line := string(e.Line()); strings.Contains(line, test.answer) || strings.Contains(line, `"tool":"judge"`) {
						t.Errorf("event: %s", line)
					}
				}
			})
		}
	}
}

// TestWhatTheWebSaidMayGoBackThere fetches an address that a search has found, and one that a file holds.
func TestWhatTheWebSaidMayGoBackThere(t *testing.T) {
	t.Parallel()
	const address = "https://example.com/guides/how-to-close-a-branch-office-in-an-orderly-way"
	find := declare("web_find", "read", `"properties":{"query":{"type":"string"}},"required":["query"]`)
	fetch := declare("web_fetch", "external", `"properties":{"url":{"type":"string"}},"required":["url"]`)
	find.Egress, fetch.Egress = true, true
	s, err := hostserver.NewServer(hostserver.Config{Tools: []hostserver.Tool{
		{Declaration: find, Run: func(context.Context, *hostserver.Call) hostserver.Result {
			return hostserver.Text("found: %s", address)
		}},
		{Declaration: fetch, Run: func(context.Context, *hostserver.Call) hostserver.Result { return hostserver.Text("a page") }},
	}})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := newKernel()
	if err != nil {
		t.Fatal(err)
	}
	base := newServer(t, newOffice())
	spec := modelSpec(t, base, turns("done",
		step{"web_find", `{"query":"closing an office"}`}, step{"web_fetch", `{"url":"` + address + `"}`}, step{"read", `{"path":"source/minutes.md"}`},
		step{"web_fetch", `{"url":"https://example.com/?q=closing+a+branch+office"}`},
		step{"web_fetch", `{"url":"https://example.com/?q=to+close+the+northern+branch+in+the+spring+and+to+tell+nobody+before"}`}))
	spec.Agent.Tools = []string{"read", "web_find", "web_fetch"}
	if spec.Host, err = s.Declarations("web_find", "web_fetch"); err != nil {
		t.Fatal(err)
	}
	events, _ := runModel(t, rt, s, spec)
	want := []string{"1.0 web_find true", "2.0 web_fetch true", "3.0 read true", "4.0 web_fetch true", "5.0 web_fetch blocked false"}
	if diff := cmp.Diff(want, calls(events)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAJobWithoutItsHostIsRefused(t *testing.T) {
	t.Parallel()
	for name, rt := range runtimes(t) {
		s := newServer(t, newOffice())
		spec := modelSpec(t, s, turns("a"), job.Check{ID: "secrets", Tool: "judge"})
		_, err := rt.Start(t.Context(), spec, job.Ports{})
		var places []string
		for _, p := range problem.Of(err) {
			places = append(places, p.Pointer)
		}
		if diff := cmp.Diff([]string{"/host", "/checks"}, places); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
