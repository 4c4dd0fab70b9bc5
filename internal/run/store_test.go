package run_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

func TestARunIsBornLeasedOrQueued(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		born := f.create(request(), claim("a"))
		if born.Lease == nil || born.Run.State != run.Running || born.Run.Attempts != 1 || f.queue.count(born.Run.ID) != 0 {
			t.Errorf("born leased: %+v", born)
		}
		queued := f.create(request(), run.Claim{})
		if queued.Lease != nil || queued.Run.State != run.Queued || queued.Run.Attempts != 0 || f.queue.count(queued.Run.ID) != 1 {
			t.Errorf("queued: %+v", queued)
		}
		later := request()
		later.NotBefore = f.clock.time().Add(time.Hour)
		if made := f.create(later, claim("a")); made.Lease != nil || made.Run.State != run.Queued {
			t.Errorf("not before an hour: %+v", made)
		}
		for _, made := range []run.Created{born, queued} {
			if diff := cmp.Diff(made.Run, f.get(made.Run.ID), cmp.AllowUnexported(run.Run{})); diff != "" {
				t.Errorf("what Create returned is not what is there (-returned +there):\n%s", diff)
			}
		}
	})
}

func TestOneKeyIsOneRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		ask := request()
		ask.IdempotencyKey, ask.Input = "k", json.RawMessage(`{"task": "a"}`)
		var all sync.WaitGroup
		var mu sync.Mutex
		ids, leases := map[string]bool{}, 0
		for range 100 {
			all.Go(func() {
				made, err := f.Create(t.Context(), ask, claim("a"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[made.Run.ID] = true
				if made.Lease != nil {
					leases++
				}
			})
		}
		all.Wait()
		if len(ids) != 1 || leases != 1 {
			t.Errorf("100 equal requests made %d runs with %d leases", len(ids), leases)
		}
		other := ask
		other.Input = json.RawMessage(`{"task": "b"}`)
		if _, err := f.Create(t.Context(), other, claim("a")); !errors.Is(err, run.ErrOtherRequest) {
			t.Errorf("another body: %v", err)
		}
		other.Tenant = "zeta"
		if made, err := f.Create(t.Context(), other, claim("a")); err != nil || made.Found {
			t.Errorf("the key of another tenant: %+v, %v", made, err)
		}
	})
}

func TestForeignAndMissingRunsAnswerAlike(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		id := f.create(request(), run.Claim{}).Run.ID
		for _, c := range []struct{ tenant, id string }{{"zeta", id}, {"acme", "run_none"}} {
			_, get := f.Get(t.Context(), c.tenant, c.id)
			_, cancel := f.Cancel(t.Context(), c.tenant, c.id, "no")
			_, decide := f.Decide(t.Context(), c.tenant, c.id, nil, "me")
			_, steps := f.Steps(t.Context(), c.tenant, c.id, 0, 0)
			_, attempts := f.Attempts(t.Context(), c.tenant, c.id)
			_, journal := f.Journal(t.Context(), c.tenant, c.id)
			var follow error
			for _, err := range f.Follow(t.Context(), c.tenant, c.id, 0) {
				follow = err
			}
			for name, err := range map[string]error{"get": get, "cancel": cancel, "decide": decide, "steps": steps, "attempts": attempts, "journal": journal, "follow": follow} {
				if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s %s of %s: %v", name, c.id, c.tenant, err)
				}
			}
		}
		if f.get(id).State != run.Queued {
			t.Error("a foreign tenant changed the run")
		}
	})
}

func TestRunsAreListedInPages(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		want := map[string]bool{}
		for range 7 {
			want[f.create(request(), run.Claim{}).Run.ID] = true
		}
		foreign, other := request(), request()
		foreign.Tenant, other.Project = "zeta", "p2"
		f.create(foreign, run.Claim{})
		f.create(other, claim("a"))
		filter := run.Filter{Project: "p1", Agent: "clerk", States: []run.State{run.Queued, run.Failed}, Limit: 3}
		got, pages := map[string]bool{}, 0
		for {
			page, next, err := f.List(t.Context(), "acme", filter)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for i, r := range page {
				if got[r.ID] || i > 0 && page[i-1].ID <= r.ID {
					t.Errorf("run %s comes twice or out of order", r.ID)
				}
				got[r.ID] = true
			}
			if filter.Before = next; next == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || pages != 3 {
			t.Errorf("%d pages (-want +got):\n%s", pages, diff)
		}
	})
}

