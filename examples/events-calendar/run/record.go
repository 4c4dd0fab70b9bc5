package run

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hozo-run/hozo/job"
	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
)

// AddEvent keeps an event of a run. An event of a later attempt replaces the void one of the same number.
func (s *Store) AddEvent(ctx context.Context, e *job.Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode the event %d: %w", e.Seq, err)
	}
	_, err = s.db.ExecContext(ctx, `INSERT OR REPLACE INTO run_events (run_id, seq, type, event) VALUES (?, ?, ?, ?)`, e.JobID, e.Seq, string(e.Type), string(line))
	if err != nil {
		return fmt.Errorf("keep the event %d of %s: %w", e.Seq, e.JobID, err)
	}
	s.announce(e.JobID)
	return nil
}

// Stored is an event as it was kept.
type Stored struct {
	Seq  int64
	Type job.EventType
	// JSON is the event on one line.
	JSON string
}

// Events returns the events of a run after a number, limit at most.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]Stored, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT seq, type, event FROM run_events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?`, id, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read the events of %s: %w", id, err)
	}
	defer rows.Close()
	var events []Stored
	for rows.Next() {
		var e Stored
		if err := rows.Scan(&e.Seq, &e.Type, &e.JSON); err != nil {
			return nil, fmt.Errorf("read the events of %s: %w", id, err)
		}
		events = append(events, e)
	}
	return events, rows.Err()
}

// Follow gives a reader the events of a run after a number, in order and without a gap, those to come included. It
// returns nil when the run has ended and the reader has everything, else the error of ctx, of send or of the store. A
// slow reader holds up nobody: what it has not read waits in the store.
func (s *Store) Follow(ctx context.Context, id string, after int64, send func([]Stored) error) error {
	const batch = 256
	for {
		news := s.Watch(id) // before the look, so that nothing falls in between
		r, err := s.Find(ctx, id)
		if err != nil {
			return err
		}
		events, err := s.Events(ctx, id, after, batch)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			if err := send(events); err != nil {
				return err
			}
			after = events[len(events)-1].Seq
			continue
		}
		if r.Status.Ended() {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Wait returns the run when it has ended.
func (s *Store) Wait(ctx context.Context, id string) (Run, error) {
	for {
		news := s.Watch(id)
		r, err := s.Find(ctx, id)
		if err != nil || r.Status.Ended() {
			return r, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
	}
}

// PutStep keeps a step under its call: a new one gets the next number, a known one is replaced.
func (s *Store) PutStep(ctx context.Context, id string, step Step) error {
	output := step.Output
	step.Output, step.OutputBytes = "", int64(len(output))
	return database.Change(ctx, s.db, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT coalesce((SELECT n FROM run_steps WHERE run_id = ?1 AND call_id = ?2),
			(SELECT coalesce(max(n), 0) + 1 FROM run_steps WHERE run_id = ?1))`, id, step.CallID).Scan(&step.N)
		if err != nil {
			return err
		}
		text, err := json.Marshal(step)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO run_steps (run_id, n, call_id, step, output) VALUES (?, ?, ?, ?, ?)`, id, step.N, step.CallID, string(text), output)
		return err
	})
}

// Steps returns the steps of a run without their outputs.
func (s *Store) Steps(ctx context.Context, id string) ([]Step, error) {
	if _, err := s.Find(ctx, id); err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT step FROM run_steps WHERE run_id = ? ORDER BY n`, id)
	if err != nil {
		return nil, fmt.Errorf("read the steps of %s: %w", id, err)
	}
	defer rows.Close()
	steps := []Step{}
	for rows.Next() {
		var text []byte
		var step Step
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &step); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, rows.Err()
}

// Step returns one step with its whole output; an unknown one is a *problem.Error of kind NotFound.
func (s *Store) Step(ctx context.Context, id string, n int64) (Step, error) {
	if _, err := s.Find(ctx, id); err != nil {
		return Step{}, err
	}
	var text []byte
	var output string
	err := s.db.QueryRowContext(ctx, `SELECT step, output FROM run_steps WHERE run_id = ? AND n = ?`, id, n).Scan(&text, &output)
	if errors.Is(err, sql.ErrNoRows) {
		return Step{}, &problem.Error{Kind: problem.NotFound, Message: fmt.Sprintf("the run %s has no step %d", id, n)}
	}
	if err != nil {
		return Step{}, fmt.Errorf("read the step %d of %s: %w", n, id, err)
	}
	var step Step
	err = json.Unmarshal(text, &step)
	step.Output = output
	return step, err
}

// PutDocument keeps the working-memory document after a step of the agent itself.
func (s *Store) PutDocument(ctx context.Context, id string, d Document) error {
	_, err := s.db.ExecContext(ctx, `INSERT OR REPLACE INTO run_documents (run_id, step, mode, document) VALUES (?, ?, ?, ?)`, id, d.Step, d.Mode, d.Document)
	if err != nil {
		return fmt.Errorf("keep the document of %s: %w", id, err)
	}
	return nil
}

// Document returns the working-memory document after a step, or the latest one if step is below 0. One that is not there
// is a *problem.Error of kind NotFound.
func (s *Store) Document(ctx context.Context, id string, step int64) (Document, error) {
	if _, err := s.Find(ctx, id); err != nil {
		return Document{}, err
	}
	var d Document
	err := s.db.QueryRowContext(ctx, `SELECT step, mode, document FROM run_documents WHERE run_id = ?1 AND (step = ?2 OR ?2 < 0) ORDER BY step DESC LIMIT 1`, id, step).
		Scan(&d.Step, &d.Mode, &d.Document)
	if errors.Is(err, sql.ErrNoRows) {
		return Document{}, &problem.Error{Kind: problem.NotFound, Message: fmt.Sprintf("the run %s has no working-memory document there", id)}
	}
	if err != nil {
		return Document{}, fmt.Errorf("read the document of %s: %w", id, err)
	}
	return d, nil
}
