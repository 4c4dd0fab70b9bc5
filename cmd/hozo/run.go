package main

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/journal"
	"github.com/hozo-run/hozo/problem"
)

func (p *program) runCommand() *cobra.Command {
	f := &runFlags{}
	command := &cobra.Command{
		Use:   "run AGENT.md TASK",
		Short: "Run an agent over a directory",
		Long: `Run one task with the agent of a Markdown file (and of the skills beside it). The agent reads what --workspace and
--read-only name and writes to --out; it reaches nothing else. The job runs in a process of its own.

The answer goes to standard output, progress and a summary go to standard error; with --json standard output carries the
events as JSON Lines instead. A TASK of "-" is read from standard input.

The model is PROVIDER/ID. Keys come from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, … after the provider's
name), from the variable or file you name, or from a file of accounts; never from a flag, which everyone on the machine
could read. Models of --script and of the provider "offline" are scripts and no language models.

What the agent's file says of the job holds: how it works, its subagents, the form of its answer, its limits. A flag goes
before a limit or an approval of the file; "hozo agent check" shows them.

Ctrl-C aborts the job and shows what it did until then; a second Ctrl-C kills it. With --journal every step is recorded
in a private file, and a job whose process or machine dies goes on with "hozo resume": there Ctrl-C suspends the job, a
second one aborts it and a third kills it. A call that needs a decision (--approval) suspends a job, too.`,
		Example: `  hozo run examples/agents/surveyor.md "Survey this directory." \
      --model offline/surveyor --workspace . --out ../survey

  hozo run reader.md "Where are timeouts handled?" --model anthropic/claude-sonnet-4-5 \
      --workspace src --out answer --max-cost 0.50 --events answer.jsonl

  # A long job that survives its process: go on with "hozo resume survey.journal".
  hozo run reader.md "Survey the design." --model openai/gpt-5-mini --workspace docs --out answer --journal survey.journal

  # Any server with an OpenAI-compatible API.
  hozo run reader.md "Summarise the design." --model local/qwen3 --base-url http://127.0.0.1:8080/v1 \
      --workspace docs --out answer`,
		Args: exactly("the agent's file", "the task"),
		RunE: p.runs(func(command *cobra.Command, args []string) error {
			return p.run(f, args[0], args[1], command.Flags().Changed)
		}),
	}
	f.register(command)
	command.AddCommand(p.runsOnServer()...)
	return command
}

func (f *runFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.workspace, "workspace", "", "`DIR` that the agent may read; paths start here")
	flags.StringVar(&f.out, "out", "", "`DIR` that it may write to, outside of what it reads; made if missing")
	flags.StringArrayVar(&f.readOnly, "read-only", nil, "further `PATH` that it may read (repeatable); a file WORKSPACE.md is its guide")
	flags.StringArrayVar(&f.context, "context", nil, "`LABEL=FILE` to show the model before the task, as data (repeatable)")
	flags.StringVar(&f.mcp, "mcp-config", "", "JSON `FILE` of MCP servers, as the field mcp of a job document")
	flags.StringArrayVar(&f.approvals, "approval", nil, "`TOOL=RULE` for calls that wait for a decision: never, first-use or always (repeatable)")
	flags.StringVar(&f.account.model, "model", "", "the model as `PROVIDER/ID`, for example offline/surveyor")
	flags.StringVar(&f.account.configFile, "provider-config", "", "JSON `FILE` of accounts by provider, as in a job document")
	flags.StringVar(&f.account.api, "api", "", "`API` of the provider, such as "+job.APIOpenAIChat+" or "+job.APIOpenAIResponses+"; the provider's own if absent")
	flags.StringVar(&f.account.baseURL, "base-url", "", "address of the API, as `URL` without the method's path")
	flags.StringVar(&f.account.keyEnv, "api-key-env", "", "environment variable `NAME` that holds the key")
	flags.StringVar(&f.account.keyFile, "api-key-file", "", "`FILE` that holds the key")
	flags.StringVar(&f.account.scriptFile, "script", "", "play the script in `FILE` (YAML or JSON) instead of a model")
	flags.StringVar(&f.thinking, "thinking", "", "thinking `LEVEL`: off, minimal, low, medium, high, xhigh or max")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "end the job after this time")
	flags.DurationVar(&f.idleTimeout, "idle-timeout", job.DefaultIdleTimeoutSec*time.Second, "end a request whose model is silent for so long; 0 is never")
	flags.Int64Var(&f.maxTurns, "max-turns", 0, "end the job after `N` responses of the model (default the agent's own limit)")
	flags.StringVar(&f.maxCost, "max-cost", "", "end the job before it costs more than so many `USD`; none lifts the agent's own limit (default that one)")
	flags.StringVar(&f.journal, "journal", "", "record the job in `FILE`, so that it can be resumed, replayed and forked")
	flags.StringVar(&f.events, "events", "", "also write the events to `FILE` as JSON Lines")
	flags.BoolVar(&f.json, "json", false, "write the events to standard output as JSON Lines instead of the answer")
	f.operator.register(flags)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no summary")
}

