package records

import (
	"context"
	"maps"
	"net/http"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/effects"
	"millwright/service/store"
)

// workOrderChange is an operation on a locked work order: what the rules read
// and what the operation has changed so far.
type workOrderChange struct {
	*store.Tx
	workOrderActor
	operation models.Operation
	// row is the work order as the change leaves it. The Change has what the two do not show.
	row WorkOrderRow
	effects.Change
}

// lockedWorkOrder is what the rules need to know of a work order and the actor.
type lockedWorkOrder struct {
	WorkOrderRow
	Readable bool
	// The record's organization and the actor's both count.
	organizationState
	// Grants are the actor's on the node.
	Grants []string
	// Incoming is true if the work order is assigned to the actor's organization, a
	// service company, and that the actor has incoming work orders there.
	Incoming bool
	// LastPosition is the place of the last of those assigned.
	LastPosition int
}

// heldFrom is the status to which a work order on hold returns, "" for others.
func (w *lockedWorkOrder) heldFrom() models.WorkOrderStatus {
	if w.HeldFrom == nil {
		return ""
	}
	return *w.HeldFrom
}

// lockedColumns are the columns of lockedWorkOrder for the work order w, the actor of the
// organization and its grants r.
func lockedColumns(people, actor, organization string) string {
	return WorkOrderColumns(people) + `,
		` + access.ReadableByGrants("w", actor, "r.grants") + ` AS readable, r.grants,
		` + bothOrganizations(organization) + `,
		w.organization_id <> ` + organization + `
			AND EXISTS (SELECT FROM work_order_assignees x WHERE x.work_order_id = w.id AND x.identity_id = ` + organization + `)
			AND ` + access.IncomingWorkOrders(actor) + ` AS incoming,
		(SELECT coalesce(max(x.position), 0) FROM work_order_assignees x WHERE x.work_order_id = w.id) AS last_position`
}

// grantsOfWorkOrder joins the grants r of the actor on the node of the work order w.
func grantsOfWorkOrder(actor string) string {
	return `CROSS JOIN LATERAL (SELECT ` + access.GrantsOn("w.inventory_id", actor) + ` AS grants OFFSET 0) r`
}

// lockedWorkOrders select a lockedWorkOrder, by whether the people in the record are shown.
var lockedWorkOrders = store.ByPeople(func(people string) string {
	return `SELECT ` + lockedColumns(people, "@actor", "@organization") + ` FROM work_orders w ` + grantsOfWorkOrder("@actor") + ` WHERE w.id = @id`
})

// changeWorkOrder runs one operation on a work order: it locks the row, reads what the rules need (read adds what
// only this operation needs; nil if nothing), checks what all operations have in common and who may do this one,
// applies the other rules, and queues the change with its effects. An operation without a change has no effects.
// OperationComplete sends a work order with consultants to their review.
// Errors: not_found, permission_denied (a suspended organization too), read_only (unless
// the operation's rule allows it), precondition_failed, not_assigned_as_worker (to answer),
// idempotency_key_reused, unavailable, and for a form of the console *FormDoneError and
// *FormStaleError.
func (s *Records) changeWorkOrder(
	ctx context.Context, actor store.Actor, key store.Key, id string, operation models.Operation,
	read func(*pgx.Batch), rules func(ctx context.Context, c *workOrderChange) error,
) (store.WriteResult, error) {
	if !models.IsID(id, models.PrefixWorkOrder) {
		return store.WriteResult{}, models.NotFound()
	}
	rule := operationRules[operation]
	locked := workOrderActor{acting: actor}
	return s.write(ctx, actor, key, http.StatusOK, store.Lock{Table: "work_orders", ID: id}, func(reading *pgx.Batch) {
		args := pgx.NamedArgs{"id": id, "actor": actor.IdentityID, "organization": actor.OrganizationID, "person": actor.Kind == models.KindPerson}
		store.QueueOne(reading, &locked.state, models.NotFound(), lockedWorkOrders[actor.ShowPeople], args)
		if rule.asMember {
			store.QueueOne(reading, &locked.workOrderMember, nil, memberQuery, args)
		}
		if read != nil {
			read(reading)
		}
	}, func(t *store.Tx) (string, any, error) {
		c := &workOrderChange{Tx: t, workOrderActor: locked, operation: operation, row: locked.state.WorkOrderRow}
		if operation == models.OperationComplete && len(c.state.Assigned.Consultants) > 0 {
			c.operation = models.OperationCompleteToReview
		}
		if !rule.decided {
			if !c.state.Readable {
				return "", nil, models.NotFound()
			}
			if err := c.state.requireWritable(rule.readOnly); err != nil {
				return "", nil, err
			}
		}
		if err := t.Matches(ctx, key, c.state.Shown(), c.state.OrganizationID, id); err != nil {
			return "", nil, err
		}
		if err := rule.permission(&c.workOrderActor); err != nil {
			return "", nil, err
		}
		t.After(c.state.ChangedAt)
		c.Change = effects.Change{Actor: actor, OrganizationID: c.state.OrganizationID, RecordID: id, Changes: models.JSON{}}
		if err := rules(ctx, c); err != nil {
			return "", nil, err
		}
		err := c.save()
		return id, c.row.Shown(), err
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
	move, err := c.state.Status.Apply(c.operation, c.state.heldFrom())
	if err != nil || !move.Changed() {
		return err
	}
	c.row.Status, c.row.HeldFrom = move.To, nil
	if move.HeldFrom != "" {
		c.row.HeldFrom = &move.HeldFrom
	}
	switch move.To {
	case models.StatusComplete:
		c.row.CompletedAt = &c.At
	case models.StatusCancelled:
		c.row.CancelledAt = &c.At
	default: // the other statuses have no column for their time
	}
	if move.To.Phase() == models.PhaseClosed {
		for _, identity := range c.state.Assigned.All() {
			if err := c.UpdateColumns(&models.WorkOrderAssignee{WorkOrderID: c.RecordID, IdentityID: identity, Closed: true}, "closed"); err != nil {
				return err
			}
		}
	}
	for _, event := range move.Events {
		c.Events = append(c.Events, effects.Event{Type: event, Data: models.JSON{"previous_status": move.From, "status": move.To}})
	}
	return nil
}

// save queues the change with its effects, nothing if nothing changed.
func (c *workOrderChange) save() error {
	maps.Copy(c.Changes, workOrderChanges(&c.state.WorkOrderRow, &c.row))
	if len(c.Changes) == 0 {
		return nil
	}
	c.row.ChangedAt = c.At
	c.RemovePositions(&c.state.WorkOrder, c.state.Assigned.All())
	if err := c.Update(c.state.WorkOrder, &c.row.WorkOrder); err != nil {
		return err
	}
	if c.Changes["title"] != nil || c.Changes["external_id"] != nil {
		if err := c.Upsert(c.row.WordsOfWorkOrder()); err != nil {
			return err
		}
	}
	c.AddPositions(&c.row.WorkOrder, c.row.Assigned.All())
	return effects.Queue(c.Tx, c.Change)
}
