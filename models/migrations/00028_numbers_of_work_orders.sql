-- The program takes the number of a work order before it inserts it, so that it knows the record.

-- +goose Up

-- Programs of earlier versions insert a work order without its number.
CREATE OR REPLACE TRIGGER work_orders_number BEFORE INSERT ON work_orders
    FOR EACH ROW WHEN (NEW.number IS NULL) EXECUTE FUNCTION number_work_order();
