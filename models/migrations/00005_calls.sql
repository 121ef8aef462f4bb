-- What the API stores about calls: call counts, revoked tokens, and the responses to calls with an idempotency key.

-- +goose Up

-- What each process counted of an integration, a client address or a client's failed token requests in the minute of its last call.
-- Unlogged: after a crash the counts restart.
CREATE UNLOGGED TABLE call_counts (
    subject      text NOT NULL,
    process      text NOT NULL,
    window_start timestamptz NOT NULL,
    calls        integer NOT NULL,
    PRIMARY KEY (subject, process)
) WITH (fillfactor = 50);

-- Sign-ins and links that were asked for, in their windows. Unlogged as well.
CREATE UNLOGGED TABLE rate_counters (
    subject      text PRIMARY KEY,
    window_start timestamptz NOT NULL,
    calls        integer NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE revoked_tokens (
    id         text PRIMARY KEY,
    expires_at timestamptz(3) NOT NULL
);
CREATE INDEX revoked_tokens_by_age ON revoked_tokens (expires_at);

-- Partitions, and the functions that make and remove them (00010_partitions.sql).
CREATE SCHEMA partitions;

-- A response is found by a digest of the call, and forgotten a day at a time. It is inserted in its write's transaction,
-- so neither exists without the other. docs/decisions/0029-partitions.md
--
-- The slot is the number of the day (UTC) modulo 3: today's, yesterday's, and tomorrow's, which housekeeping
-- empties. Whether a response has expired is decided by its time, so a slot that was not emptied in time costs
-- space only. The advisory lock of a call's key makes it unique among the days.
CREATE TABLE stored_responses (
    digest      bytea NOT NULL CHECK (octet_length(digest) = 16),
    slot        smallint NOT NULL,
    status      smallint NOT NULL,
    created_at  timestamptz(3) NOT NULL,
    fingerprint bytea NOT NULL,
    record_id   public_id NOT NULL,
    readable    boolean NOT NULL, -- whether the caller could read the record then
    body        bytea NOT NULL,
    PRIMARY KEY (digest, slot)
) PARTITION BY LIST (slot);
CREATE TABLE partitions.stored_responses_0 PARTITION OF stored_responses FOR VALUES IN (0) WITH (autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE partitions.stored_responses_1 PARTITION OF stored_responses FOR VALUES IN (1) WITH (autovacuum_vacuum_insert_threshold = -1);
CREATE TABLE partitions.stored_responses_2 PARTITION OF stored_responses FOR VALUES IN (2) WITH (autovacuum_vacuum_insert_threshold = -1);

-- +goose StatementBegin
-- Empties tomorrow's slot: it has the responses of the day before yesterday, which lived for 24 hours. Returns
-- whether it did. Two hours around midnight are left out, since the clocks of two processes may differ.
CREATE FUNCTION partitions.empty_slot(at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    moment timestamp := at AT TIME ZONE 'UTC';
    slot text := format('partitions.stored_responses_%s', (moment::date + 1 - DATE '1970-01-01') % 3);
BEGIN
    IF moment::time < '01:00' OR moment::time >= '23:00' OR pg_relation_size(slot::regclass) = 0 THEN
        RETURN false;
    END IF;
    EXECUTE 'TRUNCATE ' || slot;
    RETURN true;
EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN false;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION partitions.empty_slot(timestamptz) FROM PUBLIC;
