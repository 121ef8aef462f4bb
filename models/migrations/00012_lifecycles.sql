-- What putting work orders on hold needs.

-- +goose Up

-- Where a work order on hold goes on from when it is resumed.
ALTER TABLE work_orders
    ADD COLUMN held_from text CHECK (held_from IN ('open', 'in_progress', 'back_from_inspection')),
    ADD CHECK (held_from IS NULL OR status = 'on_hold');
