-- A site with 1,000 halls, each with a system and equipment, and the work orders and the feedback
-- of today's work. The triggers make what else is stored for them.
INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, external_id, created_at, changed_at)
SELECT @site::text, organization_id, 'location', id, 'Site with halls', 'SITE-1', now(), now() FROM inventory_nodes WHERE name = 'Top' AND parent_id IS NULL;

INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, external_id, created_at, changed_at)
SELECT 'loc_3' || lpad(to_hex(n), 25, '0'), organization_id, 'location', id, 'Hall ' || n, 'HALL-' || lpad(n::text, 4, '0'), now(), now()
FROM inventory_nodes, generate_series(1, 1000) n WHERE id = @site;

INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, external_id, created_at, changed_at)
SELECT 'sys_3' || lpad(to_hex(n), 25, '0'), organization_id, 'system', 'loc_3' || lpad(to_hex(n), 25, '0'),
	'Ventilation of hall ' || n, 'VENT-' || lpad(n::text, 4, '0'), now(), now()
FROM inventory_nodes, generate_series(1, 1000) n WHERE id = @site;

INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, external_id, created_at, changed_at)
SELECT 'eqp_3' || lpad(to_hex(n), 25, '0'), organization_id, 'equipment', 'sys_3' || lpad(to_hex(n), 25, '0'),
	'Fan ' || n, 'FAN-' || lpad(n::text, 4, '0'), now(), now()
FROM inventory_nodes, generate_series(1, 1000) n WHERE id = @site;

CREATE TEMPORARY TABLE creator ON COMMIT DROP AS SELECT id, organization_id, name FROM identities WHERE name = 'Integration 1';

-- Work orders of the last 40 days, a million a year; all others are older than the charts reach.
-- Titles of several words, due in two weeks, some of them overdue, nine in ten closed within four days.
CREATE TEMPORARY TABLE recent ON COMMIT DROP AS
SELECT n, partitions.first_id('wo', at) || lpad(to_hex(n), 16, '0') AS id, at,
	CASE WHEN at + (1 + n % 96) * interval '1 hour' < now() AND n % 10 <> 3 THEN CASE WHEN n % 30 = 1 THEN 'cancelled' ELSE 'complete' END
		WHEN n % 7 < 3 THEN 'open' WHEN n % 7 < 5 THEN 'in_progress' WHEN n % 70 < 20 THEN 'on_hold' WHEN n % 70 < 60 THEN 'sent_to_inspection' ELSE 'back_from_inspection' END AS status,
	(ARRAY['Replace', 'Check', 'Clean', 'Repair'])[1 + n % 4] || ' '
		|| (ARRAY['filter', 'pump', 'smoke detector', 'light', 'door closer', 'valve', 'belt of the fan', 'battery', 'lift', 'emergency exit sign'])[1 + n / 4 % 10]
		|| ' ' || n % 90 || ' in the ' || (ARRAY['north wing', 'cellar', 'roof', 'kitchen', 'lobby', 'server room', 'car park'])[1 + n / 40 % 7]
		|| CASE WHEN n % 20000 = 77 THEN ' because of legionella' ELSE '' END AS title,
	'idn_2' || lpad(to_hex(1 + n * 31 % 10000), 25, '0') AS person
FROM (SELECT n, date_trunc('milliseconds', now() - (110000 - n) * interval '40 days' / 110000) AS at FROM generate_series(1, 110000) n) t;

INSERT INTO work_orders (id, organization_id, number, inventory_id, title, description, priority, target_date, form_id, external_id, status,
	created_by, created_at, changed_at, completed_at, cancelled_at, held_from)
SELECT r.id, o.organization_id, 1,
	'loc_' || lpad(to_hex(CASE WHEN n % 100 = 0 THEN 1001 WHEN n % 50 = 1 THEN 1001 + n / 50 % 50 ELSE 1100 + (n::bigint * 7919) % (@nodes::int - 1100) END), 26, '0'),
	title, 'Reported by the tenant.', (ARRAY['none', 'none', 'none', 'low', 'medium', 'high'])[1 + n / 2 % 6],
	CASE WHEN n % 3 > 0 THEN at + (3 + n % 14) * interval '1 day' END, CASE WHEN n % 20 = 0 THEN @form::text END, CASE WHEN n % 2 = 0 THEN 'ERP-' || n END, status,
	CASE WHEN n % 4 = 0 THEN person ELSE o.id END, at, at, CASE status WHEN 'complete' THEN at + (1 + n % 96) * interval '1 hour' END,
	CASE status WHEN 'cancelled' THEN at + (1 + n % 96) * interval '1 hour' END, CASE status WHEN 'on_hold' THEN 'open' END
