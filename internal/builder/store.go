package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/catalog"
	"github.com/hozo-run/hozo/internal/store"
)

// The kinds of names that have counters.
const (
	kindAgent = "agent"
	kindSkill = "skill"
)

func moment(milli int64) time.Time { return time.UnixMilli(milli).UTC() }

// nextRevision counts the change of a name.
func nextRevision(ctx context.Context, tx *store.Tx, tenant, kind, name string) (revision int64, err error) {
	err = tx.QueryRow(ctx, `INSERT INTO agent_counters (tenant, kind, name, version, revision) VALUES (?, ?, ?, 0, 1)
		ON CONFLICT (tenant, kind, name) DO UPDATE SET revision = agent_counters.revision + 1 RETURNING revision`,
		[]any{tenant, kind, name}, &revision)
	return revision, err
}

// nextVersion returns a number that no version of the agent has had: wanted if it is above all of them, else the next one.
// Whoever has taken a number keeps others from taking one until its transaction ends.
func nextVersion(ctx context.Context, tx *store.Tx, tenant, name string, wanted int64) (version int64, err error) {
	err = tx.QueryRow(ctx, `INSERT INTO agent_counters (tenant, kind, name, version, revision) VALUES (?, ?, ?, ?, 0)
		ON CONFLICT (tenant, kind, name) DO UPDATE SET version =
			CASE WHEN excluded.version > agent_counters.version THEN excluded.version ELSE agent_counters.version + 1 END
		RETURNING version`, []any{tenant, kindAgent, name, max(wanted, 1)}, &version)
	return version, err
}

// row is an agent as the database has it, with its current version.
type row struct {
	name      string
	enabled   bool
	revision  int64
	createdAt time.Time
	updatedAt time.Time
	version   VersionFiles
}

const rowColumns = `SELECT a.name, a.enabled, a.revision, a.created_at, a.updated_at, v.version, v.note, v.author, v.digest, v.created_at, v.files
	FROM agents a JOIN agent_versions v ON v.tenant = a.tenant AND v.name = a.name AND v.version = a.current WHERE a.tenant = ?`

func scanAgent(scan func(...any) error) (*row, error) {
	var r row
	var enabled, created, updated, made int64
	var files string
	err := scan(&r.name, &enabled, &r.revision, &created, &updated, &r.version.Version.Version, &r.version.Note, &r.version.Author,
		&r.version.Digest, &made, &files)
	if err != nil {
		return nil, err
	}
	r.enabled, r.createdAt, r.updatedAt, r.version.CreatedAt, r.version.Current = enabled != 0, moment(created), moment(updated), moment(made), true
	r.version.Files, err = readFiles(r.name, files)
	return &r, err
}

func agentByName(ctx context.Context, q store.Querier, tenant, name string) (*row, error) {
	if !catalog.ValidName(name) {
		return nil, store.ErrNotFound // nor can a database be asked for every text
	}
	return scanAgent(func(dest ...any) error {
		return q.QueryRow(ctx, rowColumns+" AND a.name = ?", []any{tenant, name}, dest...)
	})
}

func listAgents(ctx context.Context, q store.Querier, tenant string) ([]*row, error) {
	var rows []*row
	err := q.Query(ctx, func(found store.Row) error {
		r, err := scanAgent(found.Scan)
		rows = append(rows, r)
		return err
	}, rowColumns+" ORDER BY a.name", tenant)
	return rows, err
}

// The files of a version are kept as a JSON object of texts: packages hold UTF-8 only.
func writeFiles(files Files) (string, error) {
	texts := make(map[string]string, len(files))
	for path, data := range files {
		texts[path] = string(data)
	}
	data, err := json.Marshal(texts)
	return string(data), err
}

func readFiles(name, column string) (Files, error) {
	var texts map[string]string
	if err := json.Unmarshal([]byte(column), &texts); err != nil {
		return nil, fmt.Errorf("read the files of the agent %q: %w", name, err)
	}
	files := make(Files, len(texts))
	for path, text := range texts {
		files[path] = []byte(text)
	}
	return files, nil
}

func insertVersion(ctx context.Context, tx *store.Tx, tenant, name string, v VersionFiles) error {
	files, err := writeFiles(v.Files)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO agent_versions (tenant, name, version, note, author, digest, files, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		tenant, name, v.Version.Version, v.Note, v.Author, v.Digest, files, v.CreatedAt.UnixMilli())
	return err
}

// insertAgent makes the row of an agent, whose current version comes right after.
func insertAgent(ctx context.Context, tx *store.Tx, tenant, name string, enabled bool, current, revision int64, now time.Time) error {
	_, err := tx.Exec(ctx, "INSERT INTO agents (tenant, name, enabled, current, revision, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
		tenant, name, truth(enabled), current, revision, now.UnixMilli(), now.UnixMilli())
	return err
}

