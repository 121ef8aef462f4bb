package store

import (
	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// Lists of changes are read from work_order_positions and assigned_positions, which have the change position of each
// work order, once more for each team, organization and integration that is assigned to it. Every write of a work order
// or of its assignees keeps them: the functions and statements here.
// Statements may be planned while the tables are empty, so look-ups have LATERAL … LIMIT 1 (IndexPlans).

const (
	addPositions = `
		WITH added AS (
			INSERT INTO work_order_positions (id, organization_id, inventory_id, created_by, changed_xid)
			VALUES (@id, @organization, @inventory, @creator, pg_current_xact_id()))
		INSERT INTO assigned_positions (identity_id, changed_xid, id)
		SELECT i.id, pg_current_xact_id(), @id
		FROM unnest(@assigned::text[]) a (id)
		CROSS JOIN LATERAL (SELECT id, kind FROM identities WHERE id = a.id LIMIT 1) i
		WHERE i.kind <> 'person'`
	removePositions = `
		WITH w AS (SELECT id, organization_id, changed_xid FROM work_orders WHERE id = @id),
		removed AS (
			DELETE FROM work_order_positions p
			USING w CROSS JOIN LATERAL (SELECT q.ctid FROM work_order_positions q
				WHERE q.organization_id = w.organization_id AND q.changed_xid = w.changed_xid AND q.id = w.id LIMIT 1) held
			WHERE p.ctid = held.ctid)
		DELETE FROM assigned_positions p
		USING w CROSS JOIN unnest(@assigned::text[]) a (id) CROSS JOIN LATERAL (SELECT q.ctid FROM assigned_positions q
			WHERE q.identity_id = a.id AND q.changed_xid = w.changed_xid AND q.id = w.id LIMIT 1) held
		WHERE p.ctid = held.ctid`
)

// AddPositions queues the positions of a work order that the transaction creates or changes, and of those assigned to it.
func (t *Tx) AddPositions(order *models.WorkOrder, assigned []string) {
	t.Queue(addPositions, pgx.NamedArgs{
		"id": order.ID, "organization": order.OrganizationID, "inventory": order.InventoryID, "creator": order.CreatedBy, "assigned": assigned,
	})
}

// RemovePositions queues the removal of the positions of a work order and of those assigned to it until now. It precedes
// the UPDATE of the work order, which still has its position.
func (t *Tx) RemovePositions(order *models.WorkOrder, assigned []string) {
	t.Queue(removePositions, pgx.NamedArgs{"id": order.ID, "assigned": assigned})
}

// MovePositions are parts of a statement whose part changed changes work orders and returns their ids: they give the
// positions of these work orders the id of the transaction. All parts see the work orders as they were before.
func MovePositions(changed string) string {
	return `positions AS (
		UPDATE work_order_positions p SET changed_xid = pg_current_xact_id()
		FROM ` + changed + ` c
		CROSS JOIN LATERAL (SELECT organization_id, changed_xid FROM work_orders WHERE id = c.id LIMIT 1) w
		CROSS JOIN LATERAL (SELECT q.ctid FROM work_order_positions q
			WHERE q.organization_id = w.organization_id AND q.changed_xid = w.changed_xid AND q.id = c.id LIMIT 1) held
		WHERE p.ctid = held.ctid
	), assigned AS (
		UPDATE assigned_positions p SET changed_xid = pg_current_xact_id()
		FROM ` + changed + ` c
		CROSS JOIN LATERAL (SELECT changed_xid FROM work_orders WHERE id = c.id LIMIT 1) w
		CROSS JOIN LATERAL (SELECT identity_id FROM work_order_assignees WHERE work_order_id = c.id OFFSET 0) x
		CROSS JOIN LATERAL (SELECT q.ctid FROM assigned_positions q
			WHERE q.identity_id = x.identity_id AND q.changed_xid = w.changed_xid AND q.id = c.id LIMIT 1) held
		WHERE p.ctid = held.ctid
	)`
}

// RebuildPositions makes the positions of all work orders from the work orders and their assignees, for writers that
// change many or do not keep positions: a restore into another cluster, tests and benchmarks.
const RebuildPositions = `
	WITH assigned AS (
		SELECT x.identity_id, w.changed_xid, w.id
		FROM work_order_assignees x JOIN work_orders w ON w.id = x.work_order_id JOIN identities i ON i.id = x.identity_id
		WHERE i.kind <> 'person'
	), stale AS (
		DELETE FROM work_order_positions p WHERE NOT EXISTS (SELECT FROM work_orders w
			WHERE w.id = p.id AND w.changed_xid = p.changed_xid AND w.organization_id = p.organization_id)
	), unassigned AS (
		DELETE FROM assigned_positions p WHERE NOT EXISTS (SELECT FROM assigned a
			WHERE a.id = p.id AND a.changed_xid = p.changed_xid AND a.identity_id = p.identity_id)
	), newly_assigned AS (
		INSERT INTO assigned_positions (identity_id, changed_xid, id)
		TABLE assigned EXCEPT SELECT identity_id, changed_xid, id FROM assigned_positions
	)
	INSERT INTO work_order_positions (id, organization_id, inventory_id, created_by, changed_xid)
	SELECT id, organization_id, inventory_id, created_by, changed_xid FROM work_orders
	EXCEPT SELECT id, organization_id, inventory_id, created_by, changed_xid FROM work_order_positions
	ON CONFLICT (organization_id, changed_xid, id)
		DO UPDATE SET inventory_id = excluded.inventory_id, created_by = excluded.created_by`
