-- Events, deliveries and attempts become tables partitioned by the day of their ids, which housekeeping makes
-- in advance and drops whole. docs/decisions/0029-partitions.md
--
-- No row is rewritten. The table that there was becomes the partition of everything before a day two days from
-- now, to which programs of the previous version may still write until then. Whatever the migration does was
-- done or is repeated if it is run again.

-- +goose NO TRANSACTION
-- +goose Up

CREATE SCHEMA IF NOT EXISTS partitions;

-- +goose StatementBegin
-- The beginning of all ids of the time and later: the prefix and the ten digits that hold the milliseconds.
CREATE OR REPLACE FUNCTION partitions.first_id(prefix text, at timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
        ((extract(epoch FROM at) * 1000)::bigint >> 5 * digit & 31)::integer + 1, 1), '' ORDER BY digit DESC)
    FROM generate_series(0, 9) digit
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- The tables in the order in which a day's partitions are removed: what may add rows to another one first.
CREATE OR REPLACE FUNCTION partitions.tables(OUT place integer, OUT name text, OUT key text, OUT prefix text) RETURNS SETOF record
LANGUAGE sql IMMUTABLE AS $$
    VALUES (1, 'deliveries', 'id', 'dlv'), (2, 'attempts', 'delivery_id', 'dlv'), (3, 'events', 'id', 'evt')
$$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Midnight in UTC.
CREATE OR REPLACE FUNCTION partitions.midnight(day date) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$ SELECT day::timestamp AT TIME ZONE 'UTC' $$;
-- +goose StatementEnd

-- Every partition with the day it begins, null for the one before all others, and the day it ends. Those of a
-- day are named table_YYYYMMDD, the one before table_before_YYYYMMDD.
CREATE OR REPLACE VIEW partitions.days AS
    SELECT t.place, t.name AS of, t.key, t.prefix, c.relname AS partition, EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid) AS attached,
        CASE WHEN c.relname NOT LIKE '%\_before\_%' THEN to_date(substring(c.relname FROM '[0-9]{8}$'), 'YYYYMMDD') END AS day,
        to_date(substring(c.relname FROM '[0-9]{8}$'), 'YYYYMMDD') + CASE WHEN c.relname LIKE '%\_before\_%' THEN 0 ELSE 1 END AS ends
    FROM partitions.tables() t
    JOIN pg_class c ON c.relnamespace = 'partitions'::regnamespace AND c.relkind = 'r' AND c.relname ~ ('^' || t.name || '_(before_)?[0-9]{8}$');

