package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/internal/client"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
)

// runsOnServer are the commands below hozo run that speak to a server.
func (p *program) runsOnServer() []*cobra.Command {
	return []*cobra.Command{p.runStartCommand(), p.runListCommand(), p.runShowCommand(), p.runLogsCommand(), p.runCancelCommand(), p.runResumeCommand(), p.runExportCommand()}
}

func (p *program) runListCommand() *cobra.Command {
	r := &remote{}
	var filter client.RunFilter
	var states []string
	var limit int
	command := &cobra.Command{
		Use:     "list",
		Short:   "List the runs of a server, newest first",
		Long:    "List the runs of a server with their state, agent and age. Filters can be repeated.",
		Example: "  hozo run list --state running --state queued",
		Args:    noArguments,
	}
	r.register(command)
	command.Flags().StringVar(&filter.Project, "project", "", "only runs of this `PROJECT`")
	command.Flags().StringVar(&filter.Agent, "agent", "", "only runs of this `AGENT`")
	command.Flags().StringArrayVar(&states, "state", nil, "only runs in this `STATE` (repeatable)")
	command.Flags().IntVar(&limit, "limit", 50, "at most so many `RUNS`")
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, _ []string) error {
		for _, s := range states {
			if !slices.Contains(runStates(), run.State(s)) {
				return usageError("--state %q: use one of %v", s, runStates())
			}
			filter.States = append(filter.States, run.State(s))
		}
		page, err := c.Runs(ctx, filter, client.PageOptions{Limit: limit})
		if err != nil {
			return err
		}
		if r.json {
			return p.writeJSON(page.Items)
		}
		return p.printRuns(page.Items)
	})
	return command
}

func runStates() []run.State {
	return []run.State{run.Queued, run.Running, run.Suspended, run.Completed, run.Failed, run.Cancelled}
}

func (p *program) printRuns(runs []run.Run) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTATE\tAGENT\tPROJECT\tCREATED")
	for _, r := range runs {
		agent := r.Agent
		if r.Resolved != "" {
			agent += "@" + r.Resolved
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.State, visibleLine(agent), first(visibleLine(r.Project), "-"), r.CreatedAt.Local().Format(time.DateTime))
	}
	return w.Flush()
}

func (p *program) runShowCommand() *cobra.Command {
	r := &remote{}
	command := &cobra.Command{
		Use:     "show RUN",
		Short:   "Show one run of a server",
		Long:    "Show a run: its state, its attempts, what it waits for, what it used and how it ended.",
		Example: "  hozo run show run_0abc",
		Args:    exactly("the id of the run"),
	}
	r.register(command)
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		found, err := c.Run(ctx, args[0])
		if err != nil {
			return err
		}
		if r.json {
			return p.writeJSON(found)
		}
		attempts, err := c.Attempts(ctx, found.ID)
		if err != nil {
			return err
		}
		return p.printRun(found, attempts)
	})
	return command
}

func (p *program) printRun(r run.Run, attempts []run.Attempt) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, visibleLine(value))
		}
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Local().Format(time.DateTime)
	}
	row("run", r.ID)
	row("state", string(r.State))
	row("agent", strings.TrimSuffix(r.Agent+"@"+r.Resolved, "@"))
	row("definition", r.Definition)
	row("project", r.Project)
	row("started by", r.StartedBy)
	row("created", at(r.CreatedAt))
	row("started", at(r.StartedAt))
	row("ended", at(r.EndedAt))
	row("reason", string(r.Reason))
	row("message", r.Message)
	for _, a := range attempts {
		row(fmt.Sprintf("attempt %d", a.N), fmt.Sprintf("%s %s %s", at(a.StartedAt), first(a.Ending, "under way"), a.Message))
	}
	for _, wait := range r.Waits {
		row("waits for", fmt.Sprintf("%s: %s %s", wait.WaitID, wait.Tool, wait.Arguments))
	}
	return w.Flush()
}

func (p *program) runLogsCommand() *cobra.Command {
	r := &remote{}
	var follow bool
	var after int64
	command := &cobra.Command{
		Use:   "logs RUN",
		Short: "Show the events of a run of a server",
		Long: `Show what a run did so far. With --follow the rest comes as it happens, until the run ends; the exit code is then that of
its outcome. A connection that breaks is made again, and no event is missed or shown twice.`,
		Example: "  hozo run logs -f run_0abc --json | jq .type",
		Args:    exactly("the id of the run"),
	}
	r.register(command)
	command.Flags().BoolVarP(&follow, "follow", "f", false, "wait for what comes")
	command.Flags().Int64Var(&after, "after", 0, "only events after the one with this `NUMBER`")
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		found, err := c.Run(ctx, args[0])
		if err != nil {
			return err
		}
		if follow || found.State.Final() {
			return p.followRun(ctx, c, found.ID, after, r.json)
		}
		return p.showSoFar(ctx, c, found.ID, after, r.json)
	})
	return command
}

