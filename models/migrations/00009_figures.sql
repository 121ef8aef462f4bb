-- What charts show: the attempts of an hour at an address and the calls of an hour of an integration, counted when they are
-- recorded. The rows are written every few seconds.

-- +goose Up

-- An attempt is counted by what followed it, by its response or the class of its error, and by its latency: up
-- to this many milliseconds, and more than the bound before.
CREATE TABLE delivery_hours (
    webhook_id public_id NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    hour timestamptz NOT NULL,
    delivered integer NOT NULL,
    retried integer NOT NULL,
    failed integer NOT NULL,
    responses_2xx integer NOT NULL,
    responses_3xx integer NOT NULL,
    responses_4xx integer NOT NULL,
    responses_5xx integer NOT NULL,
    timeout integer NOT NULL,
    connection_refused integer NOT NULL,
    unreachable integer NOT NULL,
    dns integer NOT NULL,
    tls integer NOT NULL,
    blocked_address integer NOT NULL,
    reset integer NOT NULL,
    bad_response integer NOT NULL,
    other integer NOT NULL,
    latency_5 integer NOT NULL,
    latency_10 integer NOT NULL,
    latency_20 integer NOT NULL,
    latency_35 integer NOT NULL,
    latency_50 integer NOT NULL,
    latency_75 integer NOT NULL,
    latency_100 integer NOT NULL,
    latency_150 integer NOT NULL,
    latency_250 integer NOT NULL,
    latency_400 integer NOT NULL,
    latency_600 integer NOT NULL,
    latency_1000 integer NOT NULL,
    latency_2000 integer NOT NULL,
    latency_4000 integer NOT NULL,
    latency_7000 integer NOT NULL,
    latency_10000 integer NOT NULL,
    latency_more integer NOT NULL,
    PRIMARY KEY (webhook_id, hour)
) WITH (fillfactor = 50);
CREATE INDEX delivery_hours_by_age ON delivery_hours (hour);
