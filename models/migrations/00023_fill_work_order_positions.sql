-- Fills work_order_positions and drops the indexes that it replaces, while calls go on. It can be repeated.

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
            SELECT id, organization_id, inventory_id, created_by, changed_xid FROM work_orders
            WHERE id > last ORDER BY id LIMIT 1000 FOR SHARE
        ), filled AS (
            INSERT INTO work_order_positions (id, organization_id, inventory_id, created_by, changed_xid)
            SELECT id, organization_id, inventory_id, created_by, changed_xid FROM batch
            ON CONFLICT DO NOTHING
        )
        SELECT max(id) INTO last FROM batch;
        EXIT WHEN last IS NULL;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- Programs of earlier versions read work_orders.changed_xid, which stays. Without these indexes they sort the
-- organization's work orders.
DROP INDEX CONCURRENTLY IF EXISTS work_orders_changes;
DROP INDEX CONCURRENTLY IF EXISTS work_orders_of_node_changes;
DROP INDEX CONCURRENTLY IF EXISTS work_orders_created_by_changes;
-- These two contained changed_xid.
DROP INDEX CONCURRENTLY IF EXISTS work_orders_by_node;
CREATE INDEX CONCURRENTLY work_orders_by_node ON work_orders (inventory_id, id);
DROP INDEX CONCURRENTLY IF EXISTS work_orders_of_node;
DROP INDEX CONCURRENTLY IF EXISTS work_orders_by_creator;
CREATE INDEX CONCURRENTLY work_orders_by_creator ON work_orders (created_by, id) INCLUDE (inventory_id);
DROP INDEX CONCURRENTLY IF EXISTS work_orders_created_by;
