-- Events, deliveries and attempts are partitioned by the day (UTC) of their ids. Housekeeping makes the days in advance and
-- drops them whole, with the rights of the schema's owner. docs/decisions/0029-partitions.md

-- +goose Up

-- +goose StatementBegin
-- The beginning of all ids of the time and later: the prefix and the ten digits that hold the milliseconds.
CREATE FUNCTION partitions.first_id(prefix text, at timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
        ((extract(epoch FROM at) * 1000)::bigint >> 5 * digit & 31)::integer + 1, 1), '' ORDER BY digit DESC)
    FROM generate_series(0, 9) digit
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- The tables in the order in which a day's partitions are removed: what may add rows to another one first.
CREATE FUNCTION partitions.tables(OUT removal_order integer, OUT name text, OUT key text, OUT prefix text) RETURNS SETOF record
LANGUAGE sql IMMUTABLE AS $$
    VALUES (1, 'deliveries', 'id', 'dlv'), (2, 'attempts', 'delivery_id', 'dlv'), (3, 'events', 'id', 'evt')
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Midnight in UTC.
CREATE FUNCTION partitions.midnight(day date) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$ SELECT day::timestamp AT TIME ZONE 'UTC' $$;
-- +goose StatementEnd

-- Every partition with its day: table_YYYYMMDD. One that is to be dropped is detached first.
CREATE VIEW partitions.days AS
    SELECT t.removal_order, t.name AS of, t.key, t.prefix, c.relname AS partition,
        EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid) AS attached, to_date(substring(c.relname FROM '[0-9]{8}$'), 'YYYYMMDD') AS day
    FROM partitions.tables() t
    JOIN pg_class c ON c.relnamespace = 'partitions'::regnamespace AND c.relkind = 'r' AND c.relname ~ ('^' || t.name || '_[0-9]{8}$');

-- +goose StatementBegin
-- Makes the partitions of the tables for as many days, those that are missing, and returns how many it made.
-- A table is created apart and then attached, which blocks neither writers nor readers; it waits for
-- another maker or a vacuum of the table only.
CREATE FUNCTION partitions.make(first_day date, days integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    t record;
    part text;
    made integer := 0;
BEGIN
    FOR try IN 1..200 LOOP
        EXIT WHEN pg_try_advisory_xact_lock(hashtextextended('partitions', 0));
        IF try = 200 THEN
            RAISE EXCEPTION 'another program makes partitions' USING ERRCODE = 'lock_not_available';
        END IF;
        PERFORM pg_sleep(0.05);
    END LOOP;
    FOR t IN SELECT p.*, first_day + n AS day FROM partitions.tables() p, generate_series(0, days - 1) n
        WHERE NOT EXISTS (SELECT FROM partitions.days x WHERE x.of = p.name AND x.day = first_day + n)
    LOOP
        part := format('partitions.%I', t.name || to_char(t.day, '_YYYYMMDD'));
        FOR try IN 1..20 LOOP
            BEGIN
                -- A partition is only appended to until it is dropped. A vacuum after insertions would write each
                -- page once more; dead rows, and ids of transactions that come of age, still have one.
                EXECUTE format('CREATE TABLE %s (LIKE %I INCLUDING ALL) WITH (autovacuum_vacuum_insert_threshold = -1,
                    autovacuum_analyze_scale_factor = 0.5, autovacuum_analyze_threshold = 5000)', part, t.name);
                EXECUTE format('ALTER TABLE %I ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)', t.name, part,
                    partitions.first_id(t.prefix, partitions.midnight(t.day)), partitions.first_id(t.prefix, partitions.midnight(t.day + 1)));
                EXIT;
            EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
                IF try = 20 THEN
                    RAISE;
                END IF;
            END;
            PERFORM pg_sleep(0.05);
        END LOOP;
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Takes one step in removing the partitions of days that ended by the time: drops one that was detached, or
-- detaches the next one. Returns which, and whether it was dropped; null if there was nothing to do or the table was in use: detaching
-- waits for everyone who uses it, and everyone who comes later waits for that, so it gives up early. A
-- day stays as long as a delivery of it is open, since finishing that one inserts it again.
CREATE FUNCTION partitions.remove_next(until timestamptz, OUT partition text, OUT dropped boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    x record;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('partitions', 0)) THEN
        RETURN;
    END IF;
    FOR x IN SELECT * FROM partitions.days d WHERE partitions.midnight(d.day + 1) <= until ORDER BY d.attached, d.removal_order, d.day LOOP
        IF NOT x.attached THEN
            EXECUTE format('DROP TABLE partitions.%I', x.partition);
            partition := x.partition;
            dropped := true;
            RETURN;
        END IF;
        CONTINUE WHEN EXISTS (SELECT FROM open_deliveries WHERE id < partitions.first_id('dlv', partitions.midnight(x.day + 1)));
        BEGIN
            -- Whatever moves a delivery locks the table, so after this none of the day becomes open.
            EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', x.of);
            IF EXISTS (SELECT FROM open_deliveries WHERE id < partitions.first_id('dlv', partitions.midnight(x.day + 1))) THEN
                RETURN;
            END IF;
            EXECUTE format('ALTER TABLE %I DETACH PARTITION partitions.%I', x.of, x.partition);
            partition := x.partition;
            dropped := false;
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            RETURN;
        END;
    END LOOP;
END $$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION partitions.make(date, integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION partitions.remove_next(timestamptz) FROM PUBLIC;
