-- Moving a node stamps nothing below it: housekeeping does that in batches.

-- +goose Up

-- Moves of nodes below which not everything is stamped again. Housekeeping has stamped the records (nodes, work
-- orders, feedback) up to reached_record of the node reached_node.
CREATE TABLE moved_nodes (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    node_id        public_id NOT NULL,
    moved_xid      xid8 NOT NULL DEFAULT pg_current_xact_id(),
    moved_at       timestamptz(3) NOT NULL,
    reached_node   public_id NOT NULL DEFAULT '',
    reached_record public_id NOT NULL DEFAULT ''
);

-- The move locked every node below, which delayed writes of their records, and stamped all of it.
DROP TRIGGER inventory_nodes_moving ON inventory_nodes;
DROP TRIGGER inventory_nodes_moved ON inventory_nodes;
DROP FUNCTION lock_below_moving_node();
DROP FUNCTION stamp_below_moved_node();

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION keep_inventory_closure() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    parent_kind text;
BEGIN
    -- One transaction at a time changes the tree of an organization: a node inserted below one that is moving
    -- would get the ancestors from before the move. Imports are serialized already.
    PERFORM pg_advisory_xact_lock(hashtextextended('inventory ' || NEW.organization_id, 0));
    IF NEW.parent_id IS NOT NULL THEN
        SELECT kind INTO parent_kind FROM inventory_nodes WHERE id = NEW.parent_id;
        IF NOT (CASE NEW.kind
            WHEN 'location' THEN parent_kind = 'location'
            WHEN 'system' THEN parent_kind IN ('location', 'system')
            WHEN 'equipment' THEN parent_kind IN ('location', 'system')
            ELSE parent_kind = 'equipment'
        END) THEN
            RAISE EXCEPTION 'a node of kind % cannot stand below one of kind %', NEW.kind, parent_kind
                USING ERRCODE = 'check_violation', CONSTRAINT = 'inventory_nodes_nesting';
        END IF;
    END IF;
    IF TG_OP = 'INSERT' THEN
        INSERT INTO inventory_closure (node_id, ancestor_id, depth)
        SELECT NEW.id, NEW.id, 0
        UNION ALL
        SELECT NEW.id, ancestor_id, depth + 1 FROM inventory_closure WHERE node_id = NEW.parent_id;
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM inventory_closure WHERE ancestor_id = NEW.id AND node_id = NEW.parent_id) THEN
        RAISE EXCEPTION 'a node cannot stand below itself'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'inventory_nodes_nesting';
    END IF;
    DELETE FROM inventory_closure c
    USING inventory_closure below, inventory_closure above
    WHERE below.ancestor_id = NEW.id AND above.node_id = NEW.id AND above.depth > 0
        AND c.node_id = below.node_id AND c.ancestor_id = above.ancestor_id;
    INSERT INTO inventory_closure (node_id, ancestor_id, depth)
    SELECT below.node_id, above.ancestor_id, below.depth + above.depth + 1
    FROM inventory_closure below, inventory_closure above
    WHERE below.ancestor_id = NEW.id AND above.node_id = NEW.parent_id;
    INSERT INTO moved_nodes (node_id, moved_at) VALUES (NEW.id, NEW.changed_at);
    RETURN NULL;
END $$;
-- +goose StatementEnd
