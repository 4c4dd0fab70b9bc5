package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hozo-run/hozo/internal/compile"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

// intake takes requests for runs: it checks what can be checked before a run is made, writes commands out as tasks, and
// adds the limits of the project. It implements api.Orchestrator.
type intake struct{ server *Server }

// Submit implements api.Orchestrator.
func (i *intake) Submit(ctx context.Context, request run.Request) (run.Created, error) {
	if name, isCommand := strings.CutPrefix(request.Agent, "/"); isCommand {
		if err := i.command(&request, name); err != nil {
			return run.Created{}, err
		}
	}
	q, err := compile.ParseRequest(request.Input)
	if err != nil {
		return run.Created{}, err
	}
	if err := i.inputs(ctx, request.Tenant, q.Inputs); err != nil {
		return run.Created{}, err
	}
	if request.Project != "" {
		p, err := i.server.projects.Get(ctx, request.Tenant, request.Project)
		if err != nil {
			return run.Created{}, err
		}
		request.ProjectLimit = p.Settings.Concurrency
	}
	return i.server.worker.Submit(ctx, request)
}

// inputs checks that the runs whose files are wanted are there.
func (i *intake) inputs(ctx context.Context, tenant string, inputs []compile.Input) error {
	var found problem.List
	for n, in := range inputs {
		if _, err := i.server.runs.Get(ctx, tenant, in.Run); err != nil {
			found.Add("unknown-run", fmt.Sprintf("/input/inputs/%d/run", n), "there is no run %q", in.Run)
		}
	}
	return found.Err("start the run")
}

// commandInput is the input of a run that is started by the name of a command.
type commandInput struct {
	Arguments map[string]string `json:"arguments"`
}

// command turns a request for "/<name>" into one for the agent of the command with the task written out. Everything else of
// the input stays.
func (i *intake) command(request *run.Request, name string) error {
	command := i.server.builtIn.Command(name)
	if command == nil {
		var names []string
		for _, c := range i.server.builtIn.Commands {
			names = append(names, c.Name)
		}
		hint := "commands: " + strings.Join(names, ", ")
		if best := problem.Closest(name, names); best != "" {
			hint = fmt.Sprintf("did you mean %q?", "/"+best)
		}
		return problem.List{{Code: "unknown-command", Pointer: "/agent", Message: fmt.Sprintf("unknown command %q", "/"+name), Hint: hint}}.Err("start the run")
	}
	members := map[string]json.RawMessage{}
	if len(request.Input) > 0 {
		if err := json.Unmarshal(request.Input, &members); err != nil {
			return problem.List{{Code: "type", Pointer: "/input", Message: "the input is not an object"}}.Err("start the run")
		}
	}
	var given commandInput
	if text, ok := members["arguments"]; ok {
		if err := json.Unmarshal(text, &given.Arguments); err != nil {
			return problem.List{{Code: "type", Pointer: "/input/arguments", Message: "arguments are an object of texts"}}.Err("start the run")
		}
	}
	if _, both := members["task"]; both {
		return problem.List{{Code: "conflict", Pointer: "/input/task", Message: "a command brings its own task"}}.Err("start the run")
	}
	task, problems := command.Render(given.Arguments, i.server.builtIn.Scripts)
	if len(problems) > 0 {
		return problems.Err("start the command /" + name)
	}
	delete(members, "arguments")
	text, err := json.Marshal(task)
	if err != nil {
		return err
	}
	members["task"] = text
	request.Agent = command.Agent
	request.Input, err = json.Marshal(members)
	return err
}

// Cancel implements api.Orchestrator.
func (i *intake) Cancel(ctx context.Context, tenant, id, cause string) (run.Run, error) {
	return i.server.worker.Cancel(ctx, tenant, id, cause)
}

// Decide implements api.Orchestrator.
func (i *intake) Decide(ctx context.Context, tenant, id string, decisions []job.Decision, by string) (run.Decided, error) {
	return i.server.worker.Decide(ctx, tenant, id, decisions, by)
}
