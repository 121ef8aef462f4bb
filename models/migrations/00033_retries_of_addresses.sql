-- The dispatcher of an address sends its retries too. docs/decisions/0031-one-sender.md

-- +goose Up

-- Whether the delivery has a workflow: NULL is unknown. In an outage a limited number of an address have one.
ALTER TABLE open_deliveries ADD COLUMN workflow boolean;

-- Who holds a lease. A later epoch takes over from an earlier one, renewed_at by the database's clock.
CREATE SEQUENCE lease_epochs;
ALTER TABLE mailboxes
    ADD COLUMN epoch      bigint NOT NULL DEFAULT 0,
    ADD COLUMN owner      text NOT NULL DEFAULT '',
    ADD COLUMN renewed_at timestamptz NOT NULL DEFAULT '-infinity';

-- The last attempt, and since the last success the last delivery that failed for good. gone_at is the last 410.
ALTER TABLE webhook_health
    ADD COLUMN last_at     timestamptz(3),
    ADD COLUMN last_status integer,
    ADD COLUMN last_error  text,
    ADD COLUMN failed_at   timestamptz(3),
    ADD COLUMN gone_at     timestamptz(3);

-- Every address has a workflow from now on: the sweep starts those that are dirty.
INSERT INTO looks_owed (record_id, since) SELECT id, now() FROM webhooks ON CONFLICT (record_id) DO NOTHING;
