-- +goose NO TRANSACTION

-- Indexes whose building does not block writers.

-- +goose Up

-- An earlier run may have left unfinished ones.
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_retries;
CREATE INDEX CONCURRENTLY open_deliveries_retries ON open_deliveries (webhook_id, next_attempt_at, seq) WHERE status = 'retrying';
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_shown;
CREATE INDEX CONCURRENTLY open_deliveries_shown ON open_deliveries (webhook_id) WHERE status = 'retrying' AND workflow;
