package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/journal"
	"github.com/hozo-run/hozo/problem"
)

// Codes of runs that end before their job began.
const (
	// CodeNotCompiled is that of a run of which no job could be made.
	CodeNotCompiled = "not-compiled"
	// CodeRefused is that of a run whose job the runtime refused.
	CodeRefused = "job-refused"
	// CodeUnavailable is that of a run whose attempts could not begin, all retries long.
	CodeUnavailable = "unavailable"
)

// flight is a run that this process executes.
type flight struct {
	worker *Worker
	run    run.Run
	lease  run.Lease
	again  bool // it was lost, and is to be taken again at once

	mu       sync.Mutex
	good     time.Time // when the lease was renewed last, for sure
	recorder *run.Recorder
	handle   job.Handle
	// What has to happen, also to a job that is not started yet.
	cancelCause string
	detached    bool
	abandoned   bool
	ending      bool // the lease ends with the attempt, just now
}

// fly executes a run in a goroutine of its own. The caller has reserved a slot for it.
func (w *Worker) fly(ctx context.Context, r run.Run, lease run.Lease) {
	f := &flight{worker: w, run: r, lease: lease, good: time.Now(), cancelCause: r.CancelCause}
	w.mu.Lock()
	w.flights[r.ID] = f
	f.detached = w.draining
	w.mu.Unlock()
	go func() {
		f.execute(ctx)
		w.mu.Lock()
		delete(w.flights, r.ID)
		w.mu.Unlock()
		w.free()
		if f.again {
			w.tryTake(ctx, r.ID)
		}
		w.next(ctx, r)
	}()
}

// next starts the next run of a project in which as many ran as may.
func (w *Worker) next(ctx context.Context, r run.Run) {
	if r.ProjectLimit == 0 {
		return
	}
	id, err := w.config.Runs.WaitingOf(ctx, r.Tenant, r.Project)
	if err != nil {
		w.config.Logger.WarnContext(ctx, "the next run of a project could not be looked for", "error", err)
	}
	if id != "" {
		w.tryTake(ctx, id)
	}
}

// isEnding reports whether the lease ends by itself.
func (f *flight) isEnding() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ending
}

func (f *flight) renewed(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.good = at
}

// stale reports whether the lease was not renewed for so long, once.
func (f *flight) stale(limit time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.abandoned && time.Since(f.good) > limit
}

// cancel ends the job; the run ends with it.
func (f *flight) cancel(cause string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancelCause == "" {
		f.cancelCause = cause
	}
	if f.handle != nil {
		f.handle.Abort(f.cancelCause)
	}
}

// detach ends the attempt so that the run goes on elsewhere.
func (f *flight) detach() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.detached = true
	if f.handle != nil {
		f.handle.Detach()
	}
}

// abandon ends the attempt without a word: the run may be another process's by now.
func (f *flight) abandon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandoned = true
	if f.recorder != nil {
		f.recorder.Abandon()
	}
	if f.handle == nil {
		return
	}
	if killer, ok := f.handle.(interface{ Kill() }); ok {
		killer.Kill()
	} else {
		f.handle.Abort("the run is executed by another process")
	}
}

// giveUp abandons the attempt and lets others have the run at once.
func (f *flight) giveUp() {
	f.abandon()
	ctx, cancel := context.WithTimeout(context.Background(), f.worker.config.Lease)
	defer cancel()
	if err := f.worker.config.Runs.Drop(ctx, f.lease); err != nil {
		f.worker.config.Logger.Warn("others have to wait for the end of a lease", "run", f.run.ID, "error", err)
	}
}

