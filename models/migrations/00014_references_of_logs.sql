-- The tables that every write appends to have no foreign keys to organizations and identities.

-- +goose Up

-- Organizations and acting identities are never deleted, and each write has read both. Checking them
-- again for every row was a tenth of a write's cost.
ALTER TABLE history
    DROP CONSTRAINT history_organization_id_fkey,
    DROP CONSTRAINT history_actor_id_fkey;
ALTER TABLE log_records
    DROP CONSTRAINT log_records_organization_id_fkey,
    DROP CONSTRAINT log_records_actor_id_fkey;
ALTER TABLE events DROP CONSTRAINT events_organization_id_fkey;
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_integration_id_fkey;

-- The foreign key to the node implies the organization.
ALTER TABLE work_orders DROP CONSTRAINT work_orders_organization_id_fkey;
ALTER TABLE feedback DROP CONSTRAINT feedback_organization_id_fkey;