func truth(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// clause and condition choose the row that has a revision, or any with AnyRevision.
func clause(revision int64) string {
	if revision == AnyRevision {
		return ""
	}
	return " AND revision = ?"
}

func condition(revision int64) []any {
	if revision == AnyRevision {
		return nil
	}
	return []any{revision}
}

// updateAgent writes the row of an agent that has the revision before, or any with AnyRevision.
func updateAgent(ctx context.Context, tx *store.Tx, tenant string, r *row, before, revision int64, now time.Time) error {
	n, err := tx.Exec(ctx, "UPDATE agents SET enabled = ?, current = ?, revision = ?, updated_at = ? WHERE tenant = ? AND name = ?"+clause(before),
		append([]any{truth(r.enabled), r.version.Version.Version, revision, now.UnixMilli(), tenant, r.name}, condition(before)...)...)
	if err == nil && n == 0 {
		return store.ErrStale
	}
	return err
}

func deleteAgent(ctx context.Context, tx *store.Tx, tenant, name string) error {
	_, err := tx.Exec(ctx, "DELETE FROM agents WHERE tenant = ? AND name = ?", tenant, name)
	return err
}

const versionColumns = `SELECT v.version, v.note, v.author, v.digest, v.created_at, CASE WHEN a.current = v.version THEN 1 ELSE 0 END, v.files
	FROM agent_versions v JOIN agents a ON a.tenant = v.tenant AND a.name = v.name WHERE v.tenant = ? AND v.name = ?`

func scanVersion(name string, scan func(...any) error) (VersionFiles, error) {
	var v VersionFiles
	var made, current int64
	var files string
	err := scan(&v.Version.Version, &v.Note, &v.Author, &v.Digest, &made, &current, &files)
	if err != nil {
		return v, err
	}
	v.CreatedAt, v.Current = moment(made), current != 0
	v.Files, err = readFiles(name, files)
	return v, err
}

func versionOf(ctx context.Context, q store.Querier, tenant, name string, version int64) (VersionFiles, error) {
	if !catalog.ValidName(name) {
		return VersionFiles{}, store.ErrNotFound
	}
	return scanVersion(name, func(dest ...any) error {
		return q.QueryRow(ctx, versionColumns+" AND v.version = ?", []any{tenant, name, version}, dest...)
	})
}

func listVersions(ctx context.Context, q store.Querier, tenant, name string) ([]Version, error) {
	versions := []Version{}
	if !catalog.ValidName(name) {
		return versions, nil
	}
	err := q.Query(ctx, func(found store.Row) error {
		v, err := scanVersion(name, found.Scan)
		versions = append(versions, v.Version)
		return err
	}, versionColumns+" ORDER BY v.version DESC", tenant, name)
	return versions, err
}

// writeUses keeps which of the tenant's own skills the current version of an agent names. It is store.ErrInUse if one of
// them is gone.
func writeUses(ctx context.Context, tx *store.Tx, tenant, name string, skills []string) error {
	if _, err := tx.Exec(ctx, "DELETE FROM agent_skill_uses WHERE tenant = ? AND agent = ?", tenant, name); err != nil {
		return err
	}
	for _, skill := range skills {
		if _, err := tx.Exec(ctx, "INSERT INTO agent_skill_uses (tenant, agent, skill) VALUES (?, ?, ?)", tenant, name, skill); err != nil {
			return err
		}
	}
	return nil
}

func usersOf(ctx context.Context, q store.Querier, tenant, skill string) ([]string, error) {
	agents := []string{}
	err := q.Query(ctx, func(found store.Row) error {
		var name string
		err := found.Scan(&name)
		agents = append(agents, name)
		return err
	}, "SELECT agent FROM agent_skill_uses WHERE tenant = ? AND skill = ? ORDER BY agent", tenant, skill)
	return agents, err
}

// skillRow is a skill of a tenant.
type skillRow struct {
	name, file, author   string
	revision             int64
	createdAt, updatedAt time.Time
}

const skillColumns = "SELECT name, file, author, revision, created_at, updated_at FROM agent_skills WHERE tenant = ?"

func scanSkill(scan func(...any) error) (skillRow, error) {
	var s skillRow
	var created, updated int64
	err := scan(&s.name, &s.file, &s.author, &s.revision, &created, &updated)
	s.createdAt, s.updatedAt = moment(created), moment(updated)
	return s, err
}

func skillByName(ctx context.Context, q store.Querier, tenant, name string) (skillRow, error) {
	if !catalog.ValidName(name) {
		return skillRow{}, store.ErrNotFound
	}
	return scanSkill(func(dest ...any) error {
		return q.QueryRow(ctx, skillColumns+" AND name = ?", []any{tenant, name}, dest...)
	})
}

func listSkills(ctx context.Context, q store.Querier, tenant string) ([]skillRow, error) {
	var skills []skillRow
	err := q.Query(ctx, func(found store.Row) error {
		s, err := scanSkill(found.Scan)
		skills = append(skills, s)
		return err
	}, skillColumns+" ORDER BY name", tenant)
	return skills, err
}

func insertSkill(ctx context.Context, tx *store.Tx, tenant string, s skillRow) error {
	_, err := tx.Exec(ctx, "INSERT INTO agent_skills (tenant, name, file, author, revision, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
		tenant, s.name, s.file, s.author, s.revision, s.createdAt.UnixMilli(), s.updatedAt.UnixMilli())
	return err
}

func updateSkill(ctx context.Context, tx *store.Tx, tenant string, s skillRow, before int64) error {
	n, err := tx.Exec(ctx, "UPDATE agent_skills SET file = ?, author = ?, revision = ?, updated_at = ? WHERE tenant = ? AND name = ?"+clause(before),
		append([]any{s.file, s.author, s.revision, s.updatedAt.UnixMilli(), tenant, s.name}, condition(before)...)...)
	if err == nil && n == 0 {
		return store.ErrStale
	}
	return err
}

func deleteSkill(ctx context.Context, tx *store.Tx, tenant, name string, before int64) error {
	n, err := tx.Exec(ctx, "DELETE FROM agent_skills WHERE tenant = ? AND name = ?"+clause(before), append([]any{tenant, name}, condition(before)...)...)
	if err == nil && n == 0 {
		return store.ErrStale
	}
	return err
}
