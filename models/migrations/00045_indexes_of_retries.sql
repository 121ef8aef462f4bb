-- +goose NO TRANSACTION

-- With the statistics of a moment without retries all indexes of an address's retries seem
-- as good. Those that are not in the order of their next attempt get conditions that serve
-- only their own statements: comparisons of positions, and retries with a workflow.

-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_retrying_by_position;
CREATE INDEX CONCURRENTLY open_deliveries_retrying_by_position ON open_deliveries (webhook_id, seq) WHERE status = 'retrying' AND seq IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_retrying;
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_with_workflow;
CREATE INDEX CONCURRENTLY open_deliveries_with_workflow ON open_deliveries (webhook_id) WHERE workflow;
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_shown;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_retrying;
CREATE INDEX CONCURRENTLY open_deliveries_retrying ON open_deliveries (webhook_id, seq) WHERE status = 'retrying';
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_retrying_by_position;
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_shown;
CREATE INDEX CONCURRENTLY open_deliveries_shown ON open_deliveries (webhook_id) WHERE status = 'retrying' AND workflow;
DROP INDEX CONCURRENTLY IF EXISTS open_deliveries_with_workflow;
