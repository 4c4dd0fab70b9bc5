package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
)

// batch is what is stored in one transaction: events, and frames that stand after none but these and earlier ones.
type batch struct {
	events  []Event
	frames  []entry
	started *job.StartedData
	steps   []Step
}

func (b *batch) empty() bool { return len(b.events) == 0 && len(b.frames) == 0 }

// maxBatch is how many events or frames share a transaction.
const maxBatch = 200

// run is the goroutine that stores. What comes while a transaction is under way shares the next one.
func (r *Recorder) run(ctx context.Context) {
	defer close(r.done)
	defer r.giveUp()
	defer r.store.hub.end(r.lease.Run)
	var late <-chan time.Time // when that has to be stored for which nobody waits
	for open := true; open; {
		now := false
		select {
		case <-r.wake:
		case <-late:
			now = true
		case <-r.stop:
			open, now = false, true
		}
		if more := r.storeAll(ctx, now); !more {
			late = nil
		} else if late == nil || now {
			late = time.After(linger)
		}
	}
	r.mu.Lock()
	left := len(r.frames)
	r.mu.Unlock()
	if left > 0 {
		r.fail(errors.New("the attempt ended before the events came that stand before a frame of its journal"))
	}
}

// storeAll stores what can be stored, and reports whether it has left something for which nobody waits yet.
func (r *Recorder) storeAll(ctx context.Context, now bool) bool {
	for {
		b, more := r.gather(now)
		if b.empty() {
			return more
		}
		err := r.keep(ctx, &b)
		if err != nil {
			r.fail(err)
		}
		b.answer(err)
	}
}

func (b *batch) answer(err error) {
	for _, e := range b.frames {
		e.stored <- err
	}
}

// gather takes what can be stored. Unless it has to be stored now it leaves what nobody waits for, and says that there is
// more.
func (r *Recorder) gather(now bool) (b batch, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.N == 0 && !r.closed && len(r.events) > 0 && r.events[0].Type == job.EventStarted {
		return batch{}, false // a job that was reported to start must be one that can be resumed: it starts only once
	}
	events := min(len(r.events), maxBatch)
	reached := r.seq
	if events < len(r.events) {
		reached = r.events[events-1].Seq
	}
	frames, waited := 0, now || events == maxBatch
	for frames < min(len(r.frames), maxBatch) && r.frames[frames].head.Seq <= reached {
		waited = waited || urgent(r.frames[frames].head.Type)
		frames++
	}
	if !waited {
		return batch{}, events+frames > 0
	}
	b.events, r.events = r.events[:events:events], r.events[events:]
	b.frames, r.frames = r.frames[:frames:frames], r.frames[frames:]
	b.started, r.started = r.started, nil
	r.room.Broadcast()
	return b, false
}

// urgent reports whether the runtime may wait for a frame of this type as soon as it is appended. The others are followed
// by one of these, or by a request to a model.
func urgent(t job.FrameType) bool {
	switch t {
	case job.FrameSpec, job.FrameLists, job.FrameMessage, job.FrameCheckpoint, job.FrameCallDecided:
		return false
	}
	return true
}

// keep stores a batch: first the content that its frames name, then the rows.
func (r *Recorder) keep(ctx context.Context, b *batch) error {
	if err := r.prepare(ctx, b); err != nil {
		return err
	}
	lost := false
	whole := context.WithoutCancel(ctx) // others share the transaction
	stored, err := r.store.db.AppendLater(ctx, func(tx *store.Tx) (err error) {
		lost, err = r.insert(whole, tx, b)
		return err
	})
	if err != nil {
		return err
	}
	select {
	case err = <-stored:
	case <-ctx.Done():
		return ErrLost
	}
	switch {
	case err != nil:
		return fmt.Errorf("store what run %s reports: %w", r.lease.Run, err)
	case lost:
		return ErrLost
	}
	r.store.hub.publish(r.lease.Run, b.events)
	return nil
}

