-- What the start page and the chart of work orders read. Building the indexes does not block writers.

-- +goose NO TRANSACTION
-- +goose Up

-- An earlier run may have left unfinished ones.

-- Work orders in process, by when they are due.
DROP INDEX CONCURRENTLY IF EXISTS work_orders_due;
CREATE INDEX CONCURRENTLY work_orders_due ON work_orders (organization_id, target_date)
    WHERE target_date IS NOT NULL AND status NOT IN ('complete', 'cancelled');

-- Work orders by when they were closed. Only closing one writes into them.
DROP INDEX CONCURRENTLY IF EXISTS work_orders_completed;
CREATE INDEX CONCURRENTLY work_orders_completed ON work_orders (organization_id, completed_at) INCLUDE (inventory_id)
    WHERE completed_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS work_orders_cancelled;
CREATE INDEX CONCURRENTLY work_orders_cancelled ON work_orders (organization_id, cancelled_at) INCLUDE (inventory_id)
    WHERE cancelled_at IS NOT NULL;
