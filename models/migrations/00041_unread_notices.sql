-- +goose NO TRANSACTION

-- The console counts and lists unread notices at each request. Building the index does not block writers.

-- +goose Up

-- An earlier run may have left an unfinished one.
DROP INDEX CONCURRENTLY IF EXISTS notices_unread;
CREATE INDEX CONCURRENTLY notices_unread ON notices (person_id, id) WHERE read_at IS NULL;
