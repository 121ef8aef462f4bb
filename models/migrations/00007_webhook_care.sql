-- Columns for turning addresses off and on, for redelivery and for mail.

-- +goose Up

-- The shut-off period counts from here if no delivery succeeded since: turning an address on restarts it.
ALTER TABLE webhooks ADD COLUMN enabled_since timestamptz(3);
UPDATE webhooks SET enabled_since = created_at;
ALTER TABLE webhooks ALTER COLUMN enabled_since SET NOT NULL;

-- Attempts made before the current run of the retry schedule: a redelivery starts the schedule over.
ALTER TABLE deliveries ADD COLUMN attempts_before integer NOT NULL DEFAULT 0 CHECK (attempts_before BETWEEN 0 AND attempts);

-- The creator of the integration, who is notified about it together with the administrators.
ALTER TABLE integrations ADD COLUMN owner_id public_id REFERENCES people ON DELETE SET NULL;
CREATE INDEX integrations_of_owner ON integrations (owner_id) WHERE owner_id IS NOT NULL;

-- The service's operators are not identities, but the log names them.
ALTER TABLE log_records ALTER COLUMN actor_id DROP NOT NULL;

-- A notice's e-mail: waiting, sent, or none, so that the notice is only in the app's inbox (no mail
-- server, a rejected address, too old).
ALTER TABLE notices ADD COLUMN mail text NOT NULL DEFAULT 'waiting' CHECK (mail IN ('waiting', 'sent', 'inbox'));
UPDATE notices SET mail = 'inbox' WHERE mailed_at IS NULL;
DROP INDEX notices_to_mail;
CREATE INDEX notices_to_mail ON notices (record_id, id) WHERE mail = 'waiting';
ALTER TABLE notices ADD CHECK ((mailed_at IS NOT NULL) = (mail = 'sent'));