-- +goose StatementBegin
-- The previous version removes old events by their physical place, which rows of other partitions share.
CREATE OR REPLACE FUNCTION partitions.refuse_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events of a day are removed with their partition' USING ERRCODE = 'object_not_in_prerequisite_state';
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Makes the partitions of the tables for as many days, those that are missing, and returns how many it made.
-- A table is created apart and then attached, which blocks neither writers nor readers; it waits for
-- another maker or a vacuum of the table only.
CREATE OR REPLACE FUNCTION partitions.make(first_day date, days integer) RETURNS integer
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
        WHERE EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = p.name::regclass)
            AND NOT EXISTS (SELECT FROM partitions.days x WHERE x.of = p.name AND first_day + n < x.ends AND (x.day IS NULL OR x.day = first_day + n))
    LOOP
        part := format('partitions.%I', t.name || to_char(t.day, '_YYYYMMDD'));
        FOR try IN 1..20 LOOP
            BEGIN
                -- A partition is only appended to until it is dropped. A vacuum after insertions would write each
                -- page once more; dead rows, and ids of transactions that come of age, still have one.
                EXECUTE format('CREATE TABLE %s (LIKE %I INCLUDING ALL) WITH (autovacuum_vacuum_insert_threshold = -1,
                    autovacuum_analyze_scale_factor = 0.5, autovacuum_analyze_threshold = 5000)', part, t.name);
                IF t.name = 'deliveries' AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'deliveries'::regclass AND conname = 'deliveries_status_check') THEN
                    -- The former partition also takes the open ones of the previous version.
                    EXECUTE format($sql$ALTER TABLE %s ADD CONSTRAINT deliveries_status_check
                        CHECK (status IN ('delivered', 'failed', 'held', 'skipped'))$sql$, part);
                ELSIF t.name = 'events' THEN
                    EXECUTE format('CREATE TRIGGER refuse_removal BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION partitions.refuse_removal()', part);
                END IF;
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
CREATE OR REPLACE FUNCTION partitions.remove_next(until timestamptz, OUT partition text, OUT dropped boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '50ms' AS $$
DECLARE
    x record;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('partitions', 0)) THEN
        RETURN;
    END IF;
    FOR x IN SELECT * FROM partitions.days d WHERE d.day IS NOT NULL AND partitions.midnight(d.ends) <= until ORDER BY d.attached, d.place, d.day LOOP
        IF NOT x.attached THEN
            EXECUTE format('DROP TABLE partitions.%I', x.partition);
            partition := x.partition;
            dropped := true;
            RETURN;
        END IF;
        CONTINUE WHEN EXISTS (SELECT FROM open_deliveries WHERE id < partitions.first_id('dlv', partitions.midnight(x.ends)));
        BEGIN
            -- Whatever moves a delivery locks the table, so after this none of the day becomes open.
            EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', x.of);
            IF EXISTS (SELECT FROM open_deliveries WHERE id < partitions.first_id('dlv', partitions.midnight(x.ends))) THEN
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

-- +goose StatementBegin
-- Makes the table, which the caller has locked, the partition before the day of a new table of its name.
CREATE OR REPLACE FUNCTION partitions.divide(t record, cut date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    former text := t.name || to_char(cut, '_before_YYYYMMDD');
BEGIN
    EXECUTE format('ALTER TABLE public.%I RENAME TO %I', t.name, former);
    EXECUTE format('ALTER TABLE public.%I SET SCHEMA partitions', former);
    EXECUTE format('CREATE TABLE public.%I (LIKE partitions.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE) PARTITION BY RANGE (%I)',
        t.name, former, t.key);
    EXECUTE format('ALTER TABLE public.%I DROP CONSTRAINT IF EXISTS %I', t.name, former);
    CASE t.name
    WHEN 'deliveries' THEN
        ALTER TABLE public.deliveries ADD PRIMARY KEY (id), DROP CONSTRAINT deliveries_check, DROP CONSTRAINT deliveries_status_check;
        CREATE INDEX deliveries_of_address ON public.deliveries (webhook_id, seq);
        CREATE INDEX deliveries_kept ON public.deliveries (webhook_id, seq) WHERE status IN ('failed', 'held');
    WHEN 'attempts' THEN
        ALTER TABLE public.attempts ADD PRIMARY KEY (delivery_id, number);
    WHEN 'events' THEN
        ALTER TABLE public.events ADD PRIMARY KEY (id);
    END CASE;
    EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION partitions.%I FOR VALUES FROM (MINVALUE) TO (%L)',
        t.name, former, partitions.first_id(t.prefix, partitions.midnight(cut)));
    EXECUTE format('ALTER TABLE partitions.%I DROP CONSTRAINT IF EXISTS %1$I', former);
    -- What is removed row by row, and what the previous version has inserted. The place identifies a row of it.
    EXECUTE format('CREATE VIEW public.former_%I AS SELECT ctid, * FROM partitions.%I', t.name, former);
    IF t.name = 'deliveries' THEN
        CREATE OR REPLACE VIEW public.all_deliveries AS
            SELECT id, seq, event_id, webhook_id, record_id, status, attempts, attempts_before, next_attempt_at,
                last_status, last_error, created_at FROM public.open_deliveries
            UNION ALL
            SELECT id, seq, event_id, webhook_id, record_id, status, attempts, attempts_before, next_attempt_at,
                last_status, last_error, created_at FROM public.deliveries;
    END IF;
    IF t.name IN ('deliveries', 'attempts') THEN
        CREATE OR REPLACE VIEW public.all_attempts AS
            SELECT id AS delivery_id, 1 AS number, started_at, latency_ms, last_status AS status, NULL AS error, remote_ip, response_body
                FROM public.deliveries WHERE started_at IS NOT NULL
            UNION ALL
            SELECT delivery_id, number, started_at, latency_ms, status, error, remote_ip, response_body FROM public.attempts;
    END IF;
    PERFORM partitions.make((now() AT TIME ZONE 'UTC')::date, 8);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Takes the table, which exists, through its next step. The first one bounds it: writers are kept out for as