// run composes the job, runs it in a child process and shows it.
func (p *program) run(f *runFlags, agentFile, task string, changed func(string) bool) error {
	if err := f.operator.check(); err != nil {
		return err
	}
	spec, err := p.compose(f, agentFile, task, changed)
	if err != nil {
		return p.refused(f, err)
	}
	log, err := openEventLog(f.events)
	if err != nil {
		return err
	}
	undo, err := f.makeOut()
	if err != nil {
		return errors.Join(err, log.close())
	}
	a := &attempt{spec: spec, out: f.out, log: log}
	code := notStarted
	if err = f.keepJournal(a); err == nil {
		code, err = p.runAttempt(f, a)
	}
	if code < 0 {
		a.discardJournal()
		undo()
	}
	if err = errors.Join(err, log.close()); err != nil {
		return err
	}
	return exitWith(code)
}

// keepJournal gives the job the journal of --journal, if there is one.
func (f *runFlags) keepJournal(a *attempt) error {
	if f.journal == "" {
		return nil
	}
	a.spec.ID = newJobID()
	return a.createJournal(f.journal, journal.Options{})
}

// refused says why the job is not run, in the words of the command line; with --json the problems go to standard output
// as hozo job writes them.
func (p *program) refused(f *runFlags, err error) error {
	if problem.KindOf(err) != problem.Invalid {
		return err
	}
	if f.json {
		if failed := jobproc.WriteRefusal(p.stdout, err); failed != nil {
			return &exitError{code: 1, err: failed}
		}
		return exitWith(job.ExitInvalidSpec)
	}
	var named problem.List
	list := problem.Of(err)
	if f.agent != nil {
		list = f.agent.Locate(list)
	}
	for _, found := range list {
		if flag := flagOf(found.Pointer); flag != "" && found.Path == "" {
			found.Pointer, found.Message = "", flag+": "+found.Message
		}
		if found.Code == "price-unknown" {
			found.Hint = "leave it out, or give the price of the model in a file for --provider-config"
			if found.Path != "" {
				found.Hint = "write --max-cost none, or give the price of the model in a file for --provider-config"
			}
		}
		if found.Code == "unknown-server" && f.mcp == "" {
			found.Hint = "describe it in a file for --mcp-config"
		}
		named = append(named, found)
	}
	return named.Err("the job is refused")
}

// flagOf returns the flag or argument from which a part of the job was made, "" if there is none.
func flagOf(pointer string) string {
	for _, entry := range [][2]string{
		{"/task", "TASK"}, {"/workspace/readOnly/0", "--workspace"}, {"/workspace/root", "--workspace"},
		{"/workspace/readOnly", "--read-only"}, {"/workspace/outDir", "--out"}, {"/model/thinking", "--thinking"},
		{"/model", "--model"}, {"/limits/timeoutSec", "--timeout"}, {"/limits/idleTimeoutSec", "--idle-timeout"},
		{"/limits/maxTurns", "--max-turns"}, {"/limits/maxCostUsd", "--max-cost"}, {"/context", "--context"},
		{"/mcp", "--mcp-config"}, {"/approvals", "--approval"},
	} {
		if pointer == entry[0] || strings.HasPrefix(pointer, entry[0]+"/") {
			return entry[1]
		}
	}
	if strings.HasPrefix(pointer, "/providers/") {
		switch pointer[strings.LastIndexByte(pointer, '/'):] {
		case "/api":
			return "--api"
		case "/baseUrl":
			return "--base-url"
		case "/apiKey":
			return "the API key"
		}
	}
	return ""
}

// answer writes the answer to standard output: as it is for a program that reads it, safe to look at for a person.
func (p *program) answer(text string) error {
	if _, isTerminal := terminalWidth(p.stdout); isTerminal {
		text = visible(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(p.stdout, text)
	return err
}
