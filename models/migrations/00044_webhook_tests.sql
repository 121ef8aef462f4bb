-- The responses to tests of webhook addresses, for those who asked for the test. The worker sends them, and
-- workflow histories hold no text of a receiver.

-- +goose Up

CREATE TABLE webhook_tests (
    event_id      public_id PRIMARY KEY,
    webhook_id    public_id NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    started_at    timestamptz(3) NOT NULL,
    latency_ms    bigint NOT NULL,
    status        integer,
    error         text,
    remote_ip     text,
    response_body bytea,
    CHECK ((status IS NULL) <> (error IS NULL))
);
CREATE INDEX webhook_tests_by_age ON webhook_tests (started_at);
CREATE INDEX webhook_tests_of_address ON webhook_tests (webhook_id);
