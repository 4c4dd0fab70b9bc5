package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/journal"
)

func (p *program) resumeCommand() *cobra.Command {
	f, d := &runFlags{}, &decisionFlags{}
	command := &cobra.Command{
		Use:   "resume JOURNAL",
		Short: "Go on with a job from its journal",
		Long: `Go on with a job that "hozo run --journal" recorded: one that was suspended, or whose process or machine died. What was
recorded is not done again: answers of the model and results of calls come from the journal. A call that was running when
the process died and that may have had an effect is not repeated; the model is told that it was interrupted.

The journal holds no credentials: keys come from where hozo run takes them, headers of accounts and of MCP servers from
--provider-config and --mcp-config. If the output directory is missing or empty it is made again as the last checkpoint
has it; --workspace and --out say where the directories are now.

A job that waits for decisions shows the calls with their whole arguments. Decide with the flags; on a terminal, what they
leave open is asked for. A decision holds for exactly the call that was shown, once. Calls without a decision go on waiting.

Exit codes are those of hozo run; 8 says that the job is suspended.`,
		Example: `  hozo resume survey.journal
  hozo resume survey.journal --approve w3f0c9d21a4b7e655
  hozo resume survey.journal --reject 4.0="not on a Friday" --all approve`,
		Args: exactly("the journal"),
		RunE: p.runs(func(_ *cobra.Command, args []string) error { return p.resume(f, d, args[0]) }),
	}
	flags := command.Flags()
	flags.SortFlags = false
	d.register(flags)
	flags.StringVar(&f.workspace, "workspace", "", "`DIR` where the workspace is now, if not where it was")
	flags.StringVar(&f.out, "out", "", "`DIR` of the same name where the output directory is now, or is to be made again")
	f.registerKeys(flags)
	f.registerReport(flags)
	return command
}

// registerKeys registers the flags that say where credentials come from.
func (f *runFlags) registerKeys(flags *pflag.FlagSet) {
	flags.StringVar(&f.mcp, "mcp-config", "", "JSON `FILE` of MCP servers, as the field mcp of a job document")
	flags.StringVar(&f.account.configFile, "provider-config", "", "JSON `FILE` of accounts by provider, as in a job document")
	flags.StringVar(&f.account.keyEnv, "api-key-env", "", "environment variable `NAME` that holds the key")
	flags.StringVar(&f.account.keyFile, "api-key-file", "", "`FILE` that holds the key")
}

// registerReport registers the flags that say where events go, and the operator's.
func (f *runFlags) registerReport(flags *pflag.FlagSet) {
	flags.StringVar(&f.events, "events", "", "also write the events to `FILE` as JSON Lines; those of an earlier attempt are kept")
	flags.BoolVar(&f.json, "json", false, "write the events to standard output as JSON Lines instead of the answer")
	f.operator.register(flags)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no summary")
}

// resume goes on with the job of a journal.
func (p *program) resume(f *runFlags, d *decisionFlags, path string) error {
	if err := f.operator.check(); err != nil {
		return err
	}
	summary, spec, err := p.readJournal(path)
	if err != nil {
		return err
	}
	if summary.Outcome != nil {
		return usageError("%s: the job has already ended as %s", path, summary.Ending())
	}
	if err := f.moveWorkspace(&spec.Workspace, journal.LastOutDir(path)); err != nil {
		return err
	}
	if err := p.addCredentials(f, spec); err != nil {
		return p.refused(f, err)
	}
	decisions, err := p.decisions(f, d, path, summary)
	if err != nil {
		return err
	}
	a := &attempt{spec: spec, out: spec.Workspace.OutDir, path: path, model: summary.Model}
	if a.journal, err = journal.Open(path, journal.Options{OutDir: a.out, Stored: a.followed.wait}); err != nil {
		return journalError(err)
	}
	code, err := p.resumeAttempt(f, a, decisions)
	if err = errors.Join(err, a.closeJournal(), a.log.close()); err != nil {
		return err
	}
	return exitWith(code)
}

// moveWorkspace gives a recorded job the directories of --workspace and --out. What the agent sees of them must not change,
// so the output directory keeps its name; what was below the workspace is still there. lastOut is the output directory of
// the last attempt, which may go on with what it left there.
func (f *runFlags) moveWorkspace(w *job.Workspace, lastOut string) error {
	if f.workspace != "" {
		root, err := filepath.Abs(f.workspace)
		if err != nil {
			return err
		}
		before := w.Root
		for i, path := range w.ReadOnly {
			if below, err := filepath.Rel(before, path); err == nil && filepath.IsLocal(below) {
				w.ReadOnly[i] = filepath.Join(root, below)
			}
		}
		w.Root = root
	}
	if f.out == "" {
		return nil
	}
	out, err := filepath.Abs(f.out)
	if err != nil {
		return err
	}
	if filepath.Base(out) != filepath.Base(w.OutDir) {
		return usageError("--out %s: the agent knows its output directory as %q; choose a directory of that name", f.out, filepath.Base(w.OutDir))
	}
	entries, err := os.ReadDir(out)
	if err == nil && len(entries) > 0 && out != w.OutDir && out != lastOut {
		return usageError("--out %s is not empty; the recorded files need a directory of their own", f.out)
	}
	moveOut(w, out)
	return nil
}

