-- The log of changes, of which history and Log Records are views, and the notices about them.

-- +goose Up

-- One row per change: a history entry if it has changes, {"field": {"from": …, "to": …}}, a Log Record if it has the
-- actor's name, mostly both. It has exactly two indexes and no foreign keys: every write appends to it, and has read the
-- organization and the actor.
CREATE TABLE log (
    id              bigint GENERATED ALWAYS AS IDENTITY,
    organization_id public_id NOT NULL,
    record_id       public_id NOT NULL,
    -- NULL for the service's operators.
    actor_id        public_id,
    action          text NOT NULL,
    changes         jsonb,
    created_at      timestamptz(3) NOT NULL,
    -- The name at the time, with "(API)" after an integration's.
    actor_name      text,
    PRIMARY KEY (organization_id, id),
    CONSTRAINT log_entry CHECK (changes IS NOT NULL OR actor_name IS NOT NULL)
);
CREATE INDEX log_of_record ON log (record_id, id);

CREATE VIEW history AS
SELECT id, organization_id, record_id, actor_id, action, changes, created_at FROM log WHERE changes IS NOT NULL;

CREATE VIEW log_records AS
SELECT id, organization_id, actor_id, actor_name, action, record_id, created_at FROM log WHERE actor_name IS NOT NULL;

-- Notices to people about changes: in the console's inbox at once, and by e-mail.
CREATE TABLE notices (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id public_id NOT NULL,
    person_id       public_id NOT NULL,
    kind            text NOT NULL,
    -- A work order, feedback, an address, or an identity for those about access and sign-in.
    record_id       public_id NOT NULL,
    -- The target date a reminder is about, or the time since which the review waits.
    about           timestamptz(3),
    created_at      timestamptz(3) NOT NULL,
    read_at         timestamptz(3),
    -- waiting, sent, or inbox, which is the inbox only (no mail server, a rejected address, too old).
    mail            text NOT NULL DEFAULT 'waiting' CHECK (mail IN ('waiting', 'sent', 'inbox')),
    -- Where the notice is mailed instead of to the person's e-mail address: the address that the person had before. It is
    -- erased when the notice is not to be mailed any longer.
    mail_to         text CHECK (mail_to IS NULL OR mail = 'waiting'),
    mailed_at       timestamptz(3),
    -- The attempts to mail the notice, the time from which the next may begin, and why the last one failed, in the
    -- service's own words. While an attempt is in progress, its end is when another worker may try.
    mail_attempts   integer NOT NULL DEFAULT 0,
    next_mail_at    timestamptz(3) NOT NULL DEFAULT '-infinity',
    mail_error      text,
    CHECK ((mailed_at IS NOT NULL) = (mail = 'sent'))
);
CREATE INDEX notices_of_person ON notices (person_id, id);
-- The console counts and lists unread notices at each request.
CREATE INDEX notices_unread ON notices (person_id, id) WHERE read_at IS NULL;
CREATE UNIQUE INDEX notices_remind_once ON notices (record_id, person_id, kind, about) WHERE about IS NOT NULL;
CREATE INDEX notices_to_mail ON notices (organization_id, next_mail_at, id) WHERE mail = 'waiting';
CREATE INDEX notices_of_person_to_mail ON notices (person_id, next_mail_at) WHERE mail = 'waiting';
CREATE INDEX notices_waiting_to_mail ON notices (created_at) WHERE mail = 'waiting';
