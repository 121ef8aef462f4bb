package records

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/people"
	"millwright/service/store"
)

// AssignWorkOrder adds workers and consultants (api.md 4.3 and 4.5)
// and returns the work order. Naming an identity that already has the role
// has no effect. A service company names only workers. Errors: permission_denied, validation_failed, rule_violation
// (both_roles, assignee_inactive, assignee_not_connected, own_work, status) and changeWorkOrder's.
func (s *Records) AssignWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id string, assignees, consultants []string) (store.WriteResult, error) {
	named := candidates{assignees: assignees, consultants: consultants}
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationAssign, func(reading *pgx.Batch) {
		queueCandidates(reading, &named, actor, id)
	}, func(ctx context.Context, c *workOrderChange) error {
		added, err := c.added(named)
		if err != nil {
			return err
		}
		return c.reassign(ctx, added, noRoles(), named.People)
	})
}

// noRoles are the roles of no one.
func noRoles() people.Roles { return people.Roles{Assignees: []string{}, Consultants: []string{}} }

// ReplaceWorkers assigns workers instead of the present ones, and returns the work order. A
// service company replaces only its own people. Errors: AssignWorkOrder's, and rule_violation
// (last_worker) without workers.
func (s *Records) ReplaceWorkers(ctx context.Context, actor store.Actor, key store.Key, id string, workers []string) (store.WriteResult, error) {
	named := candidates{assignees: workers}
	var own []string
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationAssign, func(reading *pgx.Batch) {
		queueCandidates(reading, &named, actor, id)
		store.QueueValues(reading, &own, ownAssigneesQuery, pgx.NamedArgs{"id": id, "organization": actor.OrganizationID})
	}, func(ctx context.Context, c *workOrderChange) error {
		if len(workers) == 0 {
			return models.Violation(models.RuleLastWorker, "A work order needs at least one worker. Choose who replaces the present ones.")
		}
		added, err := c.added(named)
		if err != nil {
			return err
		}
		removed := noRoles()
		for _, identity := range difference(c.state.Assigned.Assignees, workers) {
			if c.isOwn(identity, own) && identity != c.acting.OrganizationID { // which returns the work order to its customer
				removed.Assignees = append(removed.Assignees, identity)
			}
		}
		return c.reassign(ctx, added, removed, named.People)
	})
}

// ReplaceAssignee assigns the replacement in the role of a person who left, by the rules of
// AssignWorkOrder. It has no effect if that person is not assigned. Errors: AssignWorkOrder's.
func ReplaceAssignee(ctx context.Context, s *store.Store, actor store.Actor, id, person, replacement string) error {
	known := candidates{assignees: []string{replacement}}
	_, err := New(s).changeWorkOrder(ctx, actor, store.NoKey, id, models.OperationAssign, func(reading *pgx.Batch) {
		queueCandidates(reading, &known, actor, id)
	}, func(ctx context.Context, c *workOrderChange) error {
		named, removed := known, c.roleOf(person) // a copy, since this runs again after a deadlock
		c.Decided = true
		switch {
		case len(removed.All()) == 0:
			return nil
		case len(removed.Consultants) > 0:
			named.assignees, named.consultants = nil, []string{replacement}
		}
		// checkUnassign has nothing to reject: the role keeps someone, and the person is the actor's colleague.
		added, err := c.added(named)
		if err != nil {
			return err
		}
		c.Queue(`UPDATE people SET passed_on = passed_on + 1 WHERE id = $1`, person)
		return c.reassign(ctx, added, removed, named.People)
	})
	return err
}

// added checks those who are named and returns those who do not have the role yet. Errors:
// permission_denied, validation_failed, rule_violation (both_roles, assignee_inactive, assignee_not_connected).
func (c *workOrderChange) added(named candidates) (people.Roles, error) {
	if c.forCustomer() && len(named.consultants) > 0 {
		return people.Roles{}, models.Errorf(models.CodePermissionDenied, "A service company forwards a work order to workers. Only its customer names consultants.")
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
	role := noRoles()
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
	var own []string
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationAssign, func(reading *pgx.Batch) {
		store.QueueValues(reading, &own, ownAssigneesQuery, pgx.NamedArgs{"id": id, "organization": actor.OrganizationID})
	}, func(ctx context.Context, c *workOrderChange) error {
		removed := c.roleOf(identity)
		if len(removed.All()) == 0 {
			return models.NotFound()
		}
		if err := c.checkUnassign(identity, c.isOwn(identity, own)); err != nil {
			return err
		}
		return c.reassign(ctx, noRoles(), removed, nil)
	})
}

