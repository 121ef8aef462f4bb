-- What charts show of calls: those of an hour of an integration, counted when they are admitted or rejected.

-- +goose Up

-- The row is written every few seconds.
CREATE TABLE call_hours (
    integration_id public_id NOT NULL REFERENCES integrations ON DELETE CASCADE,
    hour timestamptz NOT NULL,
    calls integer NOT NULL,
    -- Calls over the limit.
    rejected integer NOT NULL,
    PRIMARY KEY (integration_id, hour)
) WITH (fillfactor = 50);
CREATE INDEX call_hours_by_age ON call_hours (hour);
