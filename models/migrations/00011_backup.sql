-- When the database was last backed up: deploy/backup writes it, for the alert on backups that are too old. One row.

-- +goose Up
CREATE TABLE last_backup (done_at timestamptz NOT NULL);
INSERT INTO last_backup VALUES (now());
