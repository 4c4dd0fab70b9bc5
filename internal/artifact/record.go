package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/store"
)

// Artifact is an output of a run that was kept.
type Artifact struct {
	ID      string `json:"id"`
	Tenant  string `json:"-"`
	Project string `json:"project,omitempty"`
	Run     string `json:"run"`
	// Path is where the run wrote it, below its output directory, with slashes.
	Path string `json:"path"`
	// Hash is the SHA-256 of the content in small hex digits, Size its bytes.
	Hash string `json:"sha256"`
	Size int64  `json:"size"`
	// MediaType is what the content looks like. Browsers must be told to believe it ("nosniff").
	MediaType  string    `json:"mediaType"`
	Executable bool      `json:"executable,omitempty"`
	CreatedAt  time.Time `json:"createdAt"`
}

const columns = "id, tenant, project, run, path, hash, size, media_type, executable, created_at"

func scan(row store.Row) (Artifact, error) {
	var a Artifact
	var executable int
	var created int64
	err := row.Scan(&a.ID, &a.Tenant, &a.Project, &a.Run, &a.Path, &a.Hash, &a.Size, &a.MediaType, &executable, &created)
	a.Executable, a.CreatedAt = executable == 1, time.UnixMilli(created).UTC()
	return a, err
}

// insert adds the row of an artifact whose content was put. A path that the run has already is replaced.
func insert(ctx context.Context, tx *store.Tx, a *Artifact, now time.Time) error {
	if err := need(ctx, tx, a.Hash, now); err != nil {
		return err
	}
	executable := 0
	if a.Executable {
		executable = 1
	}
	return tx.QueryRow(ctx, "INSERT INTO artifacts ("+columns+") VALUES ("+marks(10)+") ON CONFLICT (tenant, run, path) DO UPDATE SET "+
		"hash = excluded.hash, size = excluded.size, media_type = excluded.media_type, executable = excluded.executable RETURNING id, created_at",
		[]any{a.ID, a.Tenant, a.Project, a.Run, a.Path, a.Hash, a.Size, a.MediaType, executable, now.UnixMilli()}, &a.ID, (*millis)(&a.CreatedAt))
}

// millis scans a number of milliseconds into a time.
type millis time.Time

// Scan implements sql.Scanner.
func (m *millis) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", value)
	}
	*m = millis(time.UnixMilli(n).UTC())
	return nil
}

// Get returns an artifact of the tenant.
func (s *Store) Get(ctx context.Context, tenant, id string) (Artifact, error) {
	return s.one(ctx, "tenant = ? AND id = ?", tenant, id)
}

// Find returns the artifact that a run of the tenant wrote to a path.
func (s *Store) Find(ctx context.Context, tenant, run, path string) (Artifact, error) {
	return s.one(ctx, "tenant = ? AND run = ? AND path = ?", tenant, run, path)
}

func (s *Store) one(ctx context.Context, where string, args ...any) (Artifact, error) {
	all, err := s.list(ctx, "SELECT "+columns+" FROM artifacts WHERE "+where, args...)
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return Artifact{}, err
	}
	return all[0], nil
}

func (s *Store) list(ctx context.Context, query string, args ...any) ([]Artifact, error) {
	all := []Artifact{}
	err := s.db.Query(ctx, func(row store.Row) error {
		a, err := scan(row)
		all = append(all, a)
		return err
	}, query, args...)
	return all, err
}

// OfRun returns up to limit artifacts of a run in the order of their paths, those after the path in after; "" begins.
func (s *Store) OfRun(ctx context.Context, tenant, run, after string, limit int) ([]Artifact, error) {
	order := "path"
	if s.db.Dialect() == store.Postgres {
		order = `path COLLATE "C"`
	}
	return s.list(ctx, "SELECT "+columns+" FROM artifacts WHERE tenant = ? AND run = ? AND "+order+" > ? ORDER BY "+order+" LIMIT ?", tenant, run, after, limit)
}

// OfProject returns up to limit artifacts of a project, the newest first, those before the id in before; "" begins.
func (s *Store) OfProject(ctx context.Context, tenant, project, before string, limit int) ([]Artifact, error) {
	if before == "" {
		before = "~" // sorts after every id
	}
	order := "id"
	if s.db.Dialect() == store.Postgres {
		order = `id COLLATE "C"`
	}
	return s.list(ctx, "SELECT "+columns+" FROM artifacts WHERE tenant = ? AND project = ? AND "+order+" < ? ORDER BY "+order+" DESC LIMIT ?", tenant, project, before, limit)
}

// Content opens the content of an artifact of the tenant. The Reader can be handed to http.ServeContent, so that parts can
// be asked for.
func (s *Store) Content(ctx context.Context, tenant, id string) (Artifact, *Reader, error) {
	a, err := s.Get(ctx, tenant, id)
	if err != nil {
		return Artifact{}, nil, err
	}
	r, err := s.blobs.Open(ctx, a.Hash)
	if err != nil {
		return Artifact{}, nil, fmt.Errorf("open the artifact %s: %w", id, err)
	}
	if r.Size() != a.Size {
		return Artifact{}, nil, fmt.Errorf("open the artifact %s: %w: it has %d bytes instead of %d", id, ErrMismatch, r.Size(), a.Size)
	}
	return a, r, nil
}

// Delete removes an artifact of the tenant; its content stays until Collect finds that nothing needs it.
func (s *Store) Delete(ctx context.Context, tenant, id string) error {
	return s.delete(ctx, "tenant = ? AND id = ?", tenant, id)
}

// DeleteRun removes every artifact of a run, of which there may be none.
func (s *Store) DeleteRun(ctx context.Context, tenant, run string) error {
	err := s.delete(ctx, "tenant = ? AND run = ?", tenant, run)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

func (s *Store) delete(ctx context.Context, where string, args ...any) error {
	return s.db.Write(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, "DELETE FROM artifacts WHERE "+where, args...)
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		return err
	})
}

// DeleteBefore removes artifacts of the tenant that were made before a time, for a rule of retention, and returns how many.
// An empty project stands for all.
func (s *Store) DeleteBefore(ctx context.Context, tenant, project string, before time.Time) (n int64, err error) {
	err = s.db.Write(ctx, func(tx *store.Tx) error {
		n, err = tx.Exec(ctx, "DELETE FROM artifacts WHERE tenant = ? AND (project = ? OR ? = '') AND created_at < ?", tenant, project, project, before.UnixMilli())
		return err
	})
	return n, err
}
