package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
)

func reasonOf(text string) job.Reason { return job.Reason(text) }

func aborted(cause string) *job.FailedData {
	return &job.FailedData{Reason: job.ReasonAborted, Code: job.CodeAborted, Message: cause, Outputs: []string{}}
}

func parked(losses int64) *job.FailedData {
	return &job.FailedData{Reason: job.ReasonError, Code: job.CodeProcessLost, Outputs: []string{},
		Message: fmt.Sprintf("%d attempts in a row ended without a word; the run is not tried again", losses)}
}

// endUnowned ends a run that nobody executes: it writes the event that ends the run, and its state. The caller has the run
// locked.
func endUnowned(ctx context.Context, tx *store.Tx, r Run, cause Cause, data *job.FailedData, now time.Time) ([]Event, error) {
	state, can := r.State.Next(cause)
	if !can {
		return nil, fmt.Errorf("%w: %s from %s", ErrState, cause, r.State)
	}
	var last int64
	if err := tx.QueryRow(ctx, "SELECT COALESCE(MAX(seq), 0) FROM run_events WHERE run = ?", []any{r.ID}, &last); err != nil {
		return nil, err
	}
	e := job.NewEvent(last+1, now, r.ID, "", data)
	if _, err := tx.Exec(ctx, "INSERT INTO run_events (run, seq, type, event) VALUES (?, ?, ?, ?)", r.ID, e.Seq, string(e.Type), string(e.Line())); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	n, err := tx.Exec(ctx, "UPDATE runs SET state = ?, fence = fence + 1, owner = '', lease_until = 0, queue_id = 0, waits = '', reason = ?, code = ?, message = ?, outcome = ?, "+
		"updated_at = ?, ended_at = ? WHERE id = ? AND fence = ? AND state = ?",
		string(state), string(data.Reason), data.Code, data.Message, string(encoded), millis(now), millis(now), r.ID, r.fence, string(r.State))
	if err == nil && n != 1 {
		err = ErrLost
	}
	return []Event{{Seq: e.Seq, Type: e.Type, Line: e.Line()}}, err
}

// Cancellation is what Cancel did.
type Cancellation struct {
	// Run is the run after the call.
	Run Run
	// Owner is the process that has to end a running run; "" if the run has ended with the call, or before it.
	Owner string
}

// Cancel wants a run of a tenant to end, with a cause for people. One that nobody executes ends at once. A running one is
// marked: the process that executes it learns that from its next Renew, and if it is gone the run is not taken up again.
// A run that has ended is left as it is; the first cause counts.
func (s *Store) Cancel(ctx context.Context, tenant, id, cause string) (Cancellation, error) {
	if cause == "" {
		cause = "cancelled"
	}
	var done Cancellation
	var told []Event
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		done, told = Cancellation{}, nil
		r, err := lockedOf(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		if _, can := r.State.Next(CauseCancel); can {
			if told, err = endUnowned(ctx, tx, r, CauseCancel, aborted(cause), now); err != nil {
				return err
			}
		} else if r.State == Running {
			if err := tx.QueryRow(ctx, "UPDATE runs SET cancel_cause = CASE WHEN cancel_cause = '' THEN ? ELSE cancel_cause END WHERE tenant = ? AND id = ? RETURNING owner",
				[]any{cause, tenant, id}, &done.Owner); err != nil {
				return err
			}
		}
		done.Run, err = query(ctx, tx, "tenant = ? AND id = ?", tenant, id)
		return err
	})
	if err != nil {
		return Cancellation{}, fmt.Errorf("cancel run %s: %w", id, err)
	}
	s.hub.publish(id, told)
	return done, nil
}

// lockedOf is locked for a run of a tenant, and waits for others who write it.
func lockedOf(ctx context.Context, tx *store.Tx, tenant, id string) (Run, error) {
	condition := "tenant = ? AND id = ?"
	if tx.Dialect() == store.Postgres {
		condition += " FOR UPDATE"
	}
	return query(ctx, tx, condition, tenant, id)
}

// Decided is what Decide did.
type Decided struct {
	Run Run
	// Open are the calls that still wait.
	Open []job.Wait
}

