-- What the API stores about calls: idempotency keys, call counts, revoked tokens.

-- +goose Up

-- A key is inserted in its write's transaction, so neither exists without the other.
CREATE TABLE idempotency_keys (
    integration_id public_id NOT NULL REFERENCES integrations ON DELETE CASCADE,
    method         text NOT NULL,
    path           text NOT NULL,
    key            text NOT NULL CHECK (char_length(key) BETWEEN 1 AND 255),
    fingerprint    bytea NOT NULL,
    status         integer NOT NULL,
    record_id      public_id NOT NULL,
    body           bytea NOT NULL,
    created_at     timestamptz(3) NOT NULL,
    PRIMARY KEY (integration_id, method, path, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- Calls per minute of each integration or client address. Unlogged: after a crash the count restarts.
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
