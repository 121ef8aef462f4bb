-- A reader of few nodes reads the feedback of one creator node by node, along this index.

-- +goose NO TRANSACTION
-- +goose Up

-- An earlier run may have left an unfinished one.
DROP INDEX CONCURRENTLY IF EXISTS feedback_of_node_creator;
CREATE INDEX CONCURRENTLY feedback_of_node_creator ON feedback (inventory_id, created_by, id);