// prepare stores the files of checkpoints and the large answers of calls, and makes the steps of the batch.
func (r *Recorder) prepare(ctx context.Context, b *batch) error {
	for _, e := range b.frames {
		switch e.head.Type {
		case job.FrameCheckpoint:
			var c job.CheckpointFrame
			if err := dataOf(e.frame, &c); err != nil {
				return err
			}
			if err := r.files.keep(ctx, c.Files); err != nil {
				return err
			}
		case job.FrameCallStarted, job.FrameCallFinished, job.FrameStep:
			step, err := r.step(e)
			if err != nil {
				return err
			}
			if step == nil {
				continue
			}
			if err := step.shorten(ctx, r.files.blobs); err != nil {
				return err
			}
			b.steps = append(b.steps, *step)
		}
	}
	return nil
}

// insert writes the rows of a batch, all of them or none: the first one is written only if the lease holds, and then the
// lease holds until the transaction ends.
func (r *Recorder) insert(ctx context.Context, tx *store.Tx, b *batch) (lost bool, err error) {
	events := make([]record, len(b.events))
	for i, e := range b.events {
		events[i] = record{e.Seq, string(e.Type), string(e.Line)}
	}
	frames := make([]record, len(b.frames))
	for i, e := range b.frames {
		frames[i] = record{e.head.N, string(e.head.Type), string(e.frame)}
	}
	const journal = "run_journal (run, n, type, frame)"
	if len(events) > 0 {
		lost, err = r.lease.insertFirst(ctx, tx, "run_events (run, seq, type, event)", events)
	} else {
		lost, err = r.lease.insertFirst(ctx, tx, journal, frames)
		frames = nil
	}
	if lost || err != nil {
		return lost, err
	}
	if err := insertRows(ctx, tx, r.lease.Run, journal, frames); err != nil {
		return false, err
	}
	for _, step := range b.steps {
		if err := step.insert(ctx, tx, r.lease.Run); err != nil {
			return false, err
		}
	}
	if b.started == nil {
		return false, nil
	}
	n, err := tx.Exec(ctx, "UPDATE runs SET resolved = ?, definition = ? WHERE id = ? AND owner = ? AND fence = ? AND state = 'running'",
		b.started.Agent.Version, b.started.Definition, r.lease.Run, r.lease.Owner, r.lease.Fence)
	return n != 1, err
}

// record is a row of the journal or of the events.
type record struct {
	n    int64
	kind string
	line string
}

// maxRows is how many rows one statement inserts.
const maxRows = 50

// insertFirst adds rows to a table of the run if the lease holds: the statement of the first row says so itself. On
// PostgreSQL it also keeps others from taking the lease until the transaction has ended, so that whoever takes it sees all
// that was written before; on SQLite a transaction that writes is the only one.
func (l Lease) insertFirst(ctx context.Context, tx *store.Tx, table string, rows []record) (lost bool, err error) {
	statement := "INSERT INTO " + table + " SELECT id, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT) FROM runs WHERE id = ? AND owner = ? AND fence = ?"
	if tx.Dialect() == store.Postgres {
		statement += " FOR SHARE"
	}
	n, err := tx.Exec(ctx, statement, rows[0].n, rows[0].kind, rows[0].line, l.Run, l.Owner, l.Fence)
	if err != nil || n != 1 {
		return true, err
	}
	return false, insertRows(ctx, tx, l.Run, table, rows[1:])
}

// insertRows adds rows to a table of a run whose lease holds until the transaction ends.
func insertRows(ctx context.Context, tx *store.Tx, id, table string, rows []record) error {
	for len(rows) > 0 {
		part := rows[:min(len(rows), maxRows)]
		rows = rows[len(part):]
		args := make([]any, 0, 4*len(part))
		for _, row := range part {
			args = append(args, id, row.n, row.kind, row.line)
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?), ", len(part)), ", ")
		if _, err := tx.Exec(ctx, "INSERT INTO "+table+" VALUES "+values, args...); err != nil {
			return err
		}
	}
	return nil
}
