package run

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
)

const schema = `
CREATE TABLE IF NOT EXISTS runs (
	id TEXT PRIMARY KEY, status TEXT NOT NULL, created_at TEXT NOT NULL,
	idempotency_key TEXT UNIQUE, request_digest TEXT NOT NULL,
	record TEXT NOT NULL, -- the Run as JSON
	report TEXT           -- the artifact, once the run has ended
) STRICT;
CREATE INDEX IF NOT EXISTS runs_by_age ON runs (created_at, id);
CREATE TABLE IF NOT EXISTS run_events (run_id TEXT NOT NULL REFERENCES runs, seq INTEGER NOT NULL, type TEXT NOT NULL, event TEXT NOT NULL,
	PRIMARY KEY (run_id, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run_frames (run_id TEXT NOT NULL REFERENCES runs, n INTEGER NOT NULL, frame TEXT NOT NULL,
	PRIMARY KEY (run_id, n)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run_specs (run_id TEXT PRIMARY KEY REFERENCES runs, spec TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS run_steps (run_id TEXT NOT NULL REFERENCES runs, n INTEGER NOT NULL, call_id TEXT NOT NULL, step TEXT NOT NULL, output TEXT NOT NULL,
	PRIMARY KEY (run_id, n), UNIQUE (run_id, call_id)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run_documents (run_id TEXT NOT NULL REFERENCES runs, step INTEGER NOT NULL, mode TEXT NOT NULL, document TEXT NOT NULL,
	PRIMARY KEY (run_id, step)) STRICT, WITHOUT ROWID;`

// Config is what a Store is opened with.
type Config struct {
	DB *sql.DB
	// Now is the clock; nil is that of the machine.
	Now func() time.Time
}

// Store keeps runs. It is safe for concurrent use.
type Store struct {
	db  *sql.DB
	now func() time.Time

	mu      sync.Mutex
	changed map[string]chan struct{} // closed and replaced when a run has something new
}

// Open makes the tables where they are missing and returns the store.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if _, err := c.DB.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("make the tables of the runs: %w", err)
	}
	return &Store{db: c.DB, now: c.Now, changed: map[string]chan struct{}{}}, nil
}

// Watch returns a channel that is closed when the run gets an event or a new status after the call.
func (s *Store) Watch(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed[id] == nil {
		s.changed[id] = make(chan struct{})
	}
	return s.changed[id]
}

func (s *Store) announce(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.changed[id]; c != nil {
		close(c)
		delete(s.changed, id)
	}
}

// Key identifies a request that may be made twice. The zero value is none.
type Key struct {
	// Text is what the client calls the request.
	Text string
	// Digest is that of the request's content.
	Digest string
}

// Create adds a queued run. If there is a run of the same key already, it is returned and false; if that was asked for
// something else, the error is a *problem.Error of kind Conflict.
func (s *Store) Create(ctx context.Context, r Run, key Key) (Run, bool, error) {
	created := false
	err := database.Change(ctx, s.db, func(tx *sql.Tx) error {
		if key.Text != "" {
			var digest string
			known, err := scan(tx.QueryRowContext(ctx, `SELECT request_digest, record FROM runs WHERE idempotency_key = ?`, key.Text), &digest)
			switch {
			case err == nil && digest != key.Digest:
				return &problem.Error{Kind: problem.Conflict, Message: fmt.Sprintf("the idempotency key %q was used for another request", key.Text)}
			case err == nil:
				r = known
				return nil
			case !errors.Is(err, sql.ErrNoRows):
				return err
			}
		}
		r.Status, r.CreatedAt, created = Queued, s.now().UTC().Truncate(time.Millisecond), true
		record, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO runs (id, status, created_at, idempotency_key, request_digest, record) VALUES (?, ?, ?, ?, ?, ?)`,
			r.ID, string(r.Status), database.Time(r.CreatedAt), sql.NullString{String: key.Text, Valid: key.Text != ""}, key.Digest, string(record))
		return err
	})
	return r, created, err
}

type scanner interface{ Scan(...any) error }

// scan reads the columns of before and then the record.
func scan(row scanner, before ...any) (Run, error) {
	var record []byte
	var r Run
	if err := row.Scan(append(before, &record)...); err != nil {
		return Run{}, err
	}
	return r, json.Unmarshal(record, &r)
}

func found(id string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return &problem.Error{Kind: problem.NotFound, Message: fmt.Sprintf("there is no run %q", id)}
	}
	return err
}

// Find returns a run; an unknown id is a *problem.Error of kind NotFound.
func (s *Store) Find(ctx context.Context, id string) (Run, error) {
	r, err := scan(s.db.QueryRowContext(ctx, `SELECT record FROM runs WHERE id = ?`, id))
	return r, found(id, err)
}

// Change changes a run that has not ended. f must not change its id. A run that has ended is a *problem.Error of kind
// Conflict.
func (s *Store) Change(ctx context.Context, id string, f func(*Run)) (Run, error) {
	return s.change(ctx, id, nil, f)
}

// End ends a run together with its report, in one transaction.
func (s *Store) End(ctx context.Context, id string, report string, f func(*Run)) (Run, error) {
	return s.change(ctx, id, &report, f)
}

func (s *Store) change(ctx context.Context, id string, report *string, f func(*Run)) (Run, error) {
	var r Run
	err := database.Change(ctx, s.db, func(tx *sql.Tx) error {
		var err error
		if r, err = scan(tx.QueryRowContext(ctx, `SELECT record FROM runs WHERE id = ?`, id)); err != nil {
			return found(id, err)
		}
		if r.Status.Ended() {
			return &problem.Error{Kind: problem.Conflict, Message: fmt.Sprintf("the run %s has ended as %s", id, r.Status)}
		}
		f(&r)
		record, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE runs SET status = ?, record = ?, report = coalesce(?, report) WHERE id = ?`, string(r.Status), string(record), report, id)
		return err
	})
	s.announce(id)
	return r, err
}

