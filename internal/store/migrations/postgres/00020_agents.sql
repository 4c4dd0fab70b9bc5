-- +goose Up
-- Which numbers the versions and revisions of a name have had. A row outlives what it counts, so that no number comes twice.
CREATE TABLE agent_counters (
	tenant   TEXT NOT NULL,
	kind     TEXT NOT NULL,
	name     TEXT NOT NULL,
	version  BIGINT NOT NULL,
	revision BIGINT NOT NULL,
	PRIMARY KEY (tenant, kind, name)
);

-- Agents that people made. current is the version that jobs get; revision changes with every change of the row.
CREATE TABLE agents (
	tenant     TEXT NOT NULL,
	name       TEXT NOT NULL,
	enabled    INTEGER NOT NULL,
	current    BIGINT NOT NULL,
	revision   BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, name)
);

-- Versions are never changed. files is the package as it was given, a JSON object of texts by path.
CREATE TABLE agent_versions (
	tenant     TEXT NOT NULL,
	name       TEXT NOT NULL,
	version    BIGINT NOT NULL,
	note       TEXT NOT NULL,
	author     TEXT NOT NULL,
	digest     TEXT NOT NULL,
	files      TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, name, version),
	FOREIGN KEY (tenant, name) REFERENCES agents (tenant, name) ON DELETE CASCADE
);

-- Skills that several agents share. file is the skill's file as it was given.
CREATE TABLE agent_skills (
	tenant     TEXT NOT NULL,
	name       TEXT NOT NULL,
	file       TEXT NOT NULL,
	author     TEXT NOT NULL,
	revision   BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	PRIMARY KEY (tenant, name)
);

-- Which skill of the table above the current version of an agent names.
CREATE TABLE agent_skill_uses (
	tenant TEXT NOT NULL,
	agent  TEXT NOT NULL,
	skill  TEXT NOT NULL,
	PRIMARY KEY (tenant, agent, skill),
	FOREIGN KEY (tenant, agent) REFERENCES agents (tenant, name) ON DELETE CASCADE,
	FOREIGN KEY (tenant, skill) REFERENCES agent_skills (tenant, name)
);
CREATE INDEX agent_skill_uses_of_skill ON agent_skill_uses (tenant, skill);
