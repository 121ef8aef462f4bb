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

// ReturnWorkOrder gives a customer's work order back, with a reason: its default workers replace
// the actor's service company and everyone of it (docs/console.md, One work order). It
// returns the work order, which the actor may no longer read. Errors:
// permission_denied, validation_failed, rule_violation (no_worker, own_work, status) and changeWorkOrder's.
func (s *Records) ReturnWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id, reason string) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationReturn, func(ctx context.Context, c *workOrderChange) error {
		if fields := append(store.CheckBlank("/reason", reason), store.CheckText("/reason", &reason, models.MaxReturnReason)...); len(fields) > 0 {
			return models.Invalid(fields...)
		}
		if err := c.apply(); err != nil {
			return err
		}
		return c.replaceCompany(ctx, c.Actor.OrganizationID, reason, false)
	})
}

// ReclaimWorkOrder takes a work order in process back from a former service company: its default
// workers replace the company and everyone of it. Without any, an administrator does: the actor
// or another one. It has no effect on a work order that the company does not have.
// Errors: rule_violation (own_work, status: no one else can review it) and changeWorkOrder's.
func ReclaimWorkOrder(ctx context.Context, s *store.Store, actor store.Actor, id, company string) error {
	_, err := New(s).changeWorkOrder(ctx, actor, store.NoKey, id, operationReclaim, func(ctx context.Context, c *workOrderChange) error {
		if !slices.Contains(models.InProcess(), c.state.Status) {
			return nil
		}
		return c.replaceCompany(ctx, company, "", true)
	})
	return err
}

// replacementQuery selects the identities $1 of the company $2, the default workers of the
// node $3 besides the consultants $4 and the company, which may be an inventory manager there,
// and the active administrators of the organization $5.
var replacementQuery = `
	SELECT ARRAY(SELECT i.id::text FROM identities i WHERE i.id = ANY ($1::text[]) AND i.organization_id = $2::text) AS own,
		` + store.Fill(nearestManagers, "node", "$3", "except", "($4::text[] || $2::text)") + ` AS managers,
		` + store.Fill(activeAdmins, "organization", "$5") + ` AS admins`

// replaceCompany queues the change by which the node's default workers replace the company; if
// toAdmins is set, administrators where no manager can. Errors: rule_violation (no_worker, own_work, status).
func (c *workOrderChange) replaceCompany(ctx context.Context, company, reason string, toAdmins bool) error {
	assigned := c.state.Assigned
	var found struct{ Own, Managers, Admins []string }
	batch.QueueOne(c.Tx.Tx, &found, nil, replacementQuery, assigned.All(), company, c.state.InventoryID, assigned.Consultants, c.state.OrganizationID)
	if err := c.Flush(ctx); err != nil {
		return err
	}
	if !toAdmins {
		found.Admins = nil
	}
	rest := people.Roles{Assignees: difference(assigned.Assignees, found.Own), Consultants: difference(assigned.Consultants, found.Own)}
	added := people.Roles{Assignees: []string{}, Consultants: []string{}}
	if len(rest.Assignees) < len(assigned.Assignees) {
		added.Assignees = difference(found.Managers, rest.Assignees)
	}
	if len(rest.Assignees)+len(added.Assignees) == 0 {
		added.Assignees = c.oneOf(found.Admins, rest.Consultants)
	}
	workers := slices.Concat(rest.Assignees, added.Assignees)
	reviewed := c.state.Status == models.StatusSentToInspection
	own, err := c.isOwnReview(ctx, rest.Consultants)
	if err != nil {
		return err
	}
	if own || reviewed && len(rest.Consultants) == 0 {
		added.Consultants = c.oneOf(found.Admins, slices.Concat(workers, rest.Consultants, []string{c.state.CompletedBy}))
	}
	switch {
	case len(workers) == 0:
		return models.Violation(models.RuleNoWorker,
			"A work order needs at least one worker, and the customer has no active inventory manager at this place who could be one. Ask the customer to assign someone.")
	case reviewed && len(rest.Consultants)+len(added.Consultants) == 0:
		return models.Violation(models.RuleStatus,
			"A work order with the status %q needs a consultant. Review it, or ask the customer to name another consultant.", models.StatusSentToInspection.Name())
	}
	removed := people.Roles{
		Assignees: difference(assigned.Assignees, rest.Assignees), Consultants: difference(assigned.Consultants, rest.Consultants),
	}
	if len(removed.All()) == 0 {
		return nil
	}
	if err := c.reassign(ctx, added, removed); err != nil {
		return err
	}
	if reason == "" { // the end of the relation is the reason
		return nil
	}
	c.Action = string(models.NoticeReturned)
	c.Changes["comment"] = effects.FromTo(nil, reason)
	c.Notices = nil
	c.notify(models.NoticeReturned, workers...)
	c.notify(models.NoticeUnassigned, removed.All()...)
	return nil
}

// oneOf returns one of the ids that is not among the others, the actor if it can be.
func (c *workOrderChange) oneOf(ids, others []string) []string {
	left := difference(ids, others)
	if slices.Contains(left, c.Actor.IdentityID) {
		return []string{c.Actor.IdentityID}
	}
	return left[:min(1, len(left))]
}
