package run

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"sync"

	"github.com/hozo-run/hozo/job"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
)

// Journal is the journal of one attempt of a run, a job.Journal. A frame is stored only when the events before it are,
// so that a run that goes on from its journal has told everything that the journal knows; whoever reads the events calls
// Stored for each that it has kept.
type Journal struct {
	store *Store
	id    string
	// ctx outlives the run: what happened is recorded also when the run is aborted.
	ctx context.Context
	// OnFrame, if set, sees each frame when it has been stored, in order. Its error is that of storing the frame.
	OnFrame func(context.Context, job.Frame) error

	mu     sync.Mutex
	events int64 // the last event that is stored
	held   []heldFrame
}

type heldFrame struct {
	seq, n int64
	line   []byte
	stored chan error
}

var _ job.Journal = (*Journal)(nil)

// Journal opens the journal of a run.
func (s *Store) Journal(ctx context.Context, id string) *Journal {
	return &Journal{store: s, id: id, ctx: context.WithoutCancel(ctx)}
}

// LastSeq returns the number of the last event of a run, 0 if there is none.
func (s *Store) LastSeq(ctx context.Context, id string) (int64, error) {
	var seq sql.NullInt64
	err := s.db.QueryRowContext(ctx, `SELECT max(seq) FROM run_events WHERE run_id = ?`, id).Scan(&seq)
	return seq.Int64, err
}

// Earlier implements job.Journal.
func (j *Journal) Earlier() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		rows, err := j.store.db.QueryContext(j.ctx, `SELECT frame FROM run_frames WHERE run_id = ? ORDER BY n`, j.id)
		if err != nil {
			yield(nil, fmt.Errorf("read the journal of %s: %w", j.id, err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var line []byte
			if err := rows.Scan(&line); !yield(line, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, fmt.Errorf("read the journal of %s: %w", j.id, err))
		}
	}
}

// Append implements job.Journal.
func (j *Journal) Append(line []byte) (<-chan error, error) {
	head, err := job.ParseFrameHead(line)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	f := heldFrame{seq: head.Seq, n: head.N, line: line}
	if f.seq <= j.events && len(j.held) == 0 {
		return nil, j.write(f)
	}
	f.stored = make(chan error, 1)
	j.held = append(j.held, f)
	return f.stored, nil
}

// Stored says that the events up to seq are stored, and stores the frames that waited for them.
func (j *Journal) Stored(seq int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = max(j.events, seq)
	for len(j.held) > 0 && j.held[0].seq <= j.events {
		j.held[0].stored <- j.write(j.held[0])
		j.held = j.held[1:]
	}
}

// Close gives up the frames that still wait: the events before them could not be kept.
func (j *Journal) Close(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range j.held {
		f.stored <- why
	}
	j.held = nil
}

func (j *Journal) write(f heldFrame) error {
	err := database.Change(j.ctx, j.store.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(j.ctx, `INSERT INTO run_frames (run_id, n, frame) VALUES (?, ?, ?)`, j.id, f.n, string(f.line))
		return err
	})
	if err != nil {
		return fmt.Errorf("keep the frame %d of %s: %w", f.n, j.id, err)
	}
	if j.OnFrame == nil {
		return nil
	}
	frame, err := job.ParseFrame(f.line)
	if err != nil {
		return err
	}
	return j.OnFrame(j.ctx, frame)
}
