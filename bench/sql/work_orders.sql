-- Work orders with their entries in the log, over a year.
WITH planted AS (
	INSERT INTO work_orders (id, organization_id, number, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at, changed_xid)
	SELECT 'wo_' || lpad(to_hex(n), 26, '0'), @organization::text, n,
		-- Every hundredth on the one node, every fiftieth on the fifty: full pages at each size.
		'loc_' || lpad(to_hex(CASE WHEN n % 100 = 0 THEN 1001 WHEN n % 50 = 1 THEN 1001 + n / 50 % 50
			ELSE 1100 + (n::bigint * 7919) % (@nodes::int - 1100) END), 26, '0'),
		-- A word that all have, one that only some twenty in a million have, and one that only the older ones have.
		'Work order ' || n || CASE WHEN n % 50000 = 7 THEN ' of the boiler' WHEN n < 900000 THEN ' imported' ELSE '' END,
		'none', CASE WHEN n % 10 = 0 THEN 'open' ELSE 'complete' END, @creator::text, at, at,
		CASE WHEN n % 10 <> 0 THEN '2025-01-02T00:00:00Z'::timestamptz END, (@xid::bigint + n / @together::int)::text::xid8
	FROM (SELECT n, '2025-01-01T00:00:00Z'::timestamptz + n * interval '30 seconds' * (1000000.0 / @total::int) AS at
		FROM generate_series(@first::int, @last::int) n) t
	RETURNING id, organization_id, number, title, inventory_id, created_by, changed_xid
), words AS (
	INSERT INTO work_order_words (id, words)
	SELECT id, array_to_tsvector(ARRAY(SELECT right(organization_id, 10) || word FROM regexp_split_to_table(lower(number || ' ' || title), '[^a-z0-9]+') word)) FROM planted
)
INSERT INTO work_order_positions (id, organization_id, inventory_id, created_by, changed_xid)
SELECT id, organization_id, inventory_id, created_by, changed_xid FROM planted;

INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
SELECT @organization::text, 'wo_' || lpad(to_hex(n), 26, '0'), @creator::text, 'Integration 1 (API)', 'work_order.created',
	'{"title": {"from": null, "to": "Work order"}}', '2025-01-01T00:00:00Z'::timestamptz + n * interval '30 seconds' * (1000000.0 / @total::int)
FROM generate_series(@first::int, @last::int) n;