// resumeAttempt runs the next attempt of a journal that is open.
func (p *program) resumeAttempt(f *runFlags, a *attempt, decisions []job.Decision) (int, error) {
	found := a.journal.Summary()
	if err := restoreMissing(a.path, a.out); err != nil {
		return notStarted, err
	}
	if err := checkJournalPlace(a.path, a.spec.Workspace); err != nil {
		return notStarted, err
	}
	var last int64
	var err error
	if a.log, last, err = reopenEventLog(f.events, found.JobID); err != nil {
		return notStarted, err
	}
	a.spec.Resume = &job.Resume{Attempt: a.journal.Attempt(), NextSeq: nextSeq(found, last), Decisions: decisions}
	a.followed.reach(a.spec.Resume.NextSeq - 1)
	return p.runAttempt(f, a)
}

// nextSeq is the number of the first event of the next attempt: the one after all that are known to have been reported. The
// last event of a suspended attempt stands behind its last frame.
func nextSeq(found *journal.Summary, lastEvent int64) int64 {
	last := found.Last.Seq
	if found.Suspended != nil && lastEvent == 0 {
		last++
	}
	return max(last, lastEvent) + 1
}

// readJournal reads what a journal says of its job.
func (p *program) readJournal(path string) (*journal.Summary, *job.Spec, error) {
	summary, err := journal.Summarize(journal.Read(path))
	if err != nil {
		return nil, nil, journalError(err)
	}
	if summary.Frames == 0 {
		return nil, nil, usageError("%s: the journal is empty: no job was recorded in it", path)
	}
	spec := new(job.Spec)
	if err := json.Unmarshal(summary.Spec, spec); err != nil {
		return nil, nil, fmt.Errorf("%s: read the recorded job: %w", path, err)
	}
	return summary, spec, nil
}

// addCredentials gives a recorded spec what is not recorded: keys and the values of headers.
func (p *program) addCredentials(f *runFlags, spec *job.Spec) error {
	for _, id := range slices.Sorted(maps.Keys(spec.Providers)) {
		recorded := spec.Providers[id]
		config, named, err := f.account.configured(id)
		if err != nil {
			return err
		}
		if !named {
			config = recorded
			if len(recorded.Headers)+len(recorded.TagHeaders) > 0 {
				return usageError("the account %s has headers (%v), whose values are not recorded; describe it again with --provider-config",
					id, slices.Sorted(maps.Keys(recorded.Headers)))
			}
		}
		account := f.account
		if id != spec.Model.Provider { // a key that is named belongs to the provider of the job's model
			account.keyEnv, account.keyFile = "", ""
		}
		if err := account.addKey(id, &config, p.getenv); err != nil {
			return err
		}
		spec.Providers[id] = config
	}
	return p.addServers(f, spec)
}

// addServers gives the MCP servers of a recorded spec the values of their headers.
func (p *program) addServers(f *runFlags, spec *job.Spec) error {
	mcp, err := readMCP(f.mcp)
	if err != nil {
		return err
	}
	if mcp != nil {
		spec.MCP = mcp
	} else if spec.MCP != nil && slices.ContainsFunc(spec.MCP.Servers, func(s job.MCPServer) bool { return len(s.Headers) > 0 }) {
		return usageError("the MCP servers of the job have headers, whose values are not recorded; describe them again with --mcp-config")
	}
	return nil
}

// decisions returns what is decided about the calls that the job waits for: by flags, and on a terminal by a person. If
// the job waits and nothing is decided, the waits are shown and the job is not started.
func (p *program) decisions(f *runFlags, d *decisionFlags, path string, summary *journal.Summary) ([]job.Decision, error) {
	var waits []job.Wait
	if summary.Suspended != nil {
		waits = summary.Suspended.Waits
	}
	decided, err := d.decide(waits)
	if err != nil {
		return nil, err
	}
	if _, isTerminal := terminalWidth(p.stdin); isTerminal && !f.json && len(decided) < len(waits) {
		if decided, err = p.newAsker().ask(waits, decided); err != nil {
			return nil, err
		}
	}
	if len(waits) > 0 && len(decided) == 0 {
		fmt.Fprintln(p.stderr, suspension(len(waits)))
		printWaits(p.stderr, waits, path)
		return nil, exitWith(job.ExitSuspended)
	}
	return decided, nil
}

// restoreMissing makes an output directory that is missing or empty as the last checkpoint has it. One that holds files is
// left alone: a call that was interrupted may have left there what nobody recorded. It is made beside its place and then
// moved there, so that a process that dies meanwhile leaves no half of it to be taken for the whole.
func restoreMissing(path, out string) error {
	entries, err := os.ReadDir(out)
	switch {
	case err == nil && len(entries) > 0:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	tree, err := journal.TreeOf(journal.Read(path))
	if err != nil {
		return err
	}
	out = realPath(out)
	if len(tree) == 0 {
		return os.MkdirAll(out, 0o755)
	}
	beside := out + ".restoring"
	if err := tree.Restore(beside, journal.BlobsPath(path)); err != nil {
		return err
	}
	if before, err := os.Stat(out); err == nil { // a private directory stays one
		if err := os.Chmod(beside, before.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := os.Remove(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the output directory of the last checkpoint is at %s and cannot be moved to its place: %w", beside, err)
	}
	return os.Rename(beside, out)
}
