package orchestrator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/orchestrator"
	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"
)

func TestARunStartsAtOnceIfThereIsRoom(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db, complete)
		w := f.start()
		made := f.submit(w, ask())
		if made.Lease == nil || made.Run.State != run.Running {
			t.Errorf("%+v", made)
		}
		if r := f.ended(made.Run.ID); r.State != run.Completed || r.Attempts != 1 {
			t.Errorf("%s after %d attempts: %s", r.State, r.Attempts, r.Message)
		}
	})
}

func TestTheBacklogIsWorkedOff(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db, complete)
		acceptor := f.config
		acceptor.Slots = -1
		front := orchestrator.New(acceptor)
		var ids []string
		for range 50 {
			made := f.submit(front, ask())
			if made.Lease != nil {
				t.Fatal("a process without slots executes a run")
			}
			ids = append(ids, made.Run.ID)
		}
		if stats, err := f.queue.Stats(t.Context()); err != nil || stats.Due != 50 {
			t.Errorf("%+v, %v", stats, err)
		}
		f.start()
		for _, id := range ids {
			if r := f.ended(id); r.State != run.Completed || r.Attempts != 1 {
				t.Errorf("%s after %d attempts: %s", r.State, r.Attempts, r.Message)
			}
		}
	})
}

func TestARunThatNobodyWasWokenForIsFound(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t))
	f := newFixture(t, db, complete)
	silent := run.New(db, run.Config{Clock: func() time.Time { return time.Now().Add(-time.Minute) }})
	t.Cleanup(silent.Close)
	made, err := silent.Create(t.Context(), ask(), run.Claim{})
	if err != nil {
		t.Fatal(err)
	}
	f.start()
	if r := f.ended(made.Run.ID); r.State != run.Completed {
		t.Errorf("%s", r.State)
	}
}

// hold plays jobs that end when they are told to.
func hold(started chan *fakeJob) func(*fakeJob) {
	return func(j *fakeJob) {
		started <- j
		select {
		case cause := <-j.abort:
			j.end(job.Outcome{Failed: &job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted, Message: cause, Outputs: []string{}}})
		case <-j.detach:
			j.end(job.Outcome{Suspended: &job.SuspendedData{Waits: []job.Wait{}}})
		}
	}
}

func TestCancelReachesTheJob(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		started := make(chan *fakeJob, 8)
		f := newFixture(t, db, hold(started))
		f.config.Lease = 2 * time.Second
		w, other := f.start(), orchestrator.New(f.config)
		here, there := f.submit(w, ask()).Run.ID, f.submit(w, ask()).Run.ID
		<-started
		<-started
		for range 2 {
			if _, err := w.Cancel(t.Context(), "acme", here, "enough"); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Cancel(t.Context(), "acme", there, "enough"); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{here, there} {
			if r := f.ended(id); r.State != run.Cancelled || r.Message != "enough" {
				t.Errorf("%s: %q", r.State, r.Message)
			}
		}
	})
}

func TestAStoppedProcessHandsItsRunsOver(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		started := make(chan *fakeJob, 8)
		f := newFixture(t, db, hold(started))
		first := f.start()
		id := f.submit(first, ask()).Run.ID
		<-started
		if err := first.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := f.runs.Get(t.Context(), "acme", id)
		if err != nil || r.State != run.Queued || r.Losses != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if made := f.submit(first, ask()); made.Lease != nil {
			t.Error("a process that stops starts a run")
		}
		next := newFixture(t, db, complete)
		next.start()
		if r := next.ended(id); r.State != run.Completed || r.Attempts != 2 {
			t.Errorf("%s after %d attempts", r.State, r.Attempts)
		}
	})
}

func TestAJobThatDoesNotStopInTimeIsGivenUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		started := make(chan *fakeJob, 1)
		f := newFixture(t, db, func(j *fakeJob) {
			started <- j
			cause := <-j.abort // it does not detach
			j.end(job.Outcome{Failed: &job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted, Message: cause, Outputs: []string{}}})
		})
		first := f.start()
		id := f.submit(first, ask()).Run.ID
		<-started
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Stop(ctx); err == nil {
			t.Error("nothing is said about it")
		}
		next := newFixture(t, db, complete)
		next.start()
		if r := next.ended(id); r.State != run.Completed || r.Attempts != 2 {
			t.Errorf("%s after %d attempts", r.State, r.Attempts)
		}
		if attempts, err := next.runs.Attempts(t.Context(), "acme", id); err != nil || attempts[0].Ending != run.EndedLost {
			t.Errorf("attempts: %+v, %v", attempts, err)
		}
	})
}