// ownAssigneesQuery selects the ids of those assigned to the work order @id that belong to the @organization.
const ownAssigneesQuery = `SELECT i.id FROM work_order_assignees x JOIN identities i ON i.id = x.identity_id WHERE x.work_order_id = @id AND i.organization_id = @organization`

// isOwn reports whether the identity is one of the actor's organization's own, which matters
// for a service company.
func (c *workOrderChange) isOwn(identity string, own []string) bool {
	return !c.forCustomer() || slices.Contains(own, identity)
}

// ownReviewQuery selects whether no one but the @actor could review as one of the @consultants.
var ownReviewQuery = `SELECT ` + onlyReviewer("@consultants::text[]", "@actor") + ` AS own`

// isOwnReview reports whether the work order is in review and, of the consultants, no one but who
// completed it could review it.
func (c *workOrderChange) isOwnReview(ctx context.Context, consultants []string) (bool, error) {
	if c.state.Status != models.StatusSentToInspection {
		return false, nil
	}
	var found struct{ Own bool }
	err := c.Read(ctx, func(pipeline *pgx.Batch) {
		store.QueueOne(pipeline, &found, nil, ownReviewQuery, pgx.NamedArgs{"actor": store.TextOf(c.state.CompletedBy), "consultants": consultants})
	})
	return found.Own, err
}

// reassign queues the change of roles and adds its effects. known are those added, as the record shows them. Errors:
// rule_violation (own_work, status).
func (c *workOrderChange) reassign(ctx context.Context, added, removed people.Roles, known []models.NamedIdentity) error {
	if len(added.All())+len(removed.All()) == 0 {
		return nil
	}
	if _, err := c.state.Status.Apply(models.OperationAssign, c.state.heldFrom()); err != nil {
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
				"Who completed a work order does not review it, and no other active person would be its consultant. Name another consultant.").About(store.TextOf(c.state.CompletedBy))
		}
	}
	if err := c.saveRoles(added, removed); err != nil {
		return err
	}
	c.row.Assigned = after
	c.showPeople(known)
	c.Action = string(models.EventWorkOrderAssigneesChanged)
	c.Events = []effects.Event{{Type: models.EventWorkOrderAssigneesChanged, Data: models.JSON{"added": added, "removed": removed}}}
	if slices.Contains(models.InProcess(), c.state.Status) { // else there is nothing to do for them (api.md 1.5)
		c.notify(models.NoticeAssigned, added.Assignees...)
		c.notify(models.NoticeConsulted, added.Consultants...)
		c.notify(models.NoticeUnassigned, removed.All()...)
	}
	return nil
}

// saveRoles queues the rows of the assignees that change. Those added follow the others.
func (c *workOrderChange) saveRoles(added, removed people.Roles) error {
	for _, identity := range removed.All() {
		if err := c.Delete(&models.WorkOrderAssignee{WorkOrderID: c.RecordID, IdentityID: identity}); err != nil {
			return err
		}
	}
	rows := assigneeRows(c.RecordID, added, c.state.LastPosition+1)
	if len(rows) == 0 {
		return nil
	}
	for i := range rows {
		rows[i].Closed = c.state.Status.Phase() == models.PhaseClosed
	}
	return c.Create(&rows)
}

// showPeople has the record name the people of those who are assigned now: some of those it named before, and of
// those added.
func (c *workOrderChange) showPeople(added []models.NamedIdentity) {
	if c.state.People == nil {
		return
	}
	all := slices.Concat(c.state.People, added)
	slices.SortFunc(all, func(a, b models.NamedIdentity) int { return cmp.Compare(a.IdentityID, b.IdentityID) })
	all = slices.CompactFunc(all, func(a, b models.NamedIdentity) bool { return a.IdentityID == b.IdentityID })
	c.row.People = withIDs(all, append(c.row.Assigned.All(), c.row.CreatedBy))
}
