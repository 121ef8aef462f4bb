-- changed_since: positions are transaction ids, and sync tokens become void when access changes.

-- +goose Up

-- Lets `millwright migrate` notice a logical restore into another cluster, whose transaction ids differ.
CREATE TABLE cluster_mark (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    system_identifier bigint NOT NULL
);
INSERT INTO cluster_mark (system_identifier) SELECT system_identifier FROM pg_control_system();

-- Find the position of a changed_since that is a time.
CREATE INDEX work_orders_changed_at ON work_orders (changed_at, changed_xid);
CREATE INDEX feedback_changed_at ON feedback (changed_at, changed_xid);
CREATE INDEX identities_changed_at ON identities (changed_at, changed_xid);
CREATE INDEX inventory_nodes_changed_at ON inventory_nodes (changed_at, changed_xid);
CREATE INDEX forms_changed_at ON forms (changed_at, changed_xid);
-- List one status in order, even a rare one.
CREATE INDEX work_orders_of_status ON work_orders (organization_id, status, id);
CREATE INDEX work_orders_created_by_changes ON work_orders (created_by, changed_xid, id);
CREATE INDEX feedback_of_node_changes ON feedback (inventory_id, changed_xid, id);

-- A change of permissions changes what is visible without touching records, so it ends the access epoch
-- of every integration with the permissions of the identities.
-- +goose StatementBegin
CREATE FUNCTION end_access_epochs(changed text[]) RETURNS void LANGUAGE sql AS $$
    UPDATE integrations SET access_epoch = access_epoch + 1
    WHERE id IN (SELECT actor_id FROM actor_identities WHERE identity_id = ANY (changed))
$$;

CREATE FUNCTION end_access_epochs_of_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM end_access_epochs(ARRAY[OLD.identity_id::text, NEW.identity_id::text]);
    RETURN NULL;
END $$;

CREATE FUNCTION end_access_epochs_of_definition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM end_access_epochs(ARRAY(SELECT identity_id::text FROM assignments WHERE definition_id = NEW.id));
    RETURN NULL;
END $$;

CREATE FUNCTION end_access_epochs_of_organization_definition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE integrations SET access_epoch = access_epoch + 1 WHERE organization_definition_id = NEW.id;
    RETURN NULL;
END $$;

CREATE FUNCTION end_access_epochs_of_member() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM end_access_epochs(ARRAY[OLD.member_id::text, NEW.member_id::text]);
    -- A team's record shows its members, a person's the teams. One that this transaction changed has a new time already.
    UPDATE identities SET changed_at = greatest(changed_at + interval '1 millisecond', now())
    WHERE id IN (OLD.team_id, NEW.team_id, OLD.member_id, NEW.member_id) AND changed_xid <> pg_current_xact_id();
    RETURN NULL;
END $$;

-- Serializes a move with writes of records below the node, whose foreign keys lock the node too. Otherwise a
-- record written meanwhile would keep a position before the move's.
CREATE FUNCTION lock_below_moving_node() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM inventory_nodes
    WHERE id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = NEW.id) ORDER BY id FOR UPDATE;
    RETURN NEW;
END $$;

-- Moving a node changes the ancestors and the readers of everything below it, so all of it is stamped.
CREATE FUNCTION stamp_below_moved_node() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    below text[] := ARRAY(SELECT node_id::text FROM inventory_closure WHERE ancestor_id = NEW.id);
BEGIN
    UPDATE inventory_nodes SET changed_at = greatest(changed_at + interval '1 millisecond', NEW.changed_at)
    WHERE id = ANY (below) AND id <> NEW.id;
    UPDATE work_orders SET changed_xid = pg_current_xact_id() WHERE inventory_id = ANY (below);
    UPDATE feedback SET changed_xid = pg_current_xact_id() WHERE inventory_id = ANY (below);
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER assignments_access AFTER INSERT OR UPDATE OR DELETE ON assignments
    FOR EACH ROW EXECUTE FUNCTION end_access_epochs_of_assignment();
CREATE TRIGGER permission_definitions_access AFTER UPDATE ON permission_definitions
    FOR EACH ROW WHEN (OLD.grants <> NEW.grants OR OLD.applies_below <> NEW.applies_below)
    EXECUTE FUNCTION end_access_epochs_of_definition();
CREATE TRIGGER organization_permission_definitions_access AFTER UPDATE ON organization_permission_definitions
    FOR EACH ROW WHEN (OLD.grants <> NEW.grants) EXECUTE FUNCTION end_access_epochs_of_organization_definition();
CREATE TRIGGER team_members_access AFTER INSERT OR UPDATE OR DELETE ON team_members
    FOR EACH ROW EXECUTE FUNCTION end_access_epochs_of_member();
CREATE TRIGGER inventory_nodes_moving BEFORE UPDATE OF parent_id ON inventory_nodes
    FOR EACH ROW WHEN (OLD.parent_id IS DISTINCT FROM NEW.parent_id) EXECUTE FUNCTION lock_below_moving_node();
-- Triggers fire in the order of their names: this one after the trigger that updates the closure.
CREATE TRIGGER inventory_nodes_moved AFTER UPDATE OF parent_id ON inventory_nodes
    FOR EACH ROW WHEN (OLD.parent_id IS DISTINCT FROM NEW.parent_id) EXECUTE FUNCTION stamp_below_moved_node();
