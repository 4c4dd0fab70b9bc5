package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/tool"
)

// BenchmarkDepth runs jobs of many turns, each with a call whose result is 2 KB, in windows that never fill and in one
// that does. What a turn costs must not depend on the depth, and compaction must cost less than what it saves: the
// requests that it keeps short.
func BenchmarkDepth(b *testing.B) {
	for _, window := range []int64{0, 32_000} {
		for _, turns := range []int{10, 200} {
			b.Run(fmt.Sprintf("window=%d/turns=%d", window, turns), func(b *testing.B) {
				rt := depthRuntime(b, window, turns)
				dir, compactions, before := b.TempDir(), int64(0), processTime(b)
				for b.Loop() {
					h, err := rt.Start(b.Context(), newSpec(b, dir, nil, json.RawMessage("{}")), job.Ports{})
					if err != nil {
						b.Fatal(err)
					}
					outcome := h.Wait()
					if outcome.Completed == nil {
						b.Fatalf("outcome %+v", outcome.Failed)
					}
					compactions = outcome.Usage.Compactions
				}
				b.ReportMetric(float64((processTime(b)-before).Microseconds())/float64(b.N*(turns+1)), "cpu-us/turn")
				b.ReportMetric(float64(compactions), "compactions/job")
			})
		}
	}
}

// processTime is the processor time that this process has used, which another load on the machine does not change.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func depthRuntime(b *testing.B, window int64, turns int) *kernel.Runtime {
	b.Helper()
	type position struct{ N int }
	result := strings.Repeat("two kilobytes of text ", 93)
	look := tool.New(tool.Declaration{Name: "look", Description: "Looks.", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Effect: tool.EffectRead, Boundary: tool.Boundary{Reads: "none", Writes: "none", Network: "none", Processes: "none", Secrets: "none"}},
		func(_ context.Context, _ *tool.Env, p position) tool.Result {
			return tool.Result{Text: fmt.Sprintf("%d %s", p.N, result)}
		})
	registry, err := tool.NewRegistry(look)
	if err != nil {
		b.Fatal(err)
	}
	rt, err := kernel.New(kernel.Config{
		Adapters: map[string]llm.Adapter{job.APIScripted: func(llm.Account) (llm.Provider, error) { return &depthProvider{turns: turns}, nil }},
		Models: func(_, _, id string) (llm.Model, bool) {
			return llm.Model{ID: id, ContextWindow: window, MaxOutputTokens: 2000, Price: &llm.Price{}}, true
		},
		Tools: registry,
	})
	if err != nil {
		b.Fatal(err)
	}
	return rt
}

// depthProvider is a model that calls a tool a number of times and then answers. It counts tokens as the estimate does.
type depthProvider struct{ turns, turn int }

// Converse implements llm.Provider.
func (p *depthProvider) Converse(o llm.Opening) (llm.Dialog, error) {
	body, err := json.Marshal(&o.Tools)
	return &depthDialog{provider: p, body: append(body, o.System...)}, err
}

type depthDialog struct {
	provider *depthProvider
	body     []byte
}

func (d *depthDialog) Append(m llm.Message) error {
	encoded, err := json.Marshal(&m)
	d.body = append(d.body, encoded...)
	return err
}

func (d *depthDialog) Stream(_ context.Context, call llm.Call, sink llm.Sink) (llm.Response, error) {
	text := "a thought before the call"
	response := llm.Response{Stop: llm.StopEnd, UsageReported: true, Usage: llm.Usage{Input: llm.EstimateTokens(len(d.body)), Output: 40},
		Message: llm.Message{Role: llm.RoleAssistant}}
	if call.Purpose == llm.PurposeCompaction {
		text = "## Aim\na\n## Rules\nb\n## Done\nc\n## Under way\nd\n## Decided\ne\n## Next\nf\n## Exact details\ng"
	} else if d.provider.turn++; d.provider.turn <= d.provider.turns {
		response.Stop = llm.StopTools
		response.Message.Parts = append(response.Message.Parts, llm.Part{Type: llm.PartToolCall,
			ToolCall: &llm.ToolCall{Name: "look", Arguments: fmt.Appendf(nil, `{"n":%d}`, d.provider.turn)}})
	}
	response.Message.Parts = append([]llm.Part{llm.TextPart(text)}, response.Message.Parts...)
	return response, sink(llm.Delta{Kind: llm.DeltaText, Text: []byte(text)})
}

func (d *depthDialog) Request(llm.Call) (llm.Request, error) {
	return llm.Request{Body: [][]byte{d.body}}, nil
}

func (d *depthDialog) PrefixHash() string { return "" }
