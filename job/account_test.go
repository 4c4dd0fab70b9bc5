package job_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

func TestAnAccountIsWhatItsConfigSays(t *testing.T) {
	t.Parallel()
	config := job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: "http://x", APIKey: "k", APIVersion: "v", Headers: map[string]string{"A": "b"},
		TagHeaders: map[string]string{"C": "{jobId}"}, TagPreset: "p", Script: json.RawMessage(`{}`)}
	want := llm.Account{BaseURL: "http://x", APIKey: "k", APIVersion: "v", Headers: map[string]string{"A": "b"},
		TagHeaders: map[string]string{"C": "{jobId}"}, TagPreset: "p", Script: json.RawMessage(`{}`)}
	if diff := cmp.Diff(want, config.Account()); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyNamedFieldsOfAModelAreOverridden(t *testing.T) {
	t.Parallel()
	listed := llm.Model{ID: "m", Name: "M", ContextWindow: 1, MaxOutputTokens: 2, Price: &llm.Price{Input: 3},
		ThinkingLevels: []llm.Level{llm.LevelLow}, Images: true, Compat: llm.Compat{TextToolCalls: "auto"}}
	m := listed
	job.ModelConfig{}.Apply(&m)
	if diff := cmp.Diff(listed, m); diff != "" {
		t.Error(diff)
	}
	job.ModelConfig{ContextWindow: new(int64(10)), MaxOutputTokens: new(int64(20)), Price: &llm.Price{}, ThinkingLevels: []llm.Level{},
		Images: new(false), Compat: &llm.Compat{}}.Apply(&m)
	want := llm.Model{ID: "m", Name: "M", ContextWindow: 10, MaxOutputTokens: 20, Price: &llm.Price{}, ThinkingLevels: []llm.Level{}}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
}
