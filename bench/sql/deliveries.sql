-- Deliveries that succeeded at the first attempt, with their events: changes of work orders,
-- each with a delivery to every address, evenly from one time to another.
WITH t AS MATERIALIZED (
	SELECT at, partitions.first_id('', at)
	FROM (SELECT @from::timestamptz + (@to::timestamptz - @from::timestamptz) * (@first::float8 / @total::int) AS at) t
)
INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
SELECT 'evt' || first_id || lpad(to_hex(n), 15, '0') || '0', @organization::text, 'work_order.updated',
	'wo_' || lpad(to_hex(1 + (n::bigint * 7919) % @records::int), 26, '0'), @creator::text, '{"fields": ["title"]}', at
FROM generate_series(@first::int, @last::int) n, t;

WITH t AS MATERIALIZED (
	SELECT at, partitions.first_id('', at)
	FROM (SELECT @from::timestamptz + (@to::timestamptz - @from::timestamptz) * (@first::float8 / @total::int) AS at) t
)
INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, created_at, started_at, latency_ms, remote_ip)
SELECT 'dlv' || first_id || lpad(to_hex(n), 15, '0') || w.nth, 'evt' || first_id || lpad(to_hex(n), 15, '0') || '0', w.id,
	'wo_' || lpad(to_hex(1 + (n::bigint * 7919) % @records::int), 26, '0'), 'delivered', 1, 204, at, at, 40, '203.0.113.7'
FROM generate_series(@first::int, @last::int) n, t,
	(SELECT id, row_number() OVER (ORDER BY id) - 1 AS nth FROM webhooks) w
ORDER BY n, w.nth;
