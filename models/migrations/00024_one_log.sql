-- History and Log Records become views of one table.

-- +goose Up

-- One row per change: a history entry if it has changes, a Log Record if it has the actor's name, mostly both.
-- Rows of earlier versions, and those that they write during an upgrade, are one or the other. The table is
-- history under another name, so its rows stay where they are.
ALTER TABLE history RENAME TO log;
ALTER TABLE log
    ALTER COLUMN actor_id DROP NOT NULL,
    ALTER COLUMN changes DROP NOT NULL,
    ADD COLUMN actor_name text,
    ADD CONSTRAINT log_entry CHECK (changes IS NOT NULL OR actor_name IS NOT NULL) NOT VALID;
ALTER INDEX history_of_record RENAME TO log_of_record;
ALTER SEQUENCE history_id_seq RENAME TO log_id_seq;

ALTER TABLE log_records RENAME TO old_log_records;

-- Programs of earlier versions insert into the views.
CREATE VIEW history AS
SELECT id, organization_id, record_id, actor_id, action, changes, created_at FROM log WHERE changes IS NOT NULL;

-- actor_name is the name at the time, with "(API)" after an integration's. The service's operators have no id.
CREATE VIEW log_records AS
SELECT id, organization_id, actor_id, actor_name, action, record_id, created_at FROM log WHERE actor_name IS NOT NULL;
