-- +goose Up
CREATE TABLE installation (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT;
