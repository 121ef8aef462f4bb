-- Forms, work orders with their answers, feedback, and the history, log and notices of their changes.

-- +goose Up

CREATE TABLE forms (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name            text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    created_at      timestamptz(3) NOT NULL,
    changed_at      timestamptz(3) NOT NULL,
    changed_xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    UNIQUE (organization_id, id)
);
CREATE INDEX forms_changes ON forms (organization_id, changed_xid, id);
CREATE TRIGGER forms_stamp BEFORE UPDATE ON forms FOR EACH ROW EXECUTE FUNCTION stamp_change();

CREATE TABLE questions (
    id       public_id PRIMARY KEY,
    form_id  public_id NOT NULL REFERENCES forms ON DELETE CASCADE,
    position integer NOT NULL,
    label    text NOT NULL CHECK (char_length(label) BETWEEN 1 AND 1000),
    type     text NOT NULL CHECK (type IN ('single_choice', 'multiple_choice', 'integer', 'decimal', 'text')),
    required boolean NOT NULL,
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

CREATE TABLE work_orders (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
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
    cancel_reason   text CHECK (char_length(cancel_reason) <= 1000),
    created_by      public_id NOT NULL REFERENCES identities,
    created_at      timestamptz(3) NOT NULL,
    changed_at      timestamptz(3) NOT NULL,
    completed_at    timestamptz(3),
    cancelled_at    timestamptz(3),
    changed_xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    UNIQUE (organization_id, number),
    FOREIGN KEY (organization_id, inventory_id) REFERENCES inventory_nodes (organization_id, id),
    FOREIGN KEY (organization_id, form_id) REFERENCES forms (organization_id, id),
    CHECK ((completed_at IS NOT NULL) = (status = 'complete')),
    CHECK ((cancelled_at IS NOT NULL) = (status = 'cancelled')),
    CHECK (cancel_reason IS NULL OR status = 'cancelled')
);
CREATE INDEX work_orders_newest ON work_orders (organization_id, id);
CREATE INDEX work_orders_changes ON work_orders (organization_id, changed_xid, id);
-- Covers a page of a list, so that sorting costs nothing.
CREATE INDEX work_orders_of_node ON work_orders (inventory_id, id) INCLUDE (changed_xid);
CREATE INDEX work_orders_of_node_changes ON work_orders (inventory_id, changed_xid, id);
CREATE INDEX work_orders_external ON work_orders (organization_id, external_id, id) WHERE external_id IS NOT NULL;
CREATE INDEX work_orders_created_by ON work_orders (created_by, id) INCLUDE (changed_xid, inventory_id);
CREATE TRIGGER work_orders_stamp BEFORE UPDATE ON work_orders FOR EACH ROW EXECUTE FUNCTION stamp_change();

-- The number is set with the row, so a rejected or replayed creation takes none.
-- +goose StatementBegin
CREATE FUNCTION number_work_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.number := nextval(('work_order_numbers.' || quote_ident(NEW.organization_id))::regclass);
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER work_orders_number BEFORE INSERT ON work_orders FOR EACH ROW EXECUTE FUNCTION number_work_order();

-- The primary key enforces the rule both_roles: an identity is worker or consultant of a work order, not both.
CREATE TABLE work_order_assignees (
    work_order_id public_id NOT NULL REFERENCES work_orders ON DELETE CASCADE,
    identity_id   public_id NOT NULL REFERENCES identities,
    role          text NOT NULL CHECK (role IN ('worker', 'consultant')),
    position      integer NOT NULL,
    PRIMARY KEY (work_order_id, identity_id)
);
CREATE INDEX work_order_assignees_of_identity ON work_order_assignees (identity_id, work_order_id);

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
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    inventory_id    public_id NOT NULL,
    subject         text NOT NULL CHECK (char_length(subject) BETWEEN 1 AND 200),
    description     text CHECK (char_length(description) <= 10000),
    external_id     text CHECK (char_length(external_id) BETWEEN 1 AND 200),
    status          text NOT NULL CHECK (status IN ('open', 'resolved')),
    created_by      public_id NOT NULL REFERENCES identities,
    created_at      timestamptz(3) NOT NULL,
    changed_at      timestamptz(3) NOT NULL,
    resolved_at     timestamptz(3),
    changed_xid     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT feedback_external_id UNIQUE (organization_id, external_id),
    FOREIGN KEY (organization_id, inventory_id) REFERENCES inventory_nodes (organization_id, id),
    CHECK ((resolved_at IS NOT NULL) = (status = 'resolved'))
);
CREATE INDEX feedback_newest ON feedback (organization_id, id);
CREATE INDEX feedback_changes ON feedback (organization_id, changed_xid, id);
CREATE INDEX feedback_of_node ON feedback (inventory_id, id) INCLUDE (changed_xid);
CREATE TRIGGER feedback_stamp BEFORE UPDATE ON feedback FOR EACH ROW EXECUTE FUNCTION stamp_change();

-- The changes of a record, {"field": {"from": …, "to": …}}, in the order of id.
CREATE TABLE history (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    record_id       public_id NOT NULL,
    actor_id        public_id NOT NULL REFERENCES identities,
    action          text NOT NULL,
    changes         jsonb NOT NULL,
    created_at      timestamptz(3) NOT NULL
);
CREATE INDEX history_of_record ON history (record_id, id);

-- The organization's Log Records; actor_name is the name at the time, with "(API)" after an integration's.
CREATE TABLE log_records (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    actor_id        public_id NOT NULL REFERENCES identities,
    actor_name      text NOT NULL,
    action          text NOT NULL,
    record_id       public_id NOT NULL,
    created_at      timestamptz(3) NOT NULL
);
CREATE INDEX log_records_of_organization ON log_records (organization_id, id);

-- Notices to people about changes: in the app's inbox at once, and by e-mail.
CREATE TABLE notices (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    person_id       public_id NOT NULL REFERENCES people ON DELETE CASCADE,
    kind            text NOT NULL,
    record_id       public_id NOT NULL,
    created_at      timestamptz(3) NOT NULL,
    read_at         timestamptz(3),
    mailed_at       timestamptz(3)
);
CREATE INDEX notices_of_person ON notices (person_id, id);
CREATE INDEX notices_to_mail ON notices (record_id, id) WHERE mailed_at IS NULL;
