package checkout

import (
	"context"
	"fmt"

	"github.com/hozo-run/hozo/internal/artifact"
	"github.com/hozo-run/hozo/internal/project"
	"github.com/hozo-run/hozo/internal/store"
)

// Pin is the content of a source that a run works on.
type Pin struct {
	Name     string       `json:"name"`
	Kind     project.Kind `json:"kind"`
	Location string       `json:"location"`
	Ref      string       `json:"ref,omitempty"`
	// Digest is the commit of a repository, or the SHA-256 of the list of the files of a directory.
	Digest string `json:"digest"`
}

// Holders of contents in the artifact store.
const (
	// heldByRun holds the list of a snapshot for a run, heldBySnapshot the files for the list.
	heldByRun      = "run-sources"
	heldBySnapshot = "snapshot"
)

// pins returns what the run works on. The first attempt decides it, for all others.
func (s *Service) pins(ctx context.Context, r Request) ([]Pin, error) {
	pins, err := s.Pins(ctx, r.Tenant, r.Run)
	if err != nil || len(pins) > 0 || r.Project == "" && r.SourcesOf == "" {
		return pins, err
	}
	if r.SourcesOf != "" {
		if pins, err = s.Pins(ctx, r.Tenant, r.SourcesOf); err != nil {
			return nil, err
		}
	} else if pins, err = s.resolve(ctx, r); err != nil {
		return nil, err
	}
	if len(pins) == 0 {
		return nil, nil
	}
	if err := s.save(ctx, r, pins); err != nil {
		return nil, err
	}
	return s.Pins(ctx, r.Tenant, r.Run)
}

// resolve finds out what the sources of the project hold now.
func (s *Service) resolve(ctx context.Context, r Request) ([]Pin, error) {
	sources, err := s.config.Projects.Sources(ctx, r.Tenant, r.Project)
	if err != nil {
		return nil, fmt.Errorf("the sources of the project %q: %w", r.Project, err)
	}
	pins := make([]Pin, 0, len(sources))
	for _, source := range sources {
		pin := Pin{Name: source.Name, Kind: source.Kind, Location: source.Location, Ref: source.Ref}
		var err error
		switch source.Kind {
		case project.Directory:
			pin.Digest, err = s.snapshot(ctx, r.Tenant, source)
		case project.Git:
			pin.Digest, err = s.commitOf(ctx, r, source)
		default:
			err = fmt.Errorf("the kind %q is not known", source.Kind)
		}
		if err != nil {
			return nil, ofSource(source.Name, err)
		}
		pins = append(pins, pin)
	}
	return pins, nil
}

// Pins returns what a run works on, in the order of the names; nothing if its directories were never made.
func (s *Service) Pins(ctx context.Context, tenant, run string) ([]Pin, error) {
	order := "name"
	if s.config.DB.Dialect() == store.Postgres {
		order = `name COLLATE "C"`
	}
	var pins []Pin
	err := s.config.DB.Query(ctx, func(row store.Row) error {
		var p Pin
		err := row.Scan(&p.Name, &p.Kind, &p.Location, &p.Ref, &p.Digest)
		pins = append(pins, p)
		return err
	}, "SELECT name, kind, location, ref, digest FROM run_sources WHERE tenant = ? AND run = ? ORDER BY "+order, tenant, run)
	return pins, err
}

// save records the pins of a run, unless somebody was faster, and holds the snapshots among them.
func (s *Service) save(ctx context.Context, r Request, pins []Pin) error {
	return s.config.DB.Write(ctx, func(tx *store.Tx) error {
		var n int64
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM run_sources WHERE tenant = ? AND run = ?", []any{r.Tenant, r.Run}, &n); err != nil || n > 0 {
			return err
		}
		for _, p := range pins {
			if _, err := tx.Exec(ctx, "INSERT INTO run_sources (tenant, run, name, kind, location, ref, digest, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
				r.Tenant, r.Run, p.Name, string(p.Kind), p.Location, p.Ref, p.Digest, s.config.Now().UnixMilli()); err != nil {
				return err
			}
			if p.Kind != project.Directory {
				continue
			}
			if err := artifact.Hold(ctx, tx, artifact.Holder{Tenant: r.Tenant, Kind: heldByRun, ID: r.Run}, p.Digest); err != nil {
				return err
			}
		}
		return nil
	})
}

// Forget removes what is recorded of the sources of a run, when the run itself is removed.
func (s *Service) Forget(ctx context.Context, tenant, run string) error {
	return s.config.DB.Write(ctx, func(tx *store.Tx) error {
		if err := artifact.Release(ctx, tx, artifact.Holder{Tenant: tenant, Kind: heldByRun, ID: run}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "DELETE FROM run_sources WHERE tenant = ? AND run = ?", tenant, run)
		return err
	})
}

// ReleaseSnapshots gives up the files of snapshots that no run works on, so that artifact.Store.Collect can remove them. It
// is called before Collect. A snapshot that was made lately is left: its run may not be recorded yet.
func (s *Service) ReleaseSnapshots(ctx context.Context) error {
	return s.config.DB.Write(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM blob_holders WHERE kind = ? AND "+
			"NOT EXISTS (SELECT 1 FROM blob_holders r WHERE r.kind = ? AND r.tenant = blob_holders.tenant AND r.hash = blob_holders.id) AND "+
			"NOT EXISTS (SELECT 1 FROM blobs b WHERE b.hash = blob_holders.id AND b.touched_at >= ?)",
			heldBySnapshot, heldByRun, s.config.Now().Add(-artifact.MinGrace).UnixMilli())
		return err
	})
}
