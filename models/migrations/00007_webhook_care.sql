-- What turning addresses off and on again, redelivery and mail need.

-- +goose Up

-- The shut-off period counts from here when there was no success since: turning an address on again
-- gives it the whole period anew.
ALTER TABLE webhooks ADD COLUMN enabled_since timestamptz(3);
UPDATE webhooks SET enabled_since = created_at;
ALTER TABLE webhooks ALTER COLUMN enabled_since SET NOT NULL;

-- Attempts made before the present run of the retry schedule: a redelivered delivery has the whole
-- schedule before it again.
ALTER TABLE deliveries ADD COLUMN attempts_before integer NOT NULL DEFAULT 0 CHECK (attempts_before BETWEEN 0 AND attempts);

-- Who is told about an integration beside the administrators: the person who created it.
ALTER TABLE integrations ADD COLUMN owner_id public_id REFERENCES people ON DELETE SET NULL;
CREATE INDEX integrations_of_owner ON integrations (owner_id) WHERE owner_id IS NOT NULL;

-- Operators of the service are no identity of an organization; the log names them all the same.
ALTER TABLE log_records ALTER COLUMN actor_id DROP NOT NULL;

-- What becomes of a notice beside the app's inbox: it waits to be mailed, was mailed, or stays in the
-- inbox alone (no mail server, an address that refuses, too old).
ALTER TABLE notices ADD COLUMN mail text NOT NULL DEFAULT 'waiting' CHECK (mail IN ('waiting', 'sent', 'inbox'));
UPDATE notices SET mail = 'inbox' WHERE mailed_at IS NULL;
DROP INDEX notices_to_mail;
CREATE INDEX notices_to_mail ON notices (record_id, id) WHERE mail = 'waiting';
ALTER TABLE notices ADD CHECK ((mailed_at IS NOT NULL) = (mail = 'sent'));
