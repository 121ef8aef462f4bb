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

// AssignWorkOrder adds workers and consultants (api.md 4.3 and 4.5)
// and returns the work order. Naming an identity that already has the role
// has no effect. A service company names only workers. Errors: permission_denied, validation_failed, rule_violation
// (both_roles, assignee_inactive, assignee_not_connected, own_work, status) and changeWorkOrder's.
func (s *Records) AssignWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id string, assignees, consultants []string) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationAssign, func(ctx context.Context, c *workOrderChange) error {
		added, err := c.added(ctx, candidates{assignees: assignees, consultants: consultants})
		if err != nil {
			return err
		}
		return c.reassign(ctx, added, people.Roles{Assignees: []string{}, Consultants: []string{}})
	})
}

// ReplaceWorkers assigns workers instead of the present ones, and returns the work order. A
// service company replaces only its own people. Errors: AssignWorkOrder's, and rule_violation
// (last_worker) without workers.
func (s *Records) ReplaceWorkers(ctx context.Context, actor store.Actor, key store.Key, id string, workers []string) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationAssign, func(ctx context.Context, c *workOrderChange) error {
		if len(workers) == 0 {
			return models.Violation(models.RuleLastWorker, "A work order needs at least one worker. Choose who replaces the present ones.")
		}
		added, err := c.added(ctx, candidates{assignees: workers})
		if err != nil {
			return err
		}
		removed := people.Roles{Assignees: []string{}, Consultants: []string{}}
		for _, identity := range difference(c.state.Assigned.Assignees, workers) {
			own, err := c.isOwn(ctx, identity)
			if err != nil {
				return err
			}
			if own && identity != c.acting.OrganizationID { // which returns the work order to its customer
				removed.Assignees = append(removed.Assignees, identity)
			}
		}
		return c.reassign(ctx, added, removed)
	})
}

// ReplaceAssignee assigns the replacement in the role of a person who left, by the rules of
// AssignWorkOrder. It has no effect if that person is not assigned. Errors: AssignWorkOrder's.
func ReplaceAssignee(ctx context.Context, s *store.Store, actor store.Actor, id, person, replacement string) error {
	_, err := New(s).changeWorkOrder(ctx, actor, store.NoKey, id, models.OperationAssign, func(ctx context.Context, c *workOrderChange) error {
		removed := c.roleOf(person)
		c.Decided = true
		var named candidates
		switch {
		case len(removed.Assignees) > 0:
			named.assignees = []string{replacement}
		case len(removed.Consultants) > 0:
			named.consultants = []string{replacement}
		default:
			return nil
		}
		// checkUnassign has nothing to reject: the role keeps someone, and the person is the actor's colleague.
		added, err := c.added(ctx, named)
		if err != nil {
			return err
		}
		return c.reassign(ctx, added, removed)
	})
	return err
}

// added checks those who are named and returns those who do not have the role yet. Errors:
// permission_denied, validation_failed, rule_violation (both_roles, assignee_inactive, assignee_not_connected).
func (c *workOrderChange) added(ctx context.Context, named candidates) (people.Roles, error) {
	if c.forCustomer() && len(named.consultants) > 0 {
		return people.Roles{}, models.Errorf(models.CodePermissionDenied, "A service company forwards a work order to workers. Only its customer names consultants.")
	}
	c.queueCandidates(&named)
	if err := c.Flush(ctx); err != nil {
		return people.Roles{}, err
	}
	assigned := c.state.Assigned
	named.Known = append(named.Known, assigned.All()...) // an actor that reads the work order knows its assignees
	return people.Roles{
		Assignees:   difference(named.assignees, assigned.Assignees),
		Consultants: difference(named.consultants, assigned.Consultants),
	}, named.check(assigned.Assignees, assigned.Consultants)
}

// roleOf returns the identity in its role, in no role if it is not assigned.
func (c *workOrderChange) roleOf(identity string) people.Roles {
	role := people.Roles{Assignees: []string{}, Consultants: []string{}}
	switch {
	case slices.Contains(c.state.Assigned.Assignees, identity):
		role.Assignees = []string{identity}
	case slices.Contains(c.state.Assigned.Consultants, identity):
		role.Consultants = []string{identity}
	}
	return role
}

// UnassignWorkOrder removes an identity from a work order and returns the work
// order. Errors: not_found if it is not assigned, permission_denied,
// rule_violation (last_worker, own_work, status) and changeWorkOrder's.
func (s *Records) UnassignWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id, identity string) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationAssign, func(ctx context.Context, c *workOrderChange) error {
		removed := c.roleOf(identity)
		if len(removed.All()) == 0 {
			return models.NotFound()
		}
		own, err := c.isOwn(ctx, identity)
		if err == nil {
			err = c.checkUnassign(identity, own)
		}
		if err != nil {
			return err
		}
		return c.reassign(ctx, people.Roles{Assignees: []string{}, Consultants: []string{}}, removed)
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

// ownReviewQuery selects whether no one but $1 could review as one of the consultants $2.
var ownReviewQuery = `SELECT ` + store.Fill(onlyReviewer, "actor", "$1", "identities", "$2::text[]") + ` AS own`

// isOwnReview reports whether the work order is in review and, of the consultants, no one but who
// completed it could review it.
func (c *workOrderChange) isOwnReview(ctx context.Context, consultants []string) (bool, error) {
	if c.state.Status != models.StatusSentToInspection {
		return false, nil
	}
	var found struct{ Own bool }
	batch.QueueOne(c.Tx.Tx, &found, nil, ownReviewQuery, c.state.CompletedBy, consultants)
	err := c.Flush(ctx)
	return found.Own, err
}

// reassign queues the change of roles and adds its effects. Errors: rule_violation (own_work, status).
func (c *workOrderChange) reassign(ctx context.Context, added, removed people.Roles) error {
	if len(added.All())+len(removed.All()) == 0 {
		return nil
	}
	if _, err := c.state.Status.Apply(models.OperationAssign, c.state.HeldFrom); err != nil {
		return err
	}
	before := c.state.Assigned
	after := people.Roles{
		Assignees:   append(difference(before.Assignees, removed.Assignees), added.Assignees...),
		Consultants: append(difference(before.Consultants, removed.Consultants), added.Consultants...),
	}
	if len(added.Consultants)+len(removed.Consultants) > 0 {
		own, err := c.isOwnReview(ctx, after.Consultants)
		if err != nil {
			return err
		}
		if own {
			return models.Violation(models.RuleOwnWork,
				"Who completed a work order does not review it, and no other active person would be its consultant. Name another consultant.").About(c.state.CompletedBy)
		}
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
	if len(added.Assignees)+len(removed.Assignees) > 0 {
		c.Changes["assignees"] = effects.FromTo(before.Assignees, after.Assignees)
	}
	if len(added.Consultants)+len(removed.Consultants) > 0 {
		c.Changes["consultants"] = effects.FromTo(before.Consultants, after.Consultants)
	}
	c.Events = []effects.Event{{Type: models.EventWorkOrderAssigneesChanged, Data: models.JSON{"added": added, "removed": removed}}}
	if slices.Contains(models.InProcess(), c.state.Status) { // else there is nothing to do for them (api.md 1.5)
		c.notify(models.NoticeAssigned, added.Assignees...)
		c.notify(models.NoticeConsulted, added.Consultants...)
		c.notify(models.NoticeUnassigned, removed.All()...)
	}
	return nil
}