// execute makes one attempt, from the lease to the end.
func (f *flight) execute(ctx context.Context) {
	w := f.worker
	recorder, err := w.config.Runs.Record(ctx, f.lease)
	if err != nil {
		w.config.Logger.ErrorContext(ctx, "an attempt could not be recorded", "run", f.run.ID, "error", err)
		f.giveUp()
		return
	}
	f.mu.Lock()
	f.recorder = recorder
	abandoned := f.abandoned
	f.mu.Unlock()
	if abandoned {
		recorder.Abandon()
		return
	}
	if err := f.attempt(ctx); err != nil && !errors.Is(err, run.ErrLost) {
		w.config.Logger.ErrorContext(ctx, "the end of an attempt could not be stored", "run", f.run.ID, "error", err)
		f.giveUp()
	}
	recorder.Abandon() // of no effect if it has ended
}

// attempt is execute once there is a recorder. Its error says that the end of the attempt is not stored.
func (f *flight) attempt(ctx context.Context) error {
	if recorded := f.recorder.Outcome(); recorded != nil {
		return f.finish(ctx, job.Outcome{Completed: recorded.Completed, Failed: recorded.Failed, Usage: recorded.Usage})
	}
	spec, host, err := f.worker.config.Compiler.Compile(ctx, f.run)
	if err != nil {
		return f.notStarted(ctx, CodeNotCompiled, err)
	}
	if keeper, ok := f.worker.config.Compiler.(Keeper); ok {
		defer func() { keeper.Discard(ctx, f.run, spec) }() // with the state that the run has then
	}
	handle, err := f.start(ctx, spec, host)
	if err != nil {
		return f.notStarted(ctx, CodeRefused, err)
	}
	if handle == nil { // it is not wanted any more
		closeHost(host)
		return f.unstarted(ctx)
	}
	for e := range handle.Events() {
		if err := f.recorder.Event(e); err != nil {
			f.abandon()
			handle.Discard()
			break
		}
	}
	return f.conclude(ctx, spec, handle.Wait())
}

func closeHost(host job.Host) {
	if host != nil {
		host.Close()
	}
}

// start starts the job, or goes on with it. It returns nil if the run was cancelled or detached meanwhile.
func (f *flight) start(ctx context.Context, spec *job.Spec, host job.Host) (job.Handle, error) {
	if err := f.prepare(ctx, spec); err != nil {
		closeHost(host)
		return nil, err
	}
	f.mu.Lock()
	unwanted := f.cancelCause != "" || f.detached || f.abandoned
	f.mu.Unlock()
	if unwanted {
		return nil, nil
	}
	f.recorder.KeepFilesOf(spec.Workspace.OutDir)
	handle, err := f.worker.config.Runtime.Start(ctx, spec, job.Ports{Journal: f.recorder, Host: host})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.handle = handle
	cancelCause, detached, abandoned := f.cancelCause, f.detached, f.abandoned
	f.mu.Unlock()
	switch {
	case abandoned:
		f.abandon()
	case cancelCause != "":
		handle.Abort(cancelCause)
	case detached:
		handle.Detach()
	}
	return handle, nil
}

// prepare completes the spec with what is known of the earlier attempts.
func (f *flight) prepare(ctx context.Context, spec *job.Spec) error {
	spec.ID = f.run.ID
	r := f.recorder
	if r.Frames() == 0 {
		return nil
	}
	decisions, err := f.worker.config.Runs.Decisions(ctx, f.run.ID)
	if err != nil {
		return &problem.Error{Kind: problem.Unavailable, Op: "resume the job", Err: err}
	}
	spec.Resume = &job.Resume{Attempt: f.lease.Attempt, NextSeq: r.NextSeq(), Decisions: decisions}
	if err := f.restore(ctx, spec.Workspace.OutDir); err != nil {
		return &problem.Error{Kind: problem.Unavailable, Op: "restore the output directory", Err: err}
	}
	return nil
}

// restore makes the output directory as the last checkpoint has it, unless it is the one in which the last attempt worked:
// there, a call that was interrupted may have left what nobody recorded.
func (f *flight) restore(ctx context.Context, outDir string) error {
	if f.run.Place == f.worker.place {
		if entries, err := os.ReadDir(outDir); err == nil && len(entries) > 0 {
			return nil
		}
	}
	tree, err := journal.TreeOf(f.recorder.Earlier())
	if err != nil {
		return err
	}
	return tree.RestoreFrom(outDir, func(hash string) (io.ReadCloser, error) {
		if f.worker.config.Blobs == nil {
			return nil, errors.New("this process has no place of blobs")
		}
		return f.worker.config.Blobs.Open(ctx, hash)
	})
}

