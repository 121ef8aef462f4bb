package service

import (
	"context"
	"net/http"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// workOrderChange is a work order under change, locked, with what the rules need.
type workOrderChange struct {
	*tx
	actor Actor
	state lockedWorkOrder
	// now is the moment of the change: later than every earlier change of the record.
	now models.Time
	// columns are the columns that change.
	columns map[string]any
	effects
}

// lockedWorkOrder is what one query knows of the locked work order.
type lockedWorkOrder struct {
	models.WorkOrder
	// HeldFrom is the status to go back to, of a work order on hold.
	HeldFrom    models.WorkOrderStatus
	Assignees   []string
	Consultants []string
	Readable    bool
	// ReadOnly and Suspended are whether the record's or the actor's organization is.
	ReadOnly, Suspended bool
	Grants              []string
	// Incoming says that the work order came to the actor's organization, a
	// service company, and the actor has incoming work orders there.
	Incoming  bool
	Addresses int
}

var (
	lockWorkOrder    = lockOf("work_orders")
	lockedWorkOrders = &batch.Statement{Stage: stageRules, ReadOnly: true, SQL: `
	SELECT u.nth, w.id, w.organization_id, w.number, w.inventory_id, w.title, w.description, w.priority,
		w.target_date, w.form_id, w.external_id, w.status, w.cancel_reason, w.created_by,
		w.created_at, w.changed_at, w.completed_at, w.cancelled_at, coalesce(w.held_from, '') AS held_from,
		ARRAY(SELECT x.identity_id FROM work_order_assignees x
			WHERE x.work_order_id = w.id AND x.role = 'worker' ORDER BY x.position) AS assignees,
		ARRAY(SELECT x.identity_id FROM work_order_assignees x
			WHERE x.work_order_id = w.id AND x.role = 'consultant' ORDER BY x.position) AS consultants,
		` + with(readableByGrants, "w", "w", "actor", "u.actor", "grants", "r.grants") + ` AS readable, r.grants,
		(SELECT bool_or(o.read_only) FROM organizations o WHERE o.id IN (w.organization_id, u.organization)) AS read_only,
		(SELECT bool_or(o.suspended) FROM organizations o WHERE o.id IN (w.organization_id, u.organization)) AS suspended,
		w.organization_id <> u.organization
			AND EXISTS (SELECT FROM work_order_assignees x WHERE x.work_order_id = w.id AND x.identity_id = u.organization)
			AND EXISTS (SELECT FROM organization_rights o
				WHERE o.actor_id = u.actor AND 'incoming_work_orders' = ANY (o.grants)) AS incoming,
		(SELECT count(*) FROM webhooks h WHERE h.organization_id = w.organization_id OR h.organization_id IN (
			SELECT s.company_id FROM service_companies s WHERE s.customer_id = w.organization_id
			UNION SELECT n.organization_id FROM work_order_assignees x
				JOIN identities n ON n.id = x.identity_id WHERE x.work_order_id = w.id)) AS addresses
	FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY u (id, actor, organization, nth)
	JOIN work_orders w ON w.id = u.id
	CROSS JOIN LATERAL (SELECT ` + with(grantsOn, "node", "w.inventory_id", "actor", "u.actor") + ` AS grants OFFSET 0) r`}
)

// changeWorkOrder runs one operation on a work order: locks its row, checks what
// every operation has in common, lets rules decide, and leaves what a change
// leaves. An operation that changes nothing leaves nothing. Errors common to all:
// not_found, permission_denied (a suspended organization), read_only (unless
// allowed), precondition_failed, idempotency_key_reused, unavailable.
func (s *Service) changeWorkOrder(
	ctx context.Context, actor Actor, call Call, id string, allowReadOnly bool,
	rules func(ctx context.Context, c *workOrderChange) error,
) (WriteResult, error) {
	if !models.IsID(id, models.PrefixWorkOrder) {
		return WriteResult{}, models.NotFound()
	}
	return s.writeRecord(ctx, actor, call, http.StatusOK, []string{id}, func(ctx context.Context, t *tx) (string, func() any, error) {
		c := &workOrderChange{tx: t, actor: actor, columns: map[string]any{}}
		var before workOrderRow
		t.QueueLock(lockWorkOrder, id)
		batch.QueueBulkOne(t.Tx, lockedWorkOrders, &c.state, models.NotFound(), id, actor.IdentityID, actor.OrganizationID)
		if call.IfMatch != "" {
			t.queueWorkOrder(&before, id, actor)
		}
		if err := t.Flush(ctx); err != nil {
			return "", nil, err
		}
		if !c.state.Readable {
			return "", nil, models.NotFound()
		}
		if c.state.Suspended {
			return "", nil, suspended()
		}
		if c.state.ReadOnly && !allowReadOnly {
			return "", nil, models.Errorf(models.CodeReadOnly, "The organization is read-only: it takes no new work orders and no changes.")
		}
		if err := call.matches(before.record()); err != nil {
			return "", nil, err
		}
		c.now = t.at.After(c.state.ChangedAt)
		c.effects = effects{
			actor: actor, organizationID: c.state.OrganizationID, recordID: id,
			changes: models.JSON{}, addresses: c.state.Addresses,
		}
		if err := rules(ctx, c); err != nil {
			return "", nil, err
		}
		if len(c.changes) > 0 {
			if err := c.save(); err != nil {
				return "", nil, err
			}
		}
		var row workOrderRow
		t.queueWorkOrder(&row, id, actor)
		return id, func() any { return row.record() }, nil
	})
}

// suspended refuses whatever would be written in a suspended organization, or by
// one of it: its integrations have no tokens, its people nothing to do.
func suspended() error {
	return models.Errorf(models.CodePermissionDenied, "The organization is suspended: nothing of it changes.")
}

// requireGrant refuses an actor without the grant on the work order's node.
func (c *workOrderChange) requireGrant(grant models.Grant, what string) error {
	if c.hasGrant(grant) {
		return nil
	}
	return models.Errorf(models.CodePermissionDenied, "The %s may not %s on this node.", c.actor.Kind, what)
}

func (c *workOrderChange) hasGrant(grant models.Grant) bool {
	return slices.Contains(c.state.Grants, string(grant))
}

// queueManagers queues the reading of the nearest inventory managers of the work order's node.
func (c *workOrderChange) queueManagers(into *[]string) {
	c.QueueRows(func(rows pgx.Rows) error {
		managers, err := pgx.CollectRows(rows, pgx.RowTo[string])
		*into = managers
		return err
	}, `SELECT unnest(`+with(nearestManagers, "node", "$1")+`)`, c.state.InventoryID)
}

// managers are the nearest inventory managers of the work order's node.
func (c *workOrderChange) managers(ctx context.Context) ([]string, error) {
	var managers []string
	c.queueManagers(&managers)
	return managers, c.Flush(ctx)
}

// addNotice has the kind of notice go to the work order's creator, the nearest
// inventory managers and the identities.
func (c *workOrderChange) addNotice(kind models.NoticeKind, managers []string, identities ...string) {
	c.notices = append(c.notices, notice{string(kind), slices.Concat(identities, managers, []string{c.state.CreatedBy})})
}

// addNoticeToAll tells the work order's workers and consultants too.
func (c *workOrderChange) addNoticeToAll(ctx context.Context, kind models.NoticeKind) error {
	managers, err := c.managers(ctx)
	c.addNotice(kind, managers, slices.Concat(c.state.Assignees, c.state.Consultants)...)
	return err
}

// applyOperation applies the operation to the status, with its events.
func (c *workOrderChange) applyOperation(operation models.Operation) error {
	move, err := c.state.Status.Apply(operation, c.state.HeldFrom)
	if err != nil {
		return err
	}
	if !move.Changed() {
		return nil
	}
	c.columns["status"] = move.To
	if move.HeldFrom != c.state.HeldFrom {
		c.columns["held_from"] = textOrNil(move.HeldFrom)
	}
	switch move.To {
	case models.StatusComplete:
		c.columns["completed_at"] = c.now
	case models.StatusCancelled:
		c.columns["cancelled_at"] = c.now
	default: // no other status has a time of its own
	}
	c.changes["status"] = fromTo(move.From, move.To)
	for _, kind := range move.Events {
		c.events = append(c.events, domainEvent{kind: kind, data: models.JSON{"previous_status": move.From, "status": move.To}})
	}
	return nil
}

// textOrNil is nil, a null of the database, for no text.
func textOrNil[S ~string](text S) any {
	if text == "" {
		return nil
	}
	return string(text)
}

// save queues the changed columns and everything the change leaves.
func (c *workOrderChange) save() error {
	c.columns["changed_at"] = c.now
	if err := c.update(reflect.TypeFor[models.WorkOrder](), c.recordID, c.columns); err != nil {
		return err
	}
	c.at = c.now
	return c.queueEffects(c.effects)
}
