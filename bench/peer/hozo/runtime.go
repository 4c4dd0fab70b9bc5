package main

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/hozo-run/hozo/bench/harness"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/modeltable"
	"github.com/hozo-run/hozo/provider/openaichat"
	"github.com/hozo-run/hozo/tool"
)

type addArguments struct {
	A int `json:"a"`
	B int `json:"b"`
}

func addTool() tool.Tool {
	return tool.New(tool.Declaration{
		Name:        harness.ToolName,
		Description: harness.ToolDescription,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}`),
		Effect:      tool.EffectRead,
		Boundary:    tool.Boundary{Reads: "none", Writes: "none", Network: "none", Processes: "none", Secrets: "none"},
	}, func(_ context.Context, _ *tool.Env, a addArguments) tool.Result {
		return tool.Result{Text: harness.Add(a.A, a.B)}
	})
}

// newRuntime returns a runtime with the one tool and the one adapter; wrap may stand between the kernel and the adapter.
func newRuntime(wrap func(llm.Adapter) llm.Adapter) (*kernel.Runtime, error) {
	tools, err := tool.NewRegistry(addTool())
	if err != nil {
		return nil, err
	}
	adapter := llm.Adapter(openaichat.New)
	if wrap != nil {
		adapter = wrap(adapter)
	}
	return kernel.New(kernel.Config{
		Version:  "bench",
		Adapters: map[string]llm.Adapter{job.APIOpenAIChat: adapter},
		Models:   modeltable.Lookup,
		Tools:    tools,
	})
}

// newSpec returns a job in dir for a model of fakellm at base.
func newSpec(dir, base, model string) *job.Spec {
	turns, money, window := int64(1000), llm.USD(100_000_000), int64(1_000_000)
	return &job.Spec{
		APIVersion: job.APIVersion,
		Agent:      job.Definition{ID: "adder", Version: "1", Instructions: harness.System, Tools: []string{harness.ToolName}},
		Task:       harness.Prompt,
		Model:      job.ModelRef{Provider: "fake", ID: model},
		Providers: map[string]job.ProviderConfig{"fake": {
			API: job.APIOpenAIChat, BaseURL: base + "/v1", APIKey: "not-a-key",
			Models: map[string]job.ModelConfig{model: {
				ContextWindow: &window, Price: &llm.Price{Input: 3_000_000, Output: 15_000_000},
			}},
		}},
		Workspace: job.Workspace{Root: dir, ReadOnly: []string{filepath.Join(dir, "source")}, OutDir: filepath.Join(dir, "out")},
		Limits:    job.Limits{TimeoutSec: 600, MaxTurns: &turns, MaxCostUSD: &money},
	}
}
