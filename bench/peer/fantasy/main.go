// Fantasy runs the benchmark on charm.land/fantasy with its provider for servers that are compatible with OpenAI's. The
// agent is set up as its documentation shows. Deltas are taken by a callback, and the messages of each step are kept for
// the next prompt.
package main

import (
	"context"
	"net/http"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openaicompat"

	"github.com/hozo-run/hozo/bench/harness"
)

type peer struct{}

type session struct {
	agent fantasy.Agent
	msgs  []fantasy.Message
}

type in struct {
	A int `json:"a" description:"first"`
	B int `json:"b" description:"second"`
}

// New implements harness.Peer.
func (peer) New(base, model string) (harness.Session, error) {
	p, err := openaicompat.New(openaicompat.WithBaseURL(base+"/v1"), openaicompat.WithAPIKey("x"), openaicompat.WithHTTPClient(http.DefaultClient))
	if err != nil {
		return nil, err
	}
	lm, err := p.LanguageModel(context.Background(), model)
	if err != nil {
		return nil, err
	}
	add := fantasy.NewAgentTool(harness.ToolName, harness.ToolDescription, func(_ context.Context, i in, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
		return fantasy.NewTextResponse(harness.Add(i.A, i.B)), nil
	})
	return &session{agent: fantasy.NewAgent(lm, fantasy.WithSystemPrompt(harness.System), fantasy.WithTools(add), fantasy.WithStopConditions(fantasy.StepCountIs(1000)))}, nil
}

// Run implements harness.Session.
func (s *session) Run(ctx context.Context, prompt string) (string, error) {
	r, err := s.agent.Stream(ctx, fantasy.AgentStreamCall{Prompt: prompt, Messages: s.msgs,
		OnTextDelta: func(string, string) error { harness.CountDelta(); return nil }})
	if err != nil {
		return "", err
	}
	s.msgs = append(s.msgs, fantasy.NewUserMessage(prompt))
	for _, st := range r.Steps {
		s.msgs = append(s.msgs, st.Messages...)
	}
	return r.Response.Content.Text(), nil
}

func main() { harness.Main("fantasy", peer{}) }