func TestAsManyRunAsMay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		limited := request()
		limited.ProjectLimit = 2
		var all sync.WaitGroup
		var mu sync.Mutex
		var queued []string
		running := 0
		for range 20 {
			all.Go(func() {
				made, err := f.Create(t.Context(), limited, claim("a"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if made.Lease != nil {
					running++
				} else {
					queued = append(queued, made.Run.ID)
				}
			})
		}
		all.Wait()
		if running != 2 || len(queued) != 18 {
			t.Fatalf("%d run and %d wait", running, len(queued))
		}
		if _, _, err := f.Take(t.Context(), queued[0], claim("b")); !errors.Is(err, run.ErrBusy) {
			t.Errorf("a third run of the project: %v", err)
		}
		other := request()
		other.Project = "p2"
		c := claim("a")
		c.MaxRunning = 3
		if made := f.create(other, c); made.Lease == nil {
			t.Error("another project has no room")
		}
		if made := f.create(other, c); made.Lease != nil {
			t.Error("a fourth run where three may")
		}
	})
}

func TestAFullQueueRefuses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		for range 3 {
			f.create(request(), run.Claim{MaxQueued: 3})
		}
		if _, err := f.Create(t.Context(), request(), run.Claim{MaxQueued: 3}); !errors.Is(err, run.ErrFull) {
			t.Errorf("a fourth run: %v", err)
		}
		c := claim("a")
		c.MaxQueued = 3
		if made := f.create(request(), c); made.Lease == nil {
			t.Error("a run that starts at once does not need the queue")
		}
		counts, err := f.Counts(t.Context())
		if err != nil || counts.Queued != 3 || counts.Running != 1 || counts.Oldest.IsZero() {
			t.Errorf("%+v, %v", counts, err)
		}
	})
}

func TestOfManyOneTakesARun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		id := f.create(request(), run.Claim{}).Run.ID
		race := func() (won int) {
			var all sync.WaitGroup
			var mu sync.Mutex
			for i := range 16 {
				all.Go(func() {
					_, l, err := f.Take(t.Context(), id, claim(string(rune('a'+i))))
					mu.Lock()
					defer mu.Unlock()
					if err == nil && l != nil {
						won++
					} else if !errors.Is(err, run.ErrLost) {
						t.Errorf("losing: %v", err)
					}
				})
			}
			all.Wait()
			return won
		}
		if won := race(); won != 1 {
			t.Errorf("%d took a queued run", won)
		}
		if won := race(); won != 0 {
			t.Errorf("%d took a run whose lease holds", won)
		}
		f.clock.turn(lease + time.Second)
		if won := race(); won != 1 {
			t.Errorf("%d took a run whose lease had expired", won)
		}
		if r := f.get(id); r.Attempts != 2 || r.Losses != 1 {
			t.Errorf("%d attempts, %d losses", r.Attempts, r.Losses)
		}
	})
}

func TestRenewKeepsExactlyWhatIsExecuted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		kept, dropped, foreign := f.create(request(), claim("a")).Run.ID, f.create(request(), claim("a")).Run.ID, f.create(request(), claim("b")).Run.ID
		if _, err := f.Cancel(t.Context(), "acme", kept, "enough"); err != nil {
			t.Fatal(err)
		}
		f.clock.turn(lease / 2)
		held, err := f.Renew(t.Context(), "a", []string{kept, foreign, "run_none"}, lease)
		if diff := cmp.Diff(map[string]run.Renewed{kept: {CancelCause: "enough"}}, held); diff != "" || err != nil {
			t.Errorf("held (-want +got):\n%s%v", diff, err)
		}
		f.clock.turn(lease/2 + time.Second)
		expired, err := f.Expired(t.Context(), 10)
		if diff := cmp.Diff(map[string]bool{dropped: true, foreign: true}, set(expired)); diff != "" || err != nil {
			t.Errorf("expired (-want +got):\n%s%v", diff, err)
		}
		held, err = f.Renew(t.Context(), "a", []string{kept, dropped}, lease)
		if len(held) != 1 || err != nil {
			t.Errorf("an expired lease was renewed: %v, %v", held, err)
		}
	})
}

