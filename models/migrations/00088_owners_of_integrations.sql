-- An integration has owners: the person who created it, and those whom an administrator names.

-- +goose Up

-- Identity ids of people with the Integrations permission.
ALTER TABLE integrations ADD COLUMN owners text[] NOT NULL DEFAULT '{}';
UPDATE integrations SET owners = ARRAY[owner_id] WHERE owner_id IS NOT NULL;
ALTER TABLE integrations DROP COLUMN owner_id;
