-- Failed deliveries of an address, each with an attempt. Ids have 26 digits: ten of the time, six
-- that are new each time, and a number.
INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
SELECT 'evt_' || @prefix::text || lpad(to_hex(n), 10, '0'), w.organization_id, 'work_order.updated', @record::text, w.integration_id, '{}', now()
FROM generate_series(@first::int, @last::int) n, webhooks w WHERE w.id = @webhook;

INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, created_at)
SELECT 'dlv_' || @prefix::text || lpad(to_hex(n), 10, '0'), 'evt_' || @prefix::text || lpad(to_hex(n), 10, '0'), @webhook::text, @record::text, 'failed', 1, 500, now()
FROM generate_series(@first::int, @last::int) n;

INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status)
SELECT 'dlv_' || @prefix::text || lpad(to_hex(n), 10, '0'), 1, now(), 5, 500
FROM generate_series(@first::int, @last::int) n;
