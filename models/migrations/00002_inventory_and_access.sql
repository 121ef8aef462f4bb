-- The inventory tree, permission definitions and assignments, and views of what everyone may do.

-- +goose Up

CREATE TABLE inventory_nodes (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    kind            text NOT NULL CHECK (kind IN ('location', 'system', 'equipment', 'sub_equipment')),
    parent_id       public_id CHECK (parent_id <> id),
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    sort_key        folded NOT NULL DEFAULT '',
    description     text CHECK (char_length(description) <= 10000),
    external_id     text CHECK (char_length(external_id) BETWEEN 1 AND 200),
    words           tsvector NOT NULL DEFAULT '',
    created_at      timestamptz(3) NOT NULL,
    changed_at      timestamptz(3) NOT NULL,
    changed_xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- A retired node keeps its records and cannot be chosen. All below it are retired too.
    retired_at      timestamptz(3),
    UNIQUE (organization_id, id),
    FOREIGN KEY (organization_id, parent_id) REFERENCES inventory_nodes (organization_id, id),
    CHECK (parent_id IS NOT NULL OR kind = 'location')
);
CREATE INDEX inventory_nodes_children ON inventory_nodes (parent_id, id);
CREATE INDEX inventory_nodes_of_kind ON inventory_nodes (organization_id, kind, id);
CREATE INDEX inventory_nodes_changes ON inventory_nodes (organization_id, changed_xid, id);
CREATE INDEX inventory_nodes_external ON inventory_nodes (organization_id, external_id) WHERE external_id IS NOT NULL;
-- Levels of the inventory are read by name, a page at a time.
CREATE INDEX inventory_nodes_by_name ON inventory_nodes (organization_id, parent_id, sort_key, id);
CREATE INDEX inventory_nodes_words ON inventory_nodes USING gin (words) WITH (fastupdate = off);
CREATE TRIGGER inventory_nodes_position BEFORE UPDATE ON inventory_nodes
    FOR EACH ROW EXECUTE FUNCTION set_change_position();

-- Each node with itself (depth 0) and with every node above it. Triggers maintain it: all permissions are read by it, and
-- an import moves nodes in many statements whose order only the database sees.
CREATE TABLE inventory_closure (
    node_id     public_id NOT NULL REFERENCES inventory_nodes ON DELETE CASCADE,
    ancestor_id public_id NOT NULL REFERENCES inventory_nodes ON DELETE CASCADE,
    depth       integer NOT NULL CHECK (depth >= 0),
    PRIMARY KEY (node_id, ancestor_id)
);
CREATE INDEX inventory_closure_below ON inventory_closure (ancestor_id, node_id);

-- Moves of nodes: everything below gets a new change position, a batch at a time. Housekeeping takes the
-- organizations in turn and has moved the records (nodes, work orders, feedback) up to reached_record of the node
-- reached_node.
CREATE TABLE moved_nodes (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id public_id NOT NULL,
    node_id         public_id NOT NULL,
    moved_xid       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    moved_at        timestamptz(3) NOT NULL,
    reached_node    public_id NOT NULL DEFAULT '',
    reached_record  public_id NOT NULL DEFAULT ''
);
CREATE INDEX moved_nodes_of_organization ON moved_nodes (organization_id, id);

-- +goose StatementBegin
CREATE FUNCTION keep_inventory_closure() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER inventory_nodes_closure_insert AFTER INSERT ON inventory_nodes
    FOR EACH ROW EXECUTE FUNCTION keep_inventory_closure();
CREATE TRIGGER inventory_nodes_closure_move AFTER UPDATE OF parent_id, kind ON inventory_nodes
    FOR EACH ROW WHEN (OLD.parent_id IS DISTINCT FROM NEW.parent_id OR OLD.kind <> NEW.kind)
    EXECUTE FUNCTION keep_inventory_closure();

CREATE TABLE permission_definitions (
    id                public_id PRIMARY KEY,
    organization_id   public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name              text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    sort_key          folded NOT NULL DEFAULT '',
    applies_below     boolean NOT NULL,
    inventory_manager boolean NOT NULL DEFAULT false,
    -- A retired definition keeps its assignments and gets no new ones.
    retired           boolean NOT NULL DEFAULT false,
    grants            text[] NOT NULL CHECK (grants <@ ARRAY[
                          'inventory.read', 'work_orders.read', 'work_orders.create', 'work_orders.update',
                          'work_orders.delete', 'work_orders.forward', 'feedback.read', 'feedback.create',
                          'feedback.resolve']),
    UNIQUE (organization_id, id)
);

-- An identity has at most one definition on a node. It may belong to another organization, a service company.
CREATE TABLE assignments (
    node_id         public_id NOT NULL,
    identity_id     public_id NOT NULL REFERENCES identities ON DELETE CASCADE,
    definition_id   public_id NOT NULL,
    organization_id public_id NOT NULL,
    PRIMARY KEY (node_id, identity_id),
    FOREIGN KEY (organization_id, node_id) REFERENCES inventory_nodes (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, definition_id) REFERENCES permission_definitions (organization_id, id)
);
CREATE INDEX assignments_of_identity ON assignments (identity_id, node_id);
CREATE INDEX assignments_of_definition ON assignments (definition_id, identity_id);

-- What a foreign key cannot express: the identity is of the organization or of one of its service companies.
-- +goose StatementBegin
CREATE FUNCTION check_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM identities i
        WHERE i.id = NEW.identity_id
            AND (i.organization_id = NEW.organization_id
                OR i.kind = 'organization' AND EXISTS (
                    SELECT FROM service_companies s
                    WHERE s.customer_id = NEW.organization_id AND s.company_id = i.id))
    ) THEN
        RAISE EXCEPTION 'the identity is neither of the organization nor one of its service companies'
            USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'assignments_identity_organization';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER assignments_check BEFORE INSERT OR UPDATE ON assignments
    FOR EACH ROW EXECUTE FUNCTION check_assignment();

-- The identities whose permissions an identity has: itself, its teams, its organization.
CREATE VIEW actor_identities AS
SELECT i.id AS actor_id, i.organization_id, i.id AS identity_id FROM identities i
UNION ALL
SELECT m.member_id, m.organization_id, m.team_id FROM team_members m
UNION ALL
SELECT i.id, i.organization_id, i.organization_id FROM identities i WHERE i.kind <> 'organization';

-- The permissions of an actor by the nodes that they were assigned on, some of which reach the nodes below.
CREATE VIEW assigned_rights AS
SELECT a.actor_id, g.node_id, d.applies_below, d.grants, d.inventory_manager
FROM actor_identities a
JOIN assignments g ON g.identity_id = a.identity_id AND g.organization_id = a.organization_id
JOIN permission_definitions d ON d.id = g.definition_id AND d.grants <> '{}';

-- The permissions of an actor on a node (api.md 5.6), for reads, lists, writes and
-- deliveries alike. A definition with applies_below reaches the nodes below. An assignment counts only for
-- actors of the node's organization: a service company sees work orders, not inventory. Definitions
-- without grants give no access.
CREATE VIEW node_rights AS
SELECT r.actor_id, c.node_id, r.node_id AS assigned_node_id, c.depth, r.grants, r.inventory_manager
FROM assigned_rights r
JOIN inventory_closure c ON c.ancestor_id = r.node_id AND (c.depth = 0 OR r.applies_below);

-- The organization-wide permissions of people and integrations; administrators have all of them.
CREATE VIEW organization_rights AS
SELECT p.id AS actor_id, p.organization_id,
    CASE WHEN p.admin THEN ARRAY['integrations', 'incoming_work_orders', 'log_records', 'people']
         ELSE coalesce((SELECT grants FROM organization_permission_definitions WHERE id = p.organization_definition_id), '{}') END AS grants
FROM people p
UNION ALL
SELECT i.id, i.organization_id, coalesce((SELECT grants FROM organization_permission_definitions WHERE id = i.organization_definition_id), '{}')
FROM integrations i;

-- What an assignment lets its identity read on the node and below (api.md 5.6 to 5.9). Any permission shows the node.
CREATE FUNCTION rights_of_reading(applies_below boolean, grants text[]) RETURNS boolean[] LANGUAGE sql IMMUTABLE AS
    $$ SELECT CASE WHEN grants <> '{}' THEN ARRAY[applies_below, 'work_orders.read' = ANY (grants),
        'work_orders.create' = ANY (grants) AND 'work_orders.read' <> ALL (grants), 'feedback.read' = ANY (grants)] END $$;

-- The assignments with what they let read, without those that do not: a service company reads by its work orders alone.
CREATE FUNCTION readings(given assignments[]) RETURNS TABLE (node_id text, identity_id text, rights boolean[]) LANGUAGE sql STABLE AS $$
    SELECT a.node_id, a.identity_id, rights_of_reading(d.applies_below, d.grants)
    FROM unnest(given) a
    CROSS JOIN LATERAL (SELECT organization_id FROM identities WHERE id = a.identity_id LIMIT 1) i
    CROSS JOIN LATERAL (SELECT * FROM permission_definitions WHERE id = a.definition_id LIMIT 1) d
    WHERE i.organization_id = a.organization_id AND d.grants <> '{}'
$$;

-- A change of permissions changes what is visible without touching records, so it ends the access epoch
-- of every integration with the permissions of the identities. Triggers do, so that no writer of these tables can
-- forget it: a sync token of the epoch before would hide what its integration may now read.
-- +goose StatementBegin
CREATE FUNCTION end_access_epochs(changed text[]) RETURNS void LANGUAGE sql AS $$
    UPDATE integrations SET access_epoch = access_epoch + 1
    WHERE id IN (SELECT actor_id FROM actor_identities WHERE identity_id = ANY (changed))
