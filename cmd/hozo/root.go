package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/problem"
)

// newRoot builds the command tree. Building is cheap: a command does its work, and makes what it needs for it, when it is
// run.
func (p *program) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "hozo",
		Short: "Run AI agents from one document, confined and observed",
		Long: `Hozo runs AI agents. A job is one self-contained document: the agent, the task, the model with its account, the
directories and the limits. The agent reads what the job names, writes to one directory, and every step is an event.

Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 the job or the agent is refused, 7 stopped by a limit,
8 suspended, 130 aborted.`,
		Example: `  # No key needed: the built-in offline model (a script, no language model) surveys a directory.
  hozo run examples/agents/surveyor.md "Survey this directory." --model offline/surveyor --workspace . --out ../survey

  # A real model; the key comes from OPENAI_API_KEY.
  hozo run reader.md "What does this program do?" --model openai/gpt-5-mini --workspace src --out answer

  # From any program: one JSON document in, JSON Lines events out.
  hozo job < job.json`,
		Args:                       cobra.ArbitraryArgs,
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		RunE:                       p.group,
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(p.jobCommand(), p.runCommand(), p.resumeCommand(), p.replayCommand(), p.forkCommand(), p.journalCommand(), p.agentCommand(), p.modelsCommand(), p.toolsCommand(), p.schemaCommand(), p.doctorCommand(), p.versionCommand(),
		p.upCommand(), p.serveCommand(), p.workerCommand(), p.configCommand(), p.backupCommand(), p.providerCommand(), p.mcpCommand(),
		p.completionCommand(), p.docsCommand())
	root.InitDefaultHelpCmd()
	return root
}

// group runs a command that only holds others: it shows its help, or says which of them was probably meant.
func (p *program) group(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return command.Help()
	}
	var names []string
	for _, c := range command.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	if best := problem.Closest(args[0], names); best != "" {
		return fmt.Errorf("unknown command %q; did you mean %q?", args[0], best)
	}
	return fmt.Errorf("unknown command %q; there are: %s", args[0], strings.Join(names, ", "))
}

// exactly is like cobra.ExactArgs, but says what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("missing %s", strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return fmt.Errorf("unexpected argument %q (quote a text that holds spaces)", args[len(names)])
		}
		return nil
	}
}

var errNoArguments = errors.New("this command takes no arguments")

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: %w", args[0], errNoArguments)
	}
	return nil
}
