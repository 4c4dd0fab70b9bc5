// Package store is the database of the product: SQLite in one file by default, PostgreSQL where several machines share it.
// It opens either, brings its schema up to date and runs transactions; it holds no query of its own. The queries are in
// the packages that own the data, written once in the SQL that both understand, with ? for arguments. Whoever needs to tell
// the two apart asks DB.Dialect.
//
// On SQLite one connection writes and a pool reads beside it, as the file has one writer anyhow and waiting in Go is fair.
// Transactions that write begin as such, so none fails in its middle because another one was faster. On PostgreSQL a
// transaction that lost against another is made again.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Dialect is the kind of a database.
type Dialect string

// The databases.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// Config says which database to open.
type Config struct {
	// URL is "postgres://…" for a PostgreSQL database; empty means SQLite at Path.
	URL string
	// Path is the file of a SQLite database. Its directory must exist.
	Path string
	// MaxConns bounds the connections to PostgreSQL and the reading ones to SQLite; zero means 8.
	MaxConns int
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	dialect Dialect
	write   *sql.DB
	read    *sql.DB
	pool    *pgxpool.Pool
	commits *committer
}

// Open opens the database and migrates its schema. A schema that is newer than this program is an error: an older program
// must not write into it.
func Open(ctx context.Context, config Config) (*DB, error) {
	if config.MaxConns == 0 {
		config.MaxConns = 8
	}
	open := openSQLite
	if config.URL != "" {
		open = openPostgres
	}
	db, err := open(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate the database: %w", err), db.Close())
	}
	db.commits = newCommitter(db)
	return db, nil
}

// Dialect returns the kind of the database.
func (db *DB) Dialect() Dialect { return db.dialect }

// Pool returns the pool of a PostgreSQL database, nil for SQLite. The queue listens on it.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Writer returns the handle that writes. On SQLite everything that writes to the file shares it, the queue too: a second
// writer would starve.
func (db *DB) Writer() *sql.DB { return db.write }

// Close waits for pending commits and closes every connection.
func (db *DB) Close() error {
	if db.commits != nil {
		db.commits.close()
	}
	var errs []error
	if db.read != nil && db.read != db.write {
		errs = append(errs, db.read.Close())
	}
	if db.write != nil {
		errs = append(errs, db.write.Close())
	}
	if db.pool != nil {
		db.pool.Close()
	}
	return errors.Join(errs...)
}

// Querier runs statements: a Tx, or a DB for a single reading one.
type Querier interface {
	// Query runs a statement that returns rows. Scan is called for each row.
	Query(ctx context.Context, scan func(Row) error, query string, args ...any) error
	// QueryRow runs a statement that returns at most one row and scans it into dest. It is ErrNotFound if there is none.
	QueryRow(ctx context.Context, query string, args []any, dest ...any) error
}

// Row is one row of a result.
type Row interface {
	// Scan copies the columns into what dest points to, as database/sql does.
	Scan(dest ...any) error
}

// ErrNotFound is the error of a row that does not exist, or that the caller's tenant does not own: the two answer alike.
var ErrNotFound = errors.New("not found")

// Tx is a transaction. It belongs to one goroutine and ends when the function that got it returns.
type Tx struct {
	tx      *sql.Tx
	dialect Dialect
}

// Dialect returns the kind of the database.
func (tx *Tx) Dialect() Dialect { return tx.dialect }

// SQL returns the transaction of database/sql, for the queue.
func (tx *Tx) SQL() *sql.Tx { return tx.tx }

// Exec runs a statement and returns how many rows it changed.
func (tx *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := tx.tx.ExecContext(ctx, rebind(tx.dialect, query), args...)
	if err != nil {
		return 0, classify(err)
	}
	return result.RowsAffected()
}

// Query implements Querier.
func (tx *Tx) Query(ctx context.Context, scan func(Row) error, query string, args ...any) error {
	rows, err := tx.tx.QueryContext(ctx, rebind(tx.dialect, query), args...)
	return each(rows, err, scan)
}

// QueryRow implements Querier.
func (tx *Tx) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return classify(tx.tx.QueryRowContext(ctx, rebind(tx.dialect, query), args...).Scan(dest...))
}

// Query implements Querier on the reading connections.
func (db *DB) Query(ctx context.Context, scan func(Row) error, query string, args ...any) error {
	rows, err := db.read.QueryContext(ctx, rebind(db.dialect, query), args...)
	return each(rows, err, scan)
}

// QueryRow implements Querier on the reading connections.
func (db *DB) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return classify(db.read.QueryRowContext(ctx, rebind(db.dialect, query), args...).Scan(dest...))
}

// maxTries is how often a transaction is made that loses against others.
const maxTries = 8

// Write runs do in a transaction that is durable when Write returns nil. do may run several times, so it must change
// nothing but the database; it must not call Write or Append.
func (db *DB) Write(ctx context.Context, do func(*Tx) error) error {
	for try := 1; ; try++ {
		err := db.writeOnce(ctx, do)
		if err == nil || try == maxTries || !lostRace(err) || ctx.Err() != nil {
			return err
		}
	}
}

func (db *DB) writeOnce(ctx context.Context, do func(*Tx) error) error {
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := do(&Tx{tx: tx, dialect: db.dialect}); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return classify(tx.Commit())
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil // the context has ended the transaction already
	}
	return err
}

// each scans every row and closes the result.
func each(rows *sql.Rows, err error, scan func(Row) error) error {
	if err != nil {
		return classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return classify(rows.Err())
}

// rebind numbers the arguments where the database wants that. A question mark in a quoted text is left alone.
func rebind(dialect Dialect, query string) string {
	if dialect == SQLite || !strings.Contains(query, "?") {
		return query
	}
	var b strings.Builder
	n, quoted := 0, false
	for _, r := range query {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == '?' && !quoted:
			n++
			fmt.Fprintf(&b, "$%d", n)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
