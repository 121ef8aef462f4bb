-- The places of work orders in the list of changes move from indexes of work_orders to a narrow table.

-- +goose Up

-- Each work order by its last change. An index of work_orders on changed_xid would give every change new
-- entries in all indexes of the table; without one, a change is a HOT update and adds two or three here.
CREATE TABLE work_order_positions (
    id              public_id NOT NULL,
    organization_id public_id NOT NULL,
    inventory_id    public_id NOT NULL,
    created_by      public_id NOT NULL,
    changed_xid     xid8 NOT NULL,
    PRIMARY KEY (organization_id, changed_xid, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX work_order_positions_of_node ON work_order_positions (inventory_id, changed_xid, id);
CREATE INDEX work_order_positions_created_by ON work_order_positions (created_by, changed_xid, id);

-- Room on each page for the new version of a changed row.
ALTER TABLE work_orders SET (fillfactor = 85);

-- The function is planned once in a session, perhaps while the table is empty: LIMIT and the setting keep the
-- look-up by key.
-- +goose StatementBegin
CREATE FUNCTION keep_work_order_positions() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM work_order_positions p
        USING old_rows o CROSS JOIN LATERAL (
            SELECT q.ctid FROM work_order_positions q
            WHERE q.organization_id = o.organization_id AND q.changed_xid = o.changed_xid AND q.id = o.id LIMIT 1) held
        WHERE p.ctid = held.ctid;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO work_order_positions (id, organization_id, inventory_id, created_by, changed_xid)
        SELECT id, organization_id, inventory_id, created_by, changed_xid FROM new_rows;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- A change of a work order that is not in the table yet finds nothing to delete and inserts it; the next
-- migration leaves it as it is.
CREATE TRIGGER work_orders_position_insert AFTER INSERT ON work_orders REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_work_order_positions();
CREATE TRIGGER work_orders_position_update AFTER UPDATE ON work_orders REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_work_order_positions();
CREATE TRIGGER work_orders_position_delete AFTER DELETE ON work_orders REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_work_order_positions();
