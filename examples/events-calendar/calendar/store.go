package calendar

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
)

const schema = `
CREATE TABLE IF NOT EXISTS events (
	id TEXT PRIMARY KEY, -- Details.ID of what was proposed first
	same_as TEXT NOT NULL, -- Details.ID of what it says now, after the changes of people
	title TEXT NOT NULL, date TEXT NOT NULL, end_date TEXT NOT NULL, start_time TEXT NOT NULL, end_time TEXT NOT NULL,
	time_zone TEXT NOT NULL, venue TEXT NOT NULL, source_url TEXT NOT NULL, description TEXT NOT NULL,
	status TEXT NOT NULL CHECK (status IN ('proposed', 'approved', 'rejected')),
	decided_by TEXT NOT NULL CHECK (decided_by IN ('', 'agent', 'person')),
	run_id TEXT NOT NULL, version INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS events_by_identity ON events (same_as);
CREATE INDEX IF NOT EXISTS events_by_date ON events (date, start_time, id);

CREATE TABLE IF NOT EXISTS proposals (
	run_id TEXT NOT NULL, call_id TEXT NOT NULL, position INTEGER NOT NULL, result TEXT NOT NULL,
	PRIMARY KEY (run_id, call_id, position)
) STRICT;`

// Config is what a Store is opened with.
type Config struct {
	DB *sql.DB
	// Now is the clock; nil is that of the machine.
	Now func() time.Time
}

// Store is the calendar on disk. It is safe for concurrent use.
type Store struct {
	db  *sql.DB
	now func() time.Time
}

// Open makes the tables where they are missing and returns the store.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if _, err := c.DB.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("make the tables of the calendar: %w", err)
	}
	return &Store{db: c.DB, now: c.Now}, nil
}

const columns = `id, title, date, end_date, start_time, end_time, time_zone, venue, source_url, description, status, decided_by, run_id, version, created_at, updated_at`

type scanner interface{ Scan(...any) error }

func scan(row scanner) (Event, error) {
	var e Event
	var created, updated string
	err := row.Scan(&e.ID, &e.Title, &e.Date, &e.EndDate, &e.StartTime, &e.EndTime, &e.TimeZone, &e.Venue, &e.SourceURL, &e.Description,
		&e.Status, &e.DecidedBy, &e.RunID, &e.Version, &created, &updated)
	if err != nil {
		return Event{}, err
	}
	if e.CreatedAt, err = database.ParseTime(created); err != nil {
		return Event{}, err
	}
	e.UpdatedAt, err = database.ParseTime(updated)
	return e, err
}

func notFound(id string) error {
	return &problem.Error{Kind: problem.NotFound, Message: fmt.Sprintf("there is no event %q", id)}
}

// Find returns an event; an unknown id is a *problem.Error of kind NotFound.
func (s *Store) Find(ctx context.Context, id string) (Event, error) {
	return find(ctx, s.db, id)
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func find(ctx context.Context, q querier, id string) (Event, error) {
	e, err := scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM events WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return Event{}, notFound(id)
	}
	if err != nil {
		return Event{}, fmt.Errorf("find the event %s: %w", id, err)
	}
	return e, nil
}

// findSame returns the event that a proposal of this id is about: one that was proposed so, or that people have made so.
func findSame(ctx context.Context, tx *sql.Tx, id string) (Event, error) {
	var known string
	err := tx.QueryRowContext(ctx, `SELECT id FROM events WHERE id = ?1 OR same_as = ?1 ORDER BY id = ?1 DESC, id LIMIT 1`, id).Scan(&known)
	if errors.Is(err, sql.ErrNoRows) {
		return Event{}, notFound(id)
	}
	if err != nil {
		return Event{}, fmt.Errorf("find the event %s: %w", id, err)
	}
	return find(ctx, tx, known)
}

// write inserts or replaces an event.
func write(ctx context.Context, tx *sql.Tx, e Event) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO events (same_as, `+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.Details.ID(), e.ID, e.Title, e.Date, e.EndDate, e.StartTime, e.EndTime, e.TimeZone, e.Venue, e.SourceURL, e.Description,
		string(e.Status), string(e.DecidedBy), e.RunID, e.Version, database.Time(e.CreatedAt), database.Time(e.UpdatedAt))
	if err != nil {
		return fmt.Errorf("write the event %s: %w", e.ID, err)
	}
	return nil
}

// Update is a change by a person; a nil field keeps what there is.
type Update struct {
	Title       *string `json:"title"`
	Date        *string `json:"date"`
	EndDate     *string `json:"endDate"`
	StartTime   *string `json:"startTime"`
	EndTime     *string `json:"endTime"`
	TimeZone    *string `json:"timeZone"`
	Venue       *string `json:"venue"`
	SourceURL   *string `json:"sourceUrl"`
	Description *string `json:"description"`
}

func (u Update) apply(d Details) Details {
	for _, field := range []struct{ to, from *string }{{&d.Title, u.Title}, {&d.Date, u.Date}, {&d.EndDate, u.EndDate}, {&d.StartTime, u.StartTime},
		{&d.EndTime, u.EndTime}, {&d.TimeZone, u.TimeZone}, {&d.Venue, u.Venue}, {&d.SourceURL, u.SourceURL}, {&d.Description, u.Description}} {
		if field.from != nil {
			*field.to = *field.from
		}
	}
	return d.trimmed()
}

// Change makes a person's change. version is the version that the person has seen; another one is a *problem.Error of
// kind Conflict. Every problem of the changed event comes in one *problem.Error of kind Invalid. The id of an event never
// changes, also when what it was made of does.
func (s *Store) Change(ctx context.Context, id string, version int64, u Update) (Event, error) {
	return s.edit(ctx, id, version, func(e *Event) error {
		e.Details = u.apply(e.Details)
		e.RunID = ""
		return e.Check(s.now()).Err("change the event")
	})
}

// Decide approves or rejects an event in the name of a person. Deciding what is decided already changes nothing.
func (s *Store) Decide(ctx context.Context, id string, status Status) (Event, error) {
	return s.edit(ctx, id, 0, func(e *Event) error {
		e.Status = status
		return nil
	})
}

// edit changes an event in the name of a person. Version 0 is any version.
func (s *Store) edit(ctx context.Context, id string, version int64, change func(*Event) error) (Event, error) {
	var changed Event
	err := database.Change(ctx, s.db, func(tx *sql.Tx) error {
		before, err := find(ctx, tx, id)
		if err != nil {
			return err
		}
		if version != 0 && version != before.Version {
			return &problem.Error{Kind: problem.Conflict, Message: fmt.Sprintf("the event %s is at version %d, not %d", id, before.Version, version), Err: database.ErrStale}
		}
		changed = before
		if err := change(&changed); err != nil {
			return err
		}
		changed.DecidedBy = ByPerson
		if changed == before {
			return nil
		}
		changed.Version++
		changed.UpdatedAt = s.now().UTC()
		return write(ctx, tx, changed)
	})
	return changed, err
}

// Proposals returns what became of everything that a run has proposed, in the order in which it did.
func (s *Store) Proposals(ctx context.Context, runID string) ([]Result, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT result FROM proposals WHERE run_id = ? ORDER BY rowid`, runID)
	if err != nil {
		return nil, fmt.Errorf("list the proposals of %s: %w", runID, err)
	}
	defer rows.Close()
	results := []Result{}
	for rows.Next() {
		var text []byte
		var r Result
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, rows.Err()
}
