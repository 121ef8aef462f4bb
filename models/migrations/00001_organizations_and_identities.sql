-- Organizations, their plans, the four kinds of identity, and what imports know of them.

-- +goose Up

-- Ids are text with a type prefix and sort by time; "C" makes every comparison a memcmp.
CREATE DOMAIN public_id AS text COLLATE "C";

-- A text as it is compared or sorted, which package models makes of what people entered (Fold, SortKey): no locale of the
-- database and no version of ICU matters. The columns of words are for searches.
CREATE DOMAIN folded AS text COLLATE "C";

-- The models.FoldVersion that made these columns.
CREATE TABLE fold_version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  text NOT NULL
);

-- Each organization has its own sequence of work order numbers, so that two creations
-- in one organization never wait for each other.
CREATE SCHEMA work_order_numbers;

-- +goose StatementBegin
-- Creates the sequence of a new organization with the rights of the owner of the schema.
CREATE FUNCTION work_order_numbers.create_for(organization public_id) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN
    EXECUTE format('CREATE SEQUENCE work_order_numbers.%I', organization);
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION work_order_numbers.create_for FROM PUBLIC;

CREATE TABLE organizations (
    id              public_id PRIMARY KEY,
    key             text NOT NULL UNIQUE CHECK (key <> ''),
    read_only       boolean NOT NULL DEFAULT false,
    suspended       boolean NOT NULL DEFAULT false,
    -- Its people sign in neither with passwords nor by links that set one.
    openid_required boolean NOT NULL DEFAULT false,
    created_at      timestamptz(3) NOT NULL
);

CREATE TABLE plans (
    organization_id    public_id PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    name               text NOT NULL CHECK (name <> ''),
    api                boolean NOT NULL,
    manual_work_orders boolean NOT NULL,
    calls_per_minute   integer NOT NULL CHECK (calls_per_minute > 0),
    integrations       integer NOT NULL CHECK (integrations >= 0)
);

-- People, teams, organizations and integrations. They are never deleted.
CREATE TABLE identities (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    kind            text NOT NULL CHECK (kind IN ('person', 'team', 'organization', 'integration')),
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    sort_key        folded NOT NULL DEFAULT '',
    words           tsvector NOT NULL DEFAULT '',
    created_at      timestamptz(3) NOT NULL,
    changed_at      timestamptz(3) NOT NULL,
    -- The change position: the transaction of the last change (00006_sync.sql).
    changed_xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- When a team was deleted: records and the log still name it. Integrations have another column.
    deleted_at      timestamptz(3),
    UNIQUE (organization_id, id),
    UNIQUE (id, kind),
    CHECK ((kind = 'organization') = (id = organization_id))
);
CREATE INDEX identities_changes ON identities (organization_id, changed_xid, id);
-- Lists of people and teams are read by name, a page at a time.
CREATE INDEX identities_by_name ON identities (organization_id, kind, sort_key, id) WHERE deleted_at IS NULL;

ALTER TABLE organizations
    ADD CONSTRAINT organizations_identity FOREIGN KEY (id) REFERENCES identities (id)
    DEFERRABLE INITIALLY DEFERRED;

-- What people and integrations may do in the whole organization.
CREATE TABLE organization_permission_definitions (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    sort_key        folded NOT NULL DEFAULT '',
    -- Who has a retired definition keeps it, and no one gets it.
    retired         boolean NOT NULL DEFAULT false,
    grants          text[] NOT NULL CHECK (grants <@ ARRAY['integrations', 'incoming_work_orders', 'log_records', 'people']),
    UNIQUE (organization_id, id)
);

CREATE TABLE people (
    id                         public_id PRIMARY KEY,
    organization_id            public_id NOT NULL,
    kind                       text NOT NULL GENERATED ALWAYS AS ('person') STORED,
    email                      text NOT NULL CHECK (email LIKE '%_@_%'),
    folded_email               folded NOT NULL,
    words                      tsvector NOT NULL DEFAULT '',
    phone                      text,
    password_hash              text,
    -- No one below administrator saw the link that set the password.
    password_private           boolean NOT NULL DEFAULT false,
    admin                      boolean NOT NULL DEFAULT false,
    organization_definition_id public_id,
    deactivated_at             timestamptz(3),
    -- Who took over from a deactivated person, and how many work orders so far.
    replaced_by                public_id,
    passed_on                  integer NOT NULL DEFAULT 0,
    -- A name of the time zone database; NULL is UTC.
    time_zone                  text CHECK (char_length(time_zone) BETWEEN 1 AND 64),
    -- NULL is the device's.
    theme                      text CHECK (theme IN ('light', 'dark')),
    FOREIGN KEY (id, kind) REFERENCES identities (id, kind) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, id) REFERENCES identities (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, organization_definition_id)
        REFERENCES organization_permission_definitions (organization_id, id)
);
CREATE UNIQUE INDEX people_email ON people (organization_id, folded_email);
-- A person signs in with an e-mail address, which people of several organizations may have.
CREATE INDEX people_by_email ON people (folded_email);

