package scripted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hozo-run/hozo/llm"
)

// exchange is one llm.Dialog. Its request bytes grow by one message at a time; the rest of a request (what may
// differ between calls) is written behind them and cut off again.
type exchange struct {
	provider *provider
	body     []byte
	prefix   func() string
	messages int
	scene    scene
	origin   llm.Origin
}

func newExchange(p *provider, o *llm.Opening) (*exchange, error) {
	e := &exchange{provider: p, scene: scene{opening: o}, origin: llm.Origin{API: API, Model: o.Model.ID}}
	shared := struct {
		Model       string         `json:"model"`
		Thinking    llm.Level      `json:"thinking"`
		Temperature *float64       `json:"temperature,omitempty"`
		Tools       []llm.ToolSpec `json:"tools"`
		System      string         `json:"system"`
	}{o.Model.ID, o.Thinking, o.Temperature, o.Tools, o.System}
	head, err := json.Marshal(shared)
	if err != nil {
		return nil, fmt.Errorf("encode the opening: %w", err)
	}
	jobSystem, err := json.Marshal(o.JobSystem)
	if err != nil {
		return nil, fmt.Errorf("encode the opening: %w", err)
	}
	// The shared prefix ends inside the string of the system prompt, as on the wire of a real API.
	head = head[:len(head)-len(`"}`)]
	e.prefix = sync.OnceValue(func() string {
		sum := sha256.Sum256(head)
		return hex.EncodeToString(sum[:])
	})
	e.body = append(e.body, head...)
	if o.System != "" && o.JobSystem != "" {
		e.body = append(e.body, `\n\n`...)
	}
	e.body = append(e.body, jobSystem[1:]...)
	e.body = append(e.body, `,"messages":[`...)
	return e, nil
}

// PrefixHash implements llm.Dialog.
func (e *exchange) PrefixHash() string { return e.prefix() }

// Append implements llm.Dialog. Like the strictest of the real APIs it refuses a tool message that does not answer
// every call of the message before it, in order, and any other message while calls are unanswered.
func (e *exchange) Append(m llm.Message) error {
	if err := e.scene.check(&m); err != nil {
		return &llm.Error{Class: llm.ClassInvalidRequest, Message: err.Error()}
	}
	encoded, err := json.Marshal(&m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if e.messages > 0 {
		e.body = append(e.body, ',')
	}
	e.body = append(e.body, encoded...)
	e.messages++
	e.scene.append(&m)
	e.scene.attempt = 0
	return nil
}

// check reports why m cannot follow the messages so far.
func (s *scene) check(m *llm.Message) error {
	if m.Role != llm.RoleTool {
		if len(s.pending) > 0 {
			return fmt.Errorf("tool call %q has no result", s.pending[0].call.ID)
		}
		if m.Role != llm.RoleUser && m.Role != llm.RoleAssistant {
			return fmt.Errorf("unknown role %q", m.Role)
		}
		return nil
	}
	if len(m.Parts) != len(s.pending) {
		return fmt.Errorf("%d tool results for %d tool calls", len(m.Parts), len(s.pending))
	}
	for i, p := range m.Parts {
		switch {
		case p.ToolResult == nil:
			return fmt.Errorf("part %d of a tool message is no tool result", i)
		case p.ToolResult.CallID != s.pending[i].call.ID:
			return fmt.Errorf("tool result %d answers call %q, not %q", i, p.ToolResult.CallID, s.pending[i].call.ID)
		}
	}
	return nil
}

// request returns the pieces of a request: what has been encoded so far and its end.
func (e *exchange) request(call llm.Call) [][]byte {
	tail := append(make([]byte, 0, 32), ']')
	if call.MaxOutputTokens != 0 {
		tail = fmt.Appendf(tail, `,"maxOutputTokens":%d`, call.MaxOutputTokens)
	}
	return [][]byte{e.body[:len(e.body):len(e.body)], append(tail, '}')}
}

// Request implements llm.Dialog. There is no address, so the path names the API.
func (e *exchange) Request(call llm.Call) (llm.Request, error) {
	if err := e.sendable(); err != nil {
		return llm.Request{}, err
	}
	return llm.Request{Method: "POST", Path: "/" + API, Body: e.request(call)}, nil
}

// sendable reports what is missing for a request.
func (e *exchange) sendable() error {
	if e.scene.last == nil || e.scene.last.Role == llm.RoleAssistant || len(e.scene.pending) > 0 {
		return invalid(errors.New("the last message of a request must be from the user or hold all tool results"))
	}
	return nil
}

// Skip implements llm.Skipper: the script goes on as if the request had been answered.
func (e *exchange) Skip(ctx context.Context, call llm.Call) error {
	if err := e.sendable(); err != nil {
		return err
	}
	e.scene.begin(ctx, call)
	_, err := e.provider.next(&e.scene)
	return err
}

// Stream implements llm.Dialog.
func (e *exchange) Stream(ctx context.Context, call llm.Call, sink llm.Sink) (llm.Response, error) {
	if ctx.Err() != nil {
		return llm.Response{}, ended(ctx)
	}
	if err := e.sendable(); err != nil {
		return llm.Response{}, err
	}
	e.scene.begin(ctx, call)
	body := e.request(call)
	size := len(body[0]) + len(body[1])
	if e.provider.onRequest != nil {
		e.provider.onRequest(slices.Concat(body...))
	}
	r, err := e.provider.next(&e.scene)
	if err != nil {
		return llm.Response{}, failed(ctx, err)
	}
	p := player{sink: sink, response: r}
	if p.parts, err = r.cast(&e.scene); err != nil {
		return llm.Response{}, failed(ctx, fmt.Errorf("the script's %s: %w", r.label, err))
	}
	return p.play(ctx, e.origin, size)
}

// failed is the error of a request that the script could not answer: the end of ctx if that is the cause.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return invalid(err)
}

func ended(ctx context.Context) error {
	return fmt.Errorf("model request ended: %w", context.Cause(ctx))
}

func invalid(err error) error {
	return &llm.Error{Class: llm.ClassInvalidRequest, Message: err.Error(), Err: err}
}
