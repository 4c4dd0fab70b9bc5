package hostserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/tool"
)

// branchKey is the key under which a program keeps in a context for whom a job works. No document and no call says it.
type branchKey struct{}

// A program that lends a job one tool, over its own end of a connection. The model is a script, so that the example needs
// no key.
func Example() {
	type query struct {
		Text string `json:"text"`
	}
	server, err := hostserver.NewServer(hostserver.Config{Tools: []hostserver.Tool{
		hostserver.New(job.HostTool{
			Name: "search_notes", Version: "1", Description: "Searches the notes.", Effect: string(tool.EffectRead),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		}, func(ctx context.Context, _ *hostserver.Call, q query) hostserver.Result {
			return hostserver.Text("The notes of the %v branch say nothing about %s.", ctx.Value(branchKey{}), q.Text)
		}),
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, err := exampleSpec()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(spec.Workspace.Root)
	if spec.Host, err = server.Declarations("search_notes"); err != nil {
		fmt.Println(err)
		return
	}

	near, far := net.Pipe()
	ctx := context.Background()
	connection, err := server.Connect(context.WithValue(ctx, branchKey{}, "northern"), far, hostserver.Run{ID: spec.ID, Tools: []string{"search_notes"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	runtime, err := newKernel() // with a hostlender among the Lenders of its kernel.Config
	if err != nil {
		fmt.Println(err)
		return
	}
	handle, err := runtime.Start(ctx, spec, job.Ports{Host: near})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(handle.Wait().Completed.Answer)
	<-connection.Done() // the job has closed its end
	// Output: The notes of the northern branch say nothing about roofs.
}

// exampleSpec is a document whose agent may use search_notes and whose model calls it once.
func exampleSpec() (*job.Spec, error) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return nil, err
	}
	source, out := filepath.Join(dir, "source"), filepath.Join(dir, "out")
	for _, sub := range []string{source, out} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			return nil, err
		}
	}
	script := json.RawMessage(`{"responses":[
		{"parts":[{"call":{"name":"search_notes","arguments":{"text":"roofs"}}}]},
		{"text":"{{ lastResult }}"}]}`)
	return &job.Spec{
		APIVersion: job.APIVersion, ID: "job-7",
		Agent: job.Definition{ID: "clerk", Instructions: "Look things up.", Tools: []string{"search_notes"}},
		Task:  "What do the notes say about roofs?",
		Model: job.ModelRef{Provider: "script", ID: "actor"}, Providers: map[string]job.ProviderConfig{"script": {API: job.APIScripted, Script: script}},
		Workspace: job.Workspace{Root: dir, ReadOnly: []string{source}, OutDir: out},
		Limits:    job.Limits{TimeoutSec: 60},
	}, nil
}
