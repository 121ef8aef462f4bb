-- +goose NO TRANSACTION

-- An index that building does not block writers.

-- +goose Up

-- An earlier run may have left an unfinished index.
DROP INDEX CONCURRENTLY IF EXISTS deliveries_of_address;
CREATE INDEX CONCURRENTLY deliveries_of_address ON deliveries (webhook_id, seq);
DROP INDEX CONCURRENTLY IF EXISTS deliveries_of_webhook;
