package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func set(ctx context.Context, tx *store.Tx, key, value string) error {
	_, err := tx.Exec(ctx, "INSERT INTO installation (key, value) VALUES (?, ?)", key, value)
	return err
}

func get(t *testing.T, db store.Querier, key string) (string, error) {
	t.Helper()
	var value string
	err := db.QueryRow(t.Context(), "SELECT value FROM installation WHERE key = ?", []any{key}, &value)
	return value, err
}

func TestAWriteIsThereOrNotAtAll(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if err := db.Write(t.Context(), func(tx *store.Tx) error { return set(t.Context(), tx, "a", "it's ? all right") }); err != nil {
			t.Fatal(err)
		}
		if value, err := get(t, db, "a"); value != "it's ? all right" || err != nil {
			t.Errorf("got %q, %v", value, err)
		}
		failure := errors.New("changed its mind")
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			if err := set(t.Context(), tx, "b", "lost"); err != nil {
				return err
			}
			return failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("error = %v", err)
		}
		if _, err := get(t, db, "b"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("what was rolled back is there: %v", err)
		}
	})
}

func TestErrorsThatCallersDecideOnHaveNames(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		add := func(tx *store.Tx) error { return set(t.Context(), tx, "a", "1") }
		if err := db.Write(t.Context(), add); err != nil {
			t.Fatal(err)
		}
		if err := db.Write(t.Context(), add); !errors.Is(err, store.ErrExists) {
			t.Errorf("error = %v", err)
		}
		var none string
		if err := db.QueryRow(t.Context(), "SELECT value FROM installation WHERE key = ?", []any{"nobody"}, &none); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("error = %v", err)
		}
	})
}

func TestManyWritersLoseNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var all sync.WaitGroup
		errs := make(chan error, 64)
		for i := range 64 {
			all.Go(func() {
				write := db.Append
				if i%2 == 0 {
					write = db.Write
				}
				errs <- write(t.Context(), func(tx *store.Tx) error { return set(t.Context(), tx, fmt.Sprint(i), "x") })
			})
		}
		all.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
		var n int
		if err := db.QueryRow(t.Context(), "SELECT count(*) FROM installation", nil, &n); err != nil || n != 64 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

func TestABadAppendCostsOnlyItsOwnCaller(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var waiting []<-chan error
		for i := range 20 {
			stored, err := db.AppendLater(t.Context(), func(tx *store.Tx) error { return set(t.Context(), tx, fmt.Sprint(i%19), "x") })
			if err != nil {
				t.Fatal(err)
			}
			waiting = append(waiting, stored)
		}
		for i, stored := range waiting {
			if err := <-stored; (err != nil) != (i == 19) {
				t.Errorf("append %d: %v", i, err)
			}
		}
	})
}

func TestAnAppendAfterTheEndIsRefused(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.SQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Append(t.Context(), func(*store.Tx) error { return nil }); err == nil {
		t.Error("a closed database takes writes")
	}
}

func TestADatabaseIsOpenedAgainAsItWas(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(testing.TB) store.Config{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := config(t)
			first, err := store.Open(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			if err := first.Write(t.Context(), func(tx *store.Tx) error { return set(t.Context(), tx, "a", "1") }); err != nil {
				t.Fatal(err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if value, err := get(t, storetest.Open(t, config), "a"); value != "1" || err != nil {
				t.Errorf("got %q, %v", value, err)
			}
		})
	}
}

func TestASchemaOfANewerProgramIsRefused(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(testing.TB) store.Config{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := config(t)
			db := storetest.Open(t, config)
			if err := db.Write(t.Context(), func(tx *store.Tx) error {
				applied := "1"
				if tx.Dialect() == store.Postgres {
					applied = "true"
				}
				_, err := tx.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, "+applied+")", 99_999)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Open(t.Context(), config); err == nil || !strings.Contains(err.Error(), "use a newer program") {
				t.Errorf("error = %v", err)
			}
		})
	}
}

func TestTheAddressOfADatabaseIsNotQuoted(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), store.Config{URL: "postgres://user:canary-77@host:notaport/db"})
	if err == nil || strings.Contains(err.Error(), "canary-77") {
		t.Errorf("error = %v", err)
	}
}
