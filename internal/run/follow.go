package run

import (
	"context"
	"fmt"
	"iter"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
)

// eventPage is how many events are read at once.
const eventPage = 200

// Follow yields the events of a tenant's run after the one with the number after, each once and in order: those that are
// stored, then those that come, until the event that ends the run. A run that is suspended or waits for its turn has more
// to come. The iterator ends with an error when ctx ends and when the database fails; whoever begins again after the last
// event that it got misses none. A reader may be as slow as it likes: nobody waits for it. A number beyond the last event
// waits for the events after it.
func (s *Store) Follow(ctx context.Context, tenant, id string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if _, err := s.Get(ctx, tenant, id); err != nil {
			yield(Event{}, err)
			return
		}
		s.hub.follow(id)
		defer s.hub.unfollow(id)
		seq := max(after, 0)
		for looked, checked := false, false; ; {
			events, news := s.hub.after(id, seq)
			if len(events) == 0 && (news == nil || !looked) {
				var err error
				if events, err = s.Events(ctx, tenant, id, seq, eventPage); err != nil {
					yield(Event{}, err)
					return
				}
				looked = len(events) == 0
			}
			for _, e := range events {
				seq = e.Seq
				if !yield(e, nil) || e.Type.Terminal() {
					return
				}
			}
			if len(events) > 0 {
				continue
			}
			if news == nil {
				continue
			}
			if !checked { // a run that has ended before: nothing comes
				if over, err := s.over(ctx, tenant, id, seq); err != nil || over {
					if err != nil {
						yield(Event{}, err)
					}
					return
				}
				checked = true
			}
			if err := s.hub.wait(ctx, news); err != nil {
				yield(Event{}, fmt.Errorf("follow run %s: %w", id, err))
				return
			}
		}
	}
}

// wait waits for news of a run.
func (h *hub) wait(ctx context.Context, news <-chan struct{}) error {
	select {
	case <-news:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-h.closed:
		return errClosed
	}
}

// over reports whether a run has ended and has no event after seq.
func (s *Store) over(ctx context.Context, tenant, id string, seq int64) (bool, error) {
	r, err := s.Get(ctx, tenant, id)
	if err != nil || !r.State.Final() {
		return false, err
	}
	events, err := s.Events(ctx, tenant, id, seq, 1)
	return len(events) == 0, err
}

// Events returns up to limit stored events of a tenant's run after the one with the number after.
func (s *Store) Events(ctx context.Context, tenant, id string, after int64, limit int) ([]Event, error) {
	var events []Event
	err := s.db.Query(ctx, func(row store.Row) error {
		var e Event
		var kind string
		if err := row.Scan(&e.Seq, &kind, &e.Line); err != nil {
			return err
		}
		e.Type = job.EventType(kind)
		events = append(events, e)
		return nil
	}, "SELECT e.seq, e.type, e.event FROM run_events e JOIN runs r ON r.id = e.run WHERE r.tenant = ? AND e.run = ? AND e.seq > ? ORDER BY e.seq LIMIT ?",
		tenant, id, max(after, 0), limit)
	if err != nil {
		return nil, fmt.Errorf("the events of run %s: %w", id, err)
	}
	return events, nil
}

// lastSeqs returns the last event of each run that has any.
func (s *Store) lastSeqs(ctx context.Context, runs []string) (map[string]int64, error) {
	last := map[string]int64{}
	for len(runs) > 0 {
		part := runs[:min(len(runs), 500)]
		runs = runs[len(part):]
		args := make([]any, len(part))
		for i, id := range part {
			args[i] = id
		}
		err := s.db.Query(ctx, func(row store.Row) error {
			var id string
			var seq int64
			err := row.Scan(&id, &seq)
			last[id] = seq
			return err
		}, "SELECT run, MAX(seq) FROM run_events WHERE run IN ("+marks(len(part))+") GROUP BY run", args...)
		if err != nil {
			return nil, fmt.Errorf("look for events: %w", err)
		}
	}
	return last, nil
}
