package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
)

// writersOf returns a spec whose agent and whose subagent have writers with models of their own.
func writersOf(job1, sub job.ModelRef) *job.Spec {
	return &job.Spec{
		Model:     job.ModelRef{Provider: "mine", ID: "large"},
		Providers: map[string]job.ProviderConfig{"mine": {API: job.APIOpenAIChat, BaseURL: "http://127.0.0.1:1/v1", APIKey: "main-key"}},
		Loop:      &job.Loop{Kind: job.LoopWorkingMemory, Writer: &job.Writer{Model: &job1}},
		Subagents: []job.Subagent{{Loop: &job.Loop{Kind: job.LoopWorkingMemory, Writer: &job.Writer{Model: &sub}}}},
	}
}

func TestWritersGetAccountsOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := &program{getenv: func(name string) string {
		return map[string]string{"ANTHROPIC_API_KEY": "writer-key", "MAIN": "main-key"}[name]
	}}
	flags := accountFlags{model: "mine/large", baseURL: "http://127.0.0.1:1/v1", keyEnv: "MAIN"}
	spec := writersOf(job.ModelRef{ID: "small"}, job.ModelRef{Provider: "anthropic", ID: "claude-haiku-4-5"})
	if err := p.addWriters(&flags, spec); err != nil {
		t.Fatal(err)
	}
	if got := spec.Loop.Writer.Model.Provider; got != "mine" {
		t.Errorf("a writer without a provider is one of %q", got)
	}
	account := spec.Providers["anthropic"]
	if account.API != job.APIAnthropicMessages || account.APIKey != "writer-key" || account.BaseURL == flags.baseURL {
		t.Errorf("the account of the writer: %v with key %q at %s", account.API, account.APIKey, account.BaseURL)
	}

	flags.scriptFile = "script.yaml"
	spec = writersOf(job.ModelRef{Provider: "openai", ID: "small"}, job.ModelRef{Provider: "anthropic", ID: "x"})
	if err := p.addWriters(&flags, spec); err != nil || len(spec.Providers) != 1 {
		t.Fatalf("a script plays all models: %v, %d accounts", err, len(spec.Providers))
	}
	if d := cmp.Diff(job.ModelRef{Provider: "mine", ID: "x"}, *spec.Subagents[0].Loop.Writer.Model); d != "" {
		t.Error(d)
	}
}

func TestAKeyThatIsNamedGoesToNoOtherProvider(t *testing.T) {
	t.Parallel()
	p := &program{getenv: func(name string) string {
		return map[string]string{"ANTHROPIC_API_KEY": "writer-key", "MAIN": "main-key"}[name]
	}}
	spec := writersOf(job.ModelRef{ID: "small"}, job.ModelRef{ID: "small"})
	spec.Providers = map[string]job.ProviderConfig{"mine": {API: job.APIOpenAIChat}, "anthropic": {API: job.APIAnthropicMessages}}
	if err := p.addCredentials(&runFlags{account: accountFlags{keyEnv: "MAIN"}}, spec); err != nil {
		t.Fatal(err)
	}
	if main, writer := spec.Providers["mine"].APIKey, spec.Providers["anthropic"].APIKey; main != "main-key" || writer != "writer-key" {
		t.Errorf("keys %q and %q", main, writer)
	}
}