CREATE TABLE integrations (
    id                         public_id PRIMARY KEY,
    organization_id            public_id NOT NULL,
    kind                       text NOT NULL GENERATED ALWAYS AS ('integration') STORED,
    client_id                  text NOT NULL UNIQUE,
    secret_hash                bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
    -- The secret before the last renewal, until its end.
    previous_secret_hash       bytea CHECK (octet_length(previous_secret_hash) = 32),
    previous_secret_until      timestamptz(3),
    scopes                     text[] NOT NULL CHECK (scopes <@ ARRAY[
                                   'inventory:read', 'work_orders:read', 'work_orders:write', 'issues:read',
                                   'issues:write', 'forms:read', 'files:read', 'people:read']),
    organization_definition_id public_id,
    -- Identity ids of people with the Integrations permission: the person who created it, and
    -- those whom an administrator names.
    owners                     text[] NOT NULL DEFAULT '{}',
    enabled                    boolean NOT NULL DEFAULT true,
    disabled_by_service        boolean NOT NULL DEFAULT false,
    deleted_at                 timestamptz(3),
    -- A token is valid only in the epoch it was issued in; epochs only grow.
    token_epoch                integer NOT NULL DEFAULT 1,
    -- A sync token is valid only in the access epoch it was issued in.
    access_epoch               integer NOT NULL DEFAULT 1,
    CHECK ((previous_secret_hash IS NULL) = (previous_secret_until IS NULL)),
    FOREIGN KEY (id, kind) REFERENCES identities (id, kind) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, id) REFERENCES identities (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, organization_definition_id)
        REFERENCES organization_permission_definitions (organization_id, id)
);
CREATE INDEX integrations_of_organization ON integrations (organization_id);

CREATE TABLE team_members (
    team_id         public_id NOT NULL,
    member_id       public_id NOT NULL CHECK (member_id <> team_id),
    organization_id public_id NOT NULL,
    team_kind       text NOT NULL GENERATED ALWAYS AS ('team') STORED,
    PRIMARY KEY (team_id, member_id),
    FOREIGN KEY (team_id, team_kind) REFERENCES identities (id, kind) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, team_id) REFERENCES identities (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, member_id) REFERENCES identities (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX team_members_of_member ON team_members (member_id, team_id);

-- company_id may be assigned work orders of customer_id.
CREATE TABLE service_companies (
    customer_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    company_id  public_id NOT NULL REFERENCES organizations ON DELETE CASCADE CHECK (company_id <> customer_id),
    PRIMARY KEY (customer_id, company_id)
);
CREATE INDEX service_companies_of_company ON service_companies (company_id, customer_id);

-- Former service companies, which no longer read the customer's work orders. Housekeeping takes the open ones back for
-- actor_id; reached is the last work order that it looked at, NULL after the last one.
CREATE TABLE ended_relations (
    company_id  public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    customer_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    actor_id    public_id NOT NULL,
    ended_at    timestamptz(3) NOT NULL,
    reached     text COLLATE "C" DEFAULT '',
    PRIMARY KEY (company_id, customer_id)
);

-- The keys that files of `millwright import` gave to what they created.
CREATE TABLE import_keys (
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    key             text NOT NULL,
    kind            text NOT NULL,
    id              public_id NOT NULL,
    PRIMARY KEY (organization_id, key)
);

-- What imports left in the fields of their entries, so that the next one recognizes what was changed since. Apart
-- from import_keys: the key of a deleted entry is free, but its deletion is a change too.
CREATE TABLE import_digests (
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    key             text NOT NULL,
    kind            text NOT NULL,
    -- By the field's name, a digest of the value that the last import which named the field left.
    digests         jsonb NOT NULL,
    PRIMARY KEY (organization_id, key)
);

-- Changes are found by the transaction that made them: a timestamp is taken before the commit. A trigger sets the
-- position, because a write that forgot it would be missing in every later list of changes.
-- +goose StatementBegin
CREATE FUNCTION set_change_position() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_xid := pg_current_xact_id();
    RETURN NEW;
END $$;
-- +goose StatementEnd

CREATE TRIGGER identities_position BEFORE UPDATE ON identities
    FOR EACH ROW EXECUTE FUNCTION set_change_position();

-- Every invalidation of tokens (api.md 5.4) ends the epoch here, so that
-- no writer of these tables can forget it and nothing revives an old token.
-- +goose StatementBegin
CREATE FUNCTION end_token_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.secret_hash <> OLD.secret_hash
        OR (NEW.previous_secret_hash IS NULL AND OLD.previous_secret_hash IS NOT NULL)
        OR (OLD.enabled AND NOT NEW.enabled)
        OR (NEW.disabled_by_service AND NOT OLD.disabled_by_service)
        OR (NEW.deleted_at IS NOT NULL AND OLD.deleted_at IS NULL)
        OR NOT OLD.scopes <@ NEW.scopes
    THEN
        NEW.token_epoch := OLD.token_epoch + 1;
    END IF;
    IF NOT (OLD.scopes <@ NEW.scopes AND NEW.scopes <@ OLD.scopes)
        OR NEW.organization_definition_id IS DISTINCT FROM OLD.organization_definition_id
    THEN
        NEW.access_epoch := OLD.access_epoch + 1;
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION end_token_epochs_of_organization() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'plans' THEN
        UPDATE integrations SET token_epoch = token_epoch + 1 WHERE organization_id = NEW.organization_id;
    ELSE
        UPDATE integrations SET token_epoch = token_epoch + 1 WHERE organization_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER integrations_epoch BEFORE UPDATE ON integrations
    FOR EACH ROW EXECUTE FUNCTION end_token_epoch();
CREATE TRIGGER plans_epoch AFTER UPDATE OF api ON plans
    FOR EACH ROW WHEN (OLD.api AND NOT NEW.api) EXECUTE FUNCTION end_token_epochs_of_organization();
CREATE TRIGGER organizations_epoch AFTER UPDATE OF suspended ON organizations
    FOR EACH ROW WHEN (NEW.suspended AND NOT OLD.suspended) EXECUTE FUNCTION end_token_epochs_of_organization();
