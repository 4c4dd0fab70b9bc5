package artifact

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/store"
)

const (
	// DefaultGrace is how long content stays after it was last wanted, although no row needs it.
	DefaultGrace = 24 * time.Hour
	// MinGrace is the least grace. It must be longer than the time between putting content and storing the row that needs
	// it, and longer than freshness.
	MinGrace = 2 * time.Hour
	// freshness is for how long a touch need not be written again.
	freshness = time.Hour
	// abandoned is how old a removal must be before it counts as one whose process has died.
	abandoned = 10 * time.Minute
	// maxHashes bounds the arguments of one statement.
	maxHashes = 500
)

// ErrCondemned is the error of content that is being removed at this moment. The same call works a little later.
var ErrCondemned = errors.New("the content is being removed; try again")

// Config is what a Store is made of.
type Config struct {
	// DB and Blobs are required.
	DB    *store.DB
	Blobs Blobs
	// Now returns the time; nil means time.Now. The clocks of processes that share a database may differ by minutes.
	Now func() time.Time
}

// Store is a place of blobs together with what the database knows of it. It is safe for concurrent use, also by several
// processes that share both.
type Store struct {
	db    *store.DB
	blobs Blobs
	now   func() time.Time
}

// New returns a store. It does no input or output.
func New(config Config) *Store {
	s := &Store{db: config.DB, blobs: config.Blobs, now: config.Now}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// Put keeps content under its hash, durably. It stays for DefaultGrace at least; whoever needs it for longer makes an
// artifact of it, or calls Hold.
func (s *Store) Put(ctx context.Context, hash string, content io.Reader) error {
	if err := CheckHash(hash); err != nil {
		return err
	}
	missing, err := s.Missing(ctx, []string{hash})
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := s.blobs.Put(ctx, hash, content); err != nil {
		return err
	}
	return s.stored(ctx, []string{hash})
}

// Missing notes that hashes are wanted and returns those whose content must be put with Put, without repeats. What it does
// not return is kept, and stays for DefaultGrace at least.
func (s *Store) Missing(ctx context.Context, hashes []string) ([]string, error) {
	hashes = slices.Compact(slices.Sorted(slices.Values(hashes)))
	var missing []string
	for batch := range slices.Chunk(hashes, maxHashes) {
		m, err := s.missing(ctx, batch)
		if err != nil {
			return nil, fmt.Errorf("look for content that is kept: %w", err)
		}
		missing = append(missing, m...)
	}
	return missing, nil
}

func (s *Store) missing(ctx context.Context, hashes []string) (missing []string, err error) {
	now := s.now()
	fresh := map[string]bool{}
	err = s.db.Query(ctx, func(row store.Row) error {
		var hash string
		if err := row.Scan(&hash); err != nil {
			return err
		}
		fresh[hash] = true
		return nil
	}, "SELECT hash FROM blobs WHERE stored = 1 AND condemned_at = 0 AND touched_at >= ? AND hash IN ("+marks(len(hashes))+")",
		arguments(hashes, now.Add(-freshness).UnixMilli())...)
	if err != nil || len(fresh) == len(hashes) {
		return nil, err
	}
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		missing = nil
		for _, hash := range hashes {
			if fresh[hash] {
				continue
			}
			stored, err := touch(ctx, tx, hash, now)
			if err != nil {
				return err
			}
			if !stored {
				missing = append(missing, hash)
			}
		}
		return nil
	})
	return missing, err
}

// touch notes that a hash is wanted and reports whether its content is stored. A removal that has not ended is waited for by
// trying again; one that was left by a process that died counts as done.
func touch(ctx context.Context, tx *store.Tx, hash string, now time.Time) (stored bool, err error) {
	var is int
	err = tx.QueryRow(ctx, "INSERT INTO blobs (hash, stored, touched_at, condemned_at) VALUES (?, 0, ?, 0) ON CONFLICT (hash) DO UPDATE SET "+
		"touched_at = excluded.touched_at, stored = CASE WHEN blobs.condemned_at > 0 THEN 0 ELSE blobs.stored END, condemned_at = 0 "+
		"WHERE blobs.condemned_at = 0 OR blobs.condemned_at < ? RETURNING stored",
		[]any{hash, now.UnixMilli(), now.Add(-abandoned).UnixMilli()}, &is)
	if errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("%s: %w", hash, ErrCondemned)
	}
	return is == 1, err
}

// stored notes that the content of hashes is there.
func (s *Store) stored(ctx context.Context, hashes []string) error {
	return s.db.Append(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, "UPDATE blobs SET stored = 1 WHERE condemned_at = 0 AND hash IN ("+marks(len(hashes))+")", arguments(hashes)...)
		if err == nil && n != int64(len(hashes)) {
			return ErrCondemned
		}
		return err
	})
}

// Open returns what is kept under a hash, or an error that is fs.ErrNotExist. Who may read it is not asked here.
func (s *Store) Open(ctx context.Context, hash string) (io.ReadCloser, error) {
	r, err := s.blobs.Open(ctx, hash)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Holder is somebody who needs content for as long as it exists.
type Holder struct {
	// Tenant owns it. Kind and ID name it, for example "run" and the id of a run.
	Tenant, Kind, ID string
}

// Hold notes that h needs contents which have been put, in a transaction of the caller. Content that nobody put is
// store.ErrNotFound. The same call again changes nothing.
func Hold(ctx context.Context, tx *store.Tx, h Holder, hashes ...string) error {
	now := time.Now()
	for _, hash := range slices.Compact(slices.Sorted(slices.Values(hashes))) {
		if err := need(ctx, tx, hash, now); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO blob_holders (hash, tenant, kind, id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", hash, h.Tenant, h.Kind, h.ID); err != nil {
			return err
		}
	}
	return nil
}

// need locks the row of content that is kept, so that no removal can begin before the transaction ends.
func need(ctx context.Context, tx *store.Tx, hash string, now time.Time) error {
	n, err := tx.Exec(ctx, "UPDATE blobs SET touched_at = CASE WHEN touched_at < ? THEN ? ELSE touched_at END WHERE hash = ? AND stored = 1 AND condemned_at = 0",
		now.UnixMilli(), now.UnixMilli(), hash)
	if err == nil && n == 0 {
		err = fmt.Errorf("the content %s: %w", hash, store.ErrNotFound)
	}
	return err
}

// Release notes that h needs nothing any more, in a transaction of the caller.
func Release(ctx context.Context, tx *store.Tx, h Holder) error {
	_, err := tx.Exec(ctx, "DELETE FROM blob_holders WHERE tenant = ? AND kind = ? AND id = ?", h.Tenant, h.Kind, h.ID)
	return err
}

// Hold is the function Hold in a transaction of its own.
func (s *Store) Hold(ctx context.Context, h Holder, hashes ...string) error {
	for batch := range slices.Chunk(hashes, maxHashes) {
		if err := s.db.Write(ctx, func(tx *store.Tx) error { return Hold(ctx, tx, h, batch...) }); err != nil {
			return err
		}
	}
	return nil
}

// Release is the function Release in a transaction of its own.
func (s *Store) Release(ctx context.Context, h Holder) error {
	return s.db.Write(ctx, func(tx *store.Tx) error { return Release(ctx, tx, h) })
}

// marks returns n placeholders.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

func arguments(hashes []string, before ...any) []any {
	for _, h := range hashes {
		before = append(before, h)
	}
	return before
}

// newID makes an id that sorts by the time at which it was made, to the millisecond.
func newID(prefix string) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // it never fails
	return prefix + base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding).EncodeToString(b[:])
}
