// Package database opens the one SQLite file of the program. The packages calendar, memory and run keep their tables in
// it, each with a schema of its own that it applies when it is opened. The file is in WAL mode, so that readers never
// wait for the writer, and every transaction takes the write lock at once, so that two of them queue up instead of
// failing half-way.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver, SQLite translated to Go: no C compiler is needed
)

// connections bounds the pool. SQLite has one writer; the others are for readers that hold a stream open.
const connections = 8

// Open opens or makes the file at path. The caller closes it.
func Open(ctx context.Context, path string) (*sql.DB, error) {
	settings := url.Values{
		"_pragma": {"journal_mode(WAL)", "busy_timeout(10000)", "foreign_keys(1)", "synchronous(NORMAL)"},
		"_txlock": {"immediate"},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: settings.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	db.SetMaxOpenConns(connections)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the database %s: %w", path, err), db.Close())
	}
	return db, nil
}

// ErrStale is in the chain of errors about a change to a version that is not the current one any more.
var ErrStale = errors.New("it has changed since")

// Change runs f in a transaction, which is kept only if f returns nil.
func Change(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Time writes a time as the text in which all tables keep it; texts order as the times do.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// ParseTime reads what Time has written.
func ParseTime(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }
