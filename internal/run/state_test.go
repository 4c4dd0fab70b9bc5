package run_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

func TestTheStateMachine(t *testing.T) {
	t.Parallel()
	causes := []run.Cause{run.CauseTake, run.CauseRelease, run.CauseSuspend, run.CauseDecide, run.CauseComplete, run.CauseFail, run.CauseAbort, run.CauseCancel, run.CausePark}
	reachable := map[run.State]bool{run.Queued: true}
	for range run.States() {
		for state := range reachable {
			for _, cause := range causes {
				if next, can := state.Next(cause); can {
					reachable[next] = true
				}
			}
		}
	}
	for _, state := range run.States() {
		if !reachable[state] {
			t.Errorf("%s cannot be reached", state)
		}
		leaves := 0
		for _, cause := range causes {
			next, can := state.Next(cause)
			if can {
				leaves++
			} else if next != state {
				t.Errorf("%s moves to %s by %s, which it cannot", state, next, cause)
			}
		}
		if state.Final() != (leaves == 0) {
			t.Errorf("%s is final: %v, and %d causes leave it", state, state.Final(), leaves)
		}
	}
}

// TestRandomLivesFollowTheStateMachine leads runs through random calls of everything that changes them, by owners with
// leases that hold, that are lost and that have expired, and compares each step with the state machine.
func TestRandomLivesFollowTheStateMachine(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for seed := range uint64(10) {
			l := &life{fixture: newFixture(t, db), random: rand.New(rand.NewPCG(seed, 1)), name: fmt.Sprintf("seed %d", seed)}
			l.live(25)
			if t.Failed() {
				return
			}
		}
	})
}

// life is a run with everybody who ever had it.
type life struct {
	*fixture
	random    *rand.Rand
	name      string
	id        string
	current   *run.Recorder   // of the lease that holds, nil if none does
	lost      []*run.Recorder // of leases that were lost
	expired   bool            // the lease has expired
	cancelled bool
	waits     int // how many waits the run has had
}

func (l *life) live(steps int) {
	born := l.create(request(), claim("a"))
	l.id = born.Run.ID
	l.current = l.record(born.Lease)
	for n := range steps {
		before := l.get(l.id)
		what, cause, err := l.step(before)
		after := l.get(l.id)
		want := before.State
		if err == nil && cause != "" {
			next, can := before.State.Next(cause)
			if !can {
				l.t.Fatalf("%s, step %d: %s in state %s worked", l.name, n, what, before.State)
			}
			want = next
		}
		if after.State != want {
			l.t.Fatalf("%s, step %d: %s moved %s to %s, not to %s (%v)", l.name, n, what, before.State, after.State, want, err)
		}
		if before.State.Final() && !after.UpdatedAt.Equal(before.UpdatedAt) {
			l.t.Fatalf("%s, step %d: %s changed a run that had ended", l.name, n, what)
		}
		l.checkEvents(after)
	}
}

// checkEvents checks that the events have no gap and that one event ends the run exactly if it has ended.
func (l *life) checkEvents(r run.Run) {
	events, err := l.Events(l.t.Context(), "acme", l.id, 0, 1000)
	if err != nil {
		l.t.Fatal(err)
	}
	ends := 0
	for i, e := range events {
		if e.Seq != int64(i+1) {
			l.t.Fatalf("%s: event %d has number %d", l.name, i, e.Seq)
		}
		if e.Type.Terminal() {
			ends++
		}
	}
	if want := map[bool]int{true: 1}[r.State.Final()]; ends != want {
		l.t.Fatalf("%s: a run that is %s has %d events that end it", l.name, r.State, ends)
	}
}

