-- Work on the deliveries of an address that a request only orders: it is done in batches afterwards.

-- +goose Up

-- Addresses that were deleted, until housekeeping has removed their deliveries. It has removed those up to
-- the id removed_to.
CREATE TABLE deleted_webhooks (
    webhook_id public_id PRIMARY KEY,
    deleted_at timestamptz(3) NOT NULL,
    removed_to text COLLATE "C" NOT NULL DEFAULT ''
);
-- Deleting an address must not delete its deliveries in the same statement. A write that inserts one locks
-- the address, so that no delivery appears after its address was deleted.
ALTER TABLE deliveries DROP CONSTRAINT deliveries_webhook_id_fkey;

-- Releases of failed and held deliveries of events since a time, which the address's dispatcher continues
-- after the delivery after_seq.
CREATE TABLE delivery_releases (
    webhook_id public_id PRIMARY KEY REFERENCES webhooks ON DELETE CASCADE,
    since      timestamptz(3) NOT NULL,
    after_seq  bigint NOT NULL
);

-- Finds the retrying deliveries of an address that is turned off.
CREATE INDEX deliveries_retrying_of_webhook ON deliveries (webhook_id, id) WHERE status = 'retrying';
