-- What tracing a delivery back to its call needs.

-- +goose Up

-- The span of the call that the event comes from, as a W3C traceparent; of calls whose trace is kept
-- alone. The mailbox that delivers the event is poked for many calls at once, so the link stands here.
ALTER TABLE events ADD COLUMN trace_parent text;
