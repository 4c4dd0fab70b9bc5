package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Content is something to be put with PutAll.
type Content struct {
	Hash string
	// Open returns it from its beginning.
	Open func() (io.ReadCloser, error)
}

// together is how many contents are put at once.
const together = 8

// PutAll is Put for many contents, of which only those are opened that are not kept yet. It ends at the first error; what
// was put by then is kept.
func (s *Store) PutAll(ctx context.Context, all []Content) error {
	by := make(map[string]Content, len(all))
	hashes := make([]string, 0, len(all))
	for _, c := range all {
		if err := CheckHash(c.Hash); err != nil {
			return err
		}
		if _, twice := by[c.Hash]; !twice {
			hashes = append(hashes, c.Hash)
		}
		by[c.Hash] = c
	}
	missing, err := s.Missing(ctx, hashes)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(missing, maxHashes) {
		if err := s.putBatch(ctx, batch, by); err != nil {
			return err
		}
		if err := s.stored(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) putBatch(ctx context.Context, hashes []string, by map[string]Content) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan string)
	var workers sync.WaitGroup
	for range min(together, len(hashes)) {
		workers.Go(func() {
			for hash := range queue {
				if err := s.putOne(ctx, by[hash]); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, hash := range hashes {
		if ctx.Err() != nil {
			break
		}
		queue <- hash
	}
	close(queue)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (s *Store) putOne(ctx context.Context, c Content) error {
	from, err := c.Open()
	if err != nil {
		return fmt.Errorf("keep the blob %s: %w", c.Hash, err)
	}
	return errors.Join(s.blobs.Put(ctx, c.Hash, from), from.Close())
}
