package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/internal/api/wire"
	"github.com/hozo-run/hozo/internal/client"
	"github.com/hozo-run/hozo/internal/compile"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/llm"
)

// startFlags are the flags of hozo run start.
type startFlags struct {
	remote
	project, version, model, thinking string
	inputs                            []string
	timeout                           time.Duration
	maxTurns                          int64
	maxCost, key                      string
	notBefore                         string
	follow                            bool
}

func (p *program) runStartCommand() *cobra.Command {
	f := &startFlags{}
	command := &cobra.Command{
		Use:   "start AGENT TASK | start /COMMAND [NAME=VALUE…]",
		Short: "Start a run on a server",
		Long: `Start a run with an agent that the server knows, by its name, and a task; "-" reads the task from standard input. A name
that begins with a slash is a command of the server, which has its own task with places for arguments.

The id of the run goes to standard output. With --follow its events are shown until it ends, and the exit code is that of
its outcome, as for "hozo run".`,
		Example: `  hozo run start architecture "How is the program built?" --follow
  hozo run start /explain topic="the write path" --project demo`,
		Args: cobra.MinimumNArgs(1),
		RunE: p.ask(&f.remote, func(ctx context.Context, c *client.Client, args []string) error { return p.startRun(ctx, c, f, args) }),
	}
	f.remote.register(command)
	flags := command.Flags()
	flags.StringVar(&f.project, "project", "", "the `PROJECT` in which the run works")
	flags.StringVar(&f.version, "version", "", "the `VERSION` of the agent (default the current one)")
	flags.StringVar(&f.model, "model", "", "the model as `PROVIDER/ID` (default the one that is bound to the agent)")
	flags.StringVar(&f.thinking, "thinking", "", "thinking `LEVEL`: off, minimal, low, medium, high, xhigh or max")
	flags.StringArrayVar(&f.inputs, "input", nil, "files that an earlier `RUN` left: RUN, NAME=RUN or NAME=RUN:FILE (repeatable)")
	flags.DurationVar(&f.timeout, "timeout", 0, "end the run after this time (default the limit of the agent or the server)")
	flags.Int64Var(&f.maxTurns, "max-turns", 0, "end the run after `N` responses of the model")
	flags.StringVar(&f.maxCost, "max-cost", "", "end the run before it costs more than so many `USD`")
	flags.StringVar(&f.key, "idempotency-key", "", "a second start with the same `KEY` is the first one")
	flags.StringVar(&f.notBefore, "not-before", "", "start it at this `TIME` (RFC 3339) at the earliest")
	flags.BoolVarP(&f.follow, "follow", "f", false, "show the events until the run ends")
	return command
}

// startRun starts a run and says what its id is, or shows it to its end.
func (p *program) startRun(ctx context.Context, c *client.Client, f *startFlags, args []string) error {
	request, err := f.request(p, args)
	if err != nil {
		return err
	}
	started, err := c.StartRun(ctx, *request, f.key)
	if err != nil {
		return err
	}
	if f.follow {
		return p.followRun(ctx, c, started.ID, 0, f.json)
	}
	if f.json {
		return p.writeJSON(started)
	}
	_, err = fmt.Fprintln(p.stdout, started.ID)
	return err
}

// request is what the command line asks for.
func (f *startFlags) request(p *program, args []string) (*wire.RunRequest, error) {
	request := &wire.RunRequest{Agent: args[0], Version: f.version, Project: f.project}
	input := map[string]any{}
	if strings.HasPrefix(args[0], "/") {
		arguments := map[string]string{}
		for _, arg := range args[1:] {
			name, value, ok := strings.Cut(arg, "=")
			if !ok {
				return nil, usageError("%q is no argument of a command: write NAME=VALUE", arg)
			}
			arguments[name] = value
		}
		input["arguments"] = arguments
	} else {
		if len(args) != 2 {
			return nil, usageError("expected the name of an agent and a task (quote a text that holds spaces)")
		}
		task, err := p.readTask(args[1])
		if err != nil {
			return nil, err
		}
		input["task"] = task
	}
	if f.notBefore != "" {
		at, err := time.Parse(time.RFC3339, f.notBefore)
		if err != nil {
			return nil, usageError("--not-before %q is no time such as 2026-01-31T08:00:00Z", f.notBefore)
		}
		request.NotBefore = at
	}
	if err := f.addTo(input); err != nil {
		return nil, err
	}
	var err error
	request.Input, err = json.Marshal(input)
	return request, err
}