-- long as that takes, and rows are not read. Without any event, which is a new installation, it also divides
-- it at once. The second one, after the bound was validated, divides it. Transactions that use the table are
-- waited for in short portions, so that others do not wait behind.
CREATE OR REPLACE FUNCTION partitions.bound_or_divide(table_name text) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
DECLARE
    t record;
    today date := (now() AT TIME ZONE 'UTC')::date;
    bound record;
BEGIN
    IF EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = to_regclass('public.' || table_name)) THEN
        RETURN;
    END IF;
    SELECT * INTO STRICT t FROM partitions.tables() WHERE name = table_name;
    FOR try IN 1..1200 LOOP
        BEGIN
            EXECUTE format('LOCK TABLE public.%I IN ACCESS EXCLUSIVE MODE', t.name);
            SELECT conname, convalidated, to_date(right(conname, 8), 'YYYYMMDD') AS cut INTO bound
                FROM pg_constraint WHERE conrelid = ('public.' || t.name)::regclass AND conname LIKE '%\_before\_%';
            IF NOT EXISTS (SELECT FROM public.events) THEN
                PERFORM partitions.divide(t, today);
            ELSIF bound.convalidated AND bound.cut > today THEN
                PERFORM partitions.divide(t, bound.cut);
            ELSE
                -- A bound that an interrupted run left may be too near.
                IF bound.conname IS NOT NULL THEN
                    EXECUTE format('ALTER TABLE public.%I DROP CONSTRAINT %I', t.name, bound.conname);
                END IF;
                EXECUTE format('ALTER TABLE public.%I ADD CONSTRAINT %I CHECK (%I < %L) NOT VALID', t.name,
                    t.name || to_char(today + 3, '_before_YYYYMMDD'), t.key, partitions.first_id(t.prefix, partitions.midnight(today + 3)));
            END IF;
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF try = 1200 THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(0.05 + random() * 0.2);
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
-- Validates the bound, which reads the table without blocking writers.
CREATE OR REPLACE FUNCTION partitions.validate(table_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    bound text;
BEGIN
    SELECT conname INTO bound FROM pg_constraint
        WHERE conrelid = ('public.' || table_name)::regclass AND conname LIKE '%\_before\_%' AND NOT convalidated;
    IF FOUND THEN
        EXECUTE format('ALTER TABLE public.%I VALIDATE CONSTRAINT %I', table_name, bound);
    END IF;
END $$;
-- +goose StatementEnd

SELECT partitions.bound_or_divide('deliveries');
SELECT partitions.bound_or_divide('attempts');
SELECT partitions.bound_or_divide('events');
SELECT partitions.validate('deliveries');
SELECT partitions.validate('attempts');
SELECT partitions.validate('events');
SELECT partitions.bound_or_divide('deliveries');
SELECT partitions.bound_or_divide('attempts');
SELECT partitions.bound_or_divide('events');

DROP FUNCTION partitions.bound_or_divide;
DROP FUNCTION partitions.validate;
DROP FUNCTION partitions.divide;
