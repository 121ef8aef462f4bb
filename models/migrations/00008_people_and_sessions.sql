-- People sign in to the console.

-- +goose Up

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
    user_agent text NOT NULL CHECK (char_length(user_agent) <= 200),
    -- When the person last showed who it is; NULL if the OpenID provider does not report it.
    authenticated_at timestamptz(3),
    -- Until when that is recent. Secrets, roles and ways to sign in require it; each such action renews it.
    recent_until     timestamptz(3)
);
CREATE INDEX sessions_of_person ON sessions (person_id);
CREATE INDEX sessions_by_age ON sessions (created_at);

-- Links of invitations and of forgotten passwords. Using one removes all of the person.
CREATE TABLE sign_in_links (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    organization_id public_id NOT NULL,
    person_id  public_id NOT NULL REFERENCES people ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('invitation', 'reset')),
    created_at timestamptz(3) NOT NULL,
    expires_at timestamptz(3) NOT NULL,
    -- The person asked for it, as after forgetting a password. Others made all other links.
    requested  boolean NOT NULL DEFAULT false,
    -- No one below administrator saw it. A way to sign in that it sets is as private.
    private    boolean NOT NULL DEFAULT false,
    -- The sealed token of a link that waits to be mailed; NULL once it is sent, and for links that are shown instead.
    sealed     bytea,
    -- As of notices.
    mail_attempts integer NOT NULL DEFAULT 0,
    next_mail_at  timestamptz(3) NOT NULL DEFAULT '-infinity',
    mail_error    text
);
CREATE INDEX sign_in_links_to_mail ON sign_in_links (organization_id, next_mail_at) WHERE sealed IS NOT NULL;
CREATE INDEX sign_in_links_waiting_to_mail ON sign_in_links (created_at) WHERE sealed IS NOT NULL;
CREATE INDEX sign_in_links_of_person ON sign_in_links (person_id);
CREATE INDEX sign_in_links_by_age ON sign_in_links (expires_at);

-- Accounts of an OpenID provider that an invitation linked to a person.
CREATE TABLE openid_accounts (
    issuer     text NOT NULL,
    subject    text NOT NULL,
    person_id  public_id NOT NULL REFERENCES people ON DELETE CASCADE,
    created_at timestamptz(3) NOT NULL,
    private    boolean NOT NULL DEFAULT false,
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
