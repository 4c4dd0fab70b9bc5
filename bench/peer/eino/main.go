// Eino runs the benchmark on cloudwego/eino with its OpenAI model from eino-ext. It measures the agent of package adk; with
// EINO=react it is the one of flow/agent/react. Both are set up as their documentation shows, streaming, with the history
// kept for the next prompt.
package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/hozo-run/hozo/bench/harness"
)

type peer struct{ react bool }

type in struct {
	A int `json:"a" jsonschema:"description=first"`
	B int `json:"b" jsonschema:"description=second"`
}

type session struct {
	runner *adk.Runner
	agent  *react.Agent
	msgs   []adk.Message
}

// New implements harness.Peer.
func (p peer) New(base, model string) (harness.Session, error) {
	ctx := context.Background()
	cm, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{BaseURL: base + "/v1", APIKey: "x", Model: model, HTTPClient: http.DefaultClient})
	if err != nil {
		return nil, err
	}
	add, err := utils.InferTool(harness.ToolName, harness.ToolDescription, func(_ context.Context, i in) (string, error) { return harness.Add(i.A, i.B), nil })
	if err != nil {
		return nil, err
	}
	tc := compose.ToolsNodeConfig{Tools: []tool.BaseTool{add}}
	if p.react {
		a, err := react.NewAgent(ctx, &react.AgentConfig{ToolCallingModel: cm, ToolsConfig: tc, MaxStep: 2500,
			StreamToolCallChecker: func(_ context.Context, sr *schema.StreamReader[*schema.Message]) (bool, error) {
				defer sr.Close()
				for {
					m, err := sr.Recv()
					if errors.Is(err, io.EOF) {
						return false, nil
					}
					if err != nil {
						return false, err
					}
					if len(m.ToolCalls) > 0 {
						return true, nil
					}
				}
			}})
		return &session{agent: a, msgs: []adk.Message{schema.SystemMessage(harness.System)}}, err
	}
	a, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{Name: "bench", Description: "bench", Instruction: harness.System, Model: cm,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: tc}, MaxIterations: 1000})
	if err != nil {
		return nil, err
	}
	return &session{runner: adk.NewRunner(ctx, adk.RunnerConfig{Agent: a, EnableStreaming: true})}, nil
}

func drain(sr *schema.StreamReader[*schema.Message]) (*schema.Message, error) {
	defer sr.Close()
	var all []*schema.Message
	for {
		m, err := sr.Recv()
		if errors.Is(err, io.EOF) {
			return schema.ConcatMessages(all)
		}
		if err != nil {
			return nil, err
		}
		if m.Content != "" {
			harness.CountDelta()
		}
		all = append(all, m)
	}
}

// Run implements harness.Session.
func (s *session) Run(ctx context.Context, prompt string) (string, error) {
	s.msgs = append(s.msgs, schema.UserMessage(prompt))
	if s.agent != nil {
		sr, err := s.agent.Stream(ctx, s.msgs)
		if err != nil {
			return "", err
		}
		m, err := drain(sr)
		if err != nil {
			return "", err
		}
		s.msgs = append(s.msgs, m)
		return m.Content, nil
	}
	it := s.runner.Run(ctx, s.msgs)
	text := ""
	for {
		ev, ok := it.Next()
		if !ok {
			return text, nil
		}
		if ev.Err != nil {
			return "", ev.Err
		}
		if ev.Output == nil || ev.Output.MessageOutput == nil {
			continue
		}
		mv := ev.Output.MessageOutput
		m := mv.Message
		if mv.IsStreaming {
			var err error
			if m, err = drain(mv.MessageStream); err != nil {
				return "", err
			}
		}
		s.msgs = append(s.msgs, m)
		if m.Role == schema.Assistant {
			text = m.Content
		}
	}
}

func main() {
	if os.Getenv("EINO") == "react" {
		harness.Main("eino-react", peer{true})
		return
	}
	harness.Main("eino-adk", peer{})
}