// Decide answers calls that a suspended run of a tenant waits for. Each decision has to name a wait of the run with its
// hash; a wait is decided once. When all are decided, or one of them is withdrawn, the run is queued. It returns ErrState
// for a run that is not suspended and a problem of the decisions otherwise, and then takes none of them.
func (s *Store) Decide(ctx context.Context, tenant, id string, decisions []job.Decision, by string) (Decided, error) {
	var done Decided
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		done = Decided{}
		r, err := lockedOf(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		if r.State != Suspended {
			return fmt.Errorf("%w: it is %s and waits for nothing", ErrState, r.State)
		}
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		if err := addDecisions(ctx, tx, r, decisions, by, now); err != nil {
			return err
		}
		taken, err := decisionsOf(ctx, tx, id)
		if err != nil {
			return err
		}
		withdrawn := false
		for _, w := range r.Waits {
			d, decided := taken[w.WaitID]
			if !decided {
				done.Open = append(done.Open, w)
			}
			withdrawn = withdrawn || decided && d.Verdict == job.VerdictWithdraw
		}
		if len(done.Open) == 0 || withdrawn {
			if err := s.requeue(ctx, tx, r, now); err != nil {
				return err
			}
		}
		done.Run, err = query(ctx, tx, "tenant = ? AND id = ?", tenant, id)
		return err
	})
	if err != nil {
		return Decided{}, fmt.Errorf("decide about run %s: %w", id, err)
	}
	return done, nil
}

func (s *Store) requeue(ctx context.Context, tx *store.Tx, r Run, now time.Time) error {
	state, _ := r.State.Next(CauseDecide)
	wakeUp, err := s.wake(ctx, tx, r.ID, time.Time{})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE runs SET state = ?, queue_id = ?, not_before = 0, updated_at = ? WHERE id = ? AND fence = ? AND state = 'suspended'",
		string(state), wakeUp, millis(now), r.ID, r.fence)
	return err
}

func addDecisions(ctx context.Context, tx *store.Tx, r Run, decisions []job.Decision, by string, now time.Time) error {
	if len(decisions) == 0 {
		return errors.New("there is no decision; name a wait with its hash and a verdict")
	}
	for _, d := range decisions {
		if err := checkDecision(r, d); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO run_decisions (run, wait_id, hash, verdict, arguments, rationale, decided_by, decided_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			r.ID, d.WaitID, d.Hash, d.Verdict, string(d.Arguments), d.Rationale, by, millis(now))
		if errors.Is(err, store.ErrExists) {
			return fmt.Errorf("%w: the wait %s is decided already", ErrState, d.WaitID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkDecision(r Run, d job.Decision) error {
	switch d.Verdict {
	case job.VerdictApprove, job.VerdictReject, job.VerdictWithdraw:
	default:
		return fmt.Errorf("the verdict %q about the wait %s is none: approve, reject or withdraw", d.Verdict, d.WaitID)
	}
	for _, w := range r.Waits {
		if w.WaitID != d.WaitID {
			continue
		}
		if w.Hash != d.Hash {
			return fmt.Errorf("the decision about the wait %s is for another call: its hash is not that of the wait", d.WaitID)
		}
		if d.Verdict == job.VerdictApprove && len(d.Arguments) > 0 && !json.Valid(d.Arguments) {
			return fmt.Errorf("the arguments of the decision about the wait %s are no JSON", d.WaitID)
		}
		return nil
	}
	return fmt.Errorf("the run does not wait for %s", d.WaitID)
}

func decisionsOf(ctx context.Context, q store.Querier, id string) (map[string]job.Decision, error) {
	taken := map[string]job.Decision{}
	err := q.Query(ctx, func(row store.Row) error {
		var d job.Decision
		var arguments string
		if err := row.Scan(&d.WaitID, &d.Hash, &d.Verdict, &arguments, &d.Rationale); err != nil {
			return err
		}
		if arguments != "" {
			d.Arguments = json.RawMessage(arguments)
		}
		taken[d.WaitID] = d
		return nil
	}, "SELECT wait_id, hash, verdict, arguments, rationale FROM run_decisions WHERE run = ? ORDER BY decided_at, wait_id", id)
	return taken, err
}
