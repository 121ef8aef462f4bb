-- Forms, work orders with their answers, and feedback.

-- +goose Up

CREATE TABLE forms (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    sort_key        folded NOT NULL DEFAULT '',
    words           tsvector NOT NULL DEFAULT '',
    created_at      timestamptz(3) NOT NULL,
    changed_at      timestamptz(3) NOT NULL,
    changed_xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- A retired form stays on its work orders, and new ones cannot have it.
    retired         boolean NOT NULL DEFAULT false,
    UNIQUE (organization_id, id)
);
CREATE INDEX forms_changes ON forms (organization_id, changed_xid, id);
CREATE INDEX forms_in_use ON forms (organization_id, id) WHERE NOT retired;
CREATE TRIGGER forms_position BEFORE UPDATE ON forms FOR EACH ROW EXECUTE FUNCTION set_change_position();

CREATE TABLE questions (
    id       public_id PRIMARY KEY,
    form_id  public_id NOT NULL REFERENCES forms ON DELETE CASCADE,
    position integer NOT NULL,
    label    text NOT NULL CHECK (char_length(label) BETWEEN 1 AND 1000),
    type     text NOT NULL CHECK (type IN ('single_choice', 'multiple_choice', 'integer', 'decimal', 'text')),
    required boolean NOT NULL,
    -- A retired question is asked no longer. Its answers stay.
    retired  boolean NOT NULL DEFAULT false,
    UNIQUE (form_id, id),
    UNIQUE (form_id, position) DEFERRABLE INITIALLY DEFERRED
);

CREATE TABLE question_options (
    id          public_id PRIMARY KEY,
    question_id public_id NOT NULL REFERENCES questions ON DELETE CASCADE,
    position    integer NOT NULL,
    label       text NOT NULL CHECK (char_length(label) BETWEEN 1 AND 1000),
    UNIQUE (question_id, position) DEFERRABLE INITIALLY DEFERRED
);

-- The order by target date, then by priority: twelve digits of seconds, one of the priority and the id. Without a date
-- it is the end of time.
CREATE FUNCTION due_key(target_date timestamptz, priority text, id public_id) RETURNS text IMMUTABLE PARALLEL SAFE
    RETURN (lpad(greatest(coalesce(floor(date_part('epoch', target_date - timestamptz '1970-01-01 00:00:00Z')), 999999999999), 0)::bigint::text, 12, '0')
        || CASE priority WHEN 'high' THEN '0' WHEN 'medium' THEN '1' WHEN 'low' THEN '2' ELSE '3' END || id) COLLATE "C";

-- Room on each page for the new version of a changed row. The rows that frequent writes insert have no foreign keys to
-- identities: each write has read those that it names.
CREATE TABLE work_orders (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL, -- implied by the foreign key to the node
    number          bigint NOT NULL CHECK (number > 0),
    inventory_id    public_id NOT NULL,
    title           text NOT NULL CHECK (char_length(title) BETWEEN 1 AND 200),
    description     text CHECK (char_length(description) <= 10000),
    priority        text NOT NULL CHECK (priority IN ('none', 'low', 'medium', 'high')),
    target_date     timestamptz(3),
    form_id         public_id,
    external_id     text CHECK (char_length(external_id) BETWEEN 1 AND 200),
    status          text NOT NULL CHECK (status IN ('open', 'in_progress', 'sent_to_inspection',
                        'back_from_inspection', 'complete', 'cancelled', 'on_hold')),
    -- The status that a work order on hold resumes to.
    held_from       text CHECK (held_from IN ('open', 'in_progress', 'back_from_inspection')),
    cancel_reason   text CHECK (char_length(cancel_reason) <= 1000),
    created_by      public_id NOT NULL,
    created_at      timestamptz(3) NOT NULL,
    changed_at      timestamptz(3) NOT NULL,
    completed_at    timestamptz(3),
    cancelled_at    timestamptz(3),
    -- Who completed the work, which someone else reviews. NULL until then, and again if it was sent back.
    completed_by    public_id,
    -- The feedback of which a person made it. No record shows it: the console's pages link both.
    feedback_id     public_id,
    changed_xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    FOREIGN KEY (organization_id, inventory_id) REFERENCES inventory_nodes (organization_id, id),
    FOREIGN KEY (organization_id, form_id) REFERENCES forms (organization_id, id),
    CHECK ((completed_at IS NOT NULL) = (status = 'complete')),
    CHECK ((cancelled_at IS NOT NULL) = (status = 'cancelled')),
    CHECK (cancel_reason IS NULL OR status = 'cancelled'),
    CHECK (completed_by IS NULL OR status IN ('sent_to_inspection', 'complete', 'cancelled')),
    CHECK (held_from IS NULL OR status = 'on_hold')
) WITH (fillfactor = 85);
CREATE INDEX work_orders_newest ON work_orders (organization_id, id);
-- One status in order, even a rare one.
CREATE INDEX work_orders_of_status ON work_orders (organization_id, status, id);
CREATE INDEX work_orders_by_node ON work_orders (inventory_id, id);
CREATE INDEX work_orders_of_node_status ON work_orders (inventory_id, status, id);
CREATE INDEX work_orders_by_creator ON work_orders (created_by, id) INCLUDE (inventory_id);
CREATE INDEX work_orders_external ON work_orders (organization_id, external_id, id) WHERE external_id IS NOT NULL;
CREATE INDEX work_orders_of_feedback ON work_orders (feedback_id, id) WHERE feedback_id IS NOT NULL;
CREATE INDEX work_orders_of_form ON work_orders (form_id, id) WHERE form_id IS NOT NULL;
-- Work orders in process, by when they are due. One expression, which no other index has: a plan of an empty table would
-- use any index of the organization or the node.
CREATE INDEX work_orders_due ON work_orders ((organization_id || due_key(target_date, priority, id)))
    WHERE status NOT IN ('complete', 'cancelled');