func (p *program) readTask(task string) (string, error) {
	if task != "-" {
		return task, nil
	}
	data, err := io.ReadAll(io.LimitReader(p.stdin, maxTaskBytes+1))
	if err != nil || len(data) > maxTaskBytes {
		return "", usageError("the task on standard input could not be read or is larger than %d bytes", maxTaskBytes)
	}
	return string(data), nil
}

// addTo adds what the flags say to the input of a run.
func (f *startFlags) addTo(input map[string]any) error {
	model := job.ModelRef{Thinking: llm.Level(f.thinking)}
	if f.model != "" {
		var ok bool
		if model.Provider, model.ID, ok = strings.Cut(f.model, "/"); !ok || model.ID == "" {
			return usageError("--model %q is not of the form PROVIDER/ID", f.model)
		}
	}
	if model != (job.ModelRef{}) {
		input["model"] = model
	}
	limits := compile.RequestLimits{TimeoutSec: f.timeout.Seconds()}
	if f.maxTurns != 0 {
		limits.MaxTurns = &f.maxTurns
	}
	if f.maxCost != "" {
		amount, err := llm.ParseUSD(f.maxCost)
		if err != nil {
			return usageError("--max-cost: %v", err)
		}
		cost := llm.USD(amount)
		limits.MaxCostUSD = &cost
	}
	if limits != (compile.RequestLimits{}) {
		input["limits"] = limits
	}
	var inputs []compile.Input
	for _, text := range f.inputs {
		in := compile.Input{Run: text}
		if name, rest, ok := strings.Cut(text, "="); ok {
			in.Name, in.Run = name, rest
		}
		if id, file, ok := strings.Cut(in.Run, ":"); ok {
			in.Run, in.Files = id, []string{file}
		}
		inputs = append(inputs, in)
	}
	if inputs != nil {
		input["inputs"] = inputs
	}
	return nil
}

// followRun shows the events of a run after one of them until the run ends, and ends with the exit code of its outcome.
func (p *program) followRun(ctx context.Context, c *client.Client, id string, after int64, asJSON bool) error {
	show := p.newShow(&runFlags{json: asJSON})
	if !asJSON {
		fmt.Fprintln(p.stderr, id)
	}
	for e, err := range c.Events(ctx, id, after) {
		if err == nil {
			err = show.line(e.Line)
		}
		if err != nil {
			show.stop()
			return err
		}
	}
	show.stop()
	ended, err := c.Run(ctx, id)
	if err != nil {
		return err
	}
	if !asJSON {
		if err := p.tellEnd(ended); err != nil {
			return err
		}
	}
	return exitWith(exitCodeOf(ended))
}

// line shows an event as it is stored.
func (s *show) line(line []byte) error {
	e, err := job.ParseEvent(line)
	if err != nil {
		return err
	}
	return s.event(e)
}

// tellEnd writes the answer of a run that completed to standard output, and to standard error how another one ended.
func (p *program) tellEnd(r run.Run) error {
	var completed job.CompletedData
	switch r.State {
	case run.Completed:
		if err := json.Unmarshal(r.Outcome, &completed); err != nil {
			return fmt.Errorf("read the outcome of the run: %w", err)
		}
		return p.answer(completed.Answer)
	case run.Failed, run.Cancelled:
		_, err := fmt.Fprintf(p.stderr, "%s: %s\n", r.State, visible(first(r.Message, string(r.Reason))))
		return err
	}
	return nil
}

// exitCodeOf is the exit code that stands for the state of a run.
func exitCodeOf(r run.Run) int {
	switch r.State {
	case run.Completed:
		return 0
	case run.Suspended:
		return job.ExitSuspended
	case run.Failed, run.Cancelled:
		return job.Outcome{Failed: &job.FailedData{Reason: r.Reason, Code: r.Code}}.ExitCode()
	}
	return 0
}
