package run

import (
	"context"
	"fmt"
	"iter"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
)

// journalPage is how many frames are read at once.
const journalPage = 100

// frames yields the frames of a run up to a number, in order. A gap is an error: a job must not go on from a journal with
// a hole.
func (s *Store) frames(ctx context.Context, id string, until int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for n := int64(0); n < until; {
			page, err := s.framePage(ctx, id, n, min(until-n, journalPage))
			if err != nil {
				yield(nil, fmt.Errorf("the journal of run %s: %w", id, err))
				return
			}
			if len(page) == 0 {
				yield(nil, fmt.Errorf("the journal of run %s ends after frame %d; it had %d", id, n, until))
				return
			}
			for _, frame := range page {
				if n++; !yield(frame, nil) {
					return
				}
			}
		}
	}
}

func (s *Store) framePage(ctx context.Context, id string, after, limit int64) ([][]byte, error) {
	var page [][]byte
	err := s.db.Query(ctx, func(row store.Row) error {
		var n int64
		var frame []byte
		if err := row.Scan(&n, &frame); err != nil {
			return err
		}
		if n != after+int64(len(page))+1 {
			return fmt.Errorf("frame %d comes after frame %d", n, after+int64(len(page)))
		}
		page = append(page, frame)
		return nil
	}, "SELECT n, frame FROM run_journal WHERE run = ? AND n > ? ORDER BY n LIMIT ?", id, after, limit)
	return page, err
}

// Journal yields the frames of a tenant's run, as far as they are stored, for export and replay.
func (s *Store) Journal(ctx context.Context, tenant, id string) (iter.Seq2[[]byte, error], error) {
	if _, err := s.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	var last int64
	if err := s.db.QueryRow(ctx, "SELECT COALESCE(MAX(n), 0) FROM run_journal WHERE run = ?", []any{id}, &last); err != nil {
		return nil, fmt.Errorf("the journal of run %s: %w", id, err)
	}
	return s.frames(ctx, id, last), nil
}

// Decisions returns all decisions about calls of a run that are known, for job.Resume. Those that an attempt has used
// already do no harm there.
func (s *Store) Decisions(ctx context.Context, id string) ([]job.Decision, error) {
	taken, err := decisionsOf(ctx, s.db, id)
	if err != nil {
		return nil, fmt.Errorf("the decisions about run %s: %w", id, err)
	}
	all := make([]job.Decision, 0, len(taken))
	for _, d := range taken {
		all = append(all, d)
	}
	return all, nil
}
