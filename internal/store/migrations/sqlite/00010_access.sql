-- +goose Up
-- People. A password is an encoded hash, '' for somebody who has none.
CREATE TABLE users (
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	email      TEXT NOT NULL,
	name       TEXT NOT NULL,
	password   TEXT NOT NULL,
	disabled   INTEGER NOT NULL,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, email)
) STRICT;

-- Which roles a person has; project '' stands for the whole installation.
CREATE TABLE user_roles (
	tenant  TEXT NOT NULL,
	user_id TEXT NOT NULL,
	project TEXT NOT NULL,
	role    TEXT NOT NULL,
	PRIMARY KEY (tenant, user_id, project, role),
	FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id) ON DELETE CASCADE
) STRICT;

-- Who somebody is at an identity provider.
CREATE TABLE identities (
	tenant     TEXT NOT NULL,
	issuer     TEXT NOT NULL,
	subject    TEXT NOT NULL,
	user_id    TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, issuer, subject),
	FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id) ON DELETE CASCADE
) STRICT;

-- Of a session only the hash of its token is kept.
CREATE TABLE sessions (
	hash       BLOB NOT NULL PRIMARY KEY,
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	user_id    TEXT NOT NULL,
	client     TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	seen_at    INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	UNIQUE (tenant, id),
	FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX sessions_of_user ON sessions (tenant, user_id);

-- Of an API key only the hash is kept; hint is its beginning, by which people know it again.
CREATE TABLE api_keys (
	hash         BLOB NOT NULL PRIMARY KEY,
	tenant       TEXT NOT NULL,
	id           TEXT NOT NULL,
	user_id      TEXT NOT NULL,
	name         TEXT NOT NULL,
	hint         TEXT NOT NULL,
	permissions  TEXT NOT NULL,
	projects     TEXT NOT NULL,
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	last_used_at INTEGER NOT NULL,
	UNIQUE (tenant, id),
	FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX api_keys_of_user ON api_keys (tenant, user_id);

-- Links that can be used once: to become the first administrator (user_id ''), or to set a password.
CREATE TABLE links (
	hash       BLOB NOT NULL PRIMARY KEY,
	tenant     TEXT NOT NULL,
	user_id    TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX links_of_user ON links (tenant, user_id);

-- The audit log: each entry holds the hash of the one before it. audit_heads has the last one of each tenant.
CREATE TABLE audit_heads (
	tenant TEXT NOT NULL PRIMARY KEY,
	seq    INTEGER NOT NULL,
	hash   BLOB NOT NULL
) STRICT;
CREATE TABLE audit_log (
	tenant     TEXT NOT NULL,
	seq        INTEGER NOT NULL,
	at         INTEGER NOT NULL,
	actor_kind TEXT NOT NULL,
	actor      TEXT NOT NULL,
	action     TEXT NOT NULL,
	target     TEXT NOT NULL,
	outcome    TEXT NOT NULL,
	address    TEXT NOT NULL,
	request_id TEXT NOT NULL,
	hash       BLOB NOT NULL,
	PRIMARY KEY (tenant, seq)
) STRICT;
CREATE INDEX audit_log_by_action ON audit_log (tenant, action, seq);
CREATE INDEX audit_log_by_actor ON audit_log (tenant, actor, seq);
