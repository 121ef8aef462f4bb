-- Events, webhook addresses, and the deliveries of the events to the addresses.

-- +goose Up

CREATE TABLE webhooks (
    id                    public_id PRIMARY KEY,
    organization_id       public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    integration_id        public_id NOT NULL REFERENCES integrations ON DELETE CASCADE,
    -- At most five addresses per integration (spec section 8), enforced by the unique key.
    place                 smallint NOT NULL CHECK (place BETWEEN 1 AND 5),
    url                   text NOT NULL CHECK (char_length(url) BETWEEN 1 AND 2048),
    events                text[] NOT NULL CHECK (events <@ ARRAY[
                              'work_order.created', 'work_order.updated', 'work_order.status_changed',
                              'work_order.completed', 'work_order.sent_to_inspection', 'work_order.cancelled',
                              'work_order.assignees_changed', 'issue.created', 'issue.resolved', 'ping']),
    secret_sealed         bytea NOT NULL,
    previous_secret       bytea,
    previous_secret_until timestamptz(3),
    enabled               boolean NOT NULL DEFAULT true,
    off_reason            text,
    off_at                timestamptz(3),
    created_at            timestamptz(3) NOT NULL,
    UNIQUE (integration_id, place),
    CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL)),
    CHECK (enabled = (off_at IS NULL) AND enabled = (off_reason IS NULL))
);
CREATE INDEX webhooks_of_organization ON webhooks (organization_id);

-- The health of an address, apart from its settings because it changes with the traffic.
CREATE TABLE webhook_health (
    webhook_id      public_id PRIMARY KEY REFERENCES webhooks ON DELETE CASCADE,
    last_success_at timestamptz(3),
    failing_since   timestamptz(3),
    warned_at       timestamptz(3)
);

-- The leases of dispatchers. Until attended_until the address's dispatcher polls for new deliveries, so
-- that writers need not wake its workflow. Losing this unlogged table costs only wakes.
CREATE UNLOGGED TABLE mailboxes (
    webhook_id     public_id PRIMARY KEY,
    attended_until timestamptz(3) NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE events (
    id              public_id PRIMARY KEY,
    organization_id public_id NOT NULL REFERENCES organizations ON DELETE CASCADE,
    type            text NOT NULL CHECK (type IN (
                        'work_order.created', 'work_order.updated', 'work_order.status_changed',
                        'work_order.completed', 'work_order.sent_to_inspection', 'work_order.cancelled',
                        'work_order.assignees_changed', 'issue.created', 'issue.resolved', 'ping')),
    record_id       public_id NOT NULL,
    actor_id        public_id NOT NULL,
    data            jsonb NOT NULL,
    created_at      timestamptz(3) NOT NULL
);
CREATE INDEX events_by_age ON events (created_at);

-- seq is taken while the record's row is locked, so it follows the order of the record's changes.
CREATE TABLE deliveries (
    id              public_id PRIMARY KEY,
    seq             bigint GENERATED ALWAYS AS IDENTITY,
    event_id        public_id NOT NULL REFERENCES events ON DELETE CASCADE,
    webhook_id      public_id NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    record_id       public_id NOT NULL,
    status          text NOT NULL CHECK (status IN ('pending', 'delivered', 'retrying', 'failed', 'held', 'skipped')),
    attempts        integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_attempt_at timestamptz(3),
    last_status     integer,
    last_error      text,
    created_at      timestamptz(3) NOT NULL,
    finished_at     timestamptz(3),
    UNIQUE (event_id, webhook_id),
    CHECK ((next_attempt_at IS NOT NULL) = (status = 'retrying'))
);
CREATE INDEX deliveries_pending ON deliveries (webhook_id, seq) WHERE status = 'pending';
CREATE INDEX deliveries_retrying ON deliveries (next_attempt_at) WHERE status = 'retrying';
CREATE INDEX deliveries_kept ON deliveries (webhook_id, seq) WHERE status IN ('failed', 'held');
CREATE INDEX deliveries_of_webhook ON deliveries (webhook_id, id);

CREATE TABLE attempts (
    delivery_id   public_id NOT NULL REFERENCES deliveries ON DELETE CASCADE,
    number        integer NOT NULL CHECK (number > 0),
    started_at    timestamptz(3) NOT NULL,
    latency_ms    integer NOT NULL CHECK (latency_ms >= 0),
    status        integer,
    error         text,
    remote_ip     text,
    response_body bytea CHECK (octet_length(response_body) <= 4096),
    PRIMARY KEY (delivery_id, number),
    CHECK ((status IS NULL) = (error IS NOT NULL))
);
