package records

import (
	"context"
	"net/http"
	"reflect"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/batch"
	"millwright/service/effects"
	"millwright/service/store"
)

// workOrderChange is an operation on a locked work order: what the rules read
// and what the operation has changed so far.
type workOrderChange struct {
	*store.Tx
	workOrderActor
	operation models.Operation
	rule      operationRule
	// row is the work order as the change leaves it.
	row WorkOrderRow
	// reload is true if row is to be loaded again after the change.
	reload bool
	// now is the time of the change, later than every earlier change of the record.
	now models.Time
	// columns are the changed columns of the row (changeColumn).
	columns map[string]any
	effects.Change
}

// lockedWorkOrder is what the rules need to know of a work order and the actor.
type lockedWorkOrder struct {
	WorkOrderRow
	// HeldFrom is the status to which a work order on hold returns, "" for others.
	HeldFrom models.WorkOrderStatus
	// CompletedBy is who completed the work, "" before that.
	CompletedBy string
	Readable    bool
	// The record's organization and the actor's both count.
	organizationState
	// Grants are the actor's on the node.
	Grants []string
	// Incoming is true if the work order is assigned to the actor's organization, a
	// service company, and that the actor has incoming work orders there.
	Incoming bool
	// Addresses bounds how many webhook addresses may get an event.
	Addresses int
}

var (
	lockWorkOrder = store.LockOf("work_orders")
	// lockedColumns are the columns of lockedWorkOrder for the work order w, the {actor} of the
	// {organization} and its grants r.
	lockedColumns = store.Fill(WorkOrderColumns, "w", "w") + `, coalesce(w.held_from, '') AS held_from, coalesce(w.completed_by, '') AS completed_by,
		` + store.Fill(access.ReadableByGrants, "w", "w", "grants", "r.grants") + ` AS readable, r.grants,
		` + bothOrganizations + `,
		w.organization_id <> {organization}
			AND EXISTS (SELECT FROM work_order_assignees x WHERE x.work_order_id = w.id AND x.identity_id = {organization})
			AND ` + access.IncomingWorkOrders + ` AS incoming,
		(SELECT count(*) FROM webhooks h WHERE h.organization_id = w.organization_id OR h.organization_id IN (
			SELECT s.company_id FROM service_companies s WHERE s.customer_id = w.organization_id
			UNION SELECT n.organization_id FROM work_order_assignees x
				JOIN identities n ON n.id = x.identity_id WHERE x.work_order_id = w.id)) AS addresses`
	// grantsOfWorkOrder joins the grants r of {actor} on the node of the work order w.
	grantsOfWorkOrder = `CROSS JOIN LATERAL (SELECT ` + store.Fill(access.GrantsOn, "node", "w.inventory_id") + ` AS grants OFFSET 0) r`
	// lockedWorkOrders are by whether the people in the record are shown.
	lockedWorkOrders = store.ByPeople(func(people string) *batch.Statement {
		return &batch.Statement{Stage: store.StageRules, ReadOnly: true, SQL: `
	SELECT u.nth, ` + store.Fill(lockedColumns, "actor", "u.actor", "organization", "u.organization", "people", people) + `
	FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY u (id, actor, organization, nth)
	CROSS JOIN LATERAL (SELECT * FROM work_orders WHERE id = u.id LIMIT 1) w
	` + store.Fill(grantsOfWorkOrder, "actor", "u.actor")}
	})
)

