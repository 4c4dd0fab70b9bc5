package artifact

import (
	"context"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/store"
)

// Uses reports which of some hashes a package needs that keeps hashes in rows of its own. Whatever it returns stays.
type Uses func(ctx context.Context, hashes []string) ([]string, error)

// Collected is what one Collect did.
type Collected struct {
	// Removed counts the contents that were removed, Kept those that were looked at and are needed.
	Removed, Kept int
}

// Collect removes content that no artifact, no holder and none of uses needs, and that nobody has wanted for longer than the
// grace, which is DefaultGrace if it is zero and at least MinGrace. Several processes may do it at once, and while others
// put content: the row of a content is marked before the content is touched, so whoever wants it meanwhile is told to try
// again. A removal that was cut short is finished by the next Collect.
func (s *Store) Collect(ctx context.Context, grace time.Duration, uses ...Uses) (Collected, error) {
	if grace == 0 {
		grace = DefaultGrace
	}
	before := s.now().Add(-max(grace, MinGrace))
	var done Collected
	for after := ""; ; {
		hashes, err := s.candidates(ctx, before, after)
		if err != nil || len(hashes) == 0 {
			return done, err
		}
		after = hashes[len(hashes)-1]
		used := map[string]bool{}
		for _, ask := range uses {
			these, err := ask(ctx, hashes)
			if err != nil {
				return done, fmt.Errorf("ask which contents are needed: %w", err)
			}
			for _, hash := range these {
				used[hash] = true
			}
		}
		for _, hash := range hashes {
			if used[hash] {
				done.Kept++
				continue
			}
			removed, err := s.remove(ctx, hash, before)
			if err != nil {
				return done, err
			}
			if removed {
				done.Removed++
			} else {
				done.Kept++
			}
		}
	}
}

// unneeded is true of a row that may go.
const unneeded = "NOT EXISTS (SELECT 1 FROM artifacts a WHERE a.hash = blobs.hash) AND NOT EXISTS (SELECT 1 FROM blob_holders h WHERE h.hash = blobs.hash)"

func (s *Store) candidates(ctx context.Context, before time.Time, after string) (hashes []string, err error) {
	err = s.db.Query(ctx, func(row store.Row) error {
		var hash string
		if err := row.Scan(&hash); err != nil {
			return err
		}
		hashes = append(hashes, hash)
		return nil
	}, "SELECT hash FROM blobs WHERE hash > ? AND touched_at < ? AND "+unneeded+" ORDER BY hash LIMIT ?", after, before.UnixMilli(), maxHashes)
	return hashes, err
}

// remove removes one content, unless somebody has wanted it since it was found.
func (s *Store) remove(ctx context.Context, hash string, before time.Time) (bool, error) {
	now := s.now()
	condemned := false
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		condemned = false
		n, err := tx.Exec(ctx, "UPDATE blobs SET condemned_at = ? WHERE hash = ? AND touched_at < ? AND (condemned_at = 0 OR condemned_at < ?)",
			now.UnixMilli(), hash, before.UnixMilli(), now.Add(-abandoned).UnixMilli())
		if err != nil || n == 0 {
			return err
		}
		// Only now nobody else can begin to need it; who did so before is seen by a statement of its own.
		n, err = tx.Exec(ctx, "UPDATE blobs SET condemned_at = 0 WHERE hash = ? AND NOT ("+unneeded+")", hash)
		condemned = n == 0
		return err
	})
	if err != nil || !condemned {
		return false, err
	}
	bounded, cancel := context.WithTimeout(ctx, abandoned/2)
	defer cancel()
	if err := s.blobs.Delete(bounded, hash); err != nil {
		return false, err // the row says so still; the next Collect goes on
	}
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM blobs WHERE hash = ? AND condemned_at = ?", hash, now.UnixMilli())
		return err
	})
	return err == nil, err
}
