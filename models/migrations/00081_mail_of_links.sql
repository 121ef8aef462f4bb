-- Sign-in links are mailed by the worker, like notices about identities.

-- +goose NO TRANSACTION
-- +goose Up

ALTER TABLE sign_in_links
    -- The sealed token of a link that waits to be mailed; NULL once it is sent, and for links that are shown instead.
    ADD COLUMN IF NOT EXISTS sealed bytea,
    -- The lease of the worker that mails it, or when it is tried again.
    ADD COLUMN IF NOT EXISTS mailing_until timestamptz(3);

-- An earlier run may have left unfinished ones. Building them does not block writers.
DROP INDEX CONCURRENTLY IF EXISTS sign_in_links_to_mail;
CREATE INDEX CONCURRENTLY sign_in_links_to_mail ON sign_in_links (created_at) WHERE sealed IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS notices_of_identities_to_mail;
CREATE INDEX CONCURRENTLY notices_of_identities_to_mail ON notices (organization_id, created_at, record_id)
    WHERE mail = 'waiting' AND left(record_id, 4) = 'idn_';
