package memory

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/hozo-run/hozo/problem"

	"github.com/hozo-run/hozo/examples/events-calendar/database"
)

// The full text index holds no text of its own; the triggers keep it in step with the table.
const schema = `
CREATE TABLE IF NOT EXISTS lessons (
	number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, same TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL,
	run_id TEXT NOT NULL, version INTEGER NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT;
CREATE VIRTUAL TABLE IF NOT EXISTS lessons_text USING fts5(title, text, content='lessons', content_rowid='number', tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER IF NOT EXISTS lessons_added AFTER INSERT ON lessons BEGIN
	INSERT INTO lessons_text(rowid, title, text) VALUES (new.number, new.title, new.text);
END;
CREATE TRIGGER IF NOT EXISTS lessons_removed AFTER DELETE ON lessons BEGIN
	INSERT INTO lessons_text(lessons_text, rowid, title, text) VALUES ('delete', old.number, old.title, old.text);
END;
CREATE TRIGGER IF NOT EXISTS lessons_changed AFTER UPDATE ON lessons BEGIN
	INSERT INTO lessons_text(lessons_text, rowid, title, text) VALUES ('delete', old.number, old.title, old.text);
	INSERT INTO lessons_text(rowid, title, text) VALUES (new.number, new.title, new.text);
END;`

// Config is what a Store is opened with.
type Config struct {
	DB *sql.DB
	// Now is the clock; nil is that of the machine.
	Now func() time.Time
}

// Store is a Memory in SQLite, with what people need to look after it. It is safe for concurrent use.
type Store struct {
	db  *sql.DB
	now func() time.Time
}

var _ Memory = (*Store)(nil)

// Open makes the tables where they are missing and returns the store.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if _, err := c.DB.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("make the tables of the memory: %w", err)
	}
	return &Store{db: c.DB, now: c.Now}, nil
}

const columns = `l.id, l.title, l.text, l.run_id, l.version, l.created_at, l.updated_at`

type scanner interface{ Scan(...any) error }

func scan(row scanner) (Lesson, error) {
	var l Lesson
	var created, updated string
	err := row.Scan(&l.ID, &l.Title, &l.Text, &l.RunID, &l.Version, &created, &updated)
	if err != nil {
		return Lesson{}, err
	}
	if l.CreatedAt, err = database.ParseTime(created); err != nil {
		return Lesson{}, err
	}
	l.UpdatedAt, err = database.ParseTime(updated)
	return l, err
}

func (s *Store) query(ctx context.Context, query string, args ...any) ([]Lesson, error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	lessons := []Lesson{}
	for rows.Next() {
		l, err := scan(rows)
		if err != nil {
			return nil, err
		}
		lessons = append(lessons, l)
	}
	return lessons, rows.Err()
}

// Recall implements Memory: lessons that share a word with the task, by BM25. A word in the title counts twice.
func (s *Store) Recall(ctx context.Context, task string, limit int) ([]Lesson, error) {
	return s.Search(ctx, task, limit)
}

// Search returns the lessons that share words with a text, the best first.
func (s *Store) Search(ctx context.Context, text string, limit int) ([]Lesson, error) {
	expression := matchAny(text)
	if expression == "" {
		return []Lesson{}, nil
	}
	lessons, err := s.query(ctx, `SELECT `+columns+` FROM lessons_text JOIN lessons l ON l.number = lessons_text.rowid
		WHERE lessons_text MATCH ? ORDER BY bm25(lessons_text, 2.0, 1.0), l.number DESC LIMIT ?`, expression, limit)
	if err != nil {
		return nil, fmt.Errorf("search the memory: %w", err)
	}
	return lessons, nil
}

// maxWords bounds the words of a search; what comes after them adds little.
const maxWords = 64

// matchAny makes an expression of the words of a text, each in quotes, so that no text can be an operator.
func matchAny(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
	var quoted []string
	for _, w := range words {
		if len([]rune(w)) > 2 && len(quoted) < maxWords {
			quoted = append(quoted, `"`+w+`"`)
		}
	}
	return strings.Join(quoted, " OR ")
}

// Learn implements Memory. Two lessons say the same if they do so apart from case and space.
func (s *Store) Learn(ctx context.Context, runID string, drafts []Draft) ([]Lesson, error) {
	lessons := make([]Lesson, len(drafts))
	err := database.Change(ctx, s.db, func(tx *sql.Tx) error {
		for i, d := range drafts {
			if err := d.Check().Err("learn a lesson"); err != nil {
				return err
			}
			var err error
			if lessons[i], err = s.keep(ctx, tx, runID, d); err != nil {
				return fmt.Errorf("learn a lesson: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lessons, nil
}

func (s *Store) keep(ctx context.Context, tx *sql.Tx, runID string, d Draft) (Lesson, error) {
	known, err := scan(tx.QueryRowContext(ctx, `SELECT `+columns+` FROM lessons l WHERE same = ?`, d.digest()))
	if !errors.Is(err, sql.ErrNoRows) {
		return known, err
	}
	now := s.now().UTC().Truncate(time.Millisecond)
	l := Lesson{ID: "le_" + strings.ToLower(rand.Text()), Draft: d, RunID: runID, Version: 1, CreatedAt: now, UpdatedAt: now}
	_, err = tx.ExecContext(ctx, `INSERT INTO lessons (id, same, title, text, run_id, version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		l.ID, d.digest(), l.Title, l.Text, l.RunID, l.Version, database.Time(now), database.Time(now))
	return l, err
}

// digest is equal for drafts that say the same.
func (d Draft) digest() string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(strings.ToLower(d.Title+" "+d.Text)), " ")))
	return hex.EncodeToString(sum[:])
}

// Add keeps a lesson that a person wrote. Every problem of it comes in one *problem.Error of kind Invalid.
func (s *Store) Add(ctx context.Context, d Draft) (Lesson, error) {
	lessons, err := s.Learn(ctx, "", []Draft{d})
	if err != nil {
		return Lesson{}, err
	}
	return lessons[0], nil
}

// Find returns a lesson; an unknown id is a *problem.Error of kind NotFound.
func (s *Store) Find(ctx context.Context, id string) (Lesson, error) {
	l, err := scan(s.db.QueryRowContext(ctx, `SELECT `+columns+` FROM lessons l WHERE id = ?`, id))
	return l, found(id, err)
}

func found(id string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return &problem.Error{Kind: problem.NotFound, Message: fmt.Sprintf("there is no lesson %q", id)}
	}
	return err
}

// Update is a change by a person; a nil field keeps what there is.
type Update struct {
	Title *string `json:"title"`
	Text  *string `json:"text"`
}

// Change changes a lesson that is at this version; another one is a *problem.Error of kind Conflict, as is a text that
// another lesson has already.
func (s *Store) Change(ctx context.Context, id string, version int64, u Update) (Lesson, error) {
	var l Lesson
	err := database.Change(ctx, s.db, func(tx *sql.Tx) error {
		var err error
		if l, err = s.at(ctx, tx, id, version); err != nil {
			return err
		}
		if u.Title != nil {
			l.Title = *u.Title
		}
		if u.Text != nil {
			l.Text = *u.Text
		}
		if err := l.Check().Err("change the lesson"); err != nil {
			return err
		}
		var other string
		err = tx.QueryRowContext(ctx, `SELECT id FROM lessons WHERE same = ? AND id <> ?`, l.digest(), id).Scan(&other)
		if err == nil {
			return &problem.Error{Kind: problem.Conflict, Message: fmt.Sprintf("the lesson %s says the same already", other)}
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		l.Version++
		l.UpdatedAt = s.now().UTC().Truncate(time.Millisecond)
		_, err = tx.ExecContext(ctx, `UPDATE lessons SET same = ?, title = ?, text = ?, version = ?, updated_at = ? WHERE id = ?`,
			l.digest(), l.Title, l.Text, l.Version, database.Time(l.UpdatedAt), id)
		return err
	})
	return l, err
}

// Delete forgets a lesson that is at this version; another one is a *problem.Error of kind Conflict.
func (s *Store) Delete(ctx context.Context, id string, version int64) error {
	return database.Change(ctx, s.db, func(tx *sql.Tx) error {
		if _, err := s.at(ctx, tx, id, version); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM lessons WHERE id = ?`, id)
		return err
	})
}

func (s *Store) at(ctx context.Context, tx *sql.Tx, id string, version int64) (Lesson, error) {
	l, err := scan(tx.QueryRowContext(ctx, `SELECT `+columns+` FROM lessons l WHERE id = ?`, id))
	if err != nil {
		return Lesson{}, found(id, err)
	}
	if l.Version != version {
		return Lesson{}, &problem.Error{Kind: problem.Conflict, Message: fmt.Sprintf("the lesson %s is at version %d, not %d", id, l.Version, version), Err: database.ErrStale}
	}
	return l, nil
}

// Page is one page of a list; an empty NextCursor is the end.
type Page struct {
	Items      []Lesson `json:"items"`
	NextCursor string   `json:"nextCursor,omitempty"`
}

// List returns the lessons by age, the oldest first. A cursor that List has not made is a *problem.Error of kind Invalid.
func (s *Store) List(ctx context.Context, limit int, cursor string) (Page, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	created, id, cut := strings.Cut(string(text), "\n")
	if err != nil || cursor != "" && !cut {
		var list problem.List
		list.AddHint("cursor-invalid", "/cursor", "use the nextCursor of the page before", "this is no cursor of a list of lessons")
		return Page{}, list.Err("list lessons")
	}
	lessons, err := s.query(ctx, `SELECT `+columns+` FROM lessons l WHERE (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?`, created, id, limit+1)
	if err != nil {
		return Page{}, fmt.Errorf("list lessons: %w", err)
	}
	page := Page{Items: lessons}
	if len(lessons) > limit {
		page.Items = lessons[:limit]
		last := page.Items[limit-1]
		page.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(database.Time(last.CreatedAt) + "\n" + last.ID))
	}
	return page, nil
}