FROM recent r, creator o ORDER BY n;

-- A worker each, for some a team next to it, and a consultant. The administrator has one in a
-- hundred, and one in ten reviews.
INSERT INTO work_order_assignees (work_order_id, identity_id, role, position, closed)
SELECT x.*, r.status IN ('complete', 'cancelled') FROM recent r JOIN (
SELECT id, CASE WHEN n % 100 = 0 THEN (SELECT id FROM people WHERE admin) ELSE person END, 'worker', 1 FROM recent WHERE n % 3 < 2
UNION ALL SELECT id, 'idn_3' || lpad(to_hex(2 + n % 499), 25, '0'), 'worker', 2 FROM recent WHERE n % 5 = 0
UNION ALL SELECT id, CASE WHEN n % 10 = 6 THEN (SELECT id FROM people WHERE admin) ELSE 'idn_2' || lpad(to_hex(1 + n * 37 % 10000), 25, '0') END, 'consultant', 3
	FROM recent WHERE n % 10 = 6 OR n % 10 = 8
) x USING (id)
ON CONFLICT DO NOTHING;

INSERT INTO answers (work_order_id, question_id, value, answered_at, answered_by)
SELECT r.id, q.id, '"Yes, it is in order."', r.at, 'idn_2' || lpad('1', 25, '0') FROM recent r, questions q WHERE r.n % 400 = 0 AND q.form_id = @form;

INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
SELECT o.organization_id, r.id, o.id, o.name || ' (API)', 'work_order.created', json_build_object('title', json_build_object('from', NULL, 'to', r.title)), r.at
FROM recent r, creator o ORDER BY n;

-- Feedback of the last year, a twentieth of it open.
INSERT INTO feedback (id, organization_id, inventory_id, subject, description, external_id, status, created_by, created_at, changed_at, resolved_at)
SELECT partitions.first_id('iss', at) || lpad(to_hex(n), 16, '0'), o.organization_id,
	'loc_' || lpad(to_hex(CASE WHEN n % 100 = 0 THEN 1001 ELSE 1100 + (n::bigint * 7919) % (@nodes::int - 1100) END), 26, '0'),
	(ARRAY['It is too cold', 'The light flickers', 'Water on the floor', 'The door does not close'])[1 + n % 4] || ', ' || n, 'Since this morning.',
	CASE WHEN n % 2 = 0 THEN 'TICKET-' || n END, CASE WHEN n % 20 = 0 THEN 'open' ELSE 'resolved' END,
	CASE WHEN n % 4 = 0 THEN 'idn_2' || lpad(to_hex(1 + n * 31 % 10000), 25, '0') ELSE o.id END, at, at, CASE WHEN n % 20 > 0 THEN at + interval '1 hour' END
FROM (SELECT n, date_trunc('milliseconds', now() - (100000 - n) * interval '365 days' / 100000) AS at FROM generate_series(1, 100000) n) t, creator o ORDER BY n;

-- A change of a work order every few seconds, over the time that deliveries are kept.
CREATE UNLOGGED TABLE console_events (n int, suffix text, at timestamptz, record text);

INSERT INTO console_events
SELECT n, partitions.first_id('', at) || lpad(to_hex(n), 15, '0') AS suffix, at, 'wo_' || lpad(to_hex(1 + (n::bigint * 7919) % @records::int), 26, '0') AS record
FROM (SELECT n, date_trunc('milliseconds', @from::timestamptz + n * ((@to::timestamptz - @from::timestamptz) / (@deliveries::int + 1))) AS at
	FROM generate_series(1, @deliveries::int) n) t;

CREATE INDEX ON console_events (n);

ANALYZE console_events;
