-- Fills form_questions while calls go on. It can be repeated.

-- +goose NO TRANSACTION
-- +goose Up

-- The trigger encodes the questions. A form at a time: two could wait for an import that waits for the other one.
-- +goose StatementBegin
DO $$
DECLARE
    form text := '';
BEGIN
    LOOP
        form := (SELECT id FROM forms WHERE id > form ORDER BY id LIMIT 1);
        EXIT WHEN form IS NULL;
        INSERT INTO form_questions (form_id) SELECT id FROM forms WHERE id = form ON CONFLICT DO NOTHING;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd
