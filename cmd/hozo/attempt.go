package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/jobproc"
	"github.com/hozo-run/hozo/journal"
	"github.com/hozo-run/hozo/problem"
)

// attempt is one run of a job by this program: what is between a spec and an exit code.
type attempt struct {
	spec *job.Spec
	out  string // the output directory as the command line has it
	log  *eventLog
	// journal is nil for a job that cannot be resumed; path is its file.
	journal  *journal.File
	path     string
	followed followed
	// model is what an earlier attempt had: no event says it again.
	model job.ModelTag
}

// notStarted is the code of a job that did not start.
const notStarted = -1

// newJobID makes the id of a job with a journal. It is part of the spec there, so that every attempt has it.
func newJobID() string { return "job_" + rand.Text() }

// runAttempt runs a job to the end of this attempt and returns the exit code of its outcome.
func (p *program) runAttempt(f *runFlags, a *attempt) (int, error) {
	show := p.newShow(f)
	show.journal, show.tally.model = a.path, a.model
	seen, err := p.observe("")
	if err != nil {
		return notStarted, err
	}
	defer seen.close()
	rt, err := jobproc.New(jobproc.Config{Logs: show, Arguments: f.operator.arguments(), Confine: f.operator.sandbox != sandboxNone})
	if err != nil {
		return notStarted, err
	}
	var running atomic.Pointer[jobproc.Handle]
	ctx, stop := a.endOnSignals(&running, show)
	defer stop()
	handle, err := rt.Start(seen.context(ctx), a.spec, a.ports())
	if err != nil {
		show.stop()
		return notStarted, p.refused(f, err)
	}
	running.Store(handle.(*jobproc.Handle))
	handle = seen.watch(handle, a.spec)
	quiet := context.AfterFunc(ctx, show.aborting)
	err = p.follow(handle, show, a)
	outcome := handle.Wait()
	quiet()
	err = errors.Join(err, a.closeJournal())
	show.finish(outcome, a.out)
	if err == nil && !f.json && outcome.Completed != nil {
		err = p.answer(outcome.Completed.Answer)
	}
	if err != nil {
		return 1, &exitError{code: 1, err: err}
	}
	return outcome.ExitCode(), nil
}

func (a *attempt) ports() job.Ports {
	if a.journal == nil {
		return job.Ports{}
	}
	return job.Ports{Journal: a.journal}
}

// follow shows and records every event. If one of the sinks fails, the job is aborted: whoever wanted its events does not
// get them.
func (p *program) follow(handle job.Handle, show *show, a *attempt) error {
	var failed error
	for e := range handle.Events() {
		if failed != nil {
			continue
		}
		failed = errors.Join(show.event(e), a.log.add(e))
		if failed != nil {
			a.followed.end(failed)
			handle.Abort("the events could not be written")
			continue
		}
		a.followed.reach(e.Seq)
	}
	a.followed.end(errors.New("the job has no more events"))
	return failed
}

// endOnSignals returns a context that ends when the job is to be aborted. A job without a journal is aborted by the first
// signal and killed by the second. One with a journal can go on later, and nobody loses hours by a slip of the hand: the
// first signal suspends it, the second aborts it, the third kills it.
func (a *attempt) endOnSignals(running *atomic.Pointer[jobproc.Handle], show *show) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	abort := func(s os.Signal) { cancel(causeOfSignal(s)) }
	kill := func(os.Signal) {
		if h := running.Load(); h != nil {
			h.Kill()
			return
		}
		os.Exit(130)
	}
	steps := []func(os.Signal){abort, kill}
	if a.journal != nil {
		suspend := func(s os.Signal) {
			if h := running.Load(); h != nil {
				show.suspending()
				h.Detach()
				return
			}
			abort(s)
		}
		steps = []func(os.Signal){suspend, abort, kill}
	}
	stop := onSignals(steps...)
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// onSignals calls the first function at the first signal to stop, the second one at the second, and the last at all
// further ones. Writing to a closed pipe becomes an error instead of a signal.
func onSignals(steps ...func(os.Signal)) (stop func()) {
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, len(steps))
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				steps[0](s)
				if len(steps) > 1 {
					steps = steps[1:]
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// errInterrupted and errTerminated are the causes of a job that a signal aborted.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
)

func causeOfSignal(s os.Signal) error {
	if s == os.Interrupt {
		return errInterrupted
	}
	return errTerminated
}

// followed is how far the events of a job have been shown and written. The journal asks for it: a frame must not be stored
// before the events that belong to it.
type followed struct {
	once  sync.Once
	mu    sync.Mutex
	more  *sync.Cond
	seq   int64
	ended error
}

