// Package orchestrator turns accepted runs into attempts of jobs: it starts a run at once in this process if there is
// room, queues it otherwise, executes it with a job.Runtime, records what it reports, and goes on with it after crashes,
// decisions and restarts, wherever there is room. What a run is made of is decided by a Compiler, what is kept of it is
// package run's; this package knows neither agents nor HTTP.
//
// A Worker is one process that executes runs. Its safety rests on the leases of package run: a Worker renews exactly the
// runs that it executes, stops them when it could not renew for too long, and writes nothing for a run that another one
// has taken. Its liveness rests on nobody's queue: each Worker looks for expired leases and for runs that wait although
// there is room.
package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/job"
)

// Compiler makes a job of a run.
type Compiler interface {
	// Compile returns the job of a run, with its directories made and its credentials filled in, and the host to lend to
	// it, or nil. It is called for each attempt; after the first one, the job has to be the same (Spec.Digest), so a name
	// without a version means Run.Resolved. An error of kind problem.Unavailable is tried again later; any other one ends
	// the run, with the problems that it lists.
	Compile(ctx context.Context, r run.Run) (*job.Spec, job.Host, error)
}

// Keeper is a Compiler that wants to know how jobs end.
type Keeper interface {
	// Keep is called when the job of a run has ended, before the run says so: it keeps what is worth keeping. It may be
	// called again for the same run, after a crash. Its error is tried again as an attempt that was lost.
	Keep(ctx context.Context, r run.Run, spec *job.Spec, outcome job.Outcome) error
	// Discard is called when this process is done with an attempt. Directories that Compile made are not needed any more if
	// the run has ended (r.State is final); else it goes on, here or elsewhere. A state that is still run.Running says that
	// another process has the run.
	Discard(ctx context.Context, r run.Run, spec *job.Spec)
}

// Config configures a Worker. Runs, Queue, Runtime and Compiler are required.
type Config struct {
	Runs     *run.Store
	Queue    Queue
	Runtime  job.Runtime
	Compiler Compiler
	// Blobs is where output files are taken from when a run moves to this machine: that of the run.Store. Nil is for runs
	// that write no files.
	Blobs run.Blobs
	// Label names the process for people.
	Label string
	// Place names the directories in which Compile works: a process that finds the same ones again after a restart has the
	// same place. "" means that no other process ever has them.
	Place string
	// Slots is how many runs this process executes at once; zero means 16. A negative number executes none: the process
	// only accepts runs.
	Slots int
	// MaxRunning bounds the runs of all processes together, MaxQueued those that wait; zero is no bound. MaxLosses is that
	// of run.Claim.
	MaxRunning, MaxQueued, MaxLosses int64
	// Lease is how long a run stays this process's without a word from it; zero means 10 s. It must be longer than what
	// the clocks of the machines differ by.
	Lease time.Duration
	// Sweep is how often the process looks for runs that nobody executes; zero means 200 ms.
	Sweep time.Duration
	// Retries is how often an attempt that could not begin is tried again; zero means 8, a negative number never. The
	// first try comes after RetryAfter (zero means 1 s), each further one after twice the time, at most five minutes.
	Retries    int64
	RetryAfter time.Duration
	// Alone says that no other process executes runs of the database: runs of processes that died are taken up at the
	// start, without waiting for their leases.
	Alone bool
	// Logger gets what goes wrong; nil drops it.
	Logger *slog.Logger
}

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.Slots == 0 {
		c.Slots = 16
	}
	c.Slots = max(c.Slots, 0)
	if c.Lease == 0 {
		c.Lease = 10 * time.Second
	}
	if c.Sweep == 0 {
		c.Sweep = 200 * time.Millisecond
	}
	if c.Retries == 0 {
		c.Retries = 8
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = time.Second
	}
	if c.MaxLosses == 0 {
		c.MaxLosses = run.DefaultMaxLosses
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Worker executes runs. It is safe for concurrent use.
type Worker struct {
	config Config
	owner  string
	place  string
	slots  chan struct{} // has a value for each run that is executed

	mu       sync.Mutex
	flights  map[string]*flight
	draining bool
	flying   sync.WaitGroup

	stop  chan struct{} // closed when the loops have to end
	loops sync.WaitGroup
	halt  sync.Once
}

// New returns a Worker that does not look for work until Start. It can accept runs at once.
func New(config Config) *Worker {
	config = config.withDefaults()
	w := &Worker{config: config, owner: run.NewOwner(config.Label), slots: make(chan struct{}, config.Slots),
		flights: map[string]*flight{}, stop: make(chan struct{})}
	if w.place = config.Place; w.place == "" {
		w.place = w.owner
	}
	return w
}

// Owner is the name under which the process holds leases.
func (w *Worker) Owner() string { return w.owner }

// Start begins to execute runs, those that are there first. It returns an error if the database or the queue cannot be
// used. End it with Stop.
func (w *Worker) Start(ctx context.Context) error {
	if w.config.Slots == 0 {
		return nil
	}
	if w.config.Alone {
		if _, err := w.config.Runs.ExpireOthers(ctx, w.owner); err != nil {
			return err
		}
	}
	ctx = context.WithoutCancel(ctx)
	w.loops.Go(func() { w.renewing(ctx) })
	w.loops.Go(func() { w.fencing(ctx) })
	w.loops.Go(func() { w.sweeping(ctx) })
	if err := w.config.Queue.Work(ctx, min(w.config.Slots, 64), w.woken); err != nil {
		w.end()
		return err
	}
	return nil
}

func (w *Worker) end() {
	w.halt.Do(func() { close(w.stop) })
	w.loops.Wait()
}

// Submit accepts a run, durably. It starts here and now if there is room, else it is queued. The errors are those of
// run.Store.Create; after run.ErrFull the caller should come back later.
func (w *Worker) Submit(ctx context.Context, request run.Request) (run.Created, error) {
	claim := w.claim()
	started := w.reserve()
	if !started {
		claim.Owner = ""
	}
	created, err := w.config.Runs.Create(ctx, request, claim)
	if err == nil && created.Lease != nil {
		w.fly(context.WithoutCancel(ctx), created.Run, *created.Lease)
		return created, nil
	}
	if started {
		w.free()
	}
	return created, err
}

func (w *Worker) claim() run.Claim {
	return run.Claim{Owner: w.owner, Place: w.place, Lease: w.config.Lease, MaxRunning: w.config.MaxRunning, MaxQueued: w.config.MaxQueued, MaxLosses: w.config.MaxLosses}
}

// reserve takes a slot if one is free and the process takes work.
func (w *Worker) reserve() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return false
	}
	select {
	case w.slots <- struct{}{}:
		w.flying.Add(1)
		return true
	default:
		return false
	}
}

