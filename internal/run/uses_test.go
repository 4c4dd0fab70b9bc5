package run_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hozo-run/hozo/internal/run"
	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/internal/store/storetest"
	"github.com/hozo-run/hozo/job"
)

func TestWhatRunsNeedOfTheBlobsIsKnown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := run.New(db, run.Config{})
		t.Cleanup(s.Close)
		step, output, removed, other := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64), strings.Repeat("d", 64)
		frame := func(n int64, c job.CheckpointFrame) string {
			data, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(job.Frame{V: job.FrameVersion, N: n, Type: job.FrameCheckpoint, Data: data})
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.Exec(t.Context(), "INSERT INTO run_steps (run, n, kind, call_id, parent_id, turn, tool, arguments, status, output, blob, bytes, millis) "+
				"VALUES ('run_1', 1, 'call', '1.0', '', 1, 'read', '{}', 'ok', '', ?, 70000, 1)", step); err != nil {
				return err
			}
			for n, c := range []job.CheckpointFrame{
				{Files: []job.CheckpointFile{{Path: "a", Size: 1, Hash: output}, {Path: "b", Size: 1, Hash: removed}}},
				{Files: []job.CheckpointFile{}, Removed: []string{"b"}}, // a fork may go back to when b was there
			} {
				if _, err := tx.Exec(t.Context(), "INSERT INTO run_journal (run, n, type, frame) VALUES ('run_1', ?, 'checkpoint', ?)", n+1, frame(int64(n+1), c)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		used, err := s.Uses(t.Context(), []string{step, output, removed, other})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(used)
		if diff := cmp.Diff([]string{step, output, removed}, used); diff != "" {
			t.Errorf("used (-want +got):\n%s", diff)
		}
		if used, err := s.Uses(t.Context(), nil); err != nil || len(used) != 0 {
			t.Errorf("of nothing %v, %v are used", used, err)
		}
	})
}
