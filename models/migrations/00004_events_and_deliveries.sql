-- Events, webhook addresses, and the deliveries of the events to the addresses.

-- +goose Up

CREATE TABLE webhooks (
    id                    public_id PRIMARY KEY,
    organization_id       public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    integration_id        public_id NOT NULL REFERENCES integrations ON DELETE CASCADE,
    -- At most five addresses per integration (api.md 6.1), enforced by the unique key.
    slot                  smallint NOT NULL CHECK (slot BETWEEN 1 AND 5),
    url                   text NOT NULL CHECK (char_length(url) BETWEEN 1 AND 2048),
    events                text[] NOT NULL CHECK (events <@ ARRAY[
                              'work_order.created', 'work_order.updated', 'work_order.status_changed',
                              'work_order.completed', 'work_order.sent_to_inspection', 'work_order.cancelled',
                              'work_order.assignees_changed', 'issue.created', 'issue.resolved', 'ping']),
    secret_sealed         bytea NOT NULL,
    -- The secrets before it, each of which signs until its time: at most two, so that no renewal cuts a
    -- receiver off (api.md 6.6).
    previous_secret       bytea,
    previous_secret_until timestamptz(3),
    older_secret          bytea,
    older_secret_until    timestamptz(3),
    enabled               boolean NOT NULL DEFAULT true,
    -- The shut-off period counts from here if no delivery succeeded since.
    enabled_since         timestamptz(3) NOT NULL,
    off_reason            text,
    off_at                timestamptz(3),
    -- The person who turned it off, NULL for the service and its operators. Histories of workflows
    -- have no words of people, so they have only the others' reasons.
    off_by                public_id,
    -- What was queued before is held: the address was off, and was turned on without it.
    held_before           timestamptz(3) NOT NULL DEFAULT 'epoch',
    created_at            timestamptz(3) NOT NULL,
    UNIQUE (integration_id, slot),
    CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL)),
    CHECK ((older_secret IS NULL) = (older_secret_until IS NULL)),
    CHECK (older_secret_until <= previous_secret_until),
    CHECK (enabled = (off_at IS NULL) AND enabled = (off_reason IS NULL) AND NOT (enabled AND off_by IS NOT NULL))
);
CREATE INDEX webhooks_of_organization ON webhooks (organization_id);

-- Whether an integration may use the service at all.
CREATE FUNCTION usable(i integrations, o organizations, p plans) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN i.enabled AND NOT i.disabled_by_service AND i.deleted_at IS NULL AND NOT o.suspended AND p.api;

-- The one place that decides whether an address sends: it is on, and its integration may use the service. An open
-- delivery to one that does not, or that was queued before held_before, is held: nothing is written when that changes.
CREATE VIEW sending AS
    SELECT w.id AS webhook_id, w.enabled AND usable(i, o, p) AS sends, w.held_before
    FROM webhooks w JOIN integrations i ON i.id = w.integration_id
    JOIN organizations o ON o.id = w.organization_id JOIN plans p ON p.organization_id = w.organization_id;

-- The health of an address, apart from its settings because it changes with the traffic.
CREATE TABLE webhook_health (
    webhook_id      public_id PRIMARY KEY REFERENCES webhooks ON DELETE CASCADE,
    last_success_at timestamptz(3),
    failing_since   timestamptz(3),
    warned_at       timestamptz(3),
    -- The last attempt.
    last_at         timestamptz(3),
    last_status     integer,
    last_error      text,
    -- Since the last success the last delivery that failed for good.
    failed_at       timestamptz(3),
    -- How many deliveries have failed first since the last success. Once they are many, pending ones wait until
    -- waits_until, then the oldest is tried.
    failures        integer NOT NULL DEFAULT 0,
    waits_until     timestamptz(3)
);

