-- Fills assigned_positions while calls go on. It can be repeated.

-- +goose NO TRANSACTION
-- +goose Up

-- The work orders of a batch are locked first, so that neither their positions nor their assignees change between
-- being read and being inserted.
-- +goose StatementBegin
DO $$
DECLARE
    last text := '';
    batch text[];
BEGIN
    LOOP
        batch := ARRAY(SELECT id FROM work_orders WHERE id > last ORDER BY id LIMIT 1000 FOR SHARE);
        EXIT WHEN batch = '{}';
        INSERT INTO assigned_positions (identity_id, changed_xid, id)
        SELECT x.identity_id, w.changed_xid, w.id
        FROM unnest(batch) u (id)
        CROSS JOIN LATERAL (SELECT id, changed_xid FROM work_orders WHERE id = u.id LIMIT 1) w
        JOIN work_order_assignees x ON x.work_order_id = w.id
        WHERE (SELECT kind <> 'person' FROM identities WHERE id = x.identity_id)
        ON CONFLICT DO NOTHING;
        last := batch[cardinality(batch)];
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd
