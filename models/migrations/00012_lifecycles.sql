-- Work orders on hold.

-- +goose Up

-- The status a work order on hold resumes to.
ALTER TABLE work_orders
    ADD COLUMN held_from text CHECK (held_from IN ('open', 'in_progress', 'back_from_inspection')),
    ADD CHECK (held_from IS NULL OR status = 'on_hold');
