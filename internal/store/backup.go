package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// Backup writes a copy of the SQLite database in a file to another file, which must not exist: the database as it is at one
// moment, while other processes go on working with it. The schema is not looked at.
func Backup(ctx context.Context, from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s exists", to)
	}
	db, err := sql.Open("sqlite", sqliteName(from, "busy_timeout(5000)"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return makeDurable(to)
}

// makeDurable makes a file durable.
func makeDurable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
}

// CheckFile reports what SQLite finds wrong with the database in a file, nil for nothing.
func CheckFile(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", sqliteName(path, "query_only(1)"))
	if err != nil {
		return err
	}
	var found string
	err = db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&found)
	if err = errors.Join(err, db.Close()); err == nil && found != "ok" {
		err = errors.New(found)
	}
	if err != nil {
		return fmt.Errorf("check the database %s: %w", path, err)
	}
	return nil
}
