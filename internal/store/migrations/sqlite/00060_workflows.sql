-- +goose Up
-- Runs of workflows. definition is the file as it was when the run began; position counts the steps that are done.
CREATE TABLE workflow_runs (
	tenant      TEXT NOT NULL,
	id          TEXT NOT NULL,
	workflow    TEXT NOT NULL,
	digest      TEXT NOT NULL,
	definition  TEXT NOT NULL,
	project     TEXT NOT NULL,
	arguments   TEXT NOT NULL,
	started_by  TEXT NOT NULL,
	state       TEXT NOT NULL,
	position    INTEGER NOT NULL,
	message     TEXT NOT NULL,
	cancel      TEXT NOT NULL,
	owner       TEXT NOT NULL,
	lease_until INTEGER NOT NULL,
	created_at  INTEGER NOT NULL,
	updated_at  INTEGER NOT NULL,
	ended_at    INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX workflow_runs_open ON workflow_runs (lease_until) WHERE state = 'running';

-- One row for each step that was begun. run is '' for a step whose run could not be started.
CREATE TABLE workflow_run_steps (
	tenant     TEXT NOT NULL,
	workflow   TEXT NOT NULL,
	position   INTEGER NOT NULL,
	name       TEXT NOT NULL,
	agent      TEXT NOT NULL,
	run        TEXT NOT NULL,
	state      TEXT NOT NULL,
	answer     TEXT NOT NULL,
	message    TEXT NOT NULL,
	started_at INTEGER NOT NULL,
	ended_at   INTEGER NOT NULL,
	PRIMARY KEY (tenant, workflow, position),
	FOREIGN KEY (tenant, workflow) REFERENCES workflow_runs (tenant, id) ON DELETE CASCADE
) STRICT;
