-- +goose Up
-- Every write to what belongs to a run names its owner and fence in the same statement; see package run.
CREATE TABLE runs (
	id              TEXT    PRIMARY KEY,
	tenant          TEXT    NOT NULL,
	project         TEXT    NOT NULL,
	agent           TEXT    NOT NULL,
	version         TEXT    NOT NULL,
	origin          TEXT    NOT NULL,
	parent          TEXT    NOT NULL,
	started_by      TEXT    NOT NULL,
	idempotency_key TEXT,
	request_digest  TEXT    NOT NULL,
	request         TEXT    NOT NULL,
	project_limit   INTEGER NOT NULL,
	state           TEXT    NOT NULL,
	owner           TEXT    NOT NULL,
	fence           INTEGER NOT NULL,
	lease_until     INTEGER NOT NULL,
	not_before      INTEGER NOT NULL,
	queue_id        INTEGER NOT NULL,
	attempts        INTEGER NOT NULL,
	losses          INTEGER NOT NULL,
	retries         INTEGER NOT NULL,
	place           TEXT    NOT NULL,
	cancel_cause    TEXT    NOT NULL,
	waits           TEXT    NOT NULL,
	reason          TEXT    NOT NULL,
	code            TEXT    NOT NULL,
	message         TEXT    NOT NULL,
	outcome         TEXT    NOT NULL,
	usage           TEXT    NOT NULL,
	resolved        TEXT    NOT NULL,
	definition      TEXT    NOT NULL,
	created_at      INTEGER NOT NULL,
	updated_at      INTEGER NOT NULL,
	started_at      INTEGER NOT NULL,
	ended_at        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX runs_key ON runs (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_list ON runs (tenant, id);
CREATE INDEX runs_lease ON runs (lease_until) WHERE state = 'running';
CREATE INDEX runs_queued ON runs (not_before, id) WHERE state = 'queued';
CREATE INDEX runs_busy ON runs (tenant, project) WHERE state = 'running';

CREATE TABLE run_attempts (
	run        TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	attempt    INTEGER NOT NULL,
	owner      TEXT    NOT NULL,
	fence      INTEGER NOT NULL,
	place      TEXT    NOT NULL,
	started_at INTEGER NOT NULL,
	ended_at   INTEGER NOT NULL,
	ending     TEXT    NOT NULL,
	message    TEXT    NOT NULL,
	PRIMARY KEY (run, attempt)
) STRICT;

-- Row tables with an index beside them take appends of many runs three times as fast as tables in the order of their key.
CREATE TABLE run_journal (
	run   TEXT    NOT NULL,
	n     INTEGER NOT NULL,
	type  TEXT    NOT NULL,
	frame TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX run_journal_n ON run_journal (run, n);

CREATE TABLE run_events (
	run   TEXT    NOT NULL,
	seq   INTEGER NOT NULL,
	type  TEXT    NOT NULL,
	event TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX run_events_seq ON run_events (run, seq);

CREATE TABLE run_steps (
	run       TEXT    NOT NULL,
	n         INTEGER NOT NULL,
	kind      TEXT    NOT NULL,
	call_id   TEXT    NOT NULL,
	parent_id TEXT    NOT NULL,
	turn      INTEGER NOT NULL,
	tool      TEXT    NOT NULL,
	arguments TEXT    NOT NULL,
	status    TEXT    NOT NULL,
	output    TEXT    NOT NULL,
	blob      TEXT    NOT NULL,
	bytes     INTEGER NOT NULL,
	millis    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX run_steps_n ON run_steps (run, n);

CREATE TABLE run_decisions (
	run        TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	wait_id    TEXT    NOT NULL,
	hash       TEXT    NOT NULL,
	verdict    TEXT    NOT NULL,
	arguments  TEXT    NOT NULL,
	rationale  TEXT    NOT NULL,
	decided_by TEXT    NOT NULL,
	decided_at INTEGER NOT NULL,
	PRIMARY KEY (run, wait_id)
) STRICT;
