package run_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

// TestEveryFollowerSeesEveryEventOnce lets many follow many runs while they report, some here and some in another process,
// and breaks each of them off again and again.
func TestEveryFollowerSeesEveryEventOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const runs, followers, events = 4, 6, 200
		f := newFixture(t, db)
		elsewhere := run.New(db, run.Config{Poll: time.Millisecond})
		t.Cleanup(elsewhere.Close)
		var all sync.WaitGroup
		for range runs {
			born := f.create(request(), claim("a"))
			id, recorder := born.Run.ID, f.record(born.Lease)
			for n := range followers {
				from := f.Store
				if n%2 == 0 {
					from = elsewhere
				}
				all.Go(func() { followInPieces(t, from, id, uint64(n), events+1) })
			}
			all.Go(func() {
				for seq := int64(1); seq <= events; seq++ {
					if err := recorder.Event(note(id, seq)); err != nil {
						t.Error(err)
					}
				}
				if err := recorder.Event(event(id, events+1, completed())); err != nil {
					t.Error(err)
				}
				if _, err := recorder.Finish(t.Context(), job.Outcome{Completed: completed()}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// followInPieces follows a run, breaks off after a few events and goes on after the last one, until the run has ended.
func followInPieces(t *testing.T, s *run.Store, id string, seed uint64, want int64) {
	random := rand.New(rand.NewPCG(seed, 2))
	var last int64
	for last < want {
		left := 1 + random.IntN(60)
		before := last
		for e, err := range s.Follow(t.Context(), "acme", id, last) {
			if err != nil {
				t.Error(err)
				return
			}
			if e.Seq != last+1 {
				t.Errorf("event %d after event %d", e.Seq, last)
				return
			}
			parsed, err := job.ParseEvent(e.Line)
			if err != nil || parsed.Seq != e.Seq {
				t.Errorf("event %d: %v", e.Seq, err)
			}
			last = e.Seq
			if left--; left == 0 {
				break
			}
		}
		if last == before {
			t.Errorf("the run ended after event %d of %d", last, want)
			return
		}
	}
}

func TestASlowFollowerHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storetest.Open(t, storetest.SQLite(t)))
	born := f.create(request(), claim("a"))
	id, r := born.Run.ID, f.record(born.Lease)
	report(t, r, note(id, 1))
	got := int64(0)
	for e, err := range f.Follow(t.Context(), "acme", id, 0) {
		if err != nil || e.Seq != got+1 {
			t.Fatalf("event %d after event %d: %v", e.Seq, got, err)
		}
		if got = e.Seq; got == 1 { // while this reader does nothing, the run reports far more than is kept for it
			for seq := int64(2); seq <= 5000; seq++ {
				report(t, r, note(id, seq))
			}
			appendFrame(t, r, frame(t, 1, 5000, job.FrameCallStarted, job.CallStartedFrame{}))
			if _, err := r.Finish(t.Context(), job.Outcome{Completed: completed()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got != 5001 {
		t.Errorf("the last event was %d", got)
	}
}

func TestAFollowerEndsWithItsContextAndWithTheStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storetest.Open(t, storetest.SQLite(t)))
	id := f.create(request(), run.Claim{}).Run.ID
	gone := errors.New("the reader is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for _, err := range f.Follow(ctx, "acme", id, 0) {
		if !errors.Is(err, gone) && !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
	}
	ended := make(chan error, 1)
	go func() {
		for _, err := range f.Follow(t.Context(), "acme", id, 0) {
			ended <- err
		}
	}()
	f.Close()
	if err := <-ended; err == nil {
		t.Error("a store that is closed says nothing")
	}
}

func TestFollowingARunThatHasEndedEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storetest.Open(t, storetest.SQLite(t)))
	id := f.create(request(), run.Claim{}).Run.ID
	if _, err := f.Cancel(t.Context(), "acme", id, "enough"); err != nil {
		t.Fatal(err)
	}
	for after, want := range map[int64]int{-5: 1, 0: 1, 1: 0, 1 << 40: 0} {
		if got := follow(t, f, id, after); len(got) != want {
			t.Errorf("after event %d: %d events", after, len(got))
		}
	}
}
