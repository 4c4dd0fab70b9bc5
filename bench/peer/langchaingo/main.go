// Langchaingo runs the benchmark on tmc/langchaingo's agent for OpenAI functions. Its requests are about half as
// long as those of the others, since the agent keeps less of each response. Deltas are taken by the streaming callback.
package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/tools"

	"github.com/hozo-run/hozo/bench/harness"
)

type peer struct{}

type add struct{}

func (add) Name() string        { return harness.ToolName }
func (add) Description() string { return harness.ToolDescription }
func (add) Call(_ context.Context, input string) (string, error) {
	var in struct{ A, B int }
	if err := json.Unmarshal([]byte(input), &in); err != nil {
		return "", err
	}
	return harness.Add(in.A, in.B), nil
}

type session struct{ ex *agents.Executor }

// New implements harness.Peer.
func (peer) New(base, model string) (harness.Session, error) {
	llm, err := openai.New(openai.WithBaseURL(base+"/v1"), openai.WithToken("x"), openai.WithModel(model), openai.WithHTTPClient(http.DefaultClient))
	if err != nil {
		return nil, err
	}
	a := agents.NewOpenAIFunctionsAgent(llm, []tools.Tool{add{}}, agents.NewOpenAIOption().WithSystemMessage(harness.System))
	return &session{agents.NewExecutor(a, agents.WithMaxIterations(1000), agents.WithMemory(memory.NewConversationBuffer()))}, nil
}

// Run implements harness.Session.
func (s *session) Run(ctx context.Context, prompt string) (string, error) {
	return chains.Run(ctx, s.ex, prompt, chains.WithStreamingFunc(func(_ context.Context, b []byte) error { harness.CountDelta(); return nil }))
}

func main() { harness.Main("langchaingo", peer{}) }
