-- The words of work orders' numbers, external ids and titles, for the search of the console.

-- +goose Up

-- The words of a text, each after the end of its organization's id: a search in one organization reads no
-- entries of others. Only ASCII punctuation and spaces divide words, in every locale.
-- +goose StatementBegin
CREATE FUNCTION search_words(organization text, words text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT array_remove(string_to_array(right(organization, 10) || replace(
        translate(lower(words), E'\t\n\r\f\x0b!"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~\u00a0', repeat(' ', 38)),
        ' ', ' ' || right(organization, 10)), ' '), right(organization, 10))
$$;
-- +goose StatementEnd

-- A separate table and not a column, since changes of other columns must not write to the index.
CREATE TABLE work_order_words (
    id    public_id PRIMARY KEY,
    words tsvector NOT NULL
);

-- LIMIT and the setting keep the look-up by key, as in keep_work_order_positions.
-- +goose StatementBegin
CREATE FUNCTION keep_work_order_words() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM work_order_words x USING old_rows o CROSS JOIN LATERAL (
            SELECT q.ctid FROM work_order_words q WHERE q.id = o.id LIMIT 1) held
        WHERE x.ctid = held.ctid;
    ELSE
        INSERT INTO work_order_words (id, words)
        SELECT id, array_to_tsvector(search_words(organization_id, number || ' ' || title || ' ' || coalesce(external_id, ''))) FROM new_rows;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION change_work_order_words() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO work_order_words (id, words)
    VALUES (NEW.id, array_to_tsvector(search_words(NEW.organization_id, NEW.number || ' ' || NEW.title || ' ' || coalesce(NEW.external_id, ''))))
    ON CONFLICT (id) DO UPDATE SET words = excluded.words;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER work_orders_words_insert AFTER INSERT ON work_orders REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_work_order_words();
CREATE TRIGGER work_orders_words_update AFTER UPDATE OF title, external_id ON work_orders
    FOR EACH ROW WHEN (NEW.title <> OLD.title OR NEW.external_id IS DISTINCT FROM OLD.external_id) EXECUTE FUNCTION change_work_order_words();
CREATE TRIGGER work_orders_words_delete AFTER DELETE ON work_orders REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_work_order_words();
