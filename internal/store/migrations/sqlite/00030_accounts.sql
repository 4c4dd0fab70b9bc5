-- +goose Up
-- Accounts at model providers. config is JSON without credentials, sealed holds the credentials, '' if there are none.
CREATE TABLE providers (
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	name       TEXT NOT NULL,
	config     TEXT NOT NULL,
	sealed     TEXT NOT NULL,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
) STRICT;

-- Which model an agent uses. project '' stands for the installation, agent '' for every agent without an own one.
CREATE TABLE bindings (
	tenant     TEXT NOT NULL,
	project    TEXT NOT NULL,
	agent      TEXT NOT NULL,
	provider   TEXT NOT NULL,
	model      TEXT NOT NULL,
	thinking   TEXT NOT NULL,
	version    INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, project, agent),
	FOREIGN KEY (tenant, provider) REFERENCES providers (tenant, id)
) STRICT;
CREATE INDEX bindings_of_provider ON bindings (tenant, provider);

-- MCP servers. tools is the list as the server gave it last, pins are the hashes of definitions that somebody accepted.
CREATE TABLE mcp_servers (
	tenant     TEXT NOT NULL,
	name       TEXT NOT NULL,
	config     TEXT NOT NULL,
	sealed     TEXT NOT NULL,
	pins       TEXT NOT NULL,
	tools      TEXT NOT NULL,
	state      TEXT NOT NULL,
	reason     TEXT NOT NULL,
	checked_at INTEGER NOT NULL,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, name)
) STRICT;