-- The leases of dispatchers. Until leased_until the address's dispatcher polls for new deliveries, so that
-- writers need not wake its workflow. A later epoch takes over from an earlier one; renewed_at is by the database's
-- clock. Losing this unlogged table costs only wakes.
CREATE UNLOGGED TABLE webhook_leases (
    webhook_id   public_id PRIMARY KEY,
    leased_until timestamptz(3) NOT NULL,
    epoch        bigint NOT NULL DEFAULT 0,
    owner        text NOT NULL DEFAULT '',
    renewed_at   timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
CREATE SEQUENCE lease_epochs;

-- Partitioned by the day of the id (00010_partitions.sql), like deliveries and attempts. An event is inserted by the
-- statement that inserts its deliveries.
CREATE TABLE events (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL,
    type            text NOT NULL CHECK (type IN (
                        'work_order.created', 'work_order.updated', 'work_order.status_changed',
                        'work_order.completed', 'work_order.sent_to_inspection', 'work_order.cancelled',
                        'work_order.assignees_changed', 'issue.created', 'issue.resolved', 'ping')),
    record_id       public_id NOT NULL,
    actor_id        public_id NOT NULL,
    data            jsonb NOT NULL,
    created_at      timestamptz(3) NOT NULL,
    -- The span of the call that caused the event, as a W3C traceparent; null if the call is not traced. A
    -- wake stands for many calls, so the link is stored with the event.
    trace_parent    text
) PARTITION BY RANGE (id);

-- Deliveries that are pending or retrying. Finishing one moves it to deliveries. docs/decisions/0024-open-deliveries.md
CREATE TABLE open_deliveries (
    id              public_id PRIMARY KEY,
    event_id        public_id NOT NULL,
    webhook_id      public_id NOT NULL,
    record_id       public_id NOT NULL,
    created_at      timestamptz(3) NOT NULL,
    -- The time of the event; of one that is sent although it is older than its address's held_before, that.
    queued_at       timestamptz(3) NOT NULL,
    next_attempt_at timestamptz(3),
    -- Raised by each redelivery: an attempt that began before one does not move the schedule.
    generation      integer NOT NULL DEFAULT 0,
    attempts        integer NOT NULL DEFAULT 0,
    -- Attempts before the current run of the retry schedule: a redelivery starts the schedule over.
    attempts_before integer NOT NULL DEFAULT 0,
    last_status     integer,
    status          text NOT NULL DEFAULT 'pending',
    last_error      text,
    -- Whether it has one of its address's places for open workflows (docs/temporal.md).
    workflow        boolean NOT NULL DEFAULT false,
    CHECK ((status = 'pending' AND next_attempt_at IS NULL) OR (status = 'retrying' AND next_attempt_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.5, autovacuum_analyze_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX open_deliveries_pending ON open_deliveries (webhook_id, queued_at, id) WHERE status = 'pending';
CREATE INDEX open_deliveries_retries ON open_deliveries (webhook_id, next_attempt_at) WHERE status = 'retrying';
CREATE INDEX open_deliveries_of_address ON open_deliveries (webhook_id, id) WHERE webhook_id IS NOT NULL;
CREATE INDEX open_deliveries_with_workflow ON open_deliveries (webhook_id, next_attempt_at) WHERE workflow;

-- Finished deliveries, which is only appended to, apart from redeliveries. One that succeeded with its first attempt
-- holds that attempt: its status is last_status. The attempts of others are in the table attempts.
CREATE TABLE deliveries (
    id              public_id PRIMARY KEY,
    event_id        public_id NOT NULL,
    webhook_id      public_id NOT NULL,
    record_id       public_id NOT NULL,
    status          text NOT NULL CHECK (status IN ('delivered', 'failed', 'skipped')),
    attempts        integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    attempts_before integer NOT NULL DEFAULT 0 CHECK (attempts_before BETWEEN 0 AND attempts),
    generation      integer NOT NULL DEFAULT 0,
    last_status     integer,
    last_error      text,
    created_at      timestamptz(3) NOT NULL,
    started_at      timestamptz(3),
    latency_ms      integer,
    remote_ip       text,
    response_body   bytea,
    -- True of failed ones whose workflow stays open.
    workflow        boolean NOT NULL DEFAULT false
) PARTITION BY RANGE (id);
-- The condition keeps look-ups by id alone from this index while the table is empty (docs/decisions/0032).
CREATE INDEX deliveries_of_address ON deliveries (webhook_id, id) WHERE webhook_id IS NOT NULL;
CREATE INDEX deliveries_kept ON deliveries (webhook_id, id) WHERE status = 'failed';
CREATE INDEX deliveries_with_workflow ON deliveries (webhook_id, id) WHERE workflow;

CREATE TABLE attempts (
    delivery_id   public_id NOT NULL,
    number        integer NOT NULL CHECK (number > 0),
    started_at    timestamptz(3) NOT NULL,
    latency_ms    integer NOT NULL CHECK (latency_ms >= 0),
    status        integer,
    error         text,
    -- The class of the error, for programs.
    class         text,
    remote_ip     text,
    response_body bytea CHECK (octet_length(response_body) <= 4096),
    PRIMARY KEY (delivery_id, number),
    CHECK ((status IS NULL) = (error IS NOT NULL))
) PARTITION BY RANGE (delivery_id);

-- For reading only: each delivery is in one of the tables, each attempt in one of two places.
CREATE VIEW all_deliveries AS
    SELECT d.id, d.event_id, d.webhook_id, d.record_id,
        CASE WHEN s.sends AND d.queued_at >= s.held_before THEN d.status ELSE 'held' END AS status,
        d.attempts, d.attempts_before, d.next_attempt_at, d.last_status, d.last_error, d.created_at, d.workflow
    FROM open_deliveries d LEFT JOIN sending s ON s.webhook_id = d.webhook_id
    UNION ALL
    SELECT id, event_id, webhook_id, record_id, status, attempts, attempts_before, NULL::timestamptz(3),
        last_status, last_error, created_at, workflow FROM deliveries;
CREATE VIEW all_attempts AS
    SELECT id AS delivery_id, 1 AS number, started_at, latency_ms, last_status AS status, NULL AS error, NULL AS class, remote_ip, response_body
        FROM deliveries WHERE started_at IS NOT NULL
    UNION ALL
    SELECT delivery_id, number, started_at, latency_ms, status, error, class, remote_ip, response_body FROM attempts;

-- Work on the deliveries of an address that a request only orders: it is done in batches afterwards.

-- Addresses that were deleted, until housekeeping has removed their deliveries, so far those up to removed_id. A write that
-- inserts a delivery locks the address, so that none appears after its address was deleted.
CREATE TABLE deleted_webhooks (
    webhook_id  public_id PRIMARY KEY,
    deleted_at  timestamptz(3) NOT NULL,
    removed_id  text NOT NULL DEFAULT ''
);

-- Redeliveries of all that match a search, which the dispatcher of the address continues.
CREATE TABLE redeliveries (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id public_id NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    -- What to redeliver (webhooks.redelivery), among the deliveries with ids below until_id.
    search     jsonb NOT NULL,
    until_id   text NOT NULL,
    -- The next batch begins after it.
    after_id   text NOT NULL DEFAULT '',
    created_at timestamptz(3) NOT NULL
);
CREATE INDEX redeliveries_of_webhook ON redeliveries (webhook_id, id);

-- The responses to tests of webhook addresses, for those who asked for the test. The worker sends them, and
-- workflow histories contain nothing that a receiver wrote.
CREATE TABLE webhook_tests (
    event_id      public_id PRIMARY KEY,
    webhook_id    public_id NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    begun_at      timestamptz(3) NOT NULL,
    started_at    timestamptz(3),
    latency_ms    bigint,
    status        integer,
    error         text,
    remote_ip     text,
    response_body bytea,
    CHECK (num_nonnulls(status, error) = num_nonnulls(latency_ms)),
    CHECK (latency_ms IS NULL OR started_at IS NOT NULL)
);
CREATE INDEX webhook_tests_by_age ON webhook_tests (begun_at);
CREATE INDEX webhook_tests_of_address ON webhook_tests (webhook_id);
