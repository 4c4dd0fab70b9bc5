package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// writeStartSpec writes the job with which the start of a job process is measured: an agent with the six file tools that
// lists its workspace once and answers.
func (b *bench) writeStartSpec(base string) error {
	dir := filepath.Join(b.out, "workspace")
	const model = "fake-t1-c20"
	window, money := int64(1_000_000), llm.USD(1_000_000)
	spec := b.spec(dir, job.ProviderConfig{API: job.APIOpenAIChat, BaseURL: base + "/v1", APIKey: "not-a-key",
		Models: map[string]job.ModelConfig{model: {ContextWindow: &window, Price: &llm.Price{Input: 3_000_000, Output: 15_000_000}}}}, model)
	spec.Limits.MaxCostUSD = &money
	return b.writeSpec("start.json", spec, dir)
}

// writeSearchSpec writes a job whose scripted model makes one tool call over dir.
func (b *bench) writeSearchSpec(name, dir, tool string, arguments map[string]any) error {
	script, err := json.Marshal(map[string]any{"responses": []any{
		map[string]any{"parts": []any{map[string]any{"call": map[string]any{"name": tool, "arguments": arguments}}}},
		map[string]any{"text": "Done."},
	}})
	if err != nil {
		return err
	}
	return b.writeSpec(name, b.spec(dir, job.ProviderConfig{API: job.APIScripted, Script: script}, "script"), dir)
}

func (b *bench) spec(dir string, provider job.ProviderConfig, model string) *job.Spec {
	return &job.Spec{
		APIVersion: job.APIVersion,
		Agent:      job.Definition{ID: "bench", Version: "1", Instructions: "Use the tools.", Tools: []string{"read", "ls", "grep", "find", "write", "edit"}},
		Task:       "Look at the workspace.",
		Model:      job.ModelRef{Provider: "provider", ID: model},
		Providers:  map[string]job.ProviderConfig{"provider": provider},
		Workspace:  job.Workspace{Root: dir, ReadOnly: []string{dir}, OutDir: filepath.Join(b.out, "written")},
		Limits:     job.Limits{TimeoutSec: 300},
	}
}

// writeSpec writes a job and makes its directories.
func (b *bench) writeSpec(name string, spec *job.Spec, dir string) error {
	for _, d := range []string{dir, spec.Workspace.OutDir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, name), data, 0o600)
}
