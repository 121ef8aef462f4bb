package records

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/people"
	"millwright/service/store"
)

// ReturnWorkOrder gives a customer's work order back, with a reason: its default workers replace
// the actor's service company and everyone of it (docs/console.md, One work order). It
// returns the work order, which the actor may no longer read. Errors:
// permission_denied, validation_failed, rule_violation (no_worker, own_work, status) and changeWorkOrder's.
func (s *Records) ReturnWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id, reason string) (store.WriteResult, error) {
	var known companyReplacement
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationReturn, func(reading *pgx.Batch) {
		known.queue(reading, actor, id, actor.OrganizationID)
	}, func(ctx context.Context, c *workOrderChange) error {
		if fields := append(store.CheckBlank("/reason", reason), store.CheckText("/reason", &reason, models.MaxReturnReason)...); len(fields) > 0 {
			return models.Invalid(fields...)
		}
		if err := c.apply(); err != nil {
			return err
		}
		known.Admins = nil
		return c.replaceCompany(ctx, known, reason)
	})
}

// ReclaimWorkOrder takes a work order in process back from a former service company: its default
// workers replace the company and everyone of it. Without any, an administrator does: the actor
// or another one. It has no effect on a work order that the company does not have.
// Errors: rule_violation (own_work, status: no one else can review it) and changeWorkOrder's.
func ReclaimWorkOrder(ctx context.Context, s *store.Store, actor store.Actor, id, company string) error {
	var known companyReplacement
	_, err := New(s).changeWorkOrder(ctx, actor, store.NoKey, id, operationReclaim, func(reading *pgx.Batch) {
		known.queue(reading, actor, id, company)
	}, func(ctx context.Context, c *workOrderChange) error {
		if !slices.Contains(models.InProcess(), c.state.Status) {
			return nil
		}
		return c.replaceCompany(ctx, known, "")
	})
	return err
}

// companyReplacement is what the rules need to know to replace a company on a work order.
type companyReplacement struct {
	// Own are the company and everyone of it who is assigned.
	Own []string
	// Managers are the default workers of the node besides the consultants and the company, which may be an inventory
	// manager there. Admins are the active administrators of the work order's organization.
	Managers, Admins []string
	// People are managers and administrators as the record shows them, nil if it does not.
	People []models.NamedIdentity
}

// companyReplacementQueries select a companyReplacement of the @company on the work order @id, by whether the people in
// the record are shown.
var companyReplacementQueries = store.ByPeople(func(people string) string {
	return `
	SELECT k.*, ` + store.PeopleAmong(people, `SELECT unnest(k.managers || k.admins)`) + ` FROM (
		SELECT ARRAY(SELECT i.id::text FROM identities i WHERE i.id = ANY (` + assignedIn("w.id", "true") + `) AND i.organization_id = @company::text) AS own,
			` + nearestManagers("w.inventory_id", "("+assignedIn("w.id", isConsultant)+" || @company::text)") + `::text[] AS managers,
			` + activeAdmins("w.organization_id") + ` AS admins
		FROM work_orders w WHERE w.id = @id) k`
})

func (k *companyReplacement) queue(reading *pgx.Batch, actor store.Actor, id, company string) {
	store.QueueOne(reading, k, models.NotFound(), companyReplacementQueries[actor.ShowPeople], pgx.NamedArgs{"id": id, "company": company})
}

// replaceCompany queues the change by which the node's default workers replace the company, and administrators, if there
// are any, where no manager can. Errors: rule_violation (no_worker, own_work, status).
func (c *workOrderChange) replaceCompany(ctx context.Context, found companyReplacement, reason string) error {
	assigned := c.state.Assigned
	rest := people.Roles{Assignees: difference(assigned.Assignees, found.Own), Consultants: difference(assigned.Consultants, found.Own)}
	added := noRoles()
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
		added.Consultants = c.oneOf(found.Admins, slices.Concat(workers, rest.Consultants, []string{store.TextOf(c.state.CompletedBy)}))
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
	if err := c.reassign(ctx, added, removed, found.People); err != nil {
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