// showSoFar shows the events that a run has now.
func (p *program) showSoFar(ctx context.Context, c *client.Client, id string, after int64, asJSON bool) error {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	show := p.newShow(&runFlags{json: asJSON})
	defer show.stop()
	for e, err := range c.Events(limited, id, after) {
		if limited.Err() != nil && ctx.Err() == nil {
			return nil
		}
		if err == nil {
			err = show.line(e.Line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) runCancelCommand() *cobra.Command {
	r := &remote{}
	var cause string
	command := &cobra.Command{
		Use:     "cancel RUN",
		Short:   "End a run of a server",
		Long:    "End a run. One that has ended stays as it is.",
		Example: "  hozo run cancel run_0abc",
		Args:    exactly("the id of the run"),
	}
	r.register(command)
	command.Flags().StringVar(&cause, "cause", "", "`TEXT` for people")
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		ended, err := c.CancelRun(ctx, args[0], cause)
		if err != nil {
			return err
		}
		return p.tellRun(ended, r.json)
	})
	return command
}

// tellRun says how a run stands.
func (p *program) tellRun(r run.Run, asJSON bool) error {
	if asJSON {
		return p.writeJSON(r)
	}
	text := r.ID + " " + string(r.State)
	if r.CancelCause != "" && !r.State.Final() {
		text += ", is being cancelled"
	}
	_, err := fmt.Fprintln(p.stdout, text)
	return err
}

func (p *program) runResumeCommand() *cobra.Command {
	r := &remote{}
	d := &decisionFlags{}
	command := &cobra.Command{
		Use:   "resume RUN",
		Short: "Decide about the calls that a suspended run of a server waits for",
		Long: `Answer the calls for which a run is suspended; "hozo run show" lists them. When all of them are decided the run goes on,
wherever there is room. Runs whose server or worker died go on by themselves.`,
		Example: "  hozo run resume run_0abc --approve call_1\n  hozo run resume run_0abc --all reject",
		Args:    exactly("the id of the run"),
	}
	r.register(command)
	d.register(command.Flags())
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		found, err := c.Run(ctx, args[0])
		if err != nil {
			return err
		}
		if found.State != run.Suspended {
			return fmt.Errorf("the run is %s and waits for no decision", found.State)
		}
		decisions, err := d.decide(found.Waits)
		if err != nil {
			return err
		}
		if len(decisions) == 0 {
			return usageError("decide with --approve, --approve-edited, --reject, --withdraw or --all; the run waits for %s", waitNames(found.Waits))
		}
		decided, err := c.Decide(ctx, found.ID, decisions)
		if err != nil {
			return err
		}
		return p.tellRun(decided.Run, r.json)
	})
	return command
}

func waitNames(waits []job.Wait) string {
	names := make([]string, len(waits))
	for i, w := range waits {
		names[i] = w.WaitID
	}
	return strings.Join(names, ", ")
}

func (p *program) runExportCommand() *cobra.Command {
	r := &remote{}
	var out string
	command := &cobra.Command{
		Use:   "export RUN",
		Short: "Write the journal of a run",
		Long: `Write the frames of the journal of a run of a server as JSON Lines: everything that the job took from outside. It holds
content; keep it as private as the run. The content of output files is not in it.`,
		Example: "  hozo run export run_0abc --out run.jsonl",
		Args:    exactly("the id of the run"),
	}
	r.register(command)
	if err := command.Flags().MarkHidden("json"); err != nil {
		panic(err) // the flag was registered above
	}
	command.Flags().StringVar(&out, "out", "", "write to `FILE`, which must not exist (default standard output)")
	command.RunE = p.ask(r, func(ctx context.Context, c *client.Client, args []string) error {
		content, err := c.Journal(ctx, args[0])
		if err != nil {
			return err
		}
		defer content.Close()
		if out != "" {
			return writeNew(out, content)
		}
		_, err = io.Copy(p.stdout, content)
		return err
	})
	return command
}

// writeNew writes a private file that must not exist, whole or not at all.
func writeNew(name string, content io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(name)) // half of it is of no use
	}
	return err
}
