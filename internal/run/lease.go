package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
)

// Take gives a run to a process that wants to execute it: one that is queued and may start, or one whose lease has
// expired. Of several that try, one gets it; the others get ErrLost, as does everybody for a run that has ended or whose
// lease holds. A run for which there is no room is ErrBusy. A run that somebody cancelled meanwhile, or that was lost too
// often, ends here and is ErrState.
func (s *Store) Take(ctx context.Context, id string, claim Claim) (Run, *Lease, error) {
	t := &taking{store: s, id: id, claim: claim}
	if err := s.write(ctx, func(tx *store.Tx) error { return t.take(ctx, tx) }); err != nil {
		return Run{}, nil, fmt.Errorf("take run %s: %w", id, err)
	}
	s.hub.publish(id, t.told)
	if t.refused != nil {
		return Run{}, nil, fmt.Errorf("take run %s: %w", id, t.refused)
	}
	return t.run, t.lease, nil
}

// taking is one call of Take. Its transaction may be made several times and shares a commit with others.
type taking struct {
	store *Store
	id    string
	claim Claim

	run     Run
	lease   *Lease
	refused error
	told    []Event
}

func (t *taking) take(ctx context.Context, tx *store.Tx) error {
	t.run, t.lease, t.refused, t.told = Run{}, nil, nil, nil
	r, err := locked(ctx, tx, t.id)
	if errors.Is(err, store.ErrNotFound) {
		t.refused = ErrLost // it does not exist, or somebody is writing it just now
		return nil
	}
	if err != nil {
		return err
	}
	now, err := t.store.now(ctx, tx)
	if err != nil {
		return err
	}
	lost := r.State == Running
	if _, can := r.State.Next(CauseTake); !can || !lost && r.NotBefore.After(now) {
		t.refused = ErrLost
		return nil
	}
	if lost {
		if free, err := t.expired(ctx, tx, r, now); err != nil || !free {
			return err
		}
	} else if room, err := hasRoom(ctx, tx, r.Tenant, r.Project, r.ProjectLimit, t.claim.MaxRunning); err != nil || !room {
		t.refused = ErrBusy
		return err
	}
	return t.begin(ctx, tx, r, now, lost)
}

// locked returns a run that no other transaction writes before this one ends. One that another is writing is not found.
func locked(ctx context.Context, tx *store.Tx, id string) (Run, error) {
	condition := "id = ?"
	if tx.Dialect() == store.Postgres {
		condition += " FOR UPDATE SKIP LOCKED"
	}
	return query(ctx, tx, condition, id)
}

// expired looks at a running run. It reports whether a further attempt may take it over.
func (t *taking) expired(ctx context.Context, tx *store.Tx, r Run, now time.Time) (bool, error) {
	var owner string
	var until int64
	if err := tx.QueryRow(ctx, "SELECT owner, lease_until FROM runs WHERE id = ?", []any{r.ID}, &owner, &until); err != nil {
		return false, err
	}
	if until >= millis(now) {
		t.refused = ErrLost
		return false, nil
	}
	if err := endAttempt(ctx, tx, r.ID, r.Attempts, now, EndedLost, "the process "+owner+" is gone"); err != nil {
		return false, err
	}
	limit := t.claim.MaxLosses
	if limit == 0 {
		limit = DefaultMaxLosses
	}
	var end *job.FailedData
	cause := CausePark
	switch {
	case r.CancelCause != "":
		cause, end = CauseAbort, aborted(r.CancelCause)
	case r.Losses+1 > limit:
		end = parked(r.Losses + 1)
	default:
		return true, nil
	}
	t.refused = fmt.Errorf("%w: %s", ErrState, end.Message)
	told, err := endUnowned(ctx, tx, r, cause, end, now)
	t.told = told
	return false, err
}

// begin makes the run this claim's.
func (t *taking) begin(ctx context.Context, tx *store.Tx, r Run, now time.Time, lost bool) error {
	losses := int64(0)
	if lost {
		losses = 1
	}
	until := millis(now.Add(t.claim.Lease))
	n, err := tx.Exec(ctx, "UPDATE runs SET state = 'running', owner = ?, fence = fence + 1, lease_until = ?, attempts = attempts + 1, losses = losses + ?, "+
		"place = ?, queue_id = 0, waits = '', updated_at = ?, started_at = CASE WHEN started_at = 0 THEN ? ELSE started_at END "+
		"WHERE id = ? AND fence = ? AND state = ? AND (state = 'queued' OR lease_until < ?)",
		t.claim.Owner, until, losses, t.claim.Place, millis(now), millis(now), r.ID, r.fence, string(r.State), millis(now))
	if err != nil {
		return err
	}
	if n != 1 {
		t.refused = ErrLost
		return nil
	}
	t.lease = &Lease{Run: r.ID, Owner: t.claim.Owner, Fence: r.fence + 1, Attempt: r.Attempts + 1}
	if r.StartedAt.IsZero() {
		r.StartedAt = instant(millis(now))
	}
	// Place stays that of the attempt before: whoever goes on has to know where its files are.
	r.State, r.Attempts, r.Losses, r.Waits, r.QueueID, r.UpdatedAt, r.fence = Running, r.Attempts+1, r.Losses+losses, nil, 0, instant(millis(now)), r.fence+1
	t.run = r
	return beginAttempt(ctx, tx, *t.lease, t.claim.Place, now)
}

