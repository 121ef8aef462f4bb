-- Lists of teams, of who has a permission definition, and of the work orders with a form are read along indexes. Building
-- them does not block writers.

-- +goose NO TRANSACTION
-- +goose Up

-- An earlier run may have left unfinished ones.
DROP INDEX CONCURRENTLY IF EXISTS identities_teams;
CREATE INDEX CONCURRENTLY identities_teams ON identities (organization_id, lower(name), id) WHERE kind = 'team' AND deleted_at IS NULL;
-- A change of a definition looks for its assignments, too.
DROP INDEX CONCURRENTLY IF EXISTS assignments_of_definition;
CREATE INDEX CONCURRENTLY assignments_of_definition ON assignments (definition_id, identity_id);
DROP INDEX CONCURRENTLY IF EXISTS work_orders_of_form;
CREATE INDEX CONCURRENTLY work_orders_of_form ON work_orders (form_id, id) WHERE form_id IS NOT NULL;