// step does something. It returns what, and the cause by which the state has to change if err is nil.
func (l *life) step(r run.Run) (what string, cause run.Cause, err error) {
	ctx := l.t.Context()
	switch l.random.IntN(9) {
	case 0:
		return l.take(r)
	case 1:
		l.clock.turn(lease + time.Second)
		l.expired = true
		return "waiting", "", nil
	case 2:
		done, err := l.Cancel(ctx, "acme", l.id, "enough")
		if r.State == run.Queued || r.State == run.Suspended {
			cause = run.CauseCancel
		}
		l.cancelled = l.cancelled || done.Run.State == run.Running
		return "cancel", cause, err
	case 3:
		return l.decide(r)
	case 4:
		return "a late end", "", l.late(ctx)
	case 5:
		return l.end("release", run.CauseRelease, func(rec *run.Recorder) error {
			_, err := rec.Release(ctx, run.Released{Lost: l.random.IntN(2) == 0})
			return err
		})
	case 6:
		if l.random.IntN(3) > 0 {
			return "nothing", "", nil
		}
		return l.end("complete", run.CauseComplete, l.finish(ctx, job.Outcome{Completed: completed()}))
	case 7:
		l.waits++
		waits := []job.Wait{{CallID: "1.0", Tool: "post", Arguments: []byte("{}"), Hash: "h", WaitID: fmt.Sprint("w", l.waits)}}
		return l.end("suspend", run.CauseSuspend, l.finish(ctx, job.Outcome{Suspended: &job.SuspendedData{Waits: waits}}))
	}
	return l.end("detach", run.CauseRelease, l.finish(ctx, job.Outcome{Suspended: &job.SuspendedData{Waits: []job.Wait{}}}))
}

func (l *life) take(r run.Run) (string, run.Cause, error) {
	taken, got, err := l.Take(l.t.Context(), l.id, run.Claim{Owner: "b", Lease: lease, MaxLosses: 3})
	if err == nil {
		if l.current != nil {
			l.lost = append(l.lost, l.current)
		}
		if taken.State != run.Running || got.Attempt != r.Attempts+1 {
			l.t.Fatalf("%s: taken as %s, attempt %d after %d", l.name, taken.State, got.Attempt, r.Attempts)
		}
		l.current, l.expired = l.record(got), false
		return "take", run.CauseTake, nil
	}
	if errors.Is(err, run.ErrState) { // it ended instead
		if l.current != nil {
			l.lost = append(l.lost, l.current)
		}
		l.current = nil
		if l.cancelled {
			return "take of a cancelled run", run.CauseAbort, nil
		}
		return "take of a run that was lost too often", run.CausePark, nil
	}
	return "take", "", err
}

func (l *life) decide(r run.Run) (string, run.Cause, error) {
	var decisions []job.Decision
	for _, w := range r.Waits {
		decisions = append(decisions, job.Decision{WaitID: w.WaitID, Hash: w.Hash, Verdict: job.VerdictApprove})
	}
	_, err := l.Decide(l.t.Context(), "acme", l.id, decisions, "me")
	return "decide", run.CauseDecide, err
}

// late ends the run by everybody who has lost it: that must fail.
func (l *life) late(ctx context.Context) error {
	for _, rec := range l.lost {
		if _, err := rec.Finish(ctx, job.Outcome{Completed: completed()}); !errors.Is(err, run.ErrLost) {
			l.t.Fatalf("%s: a lost lease ended the run: %v", l.name, err)
		}
	}
	return run.ErrLost
}

func (l *life) finish(ctx context.Context, o job.Outcome) func(*run.Recorder) error {
	return func(rec *run.Recorder) error {
		if l.random.IntN(2) == 0 {
			if err := rec.Event(note(l.id, rec.NextSeq())); err != nil {
				return err
			}
		}
		_, err := rec.Finish(ctx, o)
		return err
	}
}

// end ends the attempt of the lease that holds.
func (l *life) end(what string, cause run.Cause, by func(*run.Recorder) error) (string, run.Cause, error) {
	rec := l.current
	if rec == nil {
		return what, "", run.ErrLost
	}
	l.current = nil
	err := by(rec)
	if err != nil {
		l.t.Fatalf("%s: %s: %v", l.name, what, err)
	}
	l.lost = append(l.lost, rec)
	if cause == run.CauseRelease && l.cancelled {
		cause = run.CauseAbort
	}
	return what, cause, nil
}
