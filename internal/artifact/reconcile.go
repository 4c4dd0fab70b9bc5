package artifact

import (
	"context"
	"fmt"
	"slices"

	"github.com/hozo-run/hozo/internal/store"
)

// Reconciled is what one Reconcile found.
type Reconciled struct {
	// Lost are the contents that rows need and the place does not have.
	Lost []string
	// Unknown counts the contents of the place that had no row. They have one now, so that Collect removes them.
	Unknown int
}

// Reconcile compares the database with the place of blobs, after one of them was restored from a copy or moved. Content
// that is lost is noted as such, so that the next Put of it stores it again; it is named, as nothing can bring it back.
// Nothing else may use the store meanwhile.
func (s *Store) Reconcile(ctx context.Context) (Reconciled, error) {
	rows := map[string]bool{}
	err := s.db.Query(ctx, func(row store.Row) error {
		var hash string
		err := row.Scan(&hash)
		rows[hash] = true
		return err
	}, "SELECT hash FROM blobs WHERE stored = 1 ORDER BY hash")
	if err != nil {
		return Reconciled{}, fmt.Errorf("compare the blobs with their rows: %w", err)
	}
	var found Reconciled
	for blob, err := range s.blobs.List(ctx) {
		if err != nil {
			return Reconciled{}, err
		}
		if rows[blob.Hash] {
			delete(rows, blob.Hash)
			continue
		}
		found.Unknown++
		if err := s.adopt(ctx, blob.Hash); err != nil {
			return Reconciled{}, err
		}
	}
	for hash := range rows {
		found.Lost = append(found.Lost, hash)
	}
	slices.Sort(found.Lost)
	return found, s.lose(ctx, found.Lost)
}

func (s *Store) adopt(ctx context.Context, hash string) error {
	return s.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO blobs (hash, stored, touched_at, condemned_at) VALUES (?, 1, ?, 0) ON CONFLICT (hash) DO UPDATE SET stored = 1, condemned_at = 0", hash, s.now().UnixMilli())
		return err
	})
}

func (s *Store) lose(ctx context.Context, hashes []string) error {
	return s.db.Write(ctx, func(tx *store.Tx) error {
		for _, hash := range hashes {
			if _, err := tx.Exec(ctx, "UPDATE blobs SET stored = 0 WHERE hash = ?", hash); err != nil {
				return err
			}
		}
		return nil
	})
}