CREATE INDEX work_orders_due_of_node ON work_orders ((inventory_id || due_key(target_date, priority, id)))
    WHERE status NOT IN ('complete', 'cancelled');
CREATE TRIGGER work_orders_position BEFORE UPDATE ON work_orders FOR EACH ROW EXECUTE FUNCTION set_change_position();

-- The service takes the number before it inserts the row, so that it knows the record. Other writers leave it out.
-- +goose StatementBegin
CREATE FUNCTION number_work_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.number := nextval(('work_order_numbers.' || quote_ident(NEW.organization_id))::regclass);
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER work_orders_number BEFORE INSERT ON work_orders
    FOR EACH ROW WHEN (NEW.number IS NULL) EXECUTE FUNCTION number_work_order();

-- The primary key enforces the rule both_roles: an identity is worker or consultant of a work order, not both.
CREATE TABLE work_order_assignees (
    work_order_id public_id NOT NULL REFERENCES work_orders ON DELETE CASCADE,
    identity_id   public_id NOT NULL,
    role          text NOT NULL CHECK (role IN ('worker', 'consultant')),
    position      integer NOT NULL,
    closed        boolean NOT NULL DEFAULT false, -- the work order is complete or cancelled
    PRIMARY KEY (work_order_id, identity_id)
);
-- Lists of what is assigned to an identity name the condition, so nothing else uses this index: with the plan of an empty
-- table it would be read from end to end.
CREATE INDEX work_order_assignees_of_identity ON work_order_assignees (identity_id, work_order_id) WHERE position >= 0;
CREATE INDEX work_order_assignees_open ON work_order_assignees (identity_id, work_order_id) WHERE NOT closed;

