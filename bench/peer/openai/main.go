// Openai runs the benchmark on the plain openai-go SDK with a loop written by hand. It is what a team has without any
// framework. The SDK encodes the whole history for each request and accumulates the chunks of a response itself.
package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/hozo-run/hozo/bench/harness"
)

type peer struct{}

type session struct {
	c openai.Client
	p openai.ChatCompletionNewParams
}

// New implements harness.Peer.
func (peer) New(base, model string) (harness.Session, error) {
	s := &session{c: openai.NewClient(option.WithAPIKey("x"), option.WithBaseURL(base+"/v1"), option.WithHTTPClient(http.DefaultClient))}
	s.p = openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(harness.System)},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: harness.ToolName, Description: openai.String(harness.ToolDescription),
			Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer"}, "b": map[string]any{"type": "integer"}}, "required": []string{"a", "b"}}})}}
	return s, nil
}

// Run implements harness.Session.
func (s *session) Run(ctx context.Context, prompt string) (string, error) {
	s.p.Messages = append(s.p.Messages, openai.UserMessage(prompt))
	for {
		st := s.c.Chat.Completions.NewStreaming(ctx, s.p)
		var acc openai.ChatCompletionAccumulator
		for st.Next() {
			ch := st.Current()
			acc.AddChunk(ch)
			if len(ch.Choices) > 0 && ch.Choices[0].Delta.Content != "" {
				harness.CountDelta()
			}
		}
		if err := st.Err(); err != nil {
			return "", err
		}
		m := acc.Choices[0].Message
		s.p.Messages = append(s.p.Messages, m.ToParam())
		if len(m.ToolCalls) == 0 {
			return m.Content, nil
		}
		for _, tc := range m.ToolCalls {
			var in struct{ A, B int }
			if err := json.Unmarshal([]byte(tc.Function.Arguments), &in); err != nil {
				return "", err
			}
			s.p.Messages = append(s.p.Messages, openai.ToolMessage(harness.Add(in.A, in.B), tc.ID))
		}
	}
}

func main() { harness.Main("openai-go", peer{}) }
