-- A form's questions are kept as its record shows them, so that reading a form copies a text.

-- +goose Up

-- questions are models.QuestionRecords without spaces, NULL only inside of a transaction that changes them. It is stored as
-- it is: it is read more often than written, and uncompressing takes longer than reading.
CREATE TABLE form_questions (
    form_id   public_id PRIMARY KEY REFERENCES forms ON DELETE CASCADE,
    questions text
);
ALTER TABLE form_questions ALTER COLUMN questions SET STORAGE EXTERNAL;

-- Statements that change questions or options mark their forms. Marking locks the row, so transactions that change one
-- form follow each other, and the last one encodes what all of them wrote.
-- +goose StatementBegin
CREATE FUNCTION mark_form_questions(changed text[]) RETURNS void LANGUAGE sql SET enable_seqscan = off AS $$
    INSERT INTO form_questions (form_id)
    SELECT f.id FROM unnest(changed) u (id) CROSS JOIN LATERAL (SELECT id FROM forms WHERE id = u.id LIMIT 1) f ORDER BY f.id
    ON CONFLICT (form_id) DO UPDATE SET questions = NULL WHERE form_questions.questions IS NOT NULL
$$;

CREATE FUNCTION mark_forms_of_questions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM mark_form_questions(ARRAY(SELECT DISTINCT form_id::text FROM old_rows));
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM mark_form_questions(ARRAY(SELECT DISTINCT form_id::text FROM new_rows));
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION mark_forms_of_options() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM mark_form_questions(ARRAY(SELECT DISTINCT q.form_id::text FROM (SELECT DISTINCT question_id FROM old_rows) o
            CROSS JOIN LATERAL (SELECT form_id FROM questions WHERE id = o.question_id LIMIT 1) q));
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM mark_form_questions(ARRAY(SELECT DISTINCT q.form_id::text FROM (SELECT DISTINCT question_id FROM new_rows) o
            CROSS JOIN LATERAL (SELECT form_id FROM questions WHERE id = o.question_id LIMIT 1) q));
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION encode_form_questions() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    UPDATE form_questions f SET questions = array_to_json(ARRAY(SELECT shown FROM questions q
        CROSS JOIN LATERAL (SELECT q.id, q.label, q.type, q.required, ARRAY(SELECT choice FROM question_options o
            CROSS JOIN LATERAL (SELECT o.id, o.label) choice WHERE o.question_id = q.id ORDER BY o.position) AS options) shown
        WHERE q.form_id = f.form_id ORDER BY q.position))::text
    WHERE f.form_id = NEW.form_id AND f.questions IS NULL;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Once for each form and transaction, when it ends.
CREATE CONSTRAINT TRIGGER form_questions_encode AFTER INSERT OR UPDATE ON form_questions DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.questions IS NULL) EXECUTE FUNCTION encode_form_questions();

CREATE TRIGGER questions_insert AFTER INSERT ON questions REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION mark_forms_of_questions();
CREATE TRIGGER questions_update AFTER UPDATE ON questions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION mark_forms_of_questions();
CREATE TRIGGER questions_delete AFTER DELETE ON questions REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION mark_forms_of_questions();
CREATE TRIGGER question_options_insert AFTER INSERT ON question_options REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION mark_forms_of_options();
CREATE TRIGGER question_options_update AFTER UPDATE ON question_options REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION mark_forms_of_options();
CREATE TRIGGER question_options_delete AFTER DELETE ON question_options REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION mark_forms_of_options();