-- Each work order by its last change; its writers keep it (service/store). An index of work_orders on changed_xid would
-- give every change new entries in all indexes of the table; without one, a change is a HOT update and adds two or
-- three here.
CREATE TABLE work_order_positions (
    id              public_id NOT NULL,
    organization_id public_id NOT NULL,
    inventory_id    public_id NOT NULL,
    created_by      public_id NOT NULL,
    changed_xid     xid8 NOT NULL,
    PRIMARY KEY (organization_id, changed_xid, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX work_order_positions_of_node ON work_order_positions (inventory_id, changed_xid, id);
CREATE INDEX work_order_positions_created_by ON work_order_positions (created_by, changed_xid, id);

-- Each work order by its last change, once for each team, organization and integration that is assigned to it, kept in
-- the same way. People do not list changes.
CREATE TABLE assigned_positions (
    identity_id public_id NOT NULL,
    changed_xid xid8 NOT NULL,
    id          public_id NOT NULL,
    PRIMARY KEY (identity_id, changed_xid, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE answers (
    work_order_id public_id NOT NULL REFERENCES work_orders ON DELETE CASCADE,
    question_id   public_id NOT NULL REFERENCES questions,
    value         jsonb NOT NULL,
    answered_at   timestamptz(3) NOT NULL,
    answered_by   public_id NOT NULL REFERENCES identities,
    PRIMARY KEY (work_order_id, question_id)
);

CREATE TABLE feedback (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL,
    inventory_id    public_id NOT NULL,
    subject         text NOT NULL CHECK (char_length(subject) BETWEEN 1 AND 200),
    description     text CHECK (char_length(description) <= 10000),
    external_id     text CHECK (char_length(external_id) BETWEEN 1 AND 200),
    external_key    folded,
    words           tsvector NOT NULL DEFAULT '',
    status          text NOT NULL CHECK (status IN ('open', 'resolved')),
    created_by      public_id NOT NULL,
    created_at      timestamptz(3) NOT NULL,
    changed_at      timestamptz(3) NOT NULL,
    resolved_at     timestamptz(3),
    changed_xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT feedback_external_id UNIQUE (organization_id, external_key),
    FOREIGN KEY (organization_id, inventory_id) REFERENCES inventory_nodes (organization_id, id),
    CHECK ((resolved_at IS NOT NULL) = (status = 'resolved'))
);
CREATE INDEX feedback_newest ON feedback (organization_id, id);
CREATE INDEX feedback_changes ON feedback (organization_id, changed_xid, id);
CREATE INDEX feedback_of_node ON feedback (inventory_id, id) INCLUDE (changed_xid);
CREATE INDEX feedback_of_node_changes ON feedback (inventory_id, changed_xid, id);
CREATE INDEX feedback_of_status ON feedback (organization_id, status, id);
CREATE INDEX feedback_of_node_status ON feedback (inventory_id, status, id);
CREATE INDEX feedback_of_creator ON feedback (organization_id, created_by, id);
CREATE INDEX feedback_of_node_creator ON feedback (inventory_id, created_by, id);
CREATE INDEX feedback_words ON feedback USING gin (words) WITH (fastupdate = off);
CREATE TRIGGER feedback_position BEFORE UPDATE ON feedback FOR EACH ROW EXECUTE FUNCTION set_change_position();

-- Comments on work orders and feedback. The log has the line about each, with its id and without its text, which an
-- administrator may remove. Comments stay as long as their record; the write has read it, so they have no foreign keys.
CREATE TABLE comments (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL, -- the record's
    record_id       public_id NOT NULL,
    -- NULL if it was removed.
    text            text CHECK (char_length(text) BETWEEN 1 AND 10000),
    created_by      public_id NOT NULL,
    created_at      timestamptz(3) NOT NULL
);

-- The words of numbers, external ids and titles, for the search of the console. A separate table and not a column,
-- since changes of other columns must not write to the index.
CREATE TABLE work_order_words (
    id    public_id PRIMARY KEY REFERENCES work_orders ON DELETE CASCADE,
    words tsvector NOT NULL
);
-- Without a list of pending entries: searches would read all of it, and the write that finds it full would move it.
CREATE INDEX work_order_words_of_work_orders ON work_order_words USING gin (words) WITH (fastupdate = off);

-- Records, addresses and deliveries that their workflow has not reloaded since a write, which inserts the row. The workflow
-- deletes it when it reloads. The sweep wakes the workflows of rows that stay.
CREATE TABLE dirty_records (
    record_id public_id PRIMARY KEY,
    since     timestamptz(3) NOT NULL
);
CREATE INDEX dirty_records_by_age ON dirty_records (since);

-- Identities that can no longer act (people who are deactivated, integrations that are turned off, disabled or deleted),
-- with their teams, and teams that are deleted or lose a member: housekeeping marks their open work as dirty, so that the
-- workflows find out whether anyone else can do it. reached is the last work order it looked at. Before that, replaced_by
-- replaces a person on open work orders, as actor_id decided, for whom an operator may have acted.
CREATE TABLE inactivated_identities (
    identity_id public_id PRIMARY KEY,
    reached     text COLLATE "C" NOT NULL DEFAULT '',
    replaced_by public_id,
    actor_id    public_id,
    operated    boolean NOT NULL DEFAULT false,
    CHECK (replaced_by IS NULL OR actor_id IS NOT NULL)
);
