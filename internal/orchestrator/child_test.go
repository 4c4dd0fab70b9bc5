package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hozo-run/hozo/hostserver"
	"github.com/hozo-run/hozo/internal/orchestrator"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/kernel/hostlender"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
)

// childName is the name under which the test binary is started again as a process that executes runs.
const childName = "run-worker"

// childConfig is what such a process is told.
type childConfig struct {
	DB store.Config
	// Dir is its own directory, Blobs the one that all share.
	Dir, Blobs string
	// Counter is the address of the outside counter.
	Counter string
	// Submit is how many runs the process asks for when it starts.
	Submit int
	Slots  int
	Lease  time.Duration
	Alone  bool
}

// childMain executes runs until a signal ends it. It prints a line when it works.
func childMain(_, config string) int {
	if err := runChild(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runChild(encoded string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(encoded), &c); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // whoever started this process is gone
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	ctx := context.Background()
	db, err := store.Open(ctx, c.DB)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	queue, err := orchestrator.NewRiver(ctx, db, logger)
	if err != nil {
		return err
	}
	runtime, err := childRuntime()
	if err != nil {
		return err
	}
	blobs := folderBlobs(c.Blobs)
	runs := run.New(db, run.Config{Blobs: blobs, Queue: queue})
	w := orchestrator.New(orchestrator.Config{Runs: runs, Queue: queue, Runtime: runtime, Compiler: &childCompiler{c}, Blobs: blobs,
		Place: c.Dir, Slots: c.Slots, Lease: c.Lease, Alone: c.Alone, Logger: logger})
	if err := w.Start(ctx); err != nil {
		return err
	}
	for i := range c.Submit {
		request := ask()
		request.IdempotencyKey = fmt.Sprint("run ", i)
		if _, err := w.Submit(ctx, request); err != nil {
			return err
		}
	}
	fmt.Println("works")
	<-signals
	stop, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = w.Stop(stop)
	runs.Close()
	return errors.Join(err, db.Close())
}

func childRuntime() (*kernel.Runtime, error) {
	tools, err := tool.NewRegistry(filetool.Tools()...)
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Config{
		Adapters: map[string]llm.Adapter{job.APIScripted: scripted.New},
		Models:   func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id, Simulated: true}, true },
		Tools:    tools,
		Lenders:  []kernel.Lender{hostlender.New("test")},
	})
}

// childCompiler makes the job of every run of the test: it writes files and counts outside.
type childCompiler struct{ childConfig }

// childScript is the model of the jobs.
const childScript = `
responses:
- parts: [{call: {name: write, arguments: {path: one.md, content: "first\n"}}}]
- parts: [{call: {name: count, arguments: {id: one}}}]
- parts: [{call: {name: edit, arguments: {path: one.md, oldText: first, newText: second}}}]
- parts: [{call: {name: count, arguments: {id: two}}}]
- parts: [{call: {name: write, arguments: {path: two.md, content: "two\n"}}}]
- text: Done.
`

// Compile implements orchestrator.Compiler.
func (c *childCompiler) Compile(_ context.Context, r run.Run) (*job.Spec, job.Host, error) {
	script, err := scripted.FromYAML([]byte(childScript))
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(c.Dir, r.ID)
	source, out := filepath.Join(dir, "source"), filepath.Join(dir, "out")
	if err := errors.Join(os.MkdirAll(source, 0o700), os.MkdirAll(out, 0o700)); err != nil {
		return nil, nil, err
	}
	declared := job.HostTool{Name: "count", Version: "1.0.0", Description: "Counts.", Effect: string(tool.EffectExternal),
		InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"],"additionalProperties":false}`)}
	spec := &job.Spec{
		APIVersion: job.APIVersion, Task: "Do it.",
		Agent:     job.Definition{ID: "clerk", Version: "1", Instructions: "Do as you are told.", Tools: []string{"read", "write", "edit", "count"}},
		Model:     job.ModelRef{Provider: "test", ID: "actor"},
		Providers: map[string]job.ProviderConfig{"test": {API: job.APIScripted, Script: script}},
		Workspace: job.Workspace{Root: dir, ReadOnly: []string{source, out}, OutDir: out},
		Limits:    job.Limits{TimeoutSec: 120},
		Host:      []job.HostTool{declared},
	}
	host, err := c.lend(spec, r.ID)
	return spec, host, err
}

func (c *childCompiler) lend(spec *job.Spec, id string) (job.Host, error) {
	server, err := hostserver.NewServer(hostserver.Config{Tools: []hostserver.Tool{
		hostserver.New(spec.Host[0], func(_ context.Context, call *hostserver.Call, q struct {
			ID string `json:"id"`
		}) hostserver.Result {
			answer, err := http.PostForm(c.Counter, url.Values{"key": {call.Run + " " + q.ID}})
			if err != nil {
				return hostserver.Text("the counter is gone")
			}
			answer.Body.Close()
			return hostserver.Text("counted %s", q.ID)
		})}})
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	_, err = server.Connect(context.Background(), far, hostserver.Run{ID: id, Tools: []string{"count"}})
	return near, err
}
