-- Rows that frequent writes insert have no foreign keys to identities.

-- +goose Up

-- Identities are never deleted, and each write has read those that it names. Checking them again for every row
-- took a query and a row lock each.
ALTER TABLE work_orders DROP CONSTRAINT work_orders_created_by_fkey;
ALTER TABLE feedback DROP CONSTRAINT feedback_created_by_fkey;
ALTER TABLE work_order_assignees DROP CONSTRAINT work_order_assignees_identity_id_fkey;
ALTER TABLE notices
    DROP CONSTRAINT notices_organization_id_fkey,
    DROP CONSTRAINT notices_person_id_fkey;
