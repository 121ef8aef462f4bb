-- changed_since: a change position is the id of the transaction that made the change, and sync tokens name a watermark.

-- +goose Up

-- Lets `millwright migrate` notice a logical restore into another cluster, whose transaction ids differ.
CREATE TABLE cluster_mark (
    only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    system_identifier bigint NOT NULL
);
INSERT INTO cluster_mark (system_identifier) SELECT system_identifier FROM pg_control_system();

-- At the time `at`, by this server's clock, every transaction below xid had ended: xid was the xmin horizon. So a database
-- that has the row has all of them with the same outcome, even after a failover or a restore.
CREATE TABLE watermarks (
    nonce uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    xid   xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot())
);
CREATE INDEX watermarks_xid ON watermarks (xid);
CREATE INDEX watermarks_at ON watermarks (at);
