package compile_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/account"
	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/compile"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/problem"
)

// surroundings play everything that a compiler asks.
type surroundings struct {
	tools      []string
	unresolved *builder.Unresolved
	broken     error
	key        string
	model      string
	baseURL    string
	server     account.Specs
	frames     [][]byte
	asked      []int64
	limits     *catalog.Budget
}

func (s *surroundings) Resolve(_ context.Context, _, name string, version int64) (*builder.Resolved, error) {
	s.asked = append(s.asked, version)
	if s.broken != nil {
		return nil, s.broken
	}
	if s.unresolved != nil {
		return nil, s.unresolved
	}
	return &builder.Resolved{Name: name, Version: 3, Job: &catalog.Job{
		Agent: job.Definition{ID: name, Version: "3", Instructions: "Read.", Tools: s.tools}, Limits: s.limits}}, nil
}

type accounts struct{ *surroundings }

func (a accounts) Resolve(_ context.Context, _ string, w account.Wanted) (account.Resolution, error) {
	ref := job.ModelRef{Provider: "acme", ID: a.model}
	if w.Override != nil && w.Override.ID != "" {
		ref = *w.Override
	}
	return account.Resolution{Ref: ref}, nil
}

func (a accounts) Configs(_ context.Context, _ string, ids ...string) (map[string]job.ProviderConfig, error) {
	configs := map[string]job.ProviderConfig{}
	for _, id := range ids {
		if id == "gone" {
			return nil, store.ErrNotFound
		}
		configs[id] = job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: a.baseURL, APIKey: a.key}
	}
	return configs, nil
}

func (a accounts) Specs(_ context.Context, _ string, names []string) (account.Specs, error) {
	specs := account.Specs{AllowPrivate: a.server.AllowPrivate}
	for _, name := range names {
		specs.Servers = append(specs.Servers, job.MCPServer{Name: name, URL: "https://mcp.example/" + name, Headers: map[string]string{"Authorization": a.key}})
	}
	return specs, nil
}

func (s *surroundings) Prepare(_ context.Context, r run.Run, _ []compile.Input) (job.Workspace, []job.Notice, error) {
	return job.Workspace{Root: "/runs/" + r.ID, ReadOnly: []string{"/runs/" + r.ID + "/source"}, OutDir: "/runs/" + r.ID + "/out"},
		[]job.Notice{{Code: "source-left-out", Message: "a link"}}, nil
}
func (*surroundings) Keep(context.Context, run.Run, job.Workspace, job.Outcome) error { return nil }
func (*surroundings) Discard(context.Context, run.Run, job.Workspace)                 {}

func (s *surroundings) Journal(context.Context, string, string) (iter.Seq2[[]byte, error], error) {
	return func(yield func([]byte, error) bool) {
		for _, f := range s.frames {
			if !yield(f, nil) {
				return
			}
		}
	}, nil
}

func around() *surroundings {
	return &surroundings{key: "canary-key", model: "large", baseURL: "https://api.example/v1"}
}

