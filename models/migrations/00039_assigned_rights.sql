-- Lists read the permissions of an actor once instead of for each record.

-- +goose Up

-- The permissions of an actor by the nodes that they were assigned on, some of which reach the nodes below.
CREATE VIEW assigned_rights AS
SELECT a.actor_id, g.node_id, d.applies_below, d.grants, d.inventory_manager
FROM actor_identities a
JOIN assignments g ON g.identity_id = a.identity_id AND g.organization_id = a.organization_id
JOIN permission_definitions d ON d.id = g.definition_id AND d.grants <> '{}';

CREATE OR REPLACE VIEW node_rights AS
SELECT r.actor_id, c.node_id, r.node_id AS assigned_node_id, c.depth, r.grants, r.inventory_manager
FROM assigned_rights r
JOIN inventory_closure c ON c.ancestor_id = r.node_id AND (c.depth = 0 OR r.applies_below);
