-- Lists of the changes of what is assigned to an identity are read along an index.

-- +goose Up

-- Each work order by its last change, once for each team, organization and integration that is assigned to it. People
-- do not list changes.
CREATE TABLE assigned_positions (
    identity_id public_id NOT NULL,
    changed_xid xid8 NOT NULL,
    id          public_id NOT NULL,
    PRIMARY KEY (identity_id, changed_xid, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02);

-- A change of a work order moves its rows. One that is not in the table yet is left to the next migration. The
-- functions are planned once in a session, perhaps while the tables are empty: LIMIT and the setting keep the
-- look-ups by key.
-- +goose StatementBegin
CREATE FUNCTION move_assigned_positions() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    UPDATE assigned_positions p SET changed_xid = moved.changed_xid
    FROM (
        SELECT held.ctid AS held, n.changed_xid
        FROM old_rows o JOIN new_rows n ON n.id = o.id AND n.changed_xid <> o.changed_xid
        CROSS JOIN LATERAL (
            SELECT x.identity_id FROM work_order_assignees x
            WHERE x.work_order_id = o.id AND (SELECT kind <> 'person' FROM identities WHERE id = x.identity_id) OFFSET 0) x
        CROSS JOIN LATERAL (
            SELECT q.ctid FROM assigned_positions q
            WHERE q.identity_id = x.identity_id AND q.changed_xid = o.changed_xid AND q.id = o.id LIMIT 1) held
    ) moved
    WHERE p.ctid = moved.held;
    RETURN NULL;
END $$;

-- Writers of assignees have locked the work order, so its position stays the same meanwhile.
CREATE FUNCTION keep_assigned_positions() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM assigned_positions p
        USING old_rows o
        CROSS JOIN LATERAL (SELECT changed_xid FROM work_orders WHERE id = o.work_order_id LIMIT 1) w
        CROSS JOIN LATERAL (
            SELECT q.ctid FROM assigned_positions q
            WHERE q.identity_id = o.identity_id AND q.changed_xid = w.changed_xid AND q.id = o.work_order_id LIMIT 1) held
        WHERE p.ctid = held.ctid;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO assigned_positions (identity_id, changed_xid, id)
        SELECT n.identity_id, w.changed_xid, n.work_order_id
        FROM new_rows n CROSS JOIN LATERAL (SELECT changed_xid FROM work_orders WHERE id = n.work_order_id LIMIT 1) w
        WHERE (SELECT kind <> 'person' FROM identities WHERE id = n.identity_id);
    END IF;
    RETURN NULL;
END $$;

-- A deleted work order loses its assignees later, when its position is no longer known.
CREATE FUNCTION remove_assigned_positions() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    DELETE FROM assigned_positions p
    USING work_order_assignees x
    WHERE x.work_order_id = OLD.id AND p.identity_id = x.identity_id AND p.changed_xid = OLD.changed_xid AND p.id = OLD.id;
    RETURN OLD;
END $$;
-- +goose StatementEnd

CREATE TRIGGER work_orders_assigned_update AFTER UPDATE ON work_orders REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION move_assigned_positions();
CREATE TRIGGER work_orders_assigned_delete BEFORE DELETE ON work_orders
    FOR EACH ROW EXECUTE FUNCTION remove_assigned_positions();
CREATE TRIGGER work_order_assignees_insert AFTER INSERT ON work_order_assignees REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_assigned_positions();
CREATE TRIGGER work_order_assignees_update AFTER UPDATE ON work_order_assignees REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_assigned_positions();
CREATE TRIGGER work_order_assignees_delete AFTER DELETE ON work_order_assignees REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_assigned_positions();
