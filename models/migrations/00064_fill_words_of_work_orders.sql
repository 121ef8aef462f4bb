-- Fills work_order_words while calls go on, and makes its index. It can be repeated.

-- +goose NO TRANSACTION
-- +goose Up

-- The rows of a batch are locked, so that none changes between being read and being inserted.
-- +goose StatementBegin
DO $$
DECLARE
    last text := '';
BEGIN
    LOOP
        WITH batch AS (
            SELECT id, organization_id, number, title, external_id FROM work_orders WHERE id > last ORDER BY id LIMIT 1000 FOR SHARE
        ), filled AS (
            INSERT INTO work_order_words (id, words)
            SELECT id, array_to_tsvector(search_words(organization_id, number || ' ' || title || ' ' || coalesce(external_id, ''))) FROM batch
            ON CONFLICT DO NOTHING
        )
        SELECT max(id) INTO last FROM batch;
        EXIT WHEN last IS NULL;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- Without a list of pending entries: searches would read all of it, and the write that finds it full would move it.
DROP INDEX CONCURRENTLY IF EXISTS work_order_words_of_work_orders;
CREATE INDEX CONCURRENTLY work_order_words_of_work_orders ON work_order_words USING gin (words) WITH (fastupdate = off);
