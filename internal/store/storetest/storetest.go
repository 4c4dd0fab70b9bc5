// Package storetest runs a suite against every database that the product supports: real SQLite files and a real PostgreSQL
// server, which it starts. Tests of whatever keeps data call Each, so that no behaviour is tested on one database only. It
// is for tests alone.
package storetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hozo-run/hozo/internal/store"
)

// Each runs test once for each database, as subtests "sqlite" and "postgres", each time with an empty database of its own.
// Where there is no PostgreSQL on the machine that part is skipped, by name.
func Each(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	t.Run(string(store.SQLite), func(t *testing.T) {
		t.Parallel()
		test(t, Open(t, SQLite(t)))
	})
	t.Run(string(store.Postgres), func(t *testing.T) {
		t.Parallel()
		test(t, Open(t, Postgres(t)))
	})
}

// SQLite returns the configuration of an empty SQLite database.
func SQLite(t testing.TB) store.Config {
	return store.Config{Path: filepath.Join(t.TempDir(), "hozo.db")}
}

// Open opens a database and closes it at the end of the test.
func Open(t testing.TB, config store.Config) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}

// Postgres returns the configuration of an empty PostgreSQL database on a server that all tests of the process share. The
// server is the one that HOZO_TEST_POSTGRES names ("postgres://…", a role that may create databases), or one that is
// started for this process and ends with it.
func Postgres(t testing.TB) store.Config {
	t.Helper()
	server, err := theServer()
	if err != nil {
		t.Skipf("no PostgreSQL: %v", err)
	}
	name, err := server.create(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.drop(context.Background(), name); err != nil {
			t.Errorf("drop the database: %v", err)
		}
	})
	return store.Config{URL: server.url(name)}
}

// Main runs the tests of a package and stops the server that they have started. A package that calls Each has it as its
// TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if err := stopServer(); err != nil {
		fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
		code = 1
	}
	os.Exit(code)
}
