-- Events with their entries in the log and their deliveries, in order of their times. Two
-- deliveries in a thousand failed: n % 1000 = 7 with a response and 8 without.
INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
SELECT 'evt' || suffix || '0', @organization::text, 'work_order.updated', record, @creator::text, '{"fields": ["title"]}', at
FROM console_events WHERE n BETWEEN @first::int AND @last::int;

INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
SELECT @organization::text, record, @creator::text, 'Integration 1 (API)', CASE WHEN n % 100000 = 0 THEN 'person.changed' ELSE 'work_order.updated' END,
	'{"title": {"from": "Work order", "to": "Replace filter"}}', at
FROM console_events WHERE n BETWEEN @first::int AND @last::int ORDER BY n;

-- One to the first address, and a fiftieth also to one of the other addresses.
INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, last_error, created_at, started_at, latency_ms, remote_ip)
SELECT 'dlv' || suffix || address, 'evt' || suffix || '0', CASE address WHEN 0 THEN @webhook::text ELSE 'whk_1' || lpad(to_hex(3 + n / 50 % 600), 25, '0') END,
	record, CASE WHEN failed THEN 'failed' ELSE 'delivered' END, CASE WHEN failed THEN 8 ELSE 1 END,
	CASE n % 1000 WHEN 7 THEN 503 WHEN 8 THEN NULL ELSE 204 END, CASE n % 1000 WHEN 8 THEN 'No response came within 10 seconds.' END,
	at, CASE WHEN NOT failed THEN at END, CASE WHEN NOT failed THEN 40 END, CASE WHEN NOT failed THEN '203.0.113.7' END
FROM (SELECT *, n % 1000 IN (7, 8) AS failed FROM console_events WHERE n BETWEEN @first::int AND @last::int) e, generate_series(0, 1) address
WHERE address = 0 OR n % 50 = 0;

INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, error)
SELECT 'dlv' || suffix || '0', number, at, 40, CASE n % 1000 WHEN 7 THEN 503 END, CASE n % 1000 WHEN 8 THEN 'No response came within 10 seconds.' END
FROM console_events, generate_series(1, 8) number WHERE n BETWEEN @first::int AND @last::int AND n % 1000 IN (7, 8);

-- The newest 20,000 are also open deliveries of another address, which fails.
INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, next_attempt_at, created_at, queued_at)
SELECT 'dlv' || suffix || '2', 'evt' || suffix || '0', 'whk_1' || lpad(to_hex(7), 25, '0'), record, 'retrying', 3, 503, now() + interval '1 hour', at, at
FROM console_events WHERE n BETWEEN @first::int AND @last::int AND n > @total::int - 20000;
