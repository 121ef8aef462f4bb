-- +goose NO TRANSACTION

-- Levels of the inventory are read by name, a page at a time.

-- +goose Up

-- An earlier run may have left an unfinished one.
DROP INDEX CONCURRENTLY IF EXISTS inventory_nodes_levels;
CREATE INDEX CONCURRENTLY inventory_nodes_levels ON inventory_nodes (organization_id, parent_id, lower(name), id);
