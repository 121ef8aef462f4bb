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

// ReturnWorkOrder gives a customer's work order back, with a reason: its default workers replace
// the actor's service company and everyone of it (docs/contract.md, Service companies). It
// returns the work order, which the actor may no longer read. Errors:
// permission_denied, validation_failed, rule_violation (no_worker, status) and changeWorkOrder's.
func (s *Records) ReturnWorkOrder(ctx context.Context, actor store.Actor, call store.RequestKey, id, reason string) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, call, id, ActionReturn, func(ctx context.Context, c *workOrderChange) error {
		if fields := append(checkBlank("/reason", reason), store.CheckText("/reason", &reason, models.MaxReturnReason)...); len(fields) > 0 {
			return models.Invalid(fields...)
		}
		if err := c.apply(); err != nil {
			return err
		}
		return c.replaceCompany(ctx, reason)
	})
}

// companyReplacement are the assignees of a work order that belong to the company, and who
// replaces them.
type companyReplacement struct{ Own, Managers []string }

// replacementQuery selects the identities $1 of the company $2, and the default workers of the
// node $3 besides the consultants $4 and the company, which may be an inventory manager there.
var replacementQuery = `
	SELECT ARRAY(SELECT i.id::text FROM identities i WHERE i.id = ANY ($1::text[]) AND i.organization_id = $2::text) AS own,
		` + store.Fill(nearestManagers, "node", "$3", "except", "($4::text[] || $2::text)") + ` AS managers`

// replaceCompany queues the change by which the node's default workers replace the actor's
// company. Errors: rule_violation (no_worker, status).
func (c *workOrderChange) replaceCompany(ctx context.Context, reason string) error {
	assigned := c.state.Assigned
	var found companyReplacement
	c.QueueRows(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[companyReplacement])
		return err
	}, replacementQuery, assigned.All(), c.Actor.OrganizationID, c.state.InventoryID, assigned.Consultants)
	if err := c.Flush(ctx); err != nil {
		return err
	}
	rest := people.Roles{Assignees: difference(assigned.Assignees, found.Own), Consultants: difference(assigned.Consultants, found.Own)}
	added := people.Roles{Assignees: []string{}, Consultants: []string{}}
	if len(rest.Assignees) < len(assigned.Assignees) {
		added.Assignees = difference(found.Managers, rest.Assignees)
	}
	workers := slices.Concat(rest.Assignees, added.Assignees)
	status := cmp.Or(c.state.HeldFrom, c.state.Status)
	switch {
	case len(workers) == 0:
		return models.Violation(models.RuleNoWorker,
			"A work order needs at least one worker, and the customer has no active inventory manager at this place who could be one. Ask the customer to assign someone.")
	case len(rest.Consultants) == 0 && len(assigned.Consultants) > 0 && status == models.StatusSentToInspection:
		return models.Violation(models.RuleStatus,
			"A work order with the status %q needs a consultant. Review it, or ask the customer to name another consultant.", status.Name())
	}
	removed := people.Roles{
		Assignees: difference(assigned.Assignees, rest.Assignees), Consultants: difference(assigned.Consultants, rest.Consultants),
	}
	if err := c.reassign(added, removed); err != nil {
		return err
	}
	c.Action = string(models.NoticeReturned)
	c.Changes["comment"] = effects.FromTo(nil, reason)
	c.Notices = []effects.Notice{
		{Kind: string(models.NoticeReturned), Identities: workers},
		{Kind: string(models.NoticeUnassigned), Identities: removed.All()},
	}
	return nil
}
