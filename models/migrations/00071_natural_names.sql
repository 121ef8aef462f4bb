-- Lists of nodes are in the order that people expect: numbers in names count as numbers
-- ("Room 2" before "Room 10"), and letters sort as in dictionaries. No released version
-- reads along the index that this one replaces.

-- +goose NO TRANSACTION
-- +goose Up

CREATE COLLATION IF NOT EXISTS natural_names (provider = icu, locale = 'und-u-kn-true');
-- An earlier run may have left an unfinished one.
DROP INDEX CONCURRENTLY IF EXISTS inventory_nodes_by_name;
CREATE INDEX CONCURRENTLY inventory_nodes_by_name ON inventory_nodes (organization_id, parent_id, lower(name) COLLATE natural_names, id);
DROP INDEX CONCURRENTLY IF EXISTS inventory_nodes_levels;
