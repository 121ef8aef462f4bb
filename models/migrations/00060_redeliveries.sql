-- Redeliveries of all that match a search, which the dispatcher of the address continues.

-- +goose Up

CREATE TABLE redeliveries (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id public_id NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    -- What to redeliver (service.DeliverySearch), among the deliveries up to the position until_seq.
    search     jsonb NOT NULL,
    until_seq  bigint NOT NULL,
    -- Where the next batch begins.
    after_seq  bigint NOT NULL DEFAULT 0,
    created_at timestamptz(3) NOT NULL
);
CREATE INDEX redeliveries_of_webhook ON redeliveries (webhook_id, id);