func endAttempt(ctx context.Context, tx *store.Tx, id string, attempt int64, now time.Time, ending, message string) error {
	_, err := tx.Exec(ctx, "UPDATE run_attempts SET ended_at = ?, ending = ?, message = ? WHERE run = ? AND attempt = ? AND ended_at = 0",
		millis(now), ending, message, id, attempt)
	return err
}

// Renewed is what Renew says of a lease that still holds.
type Renewed struct {
	// CancelCause is set if somebody wants the run to end.
	CancelCause string
}

// Renew prolongs the leases of exactly the runs that a process executes. A run that is not in the answer is lost: its
// lease had expired, or another process has it. It has to be called at least every third of the lease.
func (s *Store) Renew(ctx context.Context, owner string, runs []string, lease time.Duration) (map[string]Renewed, error) {
	held := make(map[string]Renewed, len(runs))
	if len(runs) == 0 {
		return held, nil
	}
	args := make([]any, len(runs))
	for i, id := range runs {
		args[i] = id
	}
	err := s.db.Append(ctx, func(tx *store.Tx) error {
		clear(held)
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		return tx.Query(ctx, func(row store.Row) error {
			var id string
			var r Renewed
			if err := row.Scan(&id, &r.CancelCause); err != nil {
				return err
			}
			held[id] = r
			return nil
		}, "UPDATE runs SET lease_until = ? WHERE owner = ? AND state = 'running' AND lease_until >= ? AND id IN ("+marks(len(runs))+") RETURNING id, cancel_cause",
			append([]any{millis(now.Add(lease)), owner, millis(now)}, args...)...)
	})
	if err != nil {
		return nil, fmt.Errorf("renew the leases of %d runs: %w", len(runs), err)
	}
	return held, nil
}

// Expired returns up to limit runs whose lease has expired, those that expired first before others. Whoever has room
// takes them.
func (s *Store) Expired(ctx context.Context, limit int) ([]string, error) {
	now, err := s.now(ctx, s.db)
	if err != nil {
		return nil, err
	}
	return s.ids(ctx, "SELECT id FROM runs WHERE state = 'running' AND lease_until < ? ORDER BY lease_until LIMIT ?", millis(now), limit)
}

// Waiting returns up to limit queued runs that could have started so long ago, the oldest first. It finds those whose
// wake-up was lost.
func (s *Store) Waiting(ctx context.Context, since time.Duration, limit int) ([]string, error) {
	now, err := s.now(ctx, s.db)
	if err != nil {
		return nil, err
	}
	due := millis(now.Add(-since))
	return s.ids(ctx, "SELECT id FROM runs WHERE state = 'queued' AND not_before <= ? AND updated_at <= ? ORDER BY not_before, id LIMIT ?", due, due, limit)
}

func (s *Store) ids(ctx context.Context, statement string, args ...any) ([]string, error) {
	var ids []string
	err := s.db.Query(ctx, func(row store.Row) error {
		var id string
		err := row.Scan(&id)
		ids = append(ids, id)
		return err
	}, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("look for runs: %w", err)
	}
	return ids, nil
}

// ExpireOthers ends the leases of every process but one, and returns of how many runs. Only a process that knows that it
// is the only one calls it, at its start: then whoever holds a lease is a process that has died, and nobody need wait.
func (s *Store) ExpireOthers(ctx context.Context, owner string) (int64, error) {
	var n int64
	err := s.db.Write(ctx, func(tx *store.Tx) (err error) {
		n, err = tx.Exec(ctx, "UPDATE runs SET lease_until = 0 WHERE state = 'running' AND owner <> ? AND lease_until > 0", owner)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("expire the leases of processes that are gone: %w", err)
	}
	return n, nil
}

// Drop gives a lease up without an end of the attempt: whoever has room takes the run at once, as that of a process that
// died. A lease that is lost already is no error.
func (s *Store) Drop(ctx context.Context, l Lease) error {
	err := s.db.Append(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE runs SET lease_until = 0 WHERE id = ? AND owner = ? AND fence = ? AND state = 'running'", l.Run, l.Owner, l.Fence)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop the lease of run %s: %w", l.Run, err)
	}
	return nil
}

// WaitingOf returns the queued run of a project that could have started first, "" if none can.
func (s *Store) WaitingOf(ctx context.Context, tenant, project string) (string, error) {
	now, err := s.now(ctx, s.db)
	if err != nil {
		return "", err
	}
	ids, err := s.ids(ctx, "SELECT id FROM runs WHERE tenant = ? AND project = ? AND state = 'queued' AND not_before <= ? ORDER BY not_before, id LIMIT 1", tenant, project, millis(now))
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}