// changeWorkOrder runs one operation on a work order: it locks the row, checks
// what all operations have in common and who may do this one, applies the other rules, and
// queues the change with its effects. An operation without a change has no effects.
// OperationComplete sends a work order with consultants to their review.
// Errors: not_found, permission_denied (a suspended organization too), read_only (unless
// the operation's rule allows it), precondition_failed, not_assigned_as_worker (to answer),
// idempotency_key_reused, unavailable, and for a form of the console *FormDoneError and
// *FormStaleError.
func (s *Records) changeWorkOrder(
	ctx context.Context, actor store.Actor, key store.Key, id string, operation models.Operation,
	rules func(ctx context.Context, c *workOrderChange) error,
) (store.WriteResult, error) {
	if !models.IsID(id, models.PrefixWorkOrder) {
		return store.WriteResult{}, models.NotFound()
	}
	return s.write(ctx, actor, key, http.StatusOK, []string{id}, func(ctx context.Context, t *store.Tx) (string, any, error) {
		c := &workOrderChange{Tx: t, workOrderActor: workOrderActor{acting: actor}, operation: operation, rule: operationRules[operation], columns: map[string]any{}}
		t.QueueLock(lockWorkOrder, id)
		batch.QueueBulkOne(t.Tx, lockedWorkOrders[actor.ShowPeople], &c.state, models.NotFound(), id, actor.IdentityID, actor.OrganizationID)
		if err := t.Flush(ctx); err != nil {
			return "", nil, err
		}
		if operation == models.OperationComplete && len(c.state.Assigned.Consultants) > 0 {
			c.operation = models.OperationCompleteToReview
		}
		if !c.rule.decided {
			if !c.state.Readable {
				return "", nil, models.NotFound()
			}
			if err := c.state.requireWritable(c.rule.readOnly); err != nil {
				return "", nil, err
			}
		}
		if err := t.Matches(ctx, key, &c.state.WorkOrderRow, c.state.OrganizationID, id); err != nil {
			return "", nil, err
		}
		if err := c.permit(ctx); err != nil {
			return "", nil, err
		}
		c.now = t.At.After(c.state.ChangedAt)
		c.row = c.state.WorkOrderRow
		c.Change = effects.Change{
			Actor: actor, OrganizationID: c.state.OrganizationID, RecordID: id,
			Changes: models.JSON{}, Addresses: c.state.Addresses,
		}
		if err := rules(ctx, c); err != nil {
			return "", nil, err
		}
		if len(c.Changes) > 0 {
			if err := c.save(); err != nil {
				return "", nil, err
			}
		}
		if c.reload {
			batch.QueueBulkOne(t.Tx, WorkOrderReader.Unchecked[actor.ShowPeople], &c.row, nil, id)
			if err := t.Flush(ctx); err != nil {
				return "", nil, err
			}
		}
		return id, &c.row, nil
	})
}

// addNotice adds a notice for the workers, the consultants and the creator.
func (c *workOrderChange) addNotice(kind models.NoticeKind) {
	c.notify(kind, append(c.state.Assigned.All(), c.state.CreatedBy)...)
}

// notify adds a notice for the identities.
func (c *workOrderChange) notify(kind models.NoticeKind, identities ...string) {
	c.Notices = append(c.Notices, effects.Notice{Kind: string(kind), Identities: identities})
}

// apply moves the work order to the status that follows the operation,
// with its events. Errors: rule_violation (status).
func (c *workOrderChange) apply() error {
	move, err := c.state.Status.Apply(c.operation, c.state.HeldFrom)
	if err != nil {
		return err
	}
	if !move.Changed() {
		return nil
	}
	changeColumn(c, "status", &c.row.Status, move.To)
	if move.HeldFrom != c.state.HeldFrom {
		c.columns["held_from"] = store.TextOrNil(move.HeldFrom)
	}
	switch move.To {
	case models.StatusComplete:
		changeColumn(c, "completed_at", &c.row.CompletedAt, &c.now)
	case models.StatusCancelled:
		changeColumn(c, "cancelled_at", &c.row.CancelledAt, &c.now)
	default: // the other statuses have no column for their time
	}
	c.Changes["status"] = effects.FromTo(move.From, move.To)
	for _, event := range move.Events {
		c.Events = append(c.Events, effects.Event{Type: event, Data: models.JSON{"previous_status": move.From, "status": move.To}})
	}
	return nil
}

// changeColumn sets a field of the row and the column of its name.
func changeColumn[T any](c *workOrderChange, name string, field *T, value T) {
	*field = value
	c.columns[name] = value
}

// save queues the changed columns and the effects of the change.
func (c *workOrderChange) save() error {
	changeColumn(c, "changed_at", &c.row.ChangedAt, c.now)
	if err := c.Update(reflect.TypeFor[models.WorkOrder](), c.RecordID, c.columns); err != nil {
		return err
	}
	c.At = c.now
	return effects.Queue(c.Tx, c.Change)
}