func (f *followed) prepare() { f.once.Do(func() { f.more = sync.NewCond(&f.mu) }) }

func (f *followed) reach(seq int64) {
	f.prepare()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq = max(f.seq, seq)
	f.more.Broadcast()
}

// end says why no further event comes; the first reason counts.
func (f *followed) end(err error) {
	f.prepare()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = err
	}
	f.more.Broadcast()
}

// wait waits for an event, and returns an error if it does not come.
func (f *followed) wait(seq int64) error {
	f.prepare()
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.seq < seq && f.ended == nil {
		f.more.Wait()
	}
	if f.seq < seq {
		return f.ended
	}
	return nil
}

// createJournal makes the journal of a job that begins.
func (a *attempt) createJournal(path string, o journal.Options) error {
	if err := checkJournalPlace(path, a.spec.Workspace); err != nil {
		return err
	}
	o.OutDir, o.Stored = a.spec.Workspace.OutDir, a.followed.wait
	file, err := journal.Create(path, o)
	if err != nil {
		return journalError(err)
	}
	a.journal, a.path = file, path
	return nil
}

// checkJournalPlace refuses a journal that the agent could read or write: it holds everything that the job ever saw, and
// would be a part of what it records.
func checkJournalPlace(path string, w job.Workspace) error {
	real := realPath(path)
	for _, dir := range append([]string{w.Root, w.OutDir}, w.ReadOnly...) {
		if within(realPath(dir), real) {
			return usageError("--journal %s lies inside of %s, which the agent may use; choose a place beside it", path, dir)
		}
	}
	return nil
}

// closeJournal closes the journal. Calls after the first return the same.
func (a *attempt) closeJournal() error {
	if a.journal == nil {
		return nil
	}
	if err := a.journal.Close(); err != nil {
		return fmt.Errorf("the journal %s is not complete: %w", a.path, err)
	}
	return nil
}

// discardJournal removes the journal of a job that did not start.
func (a *attempt) discardJournal() {
	if a.journal == nil {
		return
	}
	_ = a.journal.Close() // it holds nothing
	journal.Discard(a.path)
}

// journalError gives errors of a journal that are nobody's fault but the command line's the exit code of wrong usage.
func journalError(err error) error {
	switch problem.KindOf(err) {
	case problem.Conflict, problem.NotFound:
		return &exitError{code: job.ExitUsage, err: err}
	}
	if errors.Is(err, os.ErrNotExist) {
		return &exitError{code: job.ExitUsage, err: err}
	}
	return err
}

// eventLog is the file of --events; nil if there is none.
type eventLog struct {
	file *os.File
	out  *bufio.Writer
}

func openEventLog(path string) (*eventLog, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, usageError("--events: %v", err)
	}
	return &eventLog{file: f, out: bufio.NewWriter(f)}, nil
}

// reopenEventLog opens the file of an earlier attempt to write on, and returns the number of its last event. What a killed
// process left of a line is cut. A file that is no regular one, or that is new, has no events.
func reopenEventLog(path, jobID string) (*eventLog, int64, error) {
	if path == "" {
		return nil, 0, nil
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		log, err := openEventLog(path)
		return log, 0, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, usageError("--events: %v", err)
	}
	last, whole, err := lastEvent(f, jobID)
	if err == nil {
		err = f.Truncate(whole)
	}
	if err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return nil, 0, errors.Join(usageError("--events %s: %v", path, err), f.Close())
	}
	return &eventLog{file: f, out: bufio.NewWriter(f)}, last, nil
}

// lastEvent returns the number of the last whole event of a file and where its line ends.
func lastEvent(f io.Reader, jobID string) (seq, end int64, err error) {
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return seq, end, nil
		}
		if err != nil {
			return 0, 0, err
		}
		e, err := job.ParseEvent(line)
		if err != nil {
			return 0, 0, fmt.Errorf("it is no file of events: %w", err)
		}
		if e.JobID != jobID {
			return 0, 0, fmt.Errorf("it holds the events of the job %s, not of %s", e.JobID, jobID)
		}
		seq, end = e.Seq, end+int64(len(line))
	}
}

// add writes an event through to the file, so that it can be followed while the job runs.
func (l *eventLog) add(e *job.Event) error {
	if l == nil {
		return nil
	}
	_, _ = l.out.Write(e.Line()) // a bufio.Writer keeps its error for Flush
	_ = l.out.WriteByte('\n')
	if err := l.out.Flush(); err != nil {
		return fmt.Errorf("--events: %w", err)
	}
	return nil
}

func (l *eventLog) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// shellWord writes a word so that a shell reads it as one.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/=:@+,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
