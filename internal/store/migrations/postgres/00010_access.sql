-- +goose Up
-- People. A password is an encoded hash, '' for somebody who has none.
CREATE TABLE users (
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	email      TEXT NOT NULL,
	name       TEXT NOT NULL,
	password   TEXT NOT NULL,
	disabled   INTEGER NOT NULL,
	version    BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, email)
);

-- Which roles a person has; project '' stands for the whole installation.
CREATE TABLE user_roles (
	tenant  TEXT NOT NULL,
	user_id TEXT NOT NULL,
	project TEXT NOT NULL,
	role    TEXT NOT NULL,
	PRIMARY KEY (tenant, user_id, project, role),
	FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id) ON DELETE CASCADE
);

-- Who somebody is at an identity provider.
CREATE TABLE identities (
	tenant     TEXT NOT NULL,
	issuer     TEXT NOT NULL,
	subject    TEXT NOT NULL,
	user_id    TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, issuer, subject),
	FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id) ON DELETE CASCADE
);

-- Of a session only the hash of its token is kept.
CREATE TABLE sessions (
	hash       BYTEA NOT NULL PRIMARY KEY,
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	user_id    TEXT NOT NULL,
	client     TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	seen_at    BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	UNIQUE (tenant, id),
	FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id) ON DELETE CASCADE
);
CREATE INDEX sessions_of_user ON sessions (tenant, user_id);

-- Of an API key only the hash is kept; hint is its beginning, by which people know it again.
CREATE TABLE api_keys (
	hash         BYTEA NOT NULL PRIMARY KEY,
	tenant       TEXT NOT NULL,
	id           TEXT NOT NULL,
	user_id      TEXT NOT NULL,
	name         TEXT NOT NULL,
	hint         TEXT NOT NULL,
	permissions  TEXT NOT NULL,
	projects     TEXT NOT NULL,
	created_at   BIGINT NOT NULL,
	expires_at   BIGINT NOT NULL,
	last_used_at BIGINT NOT NULL,
	UNIQUE (tenant, id),
	FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id) ON DELETE CASCADE
);
CREATE INDEX api_keys_of_user ON api_keys (tenant, user_id);

-- Links that can be used once: to become the first administrator (user_id ''), or to set a password.
CREATE TABLE links (
	hash       BYTEA NOT NULL PRIMARY KEY,
	tenant     TEXT NOT NULL,
	user_id    TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL
);
CREATE INDEX links_of_user ON links (tenant, user_id);

-- The audit log: each entry holds the hash of the one before it. audit_heads has the last one of each tenant.
CREATE TABLE audit_heads (
	tenant TEXT NOT NULL PRIMARY KEY,
	seq    BIGINT NOT NULL,
	hash   BYTEA NOT NULL
);
CREATE TABLE audit_log (
	tenant     TEXT NOT NULL,
	seq        BIGINT NOT NULL,
	at         BIGINT NOT NULL,
	actor_kind TEXT NOT NULL,
	actor      TEXT NOT NULL,
	action     TEXT NOT NULL,
	target     TEXT NOT NULL,
	outcome    TEXT NOT NULL,
	address    TEXT NOT NULL,
	request_id TEXT NOT NULL,
	hash       BYTEA NOT NULL,
	PRIMARY KEY (tenant, seq)
);
CREATE INDEX audit_log_by_action ON audit_log (tenant, action, seq);
CREATE INDEX audit_log_by_actor ON audit_log (tenant, actor, seq);
