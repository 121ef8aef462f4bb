-- Who gains permissions loses sessions, links, and the ways to sign in that others may share.

-- +goose Up

ALTER TABLE sign_in_links
    -- The person asked for it, as after forgetting a password. Others made all other links.
    ADD COLUMN requested boolean NOT NULL DEFAULT false,
    -- No one below administrator saw it. A way to sign in that it sets is as private.
    ADD COLUMN private boolean NOT NULL DEFAULT false;
ALTER TABLE people ADD COLUMN password_private boolean NOT NULL DEFAULT false;
ALTER TABLE openid_accounts ADD COLUMN private boolean NOT NULL DEFAULT false;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION end_sessions_of_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sessions WHERE person_id = NEW.id;
    DELETE FROM sign_in_links WHERE person_id = NEW.id;
    IF NEW.deactivated_at IS NOT NULL THEN
        DELETE FROM openid_accounts WHERE person_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;

-- A person who gains permissions: someone who shares a way to sign in must not gain them too.
CREATE FUNCTION end_shared_sign_in(person text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sessions WHERE person_id = person;
    DELETE FROM sign_in_links WHERE person_id = person;
    DELETE FROM openid_accounts WHERE person_id = person AND NOT private;
    UPDATE people SET password_hash = NULL WHERE id = person AND NOT password_private AND password_hash IS NOT NULL;
END $$;

CREATE FUNCTION end_shared_sign_in_of_person() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before text[] := (SELECT grants FROM organization_permission_definitions WHERE id = OLD.organization_definition_id);
    after text[] := (SELECT grants FROM organization_permission_definitions WHERE id = NEW.organization_definition_id);
BEGIN
    IF NEW.admin OR NOT coalesce(after, '{}') <@ coalesce(before, '{}') THEN
        PERFORM end_shared_sign_in(NEW.id);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION end_shared_sign_in_of_definition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM end_shared_sign_in(id) FROM people WHERE organization_definition_id = NEW.id AND NOT admin;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER people_promoted AFTER UPDATE OF admin, organization_definition_id ON people
    FOR EACH ROW WHEN (NOT OLD.admin AND (NEW.admin OR OLD.organization_definition_id IS DISTINCT FROM NEW.organization_definition_id))
    EXECUTE FUNCTION end_shared_sign_in_of_person();
CREATE TRIGGER organization_definitions_widened AFTER UPDATE OF grants ON organization_permission_definitions
    FOR EACH ROW WHEN (NOT NEW.grants <@ OLD.grants) EXECUTE FUNCTION end_shared_sign_in_of_definition();
-- Links went to the former address.
CREATE TRIGGER people_email_changed AFTER UPDATE OF email ON people
    FOR EACH ROW WHEN (OLD.email <> NEW.email) EXECUTE FUNCTION end_sessions_of_person();
