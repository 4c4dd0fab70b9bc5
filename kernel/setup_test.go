package kernel_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/sandbox"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/tool/scripttool"
)

// TestMain makes this test binary the child of scripts as well, and the helper of the sandbox where that needs one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == scripttool.ChildArgument {
		os.Exit(scripttool.Child())
	}
	if len(os.Args) > 1 && os.Args[1] == sandbox.ShimArgument {
		os.Exit(sandbox.Shim())
	}
	goleak.VerifyTestMain(m)
}

// extraTools are tools with an effect of their own, for what the file tools cannot show.
func extraTools() []tool.Tool {
	boundary := tool.Boundary{Reads: "none", Writes: "none", Network: "none", Processes: "none", Secrets: "none"}
	type command struct {
		Command string `json:"command"`
	}
	type nothing struct{}
	object := json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"additionalProperties":false}`)
	return []tool.Tool{
		tool.New(tool.Declaration{Name: "run", Description: "Pretends to run a command.", InputSchema: object, Effect: tool.EffectExternal,
			Boundary: boundary, CommandArguments: []string{"command"}},
			func(_ context.Context, _ *tool.Env, c command) tool.Result {
				return tool.Result{Text: "ran " + c.Command}
			}),
		tool.New(tool.Declaration{Name: "panic", Description: "Fails inside.", InputSchema: object, Effect: tool.EffectRead, Boundary: boundary},
			func(context.Context, *tool.Env, nothing) tool.Result { panic("a fault of the tool") }),
		tool.New(tool.Declaration{Name: "hang", Description: "Runs until the job ends.", InputSchema: object, Effect: tool.EffectRead, Boundary: boundary},
			func(ctx context.Context, _ *tool.Env, _ nothing) tool.Result {
				<-ctx.Done()
				return tool.Errorf("interrupted")
			}),
	}
}

// newRuntime returns a runtime with the file tools, extraTools and the scripted provider. observe, if not nil, sees the
// bytes of every request.
func newRuntime(t testing.TB, observe func(body []byte)) *kernel.Runtime {
	t.Helper()
	registry, err := tool.NewRegistry(append(filetool.Tools(), extraTools()...)...)
	if err != nil {
		t.Fatal(err)
	}
	adapter := scripted.Adapter{OnRequest: observe}
	rt, err := kernel.New(kernel.Config{
		Version:  "test",
		Adapters: map[string]llm.Adapter{job.APIScripted: adapter.New},
		Models: func(_, _, id string) (llm.Model, bool) {
			m := llm.Model{ID: id, Price: &llm.Price{}, Simulated: true, Images: true}
			if id == "unpriced" {
				m.Price = nil
			}
			return m, id != "unlisted"
		},
		Tools:  registry,
		Jitter: func() float64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// newSpec returns a spec over dir/source and dir/out whose model plays the script. overlay holds the fields that differ
// from the plainest spec.
func newSpec(t testing.TB, dir string, overlay []byte, script json.RawMessage) *job.Spec {
	t.Helper()
	spec := &job.Spec{
		APIVersion: job.APIVersion,
		ID:         "job",
		Agent:      job.Definition{ID: "tester", Version: "1", Instructions: "Do what the task says."},
		Task:       "Begin.",
		Model:      job.ModelRef{Provider: "p", ID: "m"},
		Providers:  map[string]job.ProviderConfig{"p": {API: job.APIScripted}},
		Workspace:  job.Workspace{Root: dir, ReadOnly: []string{filepath.Join(dir, "source")}, OutDir: filepath.Join(dir, "out")},
		Limits:     job.Limits{TimeoutSec: 600},
	}
	if len(overlay) > 0 {
		if err := json.Unmarshal(overlay, spec); err != nil {
			t.Fatal(err)
		}
	}
	config := spec.Providers["p"]
	config.Script = script
	spec.Providers["p"] = config
	for _, sub := range []string{"source", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return spec
}