func compiler(t *testing.T, s *surroundings, change func(*compile.Config)) *compile.Compiler {
	t.Helper()
	config := compile.Config{Agents: s, Accounts: accounts{s}, Workspaces: s, Journals: s}
	if change != nil {
		change(&config)
	}
	c, err := compile.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func aRun(input string) run.Run {
	return run.Run{ID: "run_1", Tenant: "default", Agent: "reader", Attempts: 1, Input: json.RawMessage(input)}
}

func mustCompile(t *testing.T, c *compile.Compiler, r run.Run) *job.Spec {
	t.Helper()
	spec, _, err := c.Compile(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestTheSameRunMakesTheSameJobByteForByte(t *testing.T) {
	t.Parallel()
	s := around()
	s.tools = []string{"read", "mcp__wiki__search", "mcp__docs__get", "mcp__wiki__get"}
	r := aRun(`{"task":"Read.","metadata":{"b":1,"a":2},"limits":{"maxTurns":9}}`)
	var first []byte
	for range 20 {
		data, err := json.Marshal(mustCompile(t, compiler(t, s, nil), r))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if diff := cmp.Diff(string(first), string(data)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestAJobHasWhatTheAgentTheRequestAndTheInstallationSay(t *testing.T) {
	t.Parallel()
	s := around()
	s.tools = []string{"mcp__wiki__search"}
	turns := int64(7)
	s.limits = &catalog.Budget{MaxTurns: &turns}
	spec := mustCompile(t, compiler(t, s, nil), aRun(`{"task":"Read.","model":{"provider":"other","id":"small"},"limits":{"timeoutSec":60}}`))
	if spec.Agent.ID != "reader" || spec.Task != "Read." || spec.Model.Provider != "other" || spec.Model.ID != "small" {
		t.Errorf("agent, task or model is wrong: %+v", spec)
	}
	if spec.Providers["other"].APIKey != s.key || len(spec.Providers) != 1 {
		t.Errorf("the accounts are wrong: %v", spec.Providers)
	}
	if spec.MCP == nil || len(spec.MCP.Servers) != 1 || spec.MCP.Servers[0].Headers["Authorization"] != s.key {
		t.Errorf("the servers are wrong: %v", spec.MCP)
	}
	if spec.Limits.TimeoutSec != 60 || spec.Limits.MaxTurns == nil || *spec.Limits.MaxTurns != turns {
		t.Errorf("the limits are wrong: %+v", spec.Limits)
	}
	if spec.Workspace.Root != "/runs/run_1" || !slices.Contains(spec.Notices, job.Notice{Code: "source-left-out", Message: "a link"}) {
		t.Errorf("the workspace or its notices are wrong: %+v %v", spec.Workspace, spec.Notices)
	}
}

func TestTheInstallationBoundsWhatRunsAskFor(t *testing.T) {
	t.Parallel()
	most := llm.USD(2)
	c := compiler(t, around(), func(c *compile.Config) { c.MaxTimeoutSec, c.MaxCostUSD, c.TimeoutSec = 100, &most, 30 })
	spec := mustCompile(t, c, aRun(`{"task":"Read.","limits":{"timeoutSec":500,"maxCostUsd":9}}`))
	if spec.Limits.TimeoutSec != 100 || spec.Limits.MaxCostUSD == nil || *spec.Limits.MaxCostUSD != most {
		t.Errorf("limits are %+v", spec.Limits)
	}
	lowered := 0
	for _, n := range spec.Notices {
		if n.Code == "limit-lowered" {
			lowered++
		}
	}
	if lowered != 2 {
		t.Errorf("notices are %v", spec.Notices)
	}
	if got := mustCompile(t, c, aRun(`{"task":"Read."}`)).Limits; got.TimeoutSec != 30 || got.MaxCostUSD == nil {
		t.Errorf("without a request limits are %+v", got)
	}
}

func TestAnAgentThatCannotRunSaysWhichOfFourReasonsItIs(t *testing.T) {
	t.Parallel()
	kinds := map[builder.Reason]problem.Kind{builder.ReasonUnknown: problem.NotFound, builder.ReasonDisabled: problem.Conflict,
		builder.ReasonMember: problem.Conflict, builder.ReasonInvalid: problem.Invalid}
	for reason, kind := range kinds {
		s := around()
		s.unresolved = &builder.Unresolved{Reason: reason, Agent: "reader"}
		_, _, err := compiler(t, s, nil).Compile(t.Context(), aRun(`{"task":"Read."}`))
		list := problem.Of(err)
		if len(list) == 0 || list[0].Code != string(reason) || problem.KindOf(err) != kind {
			t.Errorf("%s: %v of kind %s with problems %v", reason, err, problem.KindOf(err), list)
		}
	}
}

func TestAFaultOfTheDatabaseIsTriedAgainAndAMissingAccountIsNot(t *testing.T) {
	t.Parallel()
	s := around()
	s.broken = errors.New("no connection")
	if _, _, err := compiler(t, s, nil).Compile(t.Context(), aRun(`{"task":"Read."}`)); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("a fault of the database is %v of kind %s", err, problem.KindOf(err))
	}
	if _, _, err := compiler(t, around(), nil).Compile(t.Context(), aRun(`{"task":"Read.","model":{"provider":"gone","id":"x"}}`)); problem.KindOf(err) != problem.NotFound {
		t.Errorf("a missing account is %v of kind %s", err, problem.KindOf(err))
	}
}

func TestAServerAtAPrivateAddressNeedsTheOperator(t *testing.T) {
	t.Parallel()
	s := around()
	s.tools, s.server.AllowPrivate = []string{"mcp__wiki__search"}, true
	if _, _, err := compiler(t, s, nil).Compile(t.Context(), aRun(`{"task":"Read."}`)); problem.KindOf(err) != problem.Forbidden {
		t.Errorf("got %v", err)
	}
	mustCompile(t, compiler(t, s, func(c *compile.Config) { c.PrivateServers = true }), aRun(`{"task":"Read."}`))
}

// begun returns the frame with which the journal of a job begins.
func begun(t *testing.T, spec *job.Spec) []byte {
	t.Helper()
	bare, err := json.Marshal(spec.Bare())
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(job.SpecFrame{JobID: spec.ID, Digest: spec.Digest(), Spec: bare})
	if err != nil {
		t.Fatal(err)
	}
	frame, err := json.Marshal(job.Frame{V: 1, N: 1, Type: job.FrameSpec, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

func TestAnAttemptThatGoesOnHasTheSameJobWithTodaysCredentials(t *testing.T) {
	t.Parallel()
	s := around()
	s.tools = []string{"read", "mcp__wiki__search"}
	r := aRun(`{"task":"Read.","metadata":{"a":1}}`)
	before := mustCompile(t, compiler(t, s, nil), r)
	s.frames = [][]byte{begun(t, before)}
	s.tools, s.key, s.model = []string{"write"}, "new-key", "another"
	s.unresolved = &builder.Unresolved{Reason: builder.ReasonDisabled, Agent: "reader"}
	r.Attempts = 2
	after := mustCompile(t, compiler(t, s, nil), r)
	if after.Digest() != before.Digest() {
		t.Errorf("the job is another one:\n%s", cmp.Diff(before.Bare(), after.Bare()))
	}
	if after.Providers["acme"].APIKey != "new-key" || after.MCP.Servers[0].Headers["Authorization"] != "new-key" {
		t.Errorf("the credentials are old: %q", after.Providers["acme"].APIKey)
	}
	if len(s.asked) != 1 {
		t.Errorf("the agent was asked for %d times", len(s.asked))
	}
	s.baseURL = "https://elsewhere.example/v1"
	if _, _, err := compiler(t, s, nil).Compile(t.Context(), r); problem.KindOf(err) != problem.Conflict {
		t.Errorf("an account that was moved gives %v", err)
	}
}

func TestAnAttemptAfterOneThatRecordedNothingTakesTheVersionOfTheFirst(t *testing.T) {
	t.Parallel()
	s := around()
	r := aRun(`{"task":"Read."}`)
	r.Attempts, r.Resolved = 2, "3"
	mustCompile(t, compiler(t, s, nil), r)
	if diff := cmp.Diff([]int64{3}, s.asked); diff != "" {
		t.Error(diff)
	}
}

func TestARequestIsReadStrictly(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{}`:                                   "/task required",
		`{"task":" "}`:                         "/task required",
		`{"task":"x","modle":{}}`:              "/modle unknown-field",
		`{"task":1}`:                           "/task type",
		`[]`:                                   " type",
		`{"task":"x","model":{"id":"a"}}`:      "/model incomplete",
		`{"task":"x","inputs":[{}]}`:           "/inputs/0/run required",
		`{"task":"x","limits":{"maxTurns":0}}`: "/limits/maxTurns out-of-range",
		`{"task":"x","limits":{"timeoutSec":-1}}`: "/limits/timeoutSec out-of-range",
		`{"task":"x"}{}`: " trailing-data",
		`{"task":"x","model":{"thinking":"high"}}`:  "",
		`{"task":"x","inputs":[{"run":"run_1"}]}`:   "",
		`{"task":"x","limits":{"maxCostUsd":0.25}}`: "",
	} {
		_, err := compile.ParseRequest(json.RawMessage(input))
		got := ""
		if list := problem.Of(err); len(list) > 0 {
			got = list[0].Pointer + " " + list[0].Code
		}
		if got != want || (err == nil) != (want == "") {
			t.Errorf("%s: got %q (%v), want %q", input, got, err, want)
		}
	}
}