func (w *Worker) free() {
	<-w.slots
	w.flying.Done()
}

// Cancel wants a run to end; see run.Store.Cancel. One that this process executes is told at once, one of another process
// with its next renewal.
func (w *Worker) Cancel(ctx context.Context, tenant, id, cause string) (run.Run, error) {
	done, err := w.config.Runs.Cancel(ctx, tenant, id, cause)
	if err != nil {
		return run.Run{}, err
	}
	if done.Owner == w.owner {
		if f := w.flight(id); f != nil {
			f.cancel(done.Run.CancelCause)
		}
	}
	if done.Run.QueueID != 0 && done.Run.State.Final() {
		if err := w.config.Queue.Cancel(ctx, done.Run.QueueID); err != nil {
			w.config.Logger.WarnContext(ctx, "a wake-up of a cancelled run was left", "run", id, "error", err)
		}
	}
	return done.Run, nil
}

// Decide answers calls that a suspended run waits for; see run.Store.Decide. If the run can go on it does so here and now
// if there is room.
func (w *Worker) Decide(ctx context.Context, tenant, id string, decisions []job.Decision, by string) (run.Decided, error) {
	done, err := w.config.Runs.Decide(ctx, tenant, id, decisions, by)
	if err == nil && done.Run.State == run.Queued {
		w.tryTake(context.WithoutCancel(ctx), id)
	}
	return done, err
}

func (w *Worker) flight(id string) *flight {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flights[id]
}

// Running returns how many runs this process executes.
func (w *Worker) Running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.flights)
}

// woken is told by the queue that a run waits. It waits for room for a moment; after that another process may have some.
func (w *Worker) woken(ctx context.Context, id string) time.Duration {
	const patience = time.Second
	if !w.await(ctx, patience) {
		return 100 * time.Millisecond
	}
	if err := w.take(context.WithoutCancel(ctx), id); errors.Is(err, run.ErrBusy) {
		return time.Second
	}
	return 0
}

// await takes a slot, and waits for one if it must.
func (w *Worker) await(ctx context.Context, patience time.Duration) bool {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case w.slots <- struct{}{}:
	case <-timeout.C:
		return false
	case <-ctx.Done():
		return false
	case <-w.stop:
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		<-w.slots
		return false
	}
	w.flying.Add(1)
	return true
}

// tryTake takes a run if there is room and nobody else has it.
func (w *Worker) tryTake(ctx context.Context, id string) {
	if w.flight(id) != nil || !w.reserve() {
		return
	}
	_ = w.take(ctx, id) // an error is logged, or says that there is nothing to do
}

// take takes a run with a slot that the caller has reserved, and executes it.
func (w *Worker) take(ctx context.Context, id string) error {
	r, lease, err := w.config.Runs.Take(ctx, id, w.claim())
	if err != nil {
		w.free()
		if !errors.Is(err, run.ErrLost) && !errors.Is(err, run.ErrBusy) && !errors.Is(err, run.ErrState) {
			w.config.Logger.ErrorContext(ctx, "a run could not be taken", "run", id, "error", err)
		}
		return err
	}
	w.fly(ctx, r, *lease)
	return nil
}

// Stop ends the work so that it goes on elsewhere or after the next start: nothing new is taken, the jobs are detached,
// and each run is queued as soon as its calls in flight have answered. When ctx ends before that, what is left is given up:
// whoever has room takes it over as if the process had died. Stop returns when nothing runs any more.
func (w *Worker) Stop(ctx context.Context) error {
	w.mu.Lock()
	w.draining = true
	flights := w.inFlight()
	w.mu.Unlock()
	for _, f := range flights {
		f.detach()
	}
	ended := make(chan struct{})
	go func() {
		w.flying.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		w.mu.Lock()
		flights = w.inFlight()
		w.mu.Unlock()
		err = fmt.Errorf("%d runs did not stop in time and were given up: %w", len(flights), context.Cause(ctx))
		for _, f := range flights {
			f.giveUp()
		}
		<-ended
	}
	w.end()
	return errors.Join(err, w.config.Queue.Stop(context.WithoutCancel(ctx)))
}

// inFlight returns what is executed. The caller holds the lock.
func (w *Worker) inFlight() []*flight {
	all := make([]*flight, 0, len(w.flights))
	for _, f := range w.flights {
		all = append(all, f)
	}
	return all
}

// backoff is how long to wait before an attempt is tried again for the n-th time, from 0.
func (w *Worker) backoff(n int64) time.Duration {
	const most = 5 * time.Minute
	d := w.config.RetryAfter
	for ; n > 0 && d < most; n-- {
		d *= 2
	}
	d = min(d, most)
	return d - time.Duration(rand.Int64N(int64(d)/5+1)) // not all at once
}