func set(ids []string) map[string]bool {
	all := map[string]bool{}
	for _, id := range ids {
		all[id] = true
	}
	return all
}

func TestTheLeasesOfDeadProcessesEndAtTheStart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		mine, dead := f.create(request(), claim("new")).Run.ID, f.create(request(), claim("old")).Run.ID
		if n, err := f.ExpireOthers(t.Context(), "new"); n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if _, l := f.take(dead, "new"); l.Fence != 2 {
			t.Errorf("fence %d", l.Fence)
		}
		if _, _, err := f.Take(t.Context(), mine, claim("third")); !errors.Is(err, run.ErrLost) {
			t.Errorf("a lease that holds: %v", err)
		}
	})
}

func TestARunThatKillsItsProcessIsParked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		id := f.create(request(), claim("a")).Run.ID
		c := claim("b")
		c.MaxLosses = 2
		for range 2 {
			f.clock.turn(lease + time.Second)
			if _, _, err := f.Take(t.Context(), id, c); err != nil {
				t.Fatal(err)
			}
		}
		f.clock.turn(lease + time.Second)
		if _, _, err := f.Take(t.Context(), id, c); !errors.Is(err, run.ErrState) {
			t.Errorf("after the third loss: %v", err)
		}
		if r := f.get(id); r.State != run.Failed || r.Code != job.CodeProcessLost || r.EndedAt.IsZero() {
			t.Errorf("the run is %s, %s", r.State, r.Code)
		}
		if got := follow(t, f, id, 0); len(got) != 1 || got[0].Type != job.EventFailed || got[0].Seq != 1 {
			t.Errorf("events: %v", got)
		}
		attempts, err := f.Attempts(t.Context(), "acme", id)
		if err != nil || len(attempts) != 3 {
			t.Fatalf("%v, %v", attempts, err)
		}
		for _, a := range attempts {
			if a.Ending != run.EndedLost {
				t.Errorf("attempt %d ended %q", a.N, a.Ending)
			}
		}
	})
}

func TestCancelEndsARunOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := newFixture(t, db)
		queued := f.create(request(), run.Claim{}).Run.ID
		for range 2 {
			if c, err := f.Cancel(t.Context(), "acme", queued, "not needed"); err != nil || c.Run.State != run.Cancelled || c.Owner != "" {
				t.Errorf("%+v, %v", c, err)
			}
		}
		if got := follow(t, f, queued, 0); len(got) != 1 || got[0].Type != job.EventFailed {
			t.Errorf("events: %v", got)
		}
		if _, _, err := f.Take(t.Context(), queued, claim("a")); !errors.Is(err, run.ErrLost) {
			t.Errorf("a cancelled run is taken: %v", err)
		}

		running := f.create(request(), claim("a")).Run.ID
		if c, err := f.Cancel(t.Context(), "acme", running, "first"); err != nil || c.Run.State != run.Running || c.Owner != "a" {
			t.Errorf("%+v, %v", c, err)
		}
		if _, err := f.Cancel(t.Context(), "acme", running, "second"); err != nil {
			t.Error(err)
		}
		f.clock.turn(lease + time.Second)
		if _, _, err := f.Take(t.Context(), running, claim("b")); !errors.Is(err, run.ErrState) {
			t.Errorf("a cancelled run of a dead process is taken up: %v", err)
		}
		if r := f.get(running); r.State != run.Cancelled || r.Message != "first" || r.Reason != job.ReasonAborted {
			t.Errorf("the run is %s, %q", r.State, r.Message)
		}
	})
}

func follow(t *testing.T, f *fixture, id string, after int64) []run.Event {
	t.Helper()
	var got []run.Event
	for e, err := range f.Follow(t.Context(), "acme", id, after) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}
