package account

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
)

// moment is the time of a column; 0 is no time.
func moment(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli).UTC()
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// changed turns a statement that met no row into err: the row was not of that version.
func changed(n int64, err, otherwise error) error {
	if err == nil && n == 0 {
		return otherwise
	}
	return err
}

const providerColumns = "SELECT id, name, config, sealed, version, created_at, updated_at FROM providers WHERE tenant = ?"

func scanProvider(scan func(...any) error) (Provider, error) {
	var p Provider
	var config string
	var created, updated int64
	if err := scan(&p.ID, &p.Name, &config, &p.sealed, &p.Version, &created, &updated); err != nil {
		return Provider{}, err
	}
	var kept keptConfig
	if err := json.Unmarshal([]byte(config), &kept); err != nil {
		return Provider{}, fmt.Errorf("read the provider %q: %w", p.ID, err)
	}
	p.Config, p.HasKey = kept.Config, kept.HasKey
	p.CreatedAt, p.UpdatedAt = moment(created), moment(updated)
	return p, nil
}

func providerByID(ctx context.Context, q store.Querier, tenant, id string) (Provider, error) {
	return scanProvider(func(dest ...any) error {
		return q.QueryRow(ctx, providerColumns+" AND id = ?", []any{tenant, id}, dest...)
	})
}

func listProviders(ctx context.Context, q store.Querier, tenant string) ([]Provider, error) {
	providers := []Provider{}
	err := q.Query(ctx, func(row store.Row) error {
		p, err := scanProvider(row.Scan)
		providers = append(providers, p)
		return err
	}, providerColumns+" ORDER BY id", tenant)
	return providers, err
}

func insertProvider(ctx context.Context, tx *store.Tx, tenant string, p Provider) error {
	config, err := p.column()
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "INSERT INTO providers (tenant, id, name, config, sealed, version, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		tenant, p.ID, p.Name, config, p.sealed, p.Version, p.CreatedAt.UnixMilli(), p.UpdatedAt.UnixMilli())
	return err
}

// updateProvider writes p as the version after its own.
func updateProvider(ctx context.Context, tx *store.Tx, tenant string, p *Provider) error {
	config, err := p.column()
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, "UPDATE providers SET name = ?, config = ?, sealed = ?, version = version + 1, updated_at = ? WHERE tenant = ? AND id = ? AND version = ?",
		p.Name, config, p.sealed, p.UpdatedAt.UnixMilli(), tenant, p.ID, p.Version)
	p.Version++
	return changed(n, err, store.ErrStale)
}

func deleteProvider(ctx context.Context, tx *store.Tx, tenant, id string, version int64) error {
	n, err := tx.Exec(ctx, "DELETE FROM providers WHERE tenant = ? AND id = ? AND version = ?", tenant, id, version)
	return changed(n, err, store.ErrStale)
}

const bindingColumns = "SELECT project, agent, provider, model, thinking, version, updated_at FROM bindings WHERE tenant = ?"

func scanBinding(scan func(...any) error) (Binding, error) {
	var b Binding
	var updated int64
	err := scan(&b.Project, &b.Agent, &b.Provider, &b.Model, &b.Thinking, &b.Version, &updated)
	b.UpdatedAt = moment(updated)
	return b, err
}

func bindingOf(ctx context.Context, q store.Querier, tenant, project, agent string) (Binding, error) {
	return scanBinding(func(dest ...any) error {
		return q.QueryRow(ctx, bindingColumns+" AND project = ? AND agent = ?", []any{tenant, project, agent}, dest...)
	})
}

// bindingFilter chooses bindings; nil and "" choose all.
type bindingFilter struct {
	project, agent *string
	provider       string
}

func listBindings(ctx context.Context, q store.Querier, tenant string, f bindingFilter) ([]Binding, error) {
	query, args := bindingColumns, []any{tenant}
	if f.project != nil {
		query, args = query+" AND project = ?", append(args, *f.project)
	}
	if f.agent != nil {
		query, args = query+" AND agent = ?", append(args, *f.agent)
	}
	if f.provider != "" {
		query, args = query+" AND provider = ?", append(args, f.provider)
	}
	return scanBindings(ctx, q, query+" ORDER BY project, agent", args...)
}

// candidateBindings returns the bindings that may apply to an agent in a project.
func candidateBindings(ctx context.Context, q store.Querier, tenant, project, agent string) ([]Binding, error) {
	return scanBindings(ctx, q, bindingColumns+" AND project IN ('', ?) AND agent IN ('', ?)", tenant, project, agent)
}

func scanBindings(ctx context.Context, q store.Querier, query string, args ...any) ([]Binding, error) {
	bindings := []Binding{}
	err := q.Query(ctx, func(row store.Row) error {
		b, err := scanBinding(row.Scan)
		bindings = append(bindings, b)
		return err
	}, query, args...)
	return bindings, err
}

