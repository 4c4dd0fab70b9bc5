package run

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
)

// closing is the end of an attempt: what its transaction writes.
type closing struct {
	recorder *Recorder
	cause    Cause
	ending   string // of the attempt; "" stands for the state
	message  string
	outcome  job.Outcome
	at       time.Time // when a released run may go on
	lost     bool
	retry    bool

	// What the last transaction did.
	state   State
	told    []Event
	refused error
}

// Finish ends the attempt with what the job came to, and returns the state of the run: completed, failed or cancelled,
// suspended if calls wait for decisions, queued if the attempt was detached without any. Everything that was reported is
// stored first, then the event that ends the attempt, which Finish writes itself if the job did not, in one transaction
// with the state. An outcome that says that the process was lost is for Release.
func (r *Recorder) Finish(ctx context.Context, outcome job.Outcome) (State, error) {
	c := &closing{recorder: r, outcome: outcome}
	switch {
	case outcome.Completed != nil:
		c.cause = CauseComplete
	case outcome.Suspended != nil && len(outcome.Suspended.Waits) > 0:
		c.cause = CauseSuspend
	case outcome.Suspended != nil:
		c.cause = CauseRelease
	case outcome.Failed != nil && outcome.Failed.Reason == job.ReasonAborted:
		c.cause = CauseAbort
	case outcome.Failed != nil:
		c.cause = CauseFail
	default:
		return "", fmt.Errorf("finish run %s: the outcome says nothing", r.lease.Run)
	}
	if f := outcome.Failed; f != nil {
		c.message = f.Message
	}
	return c.commit(ctx)
}

// Released says why an attempt ends although the job has not.
type Released struct {
	// Lost says that the process of the job ended without a word. It counts, as for Claim.MaxLosses.
	Lost bool
	// Retry says that the attempt could not begin. It counts as Run.Retries.
	Retry bool
	// NotBefore is when the next attempt may begin; zero is at once.
	NotBefore time.Time
	// Message is for people.
	Message string
}

// Release ends the attempt so that another one goes on, here or elsewhere: the run is queued. A run that somebody has
// cancelled meanwhile is cancelled instead.
func (r *Recorder) Release(ctx context.Context, why Released) (State, error) {
	c := &closing{recorder: r, cause: CauseRelease, at: why.NotBefore, lost: why.Lost, retry: why.Retry, message: why.Message}
	if why.Lost {
		c.ending = EndedLost
	}
	r.dropTerminal()
	return c.commit(ctx)
}

// commit stores what is left and makes the transaction.
func (c *closing) commit(ctx context.Context) (State, error) {
	r := c.recorder
	if err := r.settle(); err != nil {
		return "", fmt.Errorf("finish run %s: %w", r.lease.Run, err)
	}
	if err := r.store.write(ctx, func(tx *store.Tx) error { return c.write(ctx, tx) }); err != nil {
		return "", fmt.Errorf("finish run %s: %w", r.lease.Run, err)
	}
	if c.refused != nil {
		return "", fmt.Errorf("finish run %s: %w", r.lease.Run, c.refused)
	}
	r.store.hub.publish(r.lease.Run, c.told)
	return c.state, nil
}

// write makes the rows. It shares a commit with others: a lease that is lost is noted, and writes nothing.
func (c *closing) write(ctx context.Context, tx *store.Tx) error {
	r := c.recorder
	c.told, c.refused = nil, nil
	now, err := r.store.now(ctx, tx)
	if err != nil {
		return err
	}
	found, err := query(ctx, tx, c.held(tx), r.lease.Run, r.lease.Owner, r.lease.Fence)
	if err != nil {
		c.refused = ErrLost
		return ignoreNotFound(err)
	}
	if c.cause == CauseRelease && found.CancelCause != "" {
		c.cause, c.outcome = CauseAbort, job.Outcome{Failed: aborted(found.CancelCause), Usage: c.outcome.Usage}
		r.dropTerminal()
	}
	state, can := Running.Next(c.cause)
	if !can {
		return fmt.Errorf("%w: %s", ErrState, c.cause)
	}
	c.state = state
	if err := c.tell(ctx, tx, now); err != nil {
		return err
	}
	if err := c.update(ctx, tx, found, now); err != nil {
		return err
	}
	ending := c.ending
	if ending == "" {
		ending = string(state)
	}
	return endAttempt(ctx, tx, r.lease.Run, r.lease.Attempt, now, ending, c.message)
}

// held is the condition of a run whose lease holds.
func (c *closing) held(tx *store.Tx) string {
	condition := "id = ? AND owner = ? AND fence = ? AND state = 'running'"
	if tx.Dialect() == store.Postgres {
		condition += " FOR UPDATE"
	}
	return condition
}

// tell writes the event that ends the attempt.
func (c *closing) tell(ctx context.Context, tx *store.Tx, now time.Time) error {
	r := c.recorder
	e := r.terminal
	if e == nil {
		data := c.outcome.End()
		if c.cause == CauseRelease || data == nil {
			return nil
		}
		e = job.NewEvent(r.seq+1, now, r.lease.Run, "", data)
	}
	c.told = []Event{{Seq: e.Seq, Type: e.Type, Line: e.Line()}}
	_, err := tx.Exec(ctx, "INSERT INTO run_events (run, seq, type, event) VALUES (?, ?, ?, ?)", r.lease.Run, e.Seq, string(e.Type), string(e.Line()))
	return err
}

// update writes the row of the run.
func (c *closing) update(ctx context.Context, tx *store.Tx, found Run, now time.Time) error {
	r := c.recorder
	row := row{usage: string(found.Usage)}
	if err := row.fill(c.outcome); err != nil {
		return err
	}
	var queueID int64
	if c.state == Queued {
		var err error
		if queueID, err = r.store.wake(ctx, tx, r.lease.Run, c.at); err != nil {
			return err
		}
	}
	losses, retries, ended := int64(0), int64(0), int64(0)
	if c.lost {
		losses = found.Losses + 1
	}
	if c.retry {
		losses, retries = found.Losses, found.Retries+1
	}
	if c.state.Final() {
		ended = millis(now)
	}
	_, err := tx.Exec(ctx, "UPDATE runs SET state = ?, owner = '', lease_until = 0, not_before = ?, queue_id = ?, losses = ?, retries = ?, waits = ?, "+
		"reason = ?, code = ?, message = ?, outcome = ?, usage = ?, updated_at = ?, ended_at = ? WHERE id = ? AND owner = ? AND fence = ? AND state = 'running'",
		string(c.state), millis(c.at), queueID, losses, retries, row.waits, row.reason, row.code, row.message, row.outcome, row.usage,
		millis(now), ended, r.lease.Run, r.lease.Owner, r.lease.Fence)
	return err
}

// row is what an outcome leaves in the columns of a run.
type row struct{ waits, reason, code, message, outcome, usage string }

func (w *row) fill(o job.Outcome) error {
	encode := func(to *string, v any) error {
		text, err := json.Marshal(v)
		*to = string(text)
		return err
	}
	if o.Usage != (job.TotalUsage{}) {
		if err := encode(&w.usage, o.Usage); err != nil {
			return err
		}
	}
	switch {
	case o.Completed != nil:
		return encode(&w.outcome, o.Completed)
	case o.Failed != nil:
		w.reason, w.code, w.message = string(o.Failed.Reason), o.Failed.Code, o.Failed.Message
		return encode(&w.outcome, o.Failed)
	case o.Suspended != nil && len(o.Suspended.Waits) > 0:
		return encode(&w.waits, o.Suspended.Waits)
	}
	return nil
}
