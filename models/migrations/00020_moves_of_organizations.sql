-- Housekeeping takes the organizations with moved nodes in turn.

-- +goose Up

-- Moves that wait during this migration count as those of one organization.
ALTER TABLE moved_nodes ADD COLUMN organization_id public_id NOT NULL DEFAULT '';
CREATE INDEX moved_nodes_of_organization ON moved_nodes (organization_id, id);

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
    INSERT INTO moved_nodes (organization_id, node_id, moved_at) VALUES (NEW.organization_id, NEW.id, NEW.changed_at);
    RETURN NULL;
END $$;
-- +goose StatementEnd