// Filter chooses runs.
type Filter struct {
	// Status is one of Statuses; empty is all.
	Status Status
	Limit  int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// Page is one page of a list; an empty NextCursor is the end.
type Page struct {
	Items      []Run  `json:"items"`
	NextCursor string `json:"nextCursor,omitempty"`
}

// List returns runs by age, the newest first.
func (s *Store) List(ctx context.Context, f Filter) (Page, error) {
	conditions, args := []string{"1"}, []any{}
	if f.Status != "" {
		conditions, args = append(conditions, "status = ?"), append(args, string(f.Status))
	}
	if f.Cursor != "" {
		if _, err := s.Find(ctx, f.Cursor); err != nil {
			var list problem.List
			list.AddHint("cursor-invalid", "/cursor", "use the nextCursor of the page before", "this is no cursor of a list of runs")
			return Page{}, list.Err("list runs")
		}
		conditions, args = append(conditions, "(created_at, id) < (SELECT created_at, id FROM runs WHERE id = ?)"), append(args, f.Cursor)
	}
	rows, err := s.db.QueryContext(ctx, `SELECT record FROM runs WHERE `+strings.Join(conditions, " AND ")+` ORDER BY created_at DESC, id DESC LIMIT ?`,
		append(args, f.Limit+1)...)
	if err != nil {
		return Page{}, fmt.Errorf("list runs: %w", err)
	}
	defer rows.Close()
	page := Page{Items: []Run{}}
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return Page{}, fmt.Errorf("list runs: %w", err)
		}
		page.Items = append(page.Items, r)
	}
	if len(page.Items) > f.Limit {
		page.Items = page.Items[:f.Limit]
		page.NextCursor = page.Items[f.Limit-1].ID
	}
	return page, rows.Err()
}

// Unfinished returns the runs that have not ended, the oldest first.
func (s *Store) Unfinished(ctx context.Context) ([]Run, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT record FROM runs WHERE status IN ('queued', 'running') ORDER BY created_at, id`)
	if err != nil {
		return nil, fmt.Errorf("list unfinished runs: %w", err)
	}
	defer rows.Close()
	var runs []Run
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("list unfinished runs: %w", err)
		}
		runs = append(runs, r)
	}
	return runs, rows.Err()
}

// Report returns the artifact of a run. An unknown run is NotFound; one that has not ended has none yet, which is a
// *problem.Error of kind Conflict.
func (s *Store) Report(ctx context.Context, id string) (string, error) {
	var report sql.NullString
	r, err := scan(s.db.QueryRowContext(ctx, `SELECT report, record FROM runs WHERE id = ?`, id), &report)
	switch {
	case err != nil:
		return "", found(id, err)
	case !report.Valid:
		return "", &problem.Error{Kind: problem.Conflict, Message: fmt.Sprintf("the run %s is %s: it has a report when it has ended", id, r.Status)}
	}
	return report.String, nil
}

// PutSpec keeps the document that the attempts of a run share. It must hold no credentials, see job.Spec.Bare.
func (s *Store) PutSpec(ctx context.Context, id string, spec []byte) error {
	_, err := s.db.ExecContext(ctx, `INSERT OR REPLACE INTO run_specs (run_id, spec) VALUES (?, ?)`, id, string(spec))
	return err
}

// Spec returns what PutSpec has kept, nil if nothing was.
func (s *Store) Spec(ctx context.Context, id string) ([]byte, error) {
	var spec []byte
	err := s.db.QueryRowContext(ctx, `SELECT spec FROM run_specs WHERE run_id = ?`, id).Scan(&spec)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return spec, err
}