$$;

-- Once for all rows of a statement: Postgres takes ever longer to write one integration again and again.
CREATE FUNCTION end_access_epochs_of_assignments() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    before assignments[];
    after  assignments[];
BEGIN
    IF TG_OP <> 'INSERT' THEN
        before := ARRAY(SELECT (node_id, identity_id, definition_id, organization_id)::assignments FROM old_rows);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        after := ARRAY(SELECT (node_id, identity_id, definition_id, organization_id)::assignments FROM new_rows);
        -- A change of a definition at the same time sees these assignments, or is seen here.
        PERFORM FROM permission_definitions WHERE id IN (SELECT definition_id FROM new_rows) ORDER BY id FOR SHARE;
    END IF;
    PERFORM end_access_epochs(ARRAY(SELECT DISTINCT identity_id FROM (
        (SELECT * FROM readings(before) EXCEPT SELECT * FROM readings(after))
        UNION ALL (SELECT * FROM readings(after) EXCEPT SELECT * FROM readings(before))) differing));
    RETURN NULL;
END $$;

CREATE FUNCTION end_access_epochs_of_definition() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    PERFORM end_access_epochs(ARRAY(SELECT identity_id::text FROM (SELECT DISTINCT identity_id FROM assignments WHERE definition_id = NEW.id) a
        CROSS JOIN LATERAL (SELECT organization_id FROM identities WHERE id = a.identity_id LIMIT 1) i
        WHERE i.organization_id = NEW.organization_id));
    RETURN NULL;
END $$;

CREATE FUNCTION end_access_epochs_of_company() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM end_access_epochs(ARRAY[coalesce(NEW.company_id, OLD.company_id)::text]);
    RETURN NULL;
END $$;

CREATE FUNCTION end_access_epochs_of_organization_definition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE integrations SET access_epoch = access_epoch + 1 WHERE organization_definition_id = NEW.id;
    RETURN NULL;
END $$;

-- Once for all members: a trigger for each row would take longer than a write may.
CREATE FUNCTION end_access_epochs_of_members() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    teams   text[];
    members text[];
BEGIN
    CASE TG_OP
    WHEN 'INSERT' THEN
        SELECT array_agg(DISTINCT team_id), array_agg(member_id) INTO teams, members FROM new_rows;
    WHEN 'DELETE' THEN
        SELECT array_agg(DISTINCT team_id), array_agg(member_id) INTO teams, members FROM old_rows;
    ELSE
        SELECT array_agg(DISTINCT team_id), array_agg(member_id) INTO teams, members FROM (
            (SELECT team_id, member_id FROM old_rows EXCEPT SELECT team_id, member_id FROM new_rows)
            UNION ALL (SELECT team_id, member_id FROM new_rows EXCEPT SELECT team_id, member_id FROM old_rows)) differing;
    END CASE;
    PERFORM end_access_epochs(members);
    -- A team's record shows its members, a person's the teams. One that this transaction changed has a new time already.
    UPDATE identities SET changed_at = greatest(changed_at + interval '1 millisecond', now())
    WHERE id = ANY (teams || members) AND changed_xid <> pg_current_xact_id();
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER assignments_insert AFTER INSERT ON assignments REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION end_access_epochs_of_assignments();
CREATE TRIGGER assignments_update AFTER UPDATE ON assignments REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION end_access_epochs_of_assignments();
CREATE TRIGGER assignments_delete AFTER DELETE ON assignments REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION end_access_epochs_of_assignments();
CREATE TRIGGER permission_definitions_access AFTER UPDATE ON permission_definitions
    FOR EACH ROW WHEN (rights_of_reading(OLD.applies_below, OLD.grants) IS DISTINCT FROM rights_of_reading(NEW.applies_below, NEW.grants))
    EXECUTE FUNCTION end_access_epochs_of_definition();
CREATE TRIGGER organization_permission_definitions_access AFTER UPDATE ON organization_permission_definitions
    FOR EACH ROW WHEN (OLD.grants <> NEW.grants) EXECUTE FUNCTION end_access_epochs_of_organization_definition();
CREATE TRIGGER ended_relations_access AFTER INSERT OR DELETE ON ended_relations
    FOR EACH ROW EXECUTE FUNCTION end_access_epochs_of_company();
CREATE TRIGGER team_members_insert AFTER INSERT ON team_members REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION end_access_epochs_of_members();
CREATE TRIGGER team_members_update AFTER UPDATE ON team_members REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION end_access_epochs_of_members();
CREATE TRIGGER team_members_delete AFTER DELETE ON team_members REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION end_access_epochs_of_members();
