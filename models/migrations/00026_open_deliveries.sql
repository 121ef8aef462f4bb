-- Deliveries that are pending or retrying are in a small table. Finishing one moves it to deliveries, which
-- is only appended to, apart from redeliveries. docs/decisions/0024-open-deliveries.md

-- +goose Up

-- The positions of deliveries in both tables; the identity column's sequence belongs to one.
CREATE SEQUENCE delivery_positions;
LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE;
SELECT setval('delivery_positions', (SELECT last_value FROM deliveries_seq_seq));

CREATE TABLE open_deliveries (
    id              public_id PRIMARY KEY,
    seq             bigint NOT NULL DEFAULT nextval('delivery_positions'),
    event_id        public_id NOT NULL,
    webhook_id      public_id NOT NULL,
    record_id       public_id NOT NULL,
    created_at      timestamptz(3) NOT NULL,
    next_attempt_at timestamptz(3),
    attempts        integer NOT NULL DEFAULT 0,
    attempts_before integer NOT NULL DEFAULT 0,
    last_status     integer,
    status          text NOT NULL DEFAULT 'pending',
    last_error      text,
    CHECK ((status = 'pending' AND next_attempt_at IS NULL) OR (status = 'retrying' AND next_attempt_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.5, autovacuum_analyze_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX open_deliveries_pending ON open_deliveries (webhook_id, seq) WHERE status = 'pending';
CREATE INDEX open_deliveries_retrying ON open_deliveries (webhook_id, seq) WHERE status = 'retrying';
CREATE INDEX open_deliveries_due ON open_deliveries (next_attempt_at) WHERE status = 'retrying';

-- A delivery that succeeded with its first attempt holds that attempt: its status is last_status. The
-- attempts of others are in the table attempts.
ALTER TABLE deliveries
    ADD COLUMN started_at    timestamptz(3),
    ADD COLUMN latency_ms    integer,
    ADD COLUMN remote_ip     text,
    ADD COLUMN response_body bytea;
ALTER TABLE deliveries ALTER COLUMN seq DROP IDENTITY;
ALTER TABLE deliveries ALTER COLUMN seq SET DEFAULT nextval('delivery_positions');

-- Events, deliveries and attempts are removed by their ids, whose time is the event's. An event is inserted
-- by the statement that inserts its deliveries, and an attempt by the one that moves its delivery.
ALTER TABLE deliveries
    DROP CONSTRAINT deliveries_event_id_fkey,
    DROP CONSTRAINT deliveries_event_id_webhook_id_key;
ALTER TABLE attempts DROP CONSTRAINT attempts_delivery_id_fkey;
DROP INDEX events_by_age;

-- Where the removal of a deleted address's deliveries continues, now that it follows their positions.
ALTER TABLE deleted_webhooks ADD COLUMN removed_seq bigint NOT NULL DEFAULT 0;

-- How often deliveries of the address were made pending again. They have their old positions, below where
-- its dispatcher claims, which begins at the lowest one again when the number has changed.
ALTER TABLE webhooks ADD COLUMN requeues bigint NOT NULL DEFAULT 0;

-- For reading only: each delivery is in one of the tables, each attempt in one of two places.
CREATE VIEW all_deliveries AS
    SELECT id, seq, event_id, webhook_id, record_id, status, attempts, attempts_before, next_attempt_at,
        last_status, last_error, created_at FROM open_deliveries
    UNION ALL
    SELECT id, seq, event_id, webhook_id, record_id, status, attempts, attempts_before, next_attempt_at,
        last_status, last_error, created_at FROM deliveries;
CREATE VIEW all_attempts AS
    SELECT id AS delivery_id, 1 AS number, started_at, latency_ms, last_status AS status, NULL AS error, remote_ip, response_body
        FROM deliveries WHERE started_at IS NOT NULL
    UNION ALL
    SELECT delivery_id, number, started_at, latency_ms, status, error, remote_ip, response_body FROM attempts;
