-- Open deliveries of an address, with their events, of today.
WITH t AS MATERIALIZED (SELECT partitions.first_id('', now()))
INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
SELECT 'evt' || first_id || lpad(to_hex(n), 15, '0') || @mark::text, @organization::text, 'work_order.updated',
	(@records::text[])[1 + n % array_length(@records::text[], 1)], @creator::text, '{"fields": ["title"]}', now()
FROM generate_series(@first::int, @last::int) n, t;

WITH t AS MATERIALIZED (SELECT partitions.first_id('', now()))
INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, created_at, queued_at, next_attempt_at)
SELECT 'dlv' || first_id || lpad(to_hex(n), 15, '0') || @mark::text,
	'evt' || first_id || lpad(to_hex(n), 15, '0') || @mark::text, @webhook::text,
	(@records::text[])[1 + n % array_length(@records::text[], 1)], @status::text,
	CASE WHEN @status::text = 'retrying' THEN 1 ELSE 0 END, CASE WHEN @status::text = 'retrying' THEN 500 END, now(), now(),
	CASE WHEN @status::text = 'retrying' THEN now() + interval '1 day' END
FROM generate_series(@first::int, @last::int) n, t;
