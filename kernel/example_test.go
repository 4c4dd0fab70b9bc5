package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
)

// A program that runs a job by itself: it builds one Runtime from the adapters and tools that it wants to offer, hands it
// a document and reads the events to their end. The model of this job is a script, so that the example needs no key.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	source, out := filepath.Join(dir, "source"), filepath.Join(dir, "out")
	for _, err := range []error{os.Mkdir(source, 0o700), os.Mkdir(out, 0o700),
		os.WriteFile(filepath.Join(source, "colours.txt"), []byte("red\ngreen\n"), 0o600)} {
		if err != nil {
			fmt.Println(err)
			return
		}
	}

	tools, err := tool.NewRegistry(filetool.Tools()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	runtime, err := kernel.New(kernel.Config{
		Adapters: map[string]llm.Adapter{job.APIScripted: scripted.New},
		Models:   func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id, Simulated: true}, true },
		Tools:    tools,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	script := json.RawMessage(`{"responses": [
		{"parts": [{"call": {"name": "read", "arguments": {"path": "colours.txt"}}}]},
		{"text": "The file has {{ len (lines lastResult) }} colours."}]}`)
	handle, err := runtime.Start(context.Background(), &job.Spec{
		APIVersion: job.APIVersion,
		Agent:      job.Definition{ID: "reader", Instructions: "Answer from the files.", Tools: []string{"read"}},
		Task:       "How many colours are there?",
		Model:      job.ModelRef{Provider: "script", ID: "actor"},
		Providers:  map[string]job.ProviderConfig{"script": {API: job.APIScripted, Script: script}},
		Workspace:  job.Workspace{Root: source, ReadOnly: []string{source}, OutDir: out},
		Limits:     job.Limits{TimeoutSec: 60},
	}, job.Ports{})
	if err != nil { // every problem of the document, in one error; problem.Of(err) lists them
		fmt.Println(err)
		return
	}
	for event := range handle.Events() {
		if call, ok := event.Data.(*job.ToolCallData); ok {
			fmt.Println("call", call.Tool, string(call.Input))
		}
	}
	outcome := handle.Wait()
	if outcome.Failed != nil {
		fmt.Println(outcome.Failed.Reason, outcome.Failed.Message)
		return
	}
	fmt.Println(outcome.Completed.Answer)
	// Output:
	// call read {"path":"colours.txt"}
	// The file has 2 colours.
}
