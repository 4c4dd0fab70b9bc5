-- +goose Up
-- Projects. settings is JSON.
CREATE TABLE projects (
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	name       TEXT NOT NULL,
	settings   TEXT NOT NULL,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, name)
) STRICT;

-- What a project reads. location is a directory or the address of a git repository, sealed its credential, '' if it needs
-- none. exclude is a JSON list of patterns.
CREATE TABLE sources (
	tenant     TEXT NOT NULL,
	project    TEXT NOT NULL,
	name       TEXT NOT NULL,
	kind       TEXT NOT NULL,
	location   TEXT NOT NULL,
	ref        TEXT NOT NULL,
	exclude    TEXT NOT NULL,
	sealed     TEXT NOT NULL,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, project, name),
	FOREIGN KEY (tenant, project) REFERENCES projects (tenant, id) ON DELETE CASCADE
) STRICT;

-- The content that is kept, by its SHA-256. stored is 1 when all of it is there; touched_at is when it was last wanted, and
-- condemned_at is above 0 while it is being removed.
CREATE TABLE blobs (
	hash         TEXT NOT NULL PRIMARY KEY,
	stored       INTEGER NOT NULL,
	touched_at   INTEGER NOT NULL,
	condemned_at INTEGER NOT NULL
) STRICT;
CREATE INDEX blobs_by_touch ON blobs (touched_at);

-- Who needs content besides artifacts: a run, a snapshot of a source.
CREATE TABLE blob_holders (
	hash   TEXT NOT NULL REFERENCES blobs (hash),
	tenant TEXT NOT NULL,
	kind   TEXT NOT NULL,
	id     TEXT NOT NULL,
	PRIMARY KEY (hash, tenant, kind, id)
) STRICT;
CREATE INDEX blob_holders_of ON blob_holders (tenant, kind, id);

-- Outputs of runs that were kept.
CREATE TABLE artifacts (
	tenant     TEXT NOT NULL,
	id         TEXT NOT NULL,
	project    TEXT NOT NULL,
	run        TEXT NOT NULL,
	path       TEXT NOT NULL,
	hash       TEXT NOT NULL REFERENCES blobs (hash),
	size       INTEGER NOT NULL,
	media_type TEXT NOT NULL,
	executable INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, id),
	UNIQUE (tenant, run, path)
) STRICT;
CREATE INDEX artifacts_by_project ON artifacts (tenant, project, id);
CREATE INDEX artifacts_by_hash ON artifacts (hash);

-- Which content of its sources a run works on. digest is a commit, or the hash of the list of a directory's files.
CREATE TABLE run_sources (
	tenant     TEXT NOT NULL,
	run        TEXT NOT NULL,
	name       TEXT NOT NULL,
	kind       TEXT NOT NULL,
	location   TEXT NOT NULL,
	ref        TEXT NOT NULL,
	digest     TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, run, name)
) STRICT;
