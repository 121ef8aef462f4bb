-- What the workflows of work orders and feedback need: to be found when a poke is lost, to mail
-- notices once, to remind once.

-- +goose Up

-- A write that concerns a record's workflow leaves a mark here; the workflow takes it away when it
-- looks. A mark that stays is found by the sweep.
CREATE TABLE looks_owed (
    record_id public_id PRIMARY KEY,
    since     timestamptz(3) NOT NULL
);
CREATE INDEX looks_owed_by_age ON looks_owed (since);

ALTER TABLE notices
    -- Who mails a notice says until when it counts as being mailed; then another may.
    ADD COLUMN mailing_until timestamptz(3),
    -- What a reminder reminds of: the target date, or since when the review waits.
    ADD COLUMN about timestamptz(3);
CREATE UNIQUE INDEX notices_remind_once ON notices (record_id, person_id, kind, about) WHERE about IS NOT NULL;
CREATE INDEX notices_waiting_to_mail ON notices (created_at) WHERE mail = 'waiting';
