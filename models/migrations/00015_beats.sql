-- Sync tokens name a beat, so that one from a history that the database lost is recognized.

-- +goose Up

-- At the time `at`, by this server's clock, every transaction below xid had ended. So a database that has the
-- row has all of them with the same outcome, even after a failover or a restore.
CREATE TABLE beats (
    nonce uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    xid   xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot())
);
CREATE INDEX beats_xid ON beats (xid);
CREATE INDEX beats_at ON beats (at);

-- A changed_since that is a time begins at a beat now, not at the first change with such a time.
DROP INDEX work_orders_changed_at;
DROP INDEX feedback_changed_at;
DROP INDEX identities_changed_at;
DROP INDEX inventory_nodes_changed_at;
DROP INDEX forms_changed_at;
