-- 100 buildings with 200 rooms each. Hexadecimal digits are valid in ids.
INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
SELECT 'loc_' || lpad(to_hex(n), 26, '0'), t.organization_id, 'location', t.id, 'Building ' || n, now(), now()
FROM generate_series(1, 100) n, (SELECT id, organization_id FROM inventory_nodes WHERE name = 'Top') t;

INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
SELECT 'loc_' || lpad(to_hex(n), 26, '0'), t.organization_id, 'location', 'loc_' || lpad(to_hex(1 + n % 100), 26, '0'), 'Room ' || n, now(), now()
FROM generate_series(101, @nodes::int) n, (SELECT organization_id FROM inventory_nodes WHERE name = 'Top') t;

-- The first integration keeps the whole tree, the others see a part of it.
DELETE FROM assignments a USING identities i WHERE a.identity_id = i.id AND i.name IN ('Integration 2', 'Integration 3');

INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
SELECT n.id, i.id, d.id, n.organization_id
FROM inventory_nodes n, identities i, permission_definitions d
WHERE d.name = 'Full' AND (n.name = ANY (SELECT 'Room ' || g FROM generate_series(1001, 1050) g) AND i.name = 'Integration 2'
	OR n.name = 'Room 1001' AND i.name = 'Integration 3');
