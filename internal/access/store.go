package access

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/hozo-run/hozo/internal/secret"
	"github.com/hozo-run/hozo/internal/store"
)

// adminSQL finds who may manage users. It must agree with the table of roles.
const adminSQL = `SELECT count(*) FROM users u JOIN user_roles r ON r.tenant = u.tenant AND r.user_id = u.id
	WHERE u.tenant = ? AND u.disabled = 0 AND r.project = '' AND r.role = 'admin'`

const userColumns = "u.id, u.email, u.name, u.password, u.disabled, u.version, u.created_at, u.updated_at"

// userRow takes the columns of userColumns.
type userRow struct {
	user             User
	password         string
	disabled         int64
	created, updated int64
}

func (r *userRow) dest() []any {
	return []any{&r.user.ID, &r.user.Email, &r.user.Name, &r.password, &r.disabled, &r.user.Version, &r.created, &r.updated}
}

func (r *userRow) value() User {
	u := r.user
	u.Disabled, u.HasPassword, u.password = r.disabled != 0, r.password != "", secret.New(r.password)
	u.CreatedAt, u.UpdatedAt = moment(r.created), moment(r.updated)
	return u
}

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

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// userBy returns the user whose column, "id" or "email", has a value.
func userBy(ctx context.Context, q store.Querier, tenant, column, value string) (User, error) {
	var row userRow
	if err := q.QueryRow(ctx, "SELECT "+userColumns+" FROM users u WHERE u.tenant = ? AND u."+column+" = ?", []any{tenant, value}, row.dest()...); err != nil {
		return User{}, err
	}
	user := row.value()
	roles, err := rolesOf(ctx, q, tenant, user.ID)
	user.Roles = roles
	return user, err
}

func rolesOf(ctx context.Context, q store.Querier, tenant, id string) ([]RoleGrant, error) {
	roles := []RoleGrant{}
	err := q.Query(ctx, func(row store.Row) error {
		var r RoleGrant
		if err := row.Scan(&r.Project, &r.Role); err != nil {
			return err
		}
		roles = append(roles, r)
		return nil
	}, "SELECT project, role FROM user_roles WHERE tenant = ? AND user_id = ? ORDER BY project, role", tenant, id)
	return roles, err
}

func listUsers(ctx context.Context, q store.Querier, tenant, after string, limit int) ([]User, error) {
	users := []User{}
	at := map[string]int{}
	err := q.Query(ctx, func(r store.Row) error {
		var row userRow
		if err := r.Scan(row.dest()...); err != nil {
			return err
		}
		user := row.value()
		user.Roles = []RoleGrant{}
		at[user.ID] = len(users)
		users = append(users, user)
		return nil
	}, "SELECT "+userColumns+" FROM users u WHERE u.tenant = ? AND u.email > ? ORDER BY u.email LIMIT ?", tenant, after, limit)
	if err != nil || len(users) == 0 {
		return users, err
	}
	args := []any{tenant}
	for _, u := range users {
		args = append(args, u.ID)
	}
	err = q.Query(ctx, func(row store.Row) error {
		var id string
		var r RoleGrant
		if err := row.Scan(&id, &r.Project, &r.Role); err != nil {
			return err
		}
		i := at[id]
		users[i].Roles = append(users[i].Roles, r)
		return nil
	}, "SELECT user_id, project, role FROM user_roles WHERE tenant = ? AND user_id IN (?"+strings.Repeat(", ?", len(users)-1)+") ORDER BY project, role", args...)
	return users, err
}

func countUsers(ctx context.Context, q store.Querier, tenant string) (int64, error) {
	var n int64
	err := q.QueryRow(ctx, "SELECT count(*) FROM users WHERE tenant = ?", []any{tenant}, &n)
	return n, err
}

// needAdmin refuses to leave a tenant without somebody who can manage users.
func needAdmin(ctx context.Context, tx *store.Tx, tenant string) error {
	var n int64
	if err := tx.QueryRow(ctx, adminSQL, []any{tenant}, &n); err != nil {
		return err
	}
	if n == 0 {
		return ErrLastAdmin
	}
	return nil
}

func insertUser(ctx context.Context, tx *store.Tx, tenant string, u User) error {
	if _, err := tx.Exec(ctx, `INSERT INTO users (tenant, id, email, name, password, disabled, version, created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		tenant, u.ID, u.Email, u.Name, u.password.Reveal(), number(u.Disabled), u.Version, u.CreatedAt.UnixMilli(), u.UpdatedAt.UnixMilli()); err != nil {
		return err
	}
	return replaceRoles(ctx, tx, tenant, u.ID, u.Roles)
}

// saveUser writes what an administrator may change, as the next version.
func saveUser(ctx context.Context, tx *store.Tx, tenant string, u *User) error {
	n, err := tx.Exec(ctx, "UPDATE users SET name = ?, disabled = ?, version = version + 1, updated_at = ? WHERE tenant = ? AND id = ? AND version = ?",
		u.Name, number(u.Disabled), u.UpdatedAt.UnixMilli(), tenant, u.ID, u.Version)
	if err != nil || n == 0 {
		return orElse(err, store.ErrStale)
	}
	u.Version++
	return replaceRoles(ctx, tx, tenant, u.ID, u.Roles)
}

func replaceRoles(ctx context.Context, tx *store.Tx, tenant, id string, roles []RoleGrant) error {
	if _, err := tx.Exec(ctx, "DELETE FROM user_roles WHERE tenant = ? AND user_id = ?", tenant, id); err != nil {
		return err
	}
	for _, r := range roles {
		if _, err := tx.Exec(ctx, "INSERT INTO user_roles (tenant, user_id, project, role) VALUES (?, ?, ?, ?)", tenant, id, r.Project, string(r.Role)); err != nil {
			return err
		}
	}
	return nil
}

func deleteUser(ctx context.Context, tx *store.Tx, tenant, id string) error {
	if err := endAccess(ctx, tx, tenant, id, []string{"identities", "user_roles"}); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "DELETE FROM users WHERE tenant = ? AND id = ?", tenant, id)
	return err
}

// endAccess removes what lets a user in, and the rows of further tables.
func endAccess(ctx context.Context, tx *store.Tx, tenant, id string, further []string) error {
	for _, table := range append([]string{"sessions", "api_keys", "links"}, further...) {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE tenant = ? AND user_id = ?", tenant, id); err != nil {
			return err
		}
	}
	return nil
}

func setPassword(ctx context.Context, tx *store.Tx, tenant, id, hashed string, now int64) error {
	n, err := tx.Exec(ctx, "UPDATE users SET password = ?, version = version + 1, updated_at = ? WHERE tenant = ? AND id = ?", hashed, now, tenant, id)
	if err != nil || n == 0 {
		return orElse(err, store.ErrNotFound)
	}
	return nil
}

// confirm makes sure that a user who signs in is still as they were when the password was verified, and keeps the newer
// hash if there is one. In PostgreSQL it also locks the row against a change of the password that is under way.
func confirm(ctx context.Context, tx *store.Tx, tenant string, u User, rehashed string) error {
	if rehashed == "" {
		rehashed = u.password.Reveal()
	}
	n, err := tx.Exec(ctx, "UPDATE users SET password = ? WHERE tenant = ? AND id = ? AND password = ? AND disabled = 0", rehashed, tenant, u.ID, u.password.Reveal())
	if err != nil || n == 0 {
		return orElse(err, ErrCredentials)
	}
	return nil
}

func insertSession(ctx context.Context, tx *store.Tx, tenant, userID string, hash []byte, s Session) error {
	_, err := tx.Exec(ctx, "INSERT INTO sessions (hash, tenant, id, user_id, client, created_at, seen_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		hash, tenant, s.ID, userID, s.Client, s.CreatedAt.UnixMilli(), s.SeenAt.UnixMilli(), s.ExpiresAt.UnixMilli())
	return err
}

// foundSession is a session with its user.
type foundSession struct {
	tenant  string
	session Session
	user    User
}

func sessionByHash(ctx context.Context, q store.Querier, hash []byte) (foundSession, error) {
	var f foundSession
	var row userRow
	var created, seen, expires int64
	err := q.QueryRow(ctx, "SELECT s.tenant, s.id, s.client, s.created_at, s.seen_at, s.expires_at, "+userColumns+
		" FROM sessions s JOIN users u ON u.tenant = s.tenant AND u.id = s.user_id WHERE s.hash = ?", []any{hash},
		append([]any{&f.tenant, &f.session.ID, &f.session.Client, &created, &seen, &expires}, row.dest()...)...)
	if err != nil {
		return foundSession{}, err
	}
	f.session.CreatedAt, f.session.SeenAt, f.session.ExpiresAt = moment(created), moment(seen), moment(expires)
	f.user = row.value()
	f.user.Roles, err = rolesOf(ctx, q, f.tenant, f.user.ID)
	return f, err
}

func listSessions(ctx context.Context, q store.Querier, tenant, userID string, now, idleSince int64) ([]Session, error) {
	sessions := []Session{}
	err := q.Query(ctx, func(row store.Row) error {
		var s Session
		var created, seen, expires int64
		if err := row.Scan(&s.ID, &s.Client, &created, &seen, &expires); err != nil {
			return err
		}
		s.CreatedAt, s.SeenAt, s.ExpiresAt = moment(created), moment(seen), moment(expires)
		sessions = append(sessions, s)
		return nil
	}, `SELECT id, client, created_at, seen_at, expires_at FROM sessions
		WHERE tenant = ? AND user_id = ? AND expires_at > ? AND seen_at > ? ORDER BY created_at DESC, id`, tenant, userID, now, idleSince)
	return sessions, err
}

func touchSession(ctx context.Context, tx *store.Tx, tenant, id string, now int64) error {
	_, err := tx.Exec(ctx, "UPDATE sessions SET seen_at = ? WHERE tenant = ? AND id = ?", now, tenant, id)
	return err
}

func deleteSession(ctx context.Context, tx *store.Tx, tenant, userID, id string) error {
	n, err := tx.Exec(ctx, "DELETE FROM sessions WHERE tenant = ? AND user_id = ? AND id = ?", tenant, userID, id)
	if err != nil || n == 0 {
		return orElse(err, store.ErrNotFound)
	}
	return nil
}

func deleteSessionByHash(ctx context.Context, tx *store.Tx, hash []byte) (int64, error) {
	return tx.Exec(ctx, "DELETE FROM sessions WHERE hash = ?", hash)
}

// endSessions ends the sessions of a user except one.
func endSessions(ctx context.Context, tx *store.Tx, tenant, userID, except string) error {
	_, err := tx.Exec(ctx, "DELETE FROM sessions WHERE tenant = ? AND user_id = ? AND id <> ?", tenant, userID, except)
	return err
}

func insertKey(ctx context.Context, tx *store.Tx, tenant string, hash []byte, k Key) error {
	permissions, err := json.Marshal(k.Permissions)
	if err != nil {
		return err
	}
	projects, err := json.Marshal(k.Projects)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO api_keys (hash, tenant, id, user_id, name, hint, permissions, projects, created_at, expires_at, last_used_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
		hash, tenant, k.ID, k.UserID, k.Name, k.Hint, string(permissions), string(projects), k.CreatedAt.UnixMilli(), milli(k.ExpiresAt))
	return err
}

const keyColumns = "k.id, k.user_id, k.name, k.hint, k.permissions, k.projects, k.created_at, k.expires_at, k.last_used_at"

// keyRow takes the columns of keyColumns.
type keyRow struct {
	key                   Key
	permissions, projects string
	created, expires      int64
	used                  int64
}

func (r *keyRow) dest() []any {
	return []any{&r.key.ID, &r.key.UserID, &r.key.Name, &r.key.Hint, &r.permissions, &r.projects, &r.created, &r.expires, &r.used}
}

func (r *keyRow) value() (Key, error) {
	k := r.key
	k.CreatedAt, k.ExpiresAt, k.LastUsedAt = moment(r.created), moment(r.expires), moment(r.used)
	if err := json.Unmarshal([]byte(r.permissions), &k.Permissions); err != nil {
		return Key{}, err
	}
	return k, json.Unmarshal([]byte(r.projects), &k.Projects)
}

// foundKey is a key with its owner.
type foundKey struct {
	tenant string
	key    Key
	user   User
}

func keyByHash(ctx context.Context, q store.Querier, hash []byte) (foundKey, error) {
	var f foundKey
	var row userRow
	var key keyRow
	err := q.QueryRow(ctx, "SELECT k.tenant, "+keyColumns+", "+userColumns+
		" FROM api_keys k JOIN users u ON u.tenant = k.tenant AND u.id = k.user_id WHERE k.hash = ?", []any{hash},
		append(append([]any{&f.tenant}, key.dest()...), row.dest()...)...)
	if err != nil {
		return foundKey{}, err
	}
	if f.key, err = key.value(); err != nil {
		return foundKey{}, err
	}
	f.user = row.value()
	f.user.Roles, err = rolesOf(ctx, q, f.tenant, f.user.ID)
	return f, err
}

func listKeys(ctx context.Context, q store.Querier, tenant, userID string) ([]Key, error) {
	keys := []Key{}
	query, args := "SELECT "+keyColumns+" FROM api_keys k WHERE k.tenant = ?", []any{tenant}
	if userID != "" {
		query, args = query+" AND k.user_id = ?", append(args, userID)
	}
	err := q.Query(ctx, func(r store.Row) error {
		var row keyRow
		if err := r.Scan(row.dest()...); err != nil {
			return err
		}
		key, err := row.value()
		keys = append(keys, key)
		return err
	}, query+" ORDER BY k.created_at DESC, k.id", args...)
	return keys, err
}

func countKeys(ctx context.Context, q store.Querier, tenant, userID string) (int64, error) {
	var n int64
	err := q.QueryRow(ctx, "SELECT count(*) FROM api_keys WHERE tenant = ? AND user_id = ?", []any{tenant, userID}, &n)
	return n, err
}

func touchKey(ctx context.Context, tx *store.Tx, tenant, id string, now int64) error {
	_, err := tx.Exec(ctx, "UPDATE api_keys SET last_used_at = ? WHERE tenant = ? AND id = ?", now, tenant, id)
	return err
}

// deleteKey removes a key of an owner, or of anybody if owner is "".
func deleteKey(ctx context.Context, tx *store.Tx, tenant, owner, id string) error {
	query, args := "DELETE FROM api_keys WHERE tenant = ? AND id = ?", []any{tenant, id}
	if owner != "" {
		query, args = query+" AND user_id = ?", append(args, owner)
	}
	n, err := tx.Exec(ctx, query, args...)
	if err != nil || n == 0 {
		return orElse(err, store.ErrNotFound)
	}
	return nil
}

func userByIdentity(ctx context.Context, q store.Querier, tenant, issuer, subject string) (User, error) {
	var id string
	if err := q.QueryRow(ctx, "SELECT user_id FROM identities WHERE tenant = ? AND issuer = ? AND subject = ?", []any{tenant, issuer, subject}, &id); err != nil {
		return User{}, err
	}
	return userBy(ctx, q, tenant, "id", id)
}

func insertIdentity(ctx context.Context, tx *store.Tx, tenant, issuer, subject, userID string, now int64) error {
	_, err := tx.Exec(ctx, "INSERT INTO identities (tenant, issuer, subject, user_id, created_at) VALUES (?, ?, ?, ?, ?)", tenant, issuer, subject, userID, now)
	return err
}
