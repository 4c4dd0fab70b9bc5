package store

import (
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// ErrExists is the error of a row whose unique key is taken.
var ErrExists = errors.New("already exists")

// ErrInUse is the error of a row that others refer to, or that refers to one which does not exist.
var ErrInUse = errors.New("in use")

// ErrStale is the error of a change to a version of a row that is not the current one any more.
var ErrStale = errors.New("has changed since it was read")

// classify puts the errors that callers decide on into the words of this package, with the cause.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return ErrNotFound
	case isUnique(err):
		return errors.Join(ErrExists, err)
	case isForeign(err):
		return errors.Join(ErrInUse, err)
	}
	return err
}

// Codes of PostgreSQL (appendix A of its manual).
const (
	pgUniqueViolation     = "23505"
	pgForeignKeyViolation = "23503"
	pgSerialization       = "40001"
	pgDeadlock            = "40P01"
)

func isUnique(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == pgUniqueViolation
}

func isForeign(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() == lib.SQLITE_CONSTRAINT_FOREIGNKEY
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == pgForeignKeyViolation
}

// lostRace reports whether a transaction failed only because another one was faster.
func lostRace(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()&0xff == lib.SQLITE_BUSY
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == pgSerialization || e.Code == pgDeadlock)
}
