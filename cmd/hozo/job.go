package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/kernel"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/sandbox"
)

func (p *program) jobCommand() *cobra.Command {
	var specFile, parent string
	var supervised bool
	var hostFD, journalFD int
	o := &operator{}
	command := &cobra.Command{
		Use:   "job",
		Short: "Run one job from a JSON document, events as JSON Lines",
		Long: `Run the job that one JSON document on standard input describes, read to its end, and write its events to standard
output as JSON Lines. The first event is job.started, the last one job.completed or job.failed. Logs go to standard error
without the credentials of the document.

A document that is refused gives one line {"problems":[…]} with every problem, no event, and exit code 3. "hozo schema
job" prints the JSON Schema of the document and "hozo schema event" that of the events.

An interrupt (Ctrl-C) or SIGTERM aborts the job, a second one ends the process at once. A reader that closes the output
aborts the job too.`,
		Example: `  hozo job < job.json
  hozo job --spec job.json | jq -r 'select(.type == "message.delta").data.text'`,
		Args: noArguments,
		RunE: p.runs(func(*cobra.Command, []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if supervised {
				return p.supervisedJob(o, parent, hostFD, journalFD)
			}
			return p.plainJob(o, specFile, parent)
		}),
	}
	command.Flags().StringVar(&specFile, "spec", "", "read the document from `FILE` instead of standard input")
	o.register(command.Flags())
	command.Flags().StringVar(&parent, "traceparent", "", "put the spans of the job below this W3C `TRACEPARENT` (default the variable TRACEPARENT)")
	command.Flags().BoolVar(&supervised, "supervised", false, "speak the protocol of a job process on standard input")
	command.Flags().IntVar(&hostFD, "host-fd", 0, "the `DESCRIPTOR` of the host that is lent to a job process")
	command.Flags().IntVar(&journalFD, "journal-fd", 0, "the `DESCRIPTOR` of the journal that is lent to a job process")
	for _, internal := range []string{"supervised", "host-fd", "journal-fd"} {
		command.Flags().Lookup(internal).Hidden = true
	}
	return command
}

// supervisedJob is the job process of hozo run and of everything else that starts jobs through package jobproc.
func (p *program) supervisedJob(o *operator, parent string, hostFD, journalFD int) error {
	child := jobproc.Child{In: p.stdin, Out: p.stdout}
	if hostFD != 0 {
		host, err := jobproc.OpenHost(hostFD)
		if err != nil {
			return err
		}
		child.Host = host
	}
	if journalFD != 0 {
		journal, err := jobproc.OpenJournal(journalFD)
		if err != nil {
			return err
		}
		child.Journal = journal
	}
	if err := o.harden(); err != nil {
		return err
	}
	rt, err := newKernel(o)
	if err != nil {
		return err
	}
	ctx, stop := abortOnSignals(func() { os.Exit(130) })
	defer stop()
	child.Runtime = rt
	return exitWith(child.Serve(job.WithTrace(ctx, parent)))
}

// harden protects this process before it knows a credential.
func (o *operator) harden() error {
	if o.sandbox == sandboxNone {
		return nil
	}
	return sandbox.Harden()
}

func (p *program) plainJob(o *operator, specFile, parent string) error {
	if err := o.harden(); err != nil {
		return err
	}
	data, err := p.readSpec(specFile)
	if err != nil {
		return err
	}
	rt, err := newKernel(o)
	if err != nil {
		return err
	}
	ctx, stop := abortOnSignals(func() { os.Exit(130) })
	defer stop()
	spec, err := job.Parse(data)
	if err == nil {
		p.logFor(spec)
	}
	seen, usage := p.observe(parent)
	if usage != nil {
		return usage
	}
	defer seen.close()
	handle, err := startDocument(seen.context(ctx), rt, data, spec, err)
	if err != nil {
		if failed := jobproc.WriteRefusal(p.stdout, err); failed != nil {
			return &exitError{code: 1, err: failed}
		}
		return exitWith(job.ExitInvalidSpec)
	}
	outcome, err := jobproc.WriteEvents(p.stdout, seen.watch(handle, spec))
	if err != nil {
		return &exitError{code: 1, err: err}
	}
	return exitWith(outcome.ExitCode())
}

// startDocument starts the job of a document that was parsed. A refusal lists what the document breaks in form and in
// meaning together, each with its place in the text: that takes a second look, which only a refused document pays for.
func startDocument(ctx context.Context, rt *kernel.Runtime, data []byte, spec *job.Spec, err error) (job.Handle, error) {
	if err == nil {
		var handle job.Handle
		if handle, err = rt.Start(ctx, spec, job.Ports{}); err == nil {
			return handle, nil
		}
	}
	if problem.KindOf(err) == problem.Invalid {
		if _, all := job.ParseWith(data, rt.Check); all != nil {
			return nil, all
		}
	}
	return nil, err
}

// readSpec reads a document, from standard input if file is empty. One byte more than the limit is enough to refuse it.
func (p *program) readSpec(file string) ([]byte, error) {
	from := p.stdin
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return nil, &exitError{code: job.ExitUsage, err: err}
		}
		defer f.Close()
		from = f
	} else if _, isTerminal := terminalWidth(p.stdin); isTerminal {
		fmt.Fprintln(p.stderr, "reading a job document from the terminal; end it with Ctrl-D")
	}
	data, err := io.ReadAll(io.LimitReader(from, job.MaxSpecBytes+1))
	if err != nil {
		return nil, &exitError{code: job.ExitUsage, err: fmt.Errorf("read the job document: %w", err)}
	}
	return data, nil
}

// exitWith ends the program with a code and no further words.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

// abortOnSignals returns a context that ends at the first signal to stop; the second one calls again.
func abortOnSignals(again func()) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := onSignals(func(s os.Signal) { cancel(causeOfSignal(s)) }, func(os.Signal) { again() })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
