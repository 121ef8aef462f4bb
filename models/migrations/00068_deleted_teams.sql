-- Teams are deleted in the console.

-- +goose Up

-- When a team was deleted: records and the log still name it. Integrations have another column.
ALTER TABLE identities ADD COLUMN deleted_at timestamptz(3);

-- Deleting a team removes all members in one statement. A trigger for each row took longer than a write may.
-- +goose StatementBegin
CREATE FUNCTION end_access_epochs_of_members() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    teams   text[] := '{}';
    members text[] := '{}';
BEGIN
    IF TG_OP <> 'INSERT' THEN
        teams := ARRAY(SELECT DISTINCT team_id::text FROM old_rows);
        members := ARRAY(SELECT member_id::text FROM old_rows);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        teams := teams || ARRAY(SELECT DISTINCT team_id::text FROM new_rows);
        members := members || ARRAY(SELECT member_id::text FROM new_rows);
    END IF;
    PERFORM end_access_epochs(members);
    -- A team's record shows its members, a person's the teams. One that this transaction changed has a new time already.
    UPDATE identities SET changed_at = greatest(changed_at + interval '1 millisecond', now())
    WHERE id = ANY (teams || members) AND changed_xid <> pg_current_xact_id();
    RETURN NULL;
END $$;
-- +goose StatementEnd

DROP TRIGGER team_members_access ON team_members;
DROP FUNCTION end_access_epochs_of_member();
CREATE TRIGGER team_members_insert AFTER INSERT ON team_members REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION end_access_epochs_of_members();
CREATE TRIGGER team_members_update AFTER UPDATE ON team_members REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION end_access_epochs_of_members();
CREATE TRIGGER team_members_delete AFTER DELETE ON team_members REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION end_access_epochs_of_members();
