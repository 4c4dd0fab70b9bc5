package kernel_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
)

// TestUsageSaysWhenARequestWasMadeAndHowItEnded reads the events of a job with a failed request, a call and an answer.
func TestUsageSaysWhenARequestWasMadeAndHowItEnded(t *testing.T) {
	t.Parallel()
	calls := make(chan [2]string, 1)
	look := tool.New(tool.Declaration{Name: "look", Description: "Looks.", InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`),
		Effect: tool.EffectRead, Boundary: tool.Boundary{Reads: "none", Writes: "none", Network: "none", Processes: "none", Secrets: "none"}},
		func(ctx context.Context, _ *tool.Env, _ struct{}) tool.Result {
			calls <- [2]string{job.TraceOf(ctx), job.CallOf(ctx)}
			return tool.Result{Text: "seen"}
		})
	registry, err := tool.NewRegistry(look)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := kernel.New(kernel.Config{Version: "test", Adapters: map[string]llm.Adapter{job.APIScripted: scripted.New}, Tools: registry,
		Models: func(_, _, id string) (llm.Model, bool) {
			return llm.Model{ID: id, Price: &llm.Price{}, Simulated: true}, true
		}})
	if err != nil {
		t.Fatal(err)
	}
	spec := newSpec(t, t.TempDir(), nil, json.RawMessage(`{"responses": [
		{"error": {"class": "overloaded", "retryAfterMs": 1}}, {"parts": [{"call": {"name": "look", "arguments": {}}}]}, {"text": "Done."}]}`))
	handle, err := rt.Start(job.WithTrace(t.Context(), "the trace"), spec, job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	type end struct {
		ID    string
		Stop  llm.StopReason
		Error string
	}
	var got []end
	var turnStart int64
	for e := range handle.Events() {
		switch d := e.Data.(type) {
		case *job.UsageData:
			got = append(got, end{d.Call.ID, d.Call.Stop, d.Call.Error})
			turnStart = d.Call.StartUnixNano
			if d.Call.StartUnixNano <= 0 || d.Call.DurationMS < 0 || d.Call.StartUnixNano > e.At.Add(time.Millisecond).UnixNano() { // events have whole milliseconds
				t.Errorf("request %s began at %d and took %g ms", d.Call.ID, d.Call.StartUnixNano, d.Call.DurationMS)
			}
		case *job.SpanData:
			if d.Name == job.SpanTurn && turnStart < d.StartUnixNano {
				t.Errorf("a request began at %d, before its turn at %d", turnStart, d.StartUnixNano)
			}
		}
	}
	want := []end{{"1.1", "", "overloaded"}, {"1.2", llm.StopTools, ""}, {"2.1", llm.StopEnd, ""}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	if call := <-calls; call != [2]string{"the trace", "1.0"} {
		t.Errorf("the tool ran in the trace and call %q", call)
	}
}
