package records

import (
	"context"
	"slices"

	"millwright/models"
	"millwright/service/batch"
	"millwright/service/effects"
	"millwright/service/people"
	"millwright/service/store"
)

// AssignWorkOrder adds workers and consultants (spec section 4, rules 3 and 5)
// and returns the work order. Naming an identity that already has the role
// has no effect. Errors: permission_denied, validation_failed, rule_violation
// (both_roles, assignee_inactive, assignee_not_connected, status) and changeWorkOrder's.
func (s *Records) AssignWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id string, assignees, consultants []string) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, call, id, ActionAssign, func(ctx context.Context, c *workOrderChange) error {
		named := candidates{assignees: assignees, consultants: consultants}
		c.queueCandidates(&named)
		if err := c.Flush(ctx); err != nil {
			return err
		}
		if err := named.check(c.state.Assigned.Assignees, c.state.Assigned.Consultants); err != nil {
			return err
		}
		added := people.Roles{
			Assignees:   difference(assignees, c.state.Assigned.Assignees),
			Consultants: difference(consultants, c.state.Assigned.Consultants),
		}
		return c.reassign(added, people.Roles{Assignees: []string{}, Consultants: []string{}})
	})
}

// UnassignWorkOrder removes an identity from a work order and returns the work
// order. Errors: not_found if it is not assigned, permission_denied,
// rule_violation (last_worker, status) and changeWorkOrder's.
func (s *Records) UnassignWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id, identity string) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, call, id, ActionAssign, func(ctx context.Context, c *workOrderChange) error {
		removed := people.Roles{Assignees: []string{}, Consultants: []string{}}
		switch {
		case slices.Contains(c.state.Assigned.Assignees, identity):
			removed.Assignees = []string{identity}
		case slices.Contains(c.state.Assigned.Consultants, identity):
			removed.Consultants = []string{identity}
		default:
			return models.NotFound()
		}
		own, err := c.isOwn(ctx, identity)
		if err == nil {
			err = c.checkUnassign(identity, own)
		}
		if err != nil {
			return err
		}
		return c.reassign(people.Roles{Assignees: []string{}, Consultants: []string{}}, removed)
	})
}

// difference returns the ids that are not among the others, never nil.
func difference(ids, others []string) []string {
	rest := []string{}
	for _, id := range ids {
		if !slices.Contains(others, id) {
			rest = append(rest, id)
		}
	}
	return rest
}

// isOwn reports whether the identity belongs to the actor's organization, which matters
// for a service company.
func (c *workOrderChange) isOwn(ctx context.Context, identity string) (bool, error) {
	if !c.forCustomer() {
		return true, nil
	}
	var own []struct{ ID string }
	batch.QueueAll(c.Tx.Tx, &own, `SELECT id FROM identities WHERE id = $1 AND organization_id = $2`, identity, c.Actor.OrganizationID)
	err := c.Flush(ctx)
	return len(own) > 0, err
}

// reassign queues the change of roles and adds its effects. Errors: rule_violation (status).
func (c *workOrderChange) reassign(added, removed people.Roles) error {
	if len(added.All())+len(removed.All()) == 0 {
		return nil
	}
	if _, err := c.state.Status.Apply(models.OperationForward, c.state.HeldFrom); err != nil {
		return err
	}
	if gone := removed.All(); len(gone) > 0 {
		c.Queue(`DELETE FROM work_order_assignees WHERE work_order_id = $1 AND identity_id = ANY ($2)`, c.RecordID, gone)
	}
	for role, ids := range map[models.Role][]string{models.RoleWorker: added.Assignees, models.RoleConsultant: added.Consultants} {
		if len(ids) == 0 {
			continue
		}
		c.Queue(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
			SELECT $1::text, id, $2::text, n + (SELECT coalesce(max(position), 0) FROM work_order_assignees WHERE work_order_id = $1::text)
			FROM unnest($3::text[]) WITH ORDINALITY AS named (id, n)`, c.RecordID, role, ids)
	}
	c.reload = true // the record names the people of other identities now
	c.Action = string(models.EventWorkOrderAssigneesChanged)
	before := c.state.Assigned
	after := people.Roles{
		Assignees:   append(difference(before.Assignees, removed.Assignees), added.Assignees...),
		Consultants: append(difference(before.Consultants, removed.Consultants), added.Consultants...),
	}
	if len(added.Assignees)+len(removed.Assignees) > 0 {
		c.Changes["assignees"] = effects.FromTo(before.Assignees, after.Assignees)
	}
	if len(added.Consultants)+len(removed.Consultants) > 0 {
		c.Changes["consultants"] = effects.FromTo(before.Consultants, after.Consultants)
	}
	c.Events = []effects.DomainEvent{{Kind: models.EventWorkOrderAssigneesChanged, Data: models.JSON{"added": added, "removed": removed}}}
	c.Notices = []effects.Notice{
		{Kind: "work_order.assigned", Identities: added.Assignees},
		{Kind: "work_order.consulted", Identities: added.Consultants},
		{Kind: "work_order.unassigned", Identities: removed.All()},
	}
	return nil
}