// unstarted ends an attempt whose job was not started because somebody wants the run to end, or this process.
func (f *flight) unstarted(ctx context.Context) error {
	f.mu.Lock()
	cause := f.cancelCause
	f.mu.Unlock()
	if cause != "" {
		return f.finish(ctx, job.Outcome{Failed: failed(job.ReasonAborted, job.CodeAborted, cause)})
	}
	return f.release(ctx, run.Released{Message: "the process stops"})
}

func failed(reason job.Reason, code, message string) *job.FailedData {
	return &job.FailedData{Reason: reason, Code: code, Message: message, Outputs: []string{}}
}

// notStarted ends an attempt whose job could not be made or started: for now, or for good.
func (f *flight) notStarted(ctx context.Context, code string, err error) error {
	w := f.worker
	if problem.KindOf(err) == problem.Unavailable {
		if f.run.Retries < w.config.Retries {
			return f.release(ctx, run.Released{Retry: true, NotBefore: time.Now().Add(w.backoff(f.run.Retries)), Message: err.Error()})
		}
		code = CodeUnavailable
	}
	data := failed(job.ReasonError, code, err.Error())
	if list := problem.Of(err); len(list) > 0 {
		details, failure := json.Marshal(map[string]any{"problems": list})
		if failure == nil {
			data.Details = details
		}
	}
	return f.finish(ctx, job.Outcome{Failed: data})
}

// conclude ends the attempt as its job did.
func (f *flight) conclude(ctx context.Context, spec *job.Spec, outcome job.Outcome) error {
	f.mu.Lock()
	abandoned := f.abandoned
	f.mu.Unlock()
	if abandoned {
		return run.ErrLost
	}
	if outcome.Lost != nil {
		return f.lost(ctx, outcome.Lost.Message)
	}
	if keeper, ok := f.worker.config.Compiler.(Keeper); ok && outcome.Suspended == nil {
		if err := keeper.Keep(ctx, f.run, spec, outcome); err != nil {
			f.worker.config.Logger.ErrorContext(ctx, "what a job left could not be kept", "run", f.run.ID, "error", err)
			return f.lost(ctx, fmt.Sprintf("what the job left could not be kept: %v", err))
		}
	}
	return f.finish(ctx, outcome)
}

// lost ends an attempt whose process ended without a word: the run goes on, unless that has happened too often.
func (f *flight) lost(ctx context.Context, message string) error {
	w := f.worker
	if f.run.Losses+1 > w.config.MaxLosses {
		return f.finish(ctx, job.Outcome{Failed: failed(job.ReasonError, job.CodeProcessLost,
			fmt.Sprintf("%d attempts in a row ended without a word; the last one: %s", f.run.Losses+1, message))})
	}
	released := run.Released{Lost: true, Message: message}
	if f.run.Losses > 0 {
		released.NotBefore = time.Now().Add(w.backoff(f.run.Losses - 1))
	}
	f.again = released.NotBefore.IsZero()
	return f.release(ctx, released)
}

// finish ends the attempt with an outcome.
func (f *flight) finish(ctx context.Context, outcome job.Outcome) error {
	f.end()
	state, err := f.recorder.Finish(ctx, outcome)
	if err == nil {
		f.run.State = state
	}
	return err
}

// release ends the attempt so that another one goes on.
func (f *flight) release(ctx context.Context, why run.Released) error {
	f.end()
	state, err := f.recorder.Release(ctx, why)
	if err == nil {
		f.run.State = state
	}
	return err
}

// end says that the lease goes with the attempt.
func (f *flight) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending = true
}
