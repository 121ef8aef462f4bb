-- Lists of the feedback of one creator are read along an index. Building it does not block writers.

-- +goose NO TRANSACTION
-- +goose Up

-- An earlier run may have left an unfinished one.
DROP INDEX CONCURRENTLY IF EXISTS feedback_of_creator;
CREATE INDEX CONCURRENTLY feedback_of_creator ON feedback (organization_id, created_by, id);
