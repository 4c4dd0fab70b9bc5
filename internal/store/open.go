package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// openSQLite opens a file with one writing connection and a pool of reading ones.
func openSQLite(ctx context.Context, config Config) (*DB, error) {
	write, err := sql.Open("sqlite", sqliteName(config.Path, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "busy_timeout(5000)",
		"cache_size(-16000)", "temp_store(2)", "journal_size_limit(67108864)", "wal_autocheckpoint(2000)")+"&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	if err := write.PingContext(ctx); err != nil {
		_ = write.Close() // what kept it from opening is what the caller needs to know
		return nil, fmt.Errorf("%s: %w", config.Path, err)
	}
	read, err := sql.Open("sqlite", sqliteName(config.Path, "query_only(1)", "busy_timeout(5000)", "cache_size(-16000)", "temp_store(2)"))
	if err != nil {
		_ = write.Close()
		return nil, err
	}
	read.SetMaxOpenConns(config.MaxConns)
	read.SetMaxIdleConns(config.MaxConns)
	return &DB{dialect: SQLite, write: write, read: read}, nil
}

func sqliteName(path string, pragmas ...string) string {
	values := url.Values{}
	for _, p := range pragmas {
		values.Add("_pragma", p)
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: values.Encode()}).String()
}

// openPostgres opens a pool of connections.
func openPostgres(ctx context.Context, config Config) (*DB, error) {
	settings, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, fmt.Errorf("the address of the database cannot be read") // pgx would quote it, with its password
	}
	settings.MaxConns = int32(config.MaxConns)
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	return &DB{dialect: Postgres, write: db, read: db, pool: pool}, nil
}
