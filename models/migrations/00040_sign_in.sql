-- People sign in to the console.

-- +goose Up

ALTER TABLE people
    ADD COLUMN deactivated_at timestamptz(3),
    -- A name of the time zone database; NULL is UTC.
    ADD COLUMN time_zone text CHECK (char_length(time_zone) BETWEEN 1 AND 64),
    -- NULL is the device's.
    ADD COLUMN theme text CHECK (theme IN ('light', 'dark'));
-- A person signs in with an e-mail address, which people of several organizations may have.
CREATE INDEX people_by_email ON people (lower(email));

-- Only the digest of a session's token is stored, so that a backup signs no one in.
CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    id         public_id NOT NULL UNIQUE,
    person_id  public_id NOT NULL REFERENCES people ON DELETE CASCADE,
    method     text NOT NULL CHECK (method IN ('password', 'link', 'openid')),
    created_at timestamptz(3) NOT NULL,
    -- The last request, within a minute.
    seen_at    timestamptz(3) NOT NULL,
    network    text NOT NULL,
    user_agent text NOT NULL CHECK (char_length(user_agent) <= 200)
);
CREATE INDEX sessions_of_person ON sessions (person_id);
CREATE INDEX sessions_by_age ON sessions (created_at);

-- Links of invitations and of forgotten passwords. Using one removes all of the person.
CREATE TABLE sign_in_links (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    person_id  public_id NOT NULL REFERENCES people ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('invitation', 'reset')),
    created_at timestamptz(3) NOT NULL,
    expires_at timestamptz(3) NOT NULL
);
CREATE INDEX sign_in_links_of_person ON sign_in_links (person_id);
CREATE INDEX sign_in_links_by_age ON sign_in_links (expires_at);

-- Accounts of an OpenID provider that an invitation linked to a person.
CREATE TABLE openid_accounts (
    issuer     text NOT NULL,
    subject    text NOT NULL,
    person_id  public_id NOT NULL REFERENCES people ON DELETE CASCADE,
    created_at timestamptz(3) NOT NULL,
    PRIMARY KEY (issuer, subject, person_id)
);
CREATE INDEX openid_accounts_of_person ON openid_accounts (person_id);

-- The keys of forms that were sent, stored in the transaction of what they did.
CREATE TABLE form_keys (
    person_id public_id NOT NULL REFERENCES people ON DELETE CASCADE,
    key       text NOT NULL CHECK (char_length(key) BETWEEN 1 AND 64),
    record_id public_id NOT NULL,
    used_at   timestamptz(3) NOT NULL,
    PRIMARY KEY (person_id, key)
);
CREATE INDEX form_keys_by_age ON form_keys (used_at);

-- Sessions end here, so that no writer of these tables can forget it.
-- +goose StatementBegin
CREATE FUNCTION end_sessions_of_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sessions WHERE person_id = NEW.id;
    DELETE FROM sign_in_links WHERE person_id = NEW.id;
    RETURN NULL;
END $$;

CREATE FUNCTION end_sessions_of_organization() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sessions s USING people p WHERE p.id = s.person_id AND p.organization_id = NEW.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER people_sessions AFTER UPDATE OF deactivated_at ON people
    FOR EACH ROW WHEN (OLD.deactivated_at IS NULL AND NEW.deactivated_at IS NOT NULL) EXECUTE FUNCTION end_sessions_of_person();
CREATE TRIGGER organizations_sessions AFTER UPDATE OF suspended ON organizations
    FOR EACH ROW WHEN (NEW.suspended AND NOT OLD.suspended) EXECUTE FUNCTION end_sessions_of_organization();
