package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/journal"
	"github.com/hozo-run/hozo/llm"
)

// forkFlags are the flags of hozo fork: what the new job has in common with the recorded one, and what is different.
type forkFlags struct {
	runFlags
	turn         int64
	instructions string
	task         string
	results      []string
}

func (p *program) forkCommand() *cobra.Command {
	f := &forkFlags{}
	command := &cobra.Command{
		Use:   "fork JOURNAL --turn N --out DIR --journal FILE",
		Short: "Try another way from a turn of a recorded job",
		Long: `Start a new job that has everything up to turn N in common with a recorded one, and goes on from there: with another model,
other instructions, another task, or another answer of a call of turn N. The turns in common are taken from the journal;
no model is asked and no tool runs for them. --turn 0 has only the question in common.

The output directory is made anew, with exactly the files that the recorded job had after turn N; what the agent reads is
where it was. The new job has a journal of its own, which does not depend on the first.`,
		Example: `  hozo fork survey.journal --turn 12 --out other --journal other.journal --model anthropic/claude-sonnet-4-5
  hozo fork survey.journal --turn 3 --result 3.0=found.txt --out other --journal other.journal`,
		Args: exactly("the journal"),
		RunE: p.runs(func(command *cobra.Command, args []string) error {
			return p.fork(f, args[0], command.Flags().Changed)
		}),
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.Int64Var(&f.turn, "turn", 0, "the last turn `N` that the two jobs have in common (required)")
	flags.StringVar(&f.out, "out", "", "`DIR` that the new job may write to; made, or empty (required)")
	flags.StringVar(&f.journal, "journal", "", "`FILE` for the journal of the new job (required)")
	flags.StringVar(&f.instructions, "instructions", "", "`FILE` with other instructions for the agent")
	flags.StringVar(&f.task, "task", "", "another `TEXT` as task")
	flags.StringArrayVar(&f.results, "result", nil, "`CALL=FILE` with another answer of a call of turn N (repeatable)")
	flags.StringVar(&f.account.model, "model", "", "another model as `PROVIDER/ID`")
	flags.StringVar(&f.account.api, "api", "", "`API` of its provider")
	flags.StringVar(&f.account.baseURL, "base-url", "", "address of the API, as `URL` without the method's path")
	flags.StringVar(&f.account.scriptFile, "script", "", "play the script in `FILE` (YAML or JSON) instead of a model")
	flags.StringVar(&f.thinking, "thinking", "", "another thinking `LEVEL`")
	flags.DurationVar(&f.timeout, "timeout", 0, "another time limit; the turns in common count")
	flags.Int64Var(&f.maxTurns, "max-turns", 0, "another limit of `N` responses; the turns in common count")
	flags.StringVar(&f.maxCost, "max-cost", "", "another limit in `USD`; the turns in common count")
	f.registerKeys(flags)
	f.registerReport(flags)
	return command
}

func (p *program) fork(f *forkFlags, path string, changed func(string) bool) error {
	if err := f.check(changed); err != nil {
		return err
	}
	summary, spec, err := p.readJournal(path)
	if err != nil {
		return err
	}
	if f.turn > summary.Turns {
		return usageError("--turn %d: the last answered turn of %s is %d", f.turn, path, summary.Turns)
	}
	if f.turn == summary.Turns && summary.Answered && len(f.results) == 0 && f.turn > 0 {
		return usageError("--turn %d: this turn is the answer of the job; with turn %d in common it is asked for again", f.turn, f.turn-1)
	}
	shared, err := f.shared(path)
	if err != nil {
		return err
	}
	if err := p.forkSpec(f, spec, changed); err != nil {
		return p.refused(&f.runFlags, err)
	}
	log, err := openEventLog(f.events)
	if err != nil {
		return err
	}
	a := &attempt{spec: spec, out: f.out, log: log}
	code := notStarted
	if err = f.restore(path, spec.Workspace.OutDir, shared); err == nil {
		err = a.createJournal(f.journal, journal.Options{Blobs: journal.BlobsPath(path), Earlier: shared})
	}
	if err == nil {
		code, err = p.runAttempt(&f.runFlags, a)
	}
	if code < 0 {
		a.discardJournal()
		err = errors.Join(err, empty(f.out)) // as it was, so that the fork can be tried again
	}
	if err = errors.Join(err, log.close()); err != nil {
		return err
	}
	return exitWith(code)
}

// empty removes what a directory holds.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// check finds what is wrong with the command line alone.
func (f *forkFlags) check(changed func(string) bool) error {
	if err := f.operator.check(); err != nil {
		return err
	}
	var missing []string
	for _, name := range []string{"turn", "out", "journal"} {
		if !changed(name) {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return usageError("missing %s", strings.Join(missing, " and "))
	}
	if f.turn < 0 {
		return usageError("--turn %d: turns count from 1; 0 has only the question in common", f.turn)
	}
	entries, err := os.ReadDir(f.out)
	if err == nil && len(entries) > 0 {
		return usageError("--out %s is not empty; the files of turn %d need a directory of their own", f.out, f.turn)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return usageError("--out: %v", err)
	}
	return nil
}

// shared returns the frames that the two jobs have in common.
func (f *forkFlags) shared(path string) (iter.Seq2[[]byte, error], error) {
	fork := journal.Fork{Turn: f.turn, Results: map[string]string{}}
	for _, value := range f.results {
		id, file, ok := strings.Cut(value, "=")
		if !ok || id == "" || file == "" {
			return nil, usageError("--result %q is not of the form CALL=FILE", value)
		}
		text, err := readLimited(file, maxTaskBytes)
		if err != nil {
			return nil, usageError("--result %s: %v", id, err)
		}
		fork.Results[id] = string(text)
	}
	frames := fork.Frames(journal.Read(path))
	for _, err := range frames { // what is wrong with the fork is said before anything is made
		if err != nil {
			return nil, usageError("%v", err)
		}
	}
	return frames, nil
}

// forkSpec makes the spec of the new job of that of the recorded one.
func (p *program) forkSpec(f *forkFlags, spec *job.Spec, changed func(string) bool) error {
	spec.ID = newJobID()
	spec.Resume = &job.Resume{Attempt: 1, NextSeq: 1, Fork: true}
	if err := p.forkModel(f, spec); err != nil {
		return err
	}
	if changed("thinking") {
		spec.Model.Thinking = llm.Level(f.thinking)
	}
	if changed("task") {
		spec.Task = f.task
	}
	if f.instructions != "" {
		text, err := readLimited(f.instructions, maxTaskBytes)
		if err != nil {
			return usageError("--instructions: %v", err)
		}
		spec.Agent.Instructions = string(text)
	}
	if changed("timeout") {
		spec.Limits.TimeoutSec = f.timeout.Seconds()
	}
	out, err := filepath.Abs(f.out)
	if err != nil {
		return err
	}
	moveOut(&spec.Workspace, out)
	return f.setLimits(&spec.Limits, changed)
}

// forkModel gives the new job its model: the recorded one with its credentials, or another.
func (p *program) forkModel(f *forkFlags, spec *job.Spec) error {
	if f.account.model == "" && f.account.scriptFile == "" {
		if f.account.api != "" || f.account.baseURL != "" {
			return usageError("--api and --base-url belong to another model; name it with --model")
		}
		return p.addCredentials(&f.runFlags, spec)
	}
	model, account, err := f.account.resolve(p.getenv)
	if err != nil {
		return err
	}
	model.Thinking = spec.Model.Thinking
	spec.Model, spec.Providers = model, map[string]job.ProviderConfig{model.Provider: account}
	if err := p.addWriters(&f.account, spec); err != nil {
		return err
	}
	return p.addServers(&f.runFlags, spec)
}

// moveOut makes another directory the output directory, also where the agent reads its own output.
func moveOut(w *job.Workspace, out string) {
	w.ReadOnly = slices.Clone(w.ReadOnly)
	for i, path := range w.ReadOnly {
		if path == w.OutDir {
			w.ReadOnly[i] = out
		}
	}
	w.OutDir = out
}

// restore makes the output directory of the new job as that of the recorded one was.
func (f *forkFlags) restore(path, out string, shared iter.Seq2[[]byte, error]) error {
	tree, err := journal.TreeOf(shared)
	if err != nil {
		return err
	}
	if err := tree.Restore(out, journal.BlobsPath(path)); err != nil {
		return fmt.Errorf("fork: %w", err)
	}
	return nil
}