func insertBinding(ctx context.Context, tx *store.Tx, tenant string, b Binding) error {
	_, err := tx.Exec(ctx, "INSERT INTO bindings (tenant, project, agent, provider, model, thinking, version, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		tenant, b.Project, b.Agent, b.Provider, b.Model, string(b.Thinking), b.Version, b.UpdatedAt.UnixMilli())
	return err
}

func updateBinding(ctx context.Context, tx *store.Tx, tenant string, b Binding, version int64) error {
	n, err := tx.Exec(ctx, "UPDATE bindings SET provider = ?, model = ?, thinking = ?, version = ?, updated_at = ? WHERE tenant = ? AND project = ? AND agent = ? AND version = ?",
		b.Provider, b.Model, string(b.Thinking), b.Version, b.UpdatedAt.UnixMilli(), tenant, b.Project, b.Agent, version)
	return changed(n, err, store.ErrStale)
}

func deleteBinding(ctx context.Context, tx *store.Tx, tenant, project, agent string, version int64) error {
	n, err := tx.Exec(ctx, "DELETE FROM bindings WHERE tenant = ? AND project = ? AND agent = ? AND version = ?", tenant, project, agent, version)
	return changed(n, err, store.ErrStale)
}

const serverColumns = "SELECT name, config, sealed, pins, tools, state, reason, checked_at, version, created_at, updated_at FROM mcp_servers WHERE tenant = ?"

func scanServer(scan func(...any) error) (Server, error) {
	var server Server
	var config, pins, tools string
	var checked, created, updated int64
	if err := scan(&server.Name, &config, &server.sealed, &pins, &tools, &server.State, &server.Reason, &checked, &server.Version, &created, &updated); err != nil {
		return Server{}, err
	}
	server.CheckedAt, server.CreatedAt, server.UpdatedAt = moment(checked), moment(created), moment(updated)
	return server, decodeServer(&server, config, pins, tools)
}

func serverByName(ctx context.Context, q store.Querier, tenant, name string) (Server, error) {
	return scanServer(func(dest ...any) error {
		return q.QueryRow(ctx, serverColumns+" AND name = ?", []any{tenant, name}, dest...)
	})
}

func listServers(ctx context.Context, q store.Querier, tenant string) ([]Server, error) {
	servers := []Server{}
	err := q.Query(ctx, func(row store.Row) error {
		server, err := scanServer(row.Scan)
		servers = append(servers, server)
		return err
	}, serverColumns+" ORDER BY name", tenant)
	return servers, err
}

func insertServer(ctx context.Context, tx *store.Tx, tenant string, server Server) error {
	config, pins, tools, err := server.encode()
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO mcp_servers (tenant, name, config, sealed, pins, tools, state, reason, checked_at, version, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		tenant, server.Name, config, server.sealed, pins, tools, string(server.State), server.Reason, milli(server.CheckedAt), server.Version,
		server.CreatedAt.UnixMilli(), server.UpdatedAt.UnixMilli())
	return err
}

// updateServer writes a server as the version after its own.
func updateServer(ctx context.Context, tx *store.Tx, tenant string, server *Server) error {
	config, pins, tools, err := server.encode()
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, `UPDATE mcp_servers SET config = ?, sealed = ?, pins = ?, tools = ?, state = ?, reason = ?, checked_at = ?, version = version + 1, updated_at = ?
		WHERE tenant = ? AND name = ? AND version = ?`,
		config, server.sealed, pins, tools, string(server.State), server.Reason, milli(server.CheckedAt), server.UpdatedAt.UnixMilli(), tenant, server.Name, server.Version)
	server.Version++
	return changed(n, err, store.ErrStale)
}

// observeServer writes what was seen of a server. That is no change of it, so the version stays.
func observeServer(ctx context.Context, tx *store.Tx, tenant string, server *Server) error {
	_, pins, tools, err := server.encode()
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, "UPDATE mcp_servers SET pins = ?, tools = ?, state = ?, reason = ?, checked_at = ? WHERE tenant = ? AND name = ? AND version = ?",
		pins, tools, string(server.State), server.Reason, milli(server.CheckedAt), tenant, server.Name, server.Version)
	return changed(n, err, store.ErrStale)
}

func deleteServer(ctx context.Context, tx *store.Tx, tenant, name string, version int64) error {
	n, err := tx.Exec(ctx, "DELETE FROM mcp_servers WHERE tenant = ? AND name = ? AND version = ?", tenant, name, version)
	return changed(n, err, store.ErrStale)
}

// sealedRow is a row with sealed credentials.
type sealedRow struct {
	table, key, id, sealed string
}

func (r sealedRow) kind() string {
	if r.table == "providers" {
		return "provider"
	}
	return "MCP server"
}

func (r sealedRow) place(tenant string) secret.Place {
	if r.table == "providers" {
		return providerPlace(tenant, r.id)
	}
	return serverPlace(tenant, r.id)
}

// replace writes what was sealed anew, unless the row has changed since.
func (r sealedRow) replace(ctx context.Context, tx *store.Tx, tenant, sealed string) (int64, error) {
	return tx.Exec(ctx, "UPDATE "+r.table+" SET sealed = ? WHERE tenant = ? AND "+r.key+" = ? AND sealed = ?", sealed, tenant, r.id, r.sealed)
}

func eachSealed(ctx context.Context, q store.Querier, tenant string, each func(sealedRow) error) error {
	for _, from := range []sealedRow{{table: "providers", key: "id"}, {table: "mcp_servers", key: "name"}} {
		err := q.Query(ctx, func(row store.Row) error {
			r := from
			if err := row.Scan(&r.id, &r.sealed); err != nil {
				return err
			}
			return each(r)
		}, "SELECT "+from.key+", sealed FROM "+from.table+" WHERE tenant = ? AND sealed <> '' ORDER BY "+from.key, tenant)
		if err != nil {
			return err
		}
	}
	return nil
}