func TestALostProcessIsFollowedByAnotherAttempt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db, func(j *fakeJob) { j.end(job.Outcome{Lost: &job.Lost{Message: "killed", ExitCode: -1}}) })
		f.config.MaxLosses = 3
		id := f.submit(f.start(), ask()).Run.ID
		r := f.ended(id)
		if r.State != run.Failed || r.Code != job.CodeProcessLost || r.Attempts != 4 {
			t.Errorf("%s, %s after %d attempts", r.State, r.Code, r.Attempts)
		}
	})
}

func TestWhatCannotBeStartedIsTriedAgainOrEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var invalid problem.List
		invalid.Add("unknown-agent", "/agent", "there is no agent %q", "clerk")
		for name, c := range map[string]struct {
			err      error
			code     string
			attempts int64
		}{
			"for now":  {&problem.Error{Kind: problem.Unavailable, Message: "no provider"}, orchestrator.CodeUnavailable, 3},
			"for good": {invalid.Err("compile"), orchestrator.CodeNotCompiled, 1},
			"other":    {errors.New("broken"), orchestrator.CodeNotCompiled, 1},
		} {
			f := newFixture(t, db, complete)
			f.config.Retries = 2
			f.config.Compiler = compilerFunc(func(run.Run) (*job.Spec, error) { return nil, c.err })
			w := f.start()
			id := f.submit(w, ask()).Run.ID
			if r := f.ended(id); r.State != run.Failed || r.Code != c.code || r.Attempts != c.attempts {
				t.Errorf("%s: %s, %s after %d attempts", name, r.State, r.Code, r.Attempts)
			}
			if err := w.Stop(t.Context()); err != nil { // the next one has another compiler
				t.Error(err)
			}
		}
	})
}

func TestAsManyOfAProjectRunAsMay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		running := make(chan struct{}, 2)
		f := newFixture(t, db, func(j *fakeJob) {
			select {
			case running <- struct{}{}:
				<-running
			default:
				t.Error("a third run of the project")
			}
			j.end(done())
		})
		w := f.start()
		limited := ask()
		limited.ProjectLimit = 2
		var ids []string
		for range 12 {
			ids = append(ids, f.submit(w, limited).Run.ID)
		}
		for _, id := range ids {
			if r := f.ended(id); r.State != run.Completed {
				t.Errorf("%s: %s", r.State, r.Message)
			}
		}
	})
}

func TestAFullQueueIsSaid(t *testing.T) {
	t.Parallel()
	started := make(chan *fakeJob, 1)
	f := newFixture(t, storetest.Open(t, storetest.SQLite(t)), hold(started))
	f.config.Slots, f.config.MaxQueued = 1, 2
	w := f.start()
	for range 3 {
		f.submit(w, ask())
	}
	if _, err := w.Submit(t.Context(), ask()); !errors.Is(err, run.ErrFull) {
		t.Errorf("error = %v", err)
	}
}

func TestADecisionGoesOnWithTheRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		waits := []job.Wait{{CallID: "1.0", Tool: "post", Arguments: []byte(`{}`), Hash: "h", WaitID: "w"}}
		attempts := 0
		f := newFixture(t, db, func(j *fakeJob) {
			if attempts++; attempts == 1 {
				j.end(job.Outcome{Suspended: &job.SuspendedData{Waits: waits}})
				return
			}
			j.end(done())
		})
		w := f.start()
		id := f.submit(w, ask()).Run.ID
		for e, err := range f.runs.Follow(t.Context(), "acme", id, 0) {
			if err != nil || e.Type != job.EventSuspended {
				t.Fatal(e, err)
			}
			break
		}
		done, err := w.Decide(t.Context(), "acme", id, []job.Decision{{WaitID: "w", Hash: "h", Verdict: job.VerdictApprove}}, "me")
		if err != nil || done.Run.State != run.Queued {
			t.Fatalf("%+v, %v", done, err)
		}
		if r := f.ended(id); r.State != run.Completed || r.Attempts != 2 {
			t.Errorf("%s after %d attempts", r.State, r.Attempts)
		}
	})
}
