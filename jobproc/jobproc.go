// Package jobproc runs each job in a child process of its own: it is the job.Runtime of everything that must not share
// its memory, its credentials or its end with a job. The child is this program again, started as "job --supervised" with
// an environment that holds nothing but a private TMPDIR and, if it is confined, the place of its control group. The spec
// travels on the child's standard input and nowhere else, events come back on its standard output, and its standard error
// is a redacted log. A host that is lent to the job
// is one more descriptor, whose number is the argument of "--host-fd"; the child opens it with OpenHost before anything
// else, so that no process of the job inherits it. A journal is another one, with "--journal-fd" and OpenJournal.
//
// The protocol is JSON Lines both ways. The parent sends {"type":"spec","spec":{…}} first and {"type":"abort","cause":…}
// when the job must end; the end of the input means that the parent is gone. The child answers with the events of the
// job, or with the one line {"problems":[…]} if it refuses the spec. Child is the other side of the same protocol, so
// that both are read and tested together.
//
// A child with a journal writes its frames to their descriptor. The parent answers {"type":"ack","n":…} when the frames up
// to n are stored and the events before them were taken, with an "error" when no more can be. If the job is resumed,
// {"type":"frame","frame":{…}} for each frame of the earlier attempts and {"type":"end"} follow the spec. {"type":"detach"}
// ends the attempt and not the job.
//
// Whatever happens to the child, a job that was started ends in exactly one terminal event: if the child cannot write it
// (it was killed, it broke the protocol, it did not answer an abort), this package does. A job with a journal is different
// if nobody ended it: its events just end, and its outcome says that the process was lost. And whatever happens to the
// parent, the child ends: the kernel kills it where the system has a parent-death signal, the end of its input does
// elsewhere.
package jobproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
	"github.com/hozo-run/hozo/sandbox"
)

// The times of a Config that names none.
const (
	DefaultGrace        = 5 * time.Second
	DefaultStartTimeout = 30 * time.Second
)

// Config configures a Runtime. The zero value is ready to use.
type Config struct {
	// Executable is the program to start, as an absolute path; empty means the running one. It is called with the
	// arguments "job --supervised", "--traceparent=…" if the context has a trace (job.WithTrace), "--host-fd N" if the
	// job is lent a host and "--journal-fd N" if it is lent a journal, and must answer as Child does.
	Executable string
	// Arguments follow "job --supervised": the operator's settings for every job. Everyone on the machine can read them.
	Arguments []string
	// Confine confines each child to the directories of its job, its program and the network, as far as the machine can
	// (sandbox.JobPolicy). The child should call sandbox.Harden first of all.
	Confine bool
	// Logs gets what the children write to standard error: whole lines, cut to a length, without the credentials of the
	// job's spec, at most one mebibyte a job. It must be safe for concurrent use. Nil drops them.
	Logs io.Writer
	// Grace is how long a child may take to end after an abort, after its terminal event and after its time limit
	// before it is killed; zero means DefaultGrace.
	Grace time.Duration
	// StartTimeout is how long a child may take to answer a spec, with its first event or a refusal; zero means
	// DefaultStartTimeout. The time limit of the job begins after that.
	StartTimeout time.Duration
}

// Runtime starts jobs as child processes. It implements job.Runtime and is safe for concurrent use.
type Runtime struct {
	executable string
	arguments  []string
	confine    bool
	logs       io.Writer
	grace      time.Duration
	patience   time.Duration // StartTimeout
}

// New returns a Runtime. It fails only if the running program cannot be found.
func New(c Config) (*Runtime, error) {
	r := &Runtime{executable: c.Executable, arguments: c.Arguments, confine: c.Confine, logs: c.Logs, grace: c.Grace, patience: c.StartTimeout}
	if r.executable == "" {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the running program: %w", err)
		}
		r.executable = path
	}
	if r.logs == nil {
		r.logs = io.Discard
	}
	if r.grace == 0 {
		r.grace = DefaultGrace
	}
	if r.patience == 0 {
		r.patience = DefaultStartTimeout
	}
	return r, nil
}

// Start implements job.Runtime. The spec is checked by the child, so a refusal lists the same problems as the runtime in
// the child does. A child that cannot be started, or that ends before it answers, is an error of kind Unavailable. The
// handle is a *Handle.
func (r *Runtime) Start(ctx context.Context, spec *job.Spec, ports job.Ports) (job.Handle, error) {
	host, err := lend(ports.Host)
	if err != nil {
		return nil, unavailable(err)
	}
	journal, err := lendJournal(ports.Journal, spec.Resume)
	if err != nil {
		host.end()
		return nil, unavailable(err)
	}
	h, err := r.launch(spec, host, journal, r.argumentsIn(ctx))
	if err != nil {
		host.end()
		journal.end()
		return nil, err
	}
	go h.watch(ctx, r.patience, timeLimit(spec))
	first, err := h.next()
	if err != nil {
		return nil, h.refuse(ctx, err)
	}
	close(h.started)
	go h.relay(first)
	return h, nil
}

// launch starts the child and sends it the spec.
func (r *Runtime) launch(spec *job.Spec, host *lentHost, journal *lentJournal, arguments []string) (*Handle, error) {
	document, err := encodeSpec(spec)
	if err != nil {
		return nil, &problem.Error{Kind: problem.Internal, Op: "start job process", Err: err}
	}
	scratch, err := newScratch(spec)
	if err != nil {
		return nil, unavailable(err)
	}
	var thread *sandbox.Thread
	if r.confine {
		if thread, err = openThread(r.executable, spec, scratch.path); err != nil {
			return nil, errors.Join(unavailable(err), scratch.remove())
		}
	}
	process, err := spawn(r.executable, arguments, scratch.path, []lent{host, journal}, thread)
	if err != nil {
		return nil, errors.Join(unavailable(err), scratch.remove())
	}
	h := newHandle(r, spec, process, scratch, host, journal)
	h.send(document)
	if journal != nil {
		go journal.receive(h)
		if spec.Resume != nil {
			journal.telling.Go(func() { journal.tell(h) })
		}
	}
	return h, nil
}

// argumentsIn returns the further arguments of a child: the operator's, and the trace that the job belongs to.
func (r *Runtime) argumentsIn(ctx context.Context) []string {
	if trace := job.TraceOf(ctx); trace != "" {
		return append(slices.Clone(r.arguments), "--traceparent="+trace)
	}
	return r.arguments
}

func unavailable(err error) error {
	return &problem.Error{Kind: problem.Unavailable, Op: "start job process", Err: err}
}

// timeLimit is the time after which the child's own clock must have ended the job; 0 for a spec without a valid limit,
// which the child refuses.
func timeLimit(spec *job.Spec) time.Duration {
	const longest = float64(1 << 62)
	seconds := spec.Limits.TimeoutSec * float64(time.Second)
	if !(seconds > 0) || seconds > longest {
		return 0
	}
	return time.Duration(seconds)
}

// scratch is the directory for temporary files of a child. It becomes the child's TMPDIR, so that what the child leaves
// there when it is killed goes with it. The spec is not touched: its digest must not depend on a random name.
type scratch struct {
	path string
	made bool
}

func newScratch(spec *job.Spec) (scratch, error) {
	if spec.Workspace.TmpDir != "" {
		return scratch{path: spec.Workspace.TmpDir}, nil
	}
	path, err := os.MkdirTemp("", "hozo-job-")
	return scratch{path: path, made: err == nil}, err
}

func (s scratch) remove() error {
	if !s.made {
		return nil
	}
	return os.RemoveAll(s.path)
}
