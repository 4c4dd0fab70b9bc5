package project

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/store"
	"github.com/hozo-run/hozo/problem"
)

// newID makes an id that sorts by the time at which it was made, to the millisecond.
func newID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // it never fails
	return "prj_" + base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// byteOrder compares a column byte by byte on both databases.
func byteOrder(q store.Querier, column string) string {
	if d, ok := q.(interface{ Dialect() store.Dialect }); ok && d.Dialect() == store.Postgres {
		return column + ` COLLATE "C"`
	}
	return column
}

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

const projectColumns = "id, name, settings, version, created_at, updated_at"

func scanProject(row store.Row) (Project, error) {
	var p Project
	var settings string
	var created, updated int64
	if err := row.Scan(&p.ID, &p.Name, &settings, &p.Version, &created, &updated); err != nil {
		return Project{}, err
	}
	p.CreatedAt, p.UpdatedAt = instant(created), instant(updated)
	if err := json.Unmarshal([]byte(settings), &p.Settings); err != nil {
		return Project{}, fmt.Errorf("the settings of project %s cannot be read: %w", p.ID, err)
	}
	return p, nil
}

func queryProjects(ctx context.Context, q store.Querier, where string, args ...any) ([]Project, error) {
	all := []Project{}
	err := q.Query(ctx, func(row store.Row) error {
		p, err := scanProject(row)
		all = append(all, p)
		return err
	}, "SELECT "+projectColumns+" FROM projects WHERE "+where, args...)
	return all, err
}

func findProject(ctx context.Context, q store.Querier, tenant, id string) (Project, error) {
	all, err := queryProjects(ctx, q, "tenant = ? AND id = ?", tenant, id)
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return Project{}, err
	}
	return all[0], nil
}

func listProjects(ctx context.Context, q store.Querier, tenant, after string, limit int) ([]Project, error) {
	id := byteOrder(q, "id")
	return queryProjects(ctx, q, "tenant = ? AND "+id+" > ? ORDER BY "+id+" LIMIT ?", tenant, after, limit)
}

func insertProject(ctx context.Context, tx *store.Tx, tenant string, p Project) error {
	settings, err := json.Marshal(p.Settings)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO projects (tenant, "+projectColumns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
		tenant, p.ID, p.Name, string(settings), p.Version, p.CreatedAt.UnixMilli(), p.UpdatedAt.UnixMilli())
	return err
}

// updateProject writes p as the version after its own.
func updateProject(ctx context.Context, tx *store.Tx, tenant string, p *Project) error {
	settings, err := json.Marshal(p.Settings)
	if err != nil {
		return err
	}
	return changed(tx.Exec(ctx, "UPDATE projects SET name = ?, settings = ?, version = version + 1, updated_at = ? WHERE tenant = ? AND id = ? AND version = ?",
		p.Name, string(settings), p.UpdatedAt.UnixMilli(), tenant, p.ID, p.Version))(&p.Version)
}

func deleteProject(ctx context.Context, tx *store.Tx, tenant string, p Project) error {
	return changed(tx.Exec(ctx, "DELETE FROM projects WHERE tenant = ? AND id = ? AND version = ?", tenant, p.ID, p.Version))(new(int64))
}

// changed makes a statement that found no row store.ErrStale, and counts the version up after one that did.
func changed(n int64, err error) func(version *int64) error {
	return func(version *int64) error {
		if err == nil && n == 0 {
			return store.ErrStale
		}
		if err == nil {
			*version++
		}
		return err
	}
}

// checkCommitSource refuses settings that commit to a source that the project does not have.
func checkCommitSource(ctx context.Context, tx *store.Tx, tenant string, p Project) error {
	c := p.Settings.Commit
	if c == nil {
		return nil
	}
	source, err := findSource(ctx, tx, tenant, p.ID, c.Source)
	if err == nil && source.Kind == Git {
		return nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	var problems problem.List
	problems.Add("unknown", "/settings/commit/source", "the project has no git source %q", c.Source)
	return problems.Err("set the project")
}

const sourceColumns = "name, kind, location, ref, exclude, sealed, version, created_at, updated_at"

func querySources(ctx context.Context, q store.Querier, where string, args ...any) ([]Source, error) {
	all := []Source{}
	err := q.Query(ctx, func(row store.Row) error {
		var s Source
		var exclude string
		var created, updated int64
		if err := row.Scan(&s.Name, &s.Kind, &s.Location, &s.Ref, &exclude, &s.sealed, &s.Version, &created, &updated); err != nil {
			return err
		}
		s.CreatedAt, s.UpdatedAt, s.HasCredential = instant(created), instant(updated), s.sealed != ""
		if err := json.Unmarshal([]byte(exclude), &s.Exclude); err != nil {
			return fmt.Errorf("the patterns of the source %q cannot be read: %w", s.Name, err)
		}
		all = append(all, s)
		return nil
	}, "SELECT "+sourceColumns+" FROM sources WHERE "+where, args...)
	return all, err
}

func findSource(ctx context.Context, q store.Querier, tenant, project, name string) (Source, error) {
	all, err := querySources(ctx, q, "tenant = ? AND project = ? AND name = ?", tenant, project, name)
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return Source{}, err
	}
	return all[0], nil
}

func listSources(ctx context.Context, q store.Querier, tenant, project string) ([]Source, error) {
	return querySources(ctx, q, "tenant = ? AND project = ? ORDER BY "+byteOrder(q, "name"), tenant, project)
}

func insertSource(ctx context.Context, tx *store.Tx, tenant, project string, s Source) error {
	exclude, err := json.Marshal(s.Exclude)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO sources (tenant, project, "+sourceColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		tenant, project, s.Name, string(s.Kind), s.Location, s.Ref, string(exclude), s.sealed, s.Version, s.CreatedAt.UnixMilli(), s.UpdatedAt.UnixMilli())
	return err
}

func updateSource(ctx context.Context, tx *store.Tx, tenant, project string, s *Source) error {
	exclude, err := json.Marshal(s.Exclude)
	if err != nil {
		return err
	}
	return changed(tx.Exec(ctx, "UPDATE sources SET kind = ?, location = ?, ref = ?, exclude = ?, sealed = ?, version = version + 1, updated_at = ? "+
		"WHERE tenant = ? AND project = ? AND name = ? AND version = ?",
		string(s.Kind), s.Location, s.Ref, string(exclude), s.sealed, s.UpdatedAt.UnixMilli(), tenant, project, s.Name, s.Version))(&s.Version)
}

func deleteSource(ctx context.Context, tx *store.Tx, tenant, project string, s Source) error {
	return changed(tx.Exec(ctx, "DELETE FROM sources WHERE tenant = ? AND project = ? AND name = ? AND version = ?", tenant, project, s.Name, s.Version))(new(int64))
}

// sealedSource is where a sealed credential stands.
type sealedSource struct{ tenant, project, name, sealed string }

func sealedSources(ctx context.Context, q store.Querier) (all []sealedSource, err error) {
	err = q.Query(ctx, func(row store.Row) error {
		var s sealedSource
		err := row.Scan(&s.tenant, &s.project, &s.name, &s.sealed)
		all = append(all, s)
		return err
	}, "SELECT tenant, project, name, sealed FROM sources WHERE sealed <> ''")
	return all, err
}

func (s *sealedSource) save(ctx context.Context, tx *store.Tx) error {
	_, err := tx.Exec(ctx, "UPDATE sources SET sealed = ? WHERE tenant = ? AND project = ? AND name = ?", s.sealed, s.tenant, s.project, s.name)
	return err
}
