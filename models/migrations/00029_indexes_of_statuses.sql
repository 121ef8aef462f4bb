-- Lists of one status are read along an index from few nodes too, and lists of feedback at all.

-- +goose NO TRANSACTION
-- +goose Up

DROP INDEX CONCURRENTLY IF EXISTS work_orders_of_node_status;
CREATE INDEX CONCURRENTLY work_orders_of_node_status ON work_orders (inventory_id, status, id);
DROP INDEX CONCURRENTLY IF EXISTS feedback_of_status;
CREATE INDEX CONCURRENTLY feedback_of_status ON feedback (organization_id, status, id);
DROP INDEX CONCURRENTLY IF EXISTS feedback_of_node_status;
CREATE INDEX CONCURRENTLY feedback_of_node_status ON feedback (inventory_id, status, id);

-- Lists of what is assigned to an identity name the condition, so nothing else uses this index. While the table was
-- empty it seemed as good as the primary key to find the assignees of a work order, and was then read from end to end.
DROP INDEX CONCURRENTLY IF EXISTS work_order_assignees_of_identity;
CREATE INDEX CONCURRENTLY work_order_assignees_of_identity ON work_order_assignees (identity_id, work_order_id) WHERE position >= 0;

-- The numbers of an organization come from its sequence, and nothing reads by number.
ALTER TABLE work_orders DROP CONSTRAINT IF EXISTS work_orders_organization_id_number_key;
