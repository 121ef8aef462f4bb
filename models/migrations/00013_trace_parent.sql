-- Links a delivery's trace to the trace of its call.

-- +goose Up

-- The span of the call that caused the event, as a W3C traceparent; null if the call is not traced. A
-- wake stands for many calls, so the link is stored with the event.
ALTER TABLE events ADD COLUMN trace_parent text;
