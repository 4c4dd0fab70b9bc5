package run

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/job"
)

// Uses returns those of the hashes under which Blobs keeps something that a run needs: a file of a checkpoint, or an answer
// that is too large for its row. Whoever removes what nobody needs asks this first. It reads every checkpoint there is, so
// it is for work that is done now and then.
func (s *Store) Uses(ctx context.Context, hashes []string) ([]string, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	wanted := make(map[string]bool, len(hashes))
	args := make([]any, len(hashes))
	for i, hash := range hashes {
		wanted[hash], args[i] = true, hash
	}
	var used []string
	use := func(hash string) {
		if wanted[hash] {
			delete(wanted, hash)
			used = append(used, hash)
		}
	}
	err := s.db.Query(ctx, func(row store.Row) error {
		var hash string
		err := row.Scan(&hash)
		use(hash)
		return err
	}, "SELECT DISTINCT blob FROM run_steps WHERE blob IN ("+strings.TrimSuffix(strings.Repeat("?, ", len(args)), ", ")+")", args...)
	if err != nil {
		return nil, err
	}
	err = s.db.Query(ctx, func(row store.Row) error {
		var text string
		if err := row.Scan(&text); err != nil {
			return err
		}
		frame, err := job.ParseFrame([]byte(text))
		if err != nil {
			return err
		}
		var checkpoint job.CheckpointFrame
		if err := json.Unmarshal(frame.Data, &checkpoint); err != nil {
			return err
		}
		for _, file := range checkpoint.Files {
			use(file.Hash)
		}
		return nil
	}, "SELECT frame FROM run_journal WHERE type = ?", string(job.FrameCheckpoint))
	return used, err
}
