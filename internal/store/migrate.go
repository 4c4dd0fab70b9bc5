package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the schema up to date. Migrations only go forward, one transaction each; of several processes that start
// at once, one migrates and the others wait.
func (db *DB) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations/"+string(db.dialect))
	if err != nil {
		return err
	}
	dialect, options := goose.DialectSQLite3, []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if db.dialect == Postgres {
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, db.write, files, options...)
	if err != nil {
		return err
	}
	current, latest, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > latest {
		return fmt.Errorf("its schema has version %d and this program knows versions up to %d; use a newer program", current, latest)
	}
	_, err = provider.Up(ctx)
	return err
}
