-- Moves the rows of the former table of Log Records into the log while calls go on. It can be repeated.

-- +goose NO TRANSACTION
-- +goose Up

-- Order within an organization is by id. The log's first rows are history with ids from 1, so the Log Records
-- that are older than the log get ids below 1, in their order.
-- +goose StatementBegin
DO $$
DECLARE
    next_id bigint := coalesce(least((SELECT min(id) FROM log), 1), 1) - 1;
    before_id bigint := 9223372036854775807;
    moved bigint;
BEGIN
    IF to_regclass('old_log_records') IS NULL THEN
        RETURN;
    END IF;
    LOOP
        WITH batch AS (
            DELETE FROM old_log_records
            WHERE id IN (SELECT id FROM old_log_records WHERE id < before_id ORDER BY id DESC LIMIT 5000) RETURNING *
        ), inserted AS (
            INSERT INTO log (id, organization_id, record_id, actor_id, actor_name, action, created_at) OVERRIDING SYSTEM VALUE
            SELECT next_id - row_number() OVER (ORDER BY id DESC) + 1,
                organization_id, record_id, actor_id, actor_name, action, created_at
            FROM batch
        )
        SELECT count(*), min(id) INTO moved, before_id FROM batch;
        EXIT WHEN moved = 0;
        next_id := next_id - moved;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd
DROP TABLE IF EXISTS old_log_records;

ALTER TABLE log VALIDATE CONSTRAINT log_entry;
-- The log has two indexes, this and log_of_record.
DROP INDEX CONCURRENTLY IF EXISTS log_of_organization;
CREATE UNIQUE INDEX CONCURRENTLY log_of_organization ON log (organization_id, id);
ALTER TABLE log
    DROP CONSTRAINT IF EXISTS history_pkey,
    DROP CONSTRAINT IF EXISTS log_pkey,
    ADD CONSTRAINT log_pkey PRIMARY KEY USING INDEX log_of_organization;
