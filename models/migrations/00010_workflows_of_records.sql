-- The workflows of work orders and feedback: the sweep finds them if a wake is lost, and they mail each
-- notice and send each reminder once.

-- +goose Up

-- Dirty records: a write inserts its record here, and the record's workflow deletes the row when it
-- reloads. The sweep wakes the workflows of rows that stay.
CREATE TABLE looks_owed (
    record_id public_id PRIMARY KEY,
    since     timestamptz(3) NOT NULL
);
CREATE INDEX looks_owed_by_age ON looks_owed (since);

ALTER TABLE notices
    -- The lease of the worker that mails the notice; after it another may.
    ADD COLUMN mailing_until timestamptz(3),
    -- The target date a reminder is about, or the time since which the review waits.
    ADD COLUMN about timestamptz(3);
CREATE UNIQUE INDEX notices_remind_once ON notices (record_id, person_id, kind, about) WHERE about IS NOT NULL;
CREATE INDEX notices_waiting_to_mail ON notices (created_at) WHERE mail = 'waiting';
