-- Contracts 00026_open_deliveries.sql in the release after it, when no program inserts pending deliveries
-- into the table deliveries. It gets its number then, and service/delivery_adopt.go goes with it, like what
-- reads pending and retrying ones of deliveries: deliveriesQuery, claimPendingQuery, Unclaimed, pollQuery.

-- +goose Up

LOCK TABLE deliveries, open_deliveries IN ACCESS EXCLUSIVE MODE;
WITH adopted AS (
    DELETE FROM former_deliveries WHERE status IN ('pending', 'retrying') RETURNING *
), first_attempt AS (
    INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, remote_ip, response_body)
    SELECT id, 1, started_at, latency_ms, last_status, remote_ip, response_body FROM adopted WHERE started_at IS NOT NULL
)
INSERT INTO open_deliveries (id, seq, event_id, webhook_id, record_id, status, attempts, attempts_before, next_attempt_at, last_status, last_error, created_at)
SELECT id, seq, event_id, webhook_id, record_id, status, attempts, attempts_before, next_attempt_at, last_status, last_error, created_at
FROM adopted ORDER BY seq;

DROP INDEX partitions.deliveries_pending;
DROP INDEX partitions.deliveries_retrying;
DROP INDEX partitions.deliveries_retrying_of_webhook;

DROP VIEW all_deliveries;
DROP VIEW former_deliveries;
ALTER TABLE deliveries
    DROP COLUMN next_attempt_at, -- and deliveries_check of the former partition
    DROP COLUMN finished_at;
-- +goose StatementBegin
DO $$
DECLARE
    former text := (SELECT format('partitions.%I', partition) FROM partitions.days WHERE of = 'deliveries' AND day IS NULL);
BEGIN
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT deliveries_status_check', former);
    EXECUTE format('CREATE VIEW former_deliveries AS SELECT ctid, * FROM %s', former);
END $$;
-- +goose StatementEnd
ALTER TABLE deliveries ADD CONSTRAINT deliveries_status_check CHECK (status IN ('delivered', 'failed', 'held', 'skipped')) NOT VALID;
ALTER TABLE deliveries VALIDATE CONSTRAINT deliveries_status_check;
CREATE VIEW all_deliveries AS
    SELECT id, seq, event_id, webhook_id, record_id, status, attempts, attempts_before, next_attempt_at,
        last_status, last_error, created_at FROM open_deliveries
    UNION ALL
    SELECT id, seq, event_id, webhook_id, record_id, status, attempts, attempts_before, NULL::timestamptz(3),
        last_status, last_error, created_at FROM deliveries;

ALTER TABLE deleted_webhooks DROP COLUMN removed_to;

-- With what reads and removes its rows (storedResponses, expiries) goes also: DROP TABLE idempotency_keys;

-- No program in use removes events by their place. The former partitions, their views and their removal
-- row by row (service/retention.go) can go in any release 33 days after 00031_partitions.sql ran: they are empty.
-- +goose StatementBegin
DO $$
DECLARE
    part text;
BEGIN
    FOR part IN SELECT partition FROM partitions.days WHERE of = 'events' AND day IS NOT NULL LOOP
        EXECUTE format('DROP TRIGGER refuse_removal ON partitions.%I', part);
    END LOOP;
END $$;
-- +goose StatementEnd
-- (with partitions.make again, without the trigger and the constraint)
