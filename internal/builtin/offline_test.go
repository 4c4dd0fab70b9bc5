package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hozo-run/hozo/internal/builder"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/internal/workflow"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/llm"
	"github.com/hozo-run/hozo/provider/offline"
	"github.com/hozo-run/hozo/provider/scripted"
	"github.com/hozo-run/hozo/tool"
	"github.com/hozo-run/hozo/tool/filetool"
	"github.com/hozo-run/hozo/tool/scripttool"
)

// TestMain makes this test binary the child of scripts as well.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == scripttool.ChildArgument {
		os.Exit(scripttool.Child())
	}
	storetest.Main(m)
}

// inProcess runs the steps of workflows as jobs of this process, with the offline model, on a folder of sources.
type inProcess struct {
	t       *testing.T
	agents  *builder.Service
	runtime *kernel.Runtime
	source  string
	dir     string

	mutex sync.Mutex
	jobs  map[string]job.Handle
}

func newInProcess(t *testing.T, db *store.DB, source string) *inProcess {
	t.Helper()
	registry, err := tool.NewRegistry(append(filetool.Tools(), scripttool.New(scripttool.Options{}))...)
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := kernel.New(kernel.Config{Tools: registry,
		Adapters: map[string]llm.Adapter{job.APIOffline: offline.New, job.APIScripted: scripted.New},
		Models:   func(_, _, id string) (llm.Model, bool) { return llm.Model{ID: id}, true }})
	if err != nil {
		t.Fatal(err)
	}
	var tools []builder.Tool
	for _, d := range registry.Tools() {
		tools = append(tools, builder.Tool{Name: d.Name})
	}
	agents, err := builder.New(builder.Config{DB: db, BuiltIn: load(t), Runtime: runtime, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return &inProcess{t: t, agents: agents, runtime: runtime, source: source, dir: t.TempDir(), jobs: map[string]job.Handle{}}
}

func (p *inProcess) Start(ctx context.Context, request workflow.RunRequest) (string, error) {
	agent, err := p.agents.Resolve(ctx, request.Tenant, request.Agent, request.Version)
	if unresolved, ok := errors.AsType[*builder.Unresolved](err); ok {
		return "", &workflow.Refusal{Err: unresolved}
	}
	if err != nil {
		return "", err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	id := fmt.Sprintf("run-%d", len(p.jobs))
	root := filepath.Join(p.dir, id)
	for _, name := range []string{"inputs", "out"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			return "", err
		}
	}
	if err := os.Symlink(p.source, filepath.Join(root, "source")); err != nil {
		return "", err
	}
	for _, input := range request.Inputs {
		left := os.DirFS(filepath.Join(p.dir, input.Run, "out"))
		if err := os.CopyFS(filepath.Join(root, "inputs", input.Step), left); err != nil {
			return "", err
		}
	}
	spec := &job.Spec{APIVersion: job.APIVersion, Task: request.Task, Model: job.ModelRef{Provider: "o", ID: offline.Surveyor},
		Providers: map[string]job.ProviderConfig{"o": {API: job.APIOffline}}, Limits: job.Limits{TimeoutSec: 60},
		Workspace: job.Workspace{Root: root, ReadOnly: []string{filepath.Join(root, "source"), filepath.Join(root, "inputs")}, OutDir: filepath.Join(root, "out")}}
	agent.Job.Apply(spec)
	handle, err := p.runtime.Start(context.WithoutCancel(ctx), spec, job.Ports{})
	if err != nil {
		return "", &workflow.Refusal{Err: err}
	}
	p.jobs[id] = handle
	return id, nil
}

func (p *inProcess) Wait(_ context.Context, _, run string) (workflow.Result, error) {
	p.mutex.Lock()
	handle := p.jobs[run]
	p.mutex.Unlock()
	end := handle.Wait()
	if end.Completed == nil {
		return workflow.Result{Message: fmt.Sprint(end.Failed)}, nil
	}
	return workflow.Result{Completed: true, Answer: end.Completed.Answer}, nil
}

func (p *inProcess) Cancel(_ context.Context, _, run, cause string) error {
	p.jobs[run].Abort(cause)
	return nil
}

// report returns what the step of a workflow wrote.
func (p *inProcess) report(run string) string {
	data, err := os.ReadFile(filepath.Join(p.dir, run, "out", "REPORT.md"))
	if err != nil {
		p.t.Error(err)
	}
	return string(data)
}

func runWorkflow(t *testing.T, db *store.DB, p *inProcess, d *workflow.Definition) *workflow.Run {
	t.Helper()
	runner, err := workflow.NewRunner(workflow.RunnerConfig{DB: db, Starter: p, Failed: func(id string, err error) { t.Errorf("%s: %v", id, err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	started, err := runner.Start(t.Context(), workflow.StartRequest{Tenant: "acme", Definition: d})
	if err != nil {
		t.Fatal(err)
	}
	runner.Await(t.Context(), started.ID)
	run, err := runner.Get(t.Context(), "acme", started.ID)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestTheUnderstandingWorkflowRunsOfflineOnRealSources(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs(filepath.Join("..", "workflow"))
	if err != nil {
		t.Fatal(err)
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		p := newInProcess(t, db, source)
		run := runWorkflow(t, db, p, load(t).Workflow("understand"))
		if run.State != workflow.StateCompleted || len(run.Steps) != 5 {
			t.Fatalf("%+v", run)
		}
		for _, s := range run.Steps {
			if s.Answer == "" || !strings.Contains(p.report(s.Run), "runner.go") {
				t.Errorf("the step %s says %q and reports:\n%s", s.Name, s.Answer, p.report(s.Run))
			}
		}
		for _, name := range []string{"inventory", "structure", "behaviour", "data"} {
			if _, err := os.Stat(filepath.Join(p.dir, run.Steps[4].Run, "inputs", name, "REPORT.md")); err != nil {
				t.Errorf("the last step did not get the report of %s: %v", name, err)
			}
		}
	})
}

func TestAWorkflowWithAMissingAgentFailsAtThatStep(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs(filepath.Join("..", "workflow"))
	if err != nil {
		t.Fatal(err)
	}
	d, problems := workflow.Parse("plan.yaml", []byte(`name: plan
description: Takes stock and then plans, once there is an agent for it.
steps:
  - {name: inventory, agent: inventory, task: Take stock.}
  - {name: plan, agent: plan-waves, task: "Plan: {{ steps.inventory.answer }}"}
`))
	if problems != nil {
		t.Fatal(problems)
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		run := runWorkflow(t, db, newInProcess(t, db, source), d)
		if run.State != workflow.StateFailed || len(run.Steps) != 2 || run.Steps[0].State != workflow.StateCompleted ||
			run.Steps[1].Message != `unknown agent "plan-waves"` {
			t.Errorf("%+v", run)
		}
	})
}

// scriptResult runs a script in a job of the agent inventory and returns what the model got.
func scriptResult(t *testing.T, p *inProcess, code string) string {
	t.Helper()
	play, err := json.Marshal(map[string]any{"responses": []any{
		map[string]any{"parts": []any{map[string]any{"call": map[string]any{"name": "codemode", "arguments": map[string]any{"code": code}}}}},
		map[string]any{"text": `{{ range calls "codemode" }}{{ .text }}{{ end }}`}}})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	spec := &job.Spec{APIVersion: job.APIVersion, Task: "Run it.", Model: job.ModelRef{Provider: "s", ID: "m"},
		Providers: map[string]job.ProviderConfig{"s": {API: job.APIScripted, Script: play}}, Limits: job.Limits{TimeoutSec: 60},
		Workspace: job.Workspace{Root: filepath.Dir(p.source), ReadOnly: []string{p.source}, OutDir: out}}
	agent, err := p.agents.Resolve(t.Context(), "acme", "inventory", 0)
	if err != nil {
		t.Fatal(err)
	}
	agent.Job.Apply(spec)
	handle, err := p.runtime.Start(t.Context(), spec, job.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	end := handle.Wait()
	if end.Completed == nil {
		t.Fatalf("the job ended as %+v", end.Failed)
	}
	return end.Completed.Answer
}

func TestTheScriptsWorkOnRealSources(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "tree")
	for path, text := range map[string]string{
		"main.go":       "package main\n\nimport (\n\t\"example.com/tree/store\"\n)\n\n// TODO: say more\nfunc main() {}\n",
		"store/db.go":   "package store\n\n// FIXME close it\n// TODO: and open it\n",
		"web/app.js":    "import { render } from \"./view/render.js\";\n",
		"lib/tool.py":   "from os.path import join\n",
		"README":        "A tree.\n",
		"web/style.css": "a {}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(source, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(source, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := newInProcess(t, storetest.Open(t, storetest.SQLite(t)), source)
	want := map[string][]string{
		"file-census": {"6 files\n", ".go: 2 files, 12 lines", "README: 1 files, 1 lines", "web/: 2 files", "(top): 2 files, 9 lines"},
		"open-marks":  {"3 marks in 2 files", "store/db.go: 2", "db.go:3 // FIXME close it", "main.go: 1"},
		"who-imports": {"store", "view/render.js", "os.path"},
	}
	for _, s := range load(t).Scripts {
		got := scriptResult(t, p, s.Code)
		for _, part := range want[s.Name] {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in\n%s", s.Name, part, got)
			}
		}
	}
}
