package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// AssignWorkOrder adds workers and consultants (spec section 4, rules 3 and 5)
// and answers the work order; who is in the role already stays there. Errors:
// permission_denied, validation_failed, rule_violation (both_roles,
// assignee_not_connected) and those of changeWorkOrder.
func (s *Service) AssignWorkOrder(ctx context.Context, actor Actor, call Call, id string, assignees, consultants []string) (WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, call, id, false, func(ctx context.Context, c *workOrderChange) error {
		if err := c.requireForward(); err != nil {
			return err
		}
		named := nominations{assignees: assignees, consultants: consultants}
		c.queueNominations(&named)
		if err := c.flush(ctx); err != nil {
			return err
		}
		if err := named.check(c.state.Assignees, c.state.Consultants); err != nil {
			return err
		}
		added := roles{
			Assignees:   without(assignees, c.state.Assignees),
			Consultants: without(consultants, c.state.Consultants),
		}
		return c.reassign(added, roles{Assignees: []string{}, Consultants: []string{}})
	})
}

// UnassignWorkOrder removes an identity from a work order and answers it. Errors:
// not_found when it is not assigned, permission_denied, rule_violation
// (last_worker) and those of changeWorkOrder.
func (s *Service) UnassignWorkOrder(ctx context.Context, actor Actor, call Call, id, identity string) (WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, call, id, false, func(ctx context.Context, c *workOrderChange) error {
		if err := c.requireForward(); err != nil {
			return err
		}
		removed := roles{Assignees: []string{}, Consultants: []string{}}
		switch {
		case slices.Contains(c.state.Assignees, identity):
			removed.Assignees = []string{identity}
		case slices.Contains(c.state.Consultants, identity):
			removed.Consultants = []string{identity}
		default:
			return models.NotFound()
		}
		if c.foreign() {
			if err := c.requireOwn(ctx, identity); err != nil {
				return err
			}
		}
		if len(removed.Assignees) == len(c.state.Assignees) && len(removed.Assignees) > 0 {
			return models.Violation(models.RuleLastWorker, "A work order keeps at least one worker: assign another one first.")
		}
		return c.reassign(roles{Assignees: []string{}, Consultants: []string{}}, removed)
	})
}

// roles are identities by their role, as events tell them.
type roles struct {
	Assignees   []string `json:"assignees"`
	Consultants []string `json:"consultants"`
}

func (r roles) all() []string { return slices.Concat(r.Assignees, r.Consultants) }

// without returns the ids that are not among the others, never nil.
func without(ids, others []string) []string {
	rest := []string{}
	for _, id := range ids {
		if !slices.Contains(others, id) {
			rest = append(rest, id)
		}
	}
	return rest
}

// foreign reports whether the actor is of a service company and acts on a
// customer's work order: it forwards it to its own people.
func (c *workOrderChange) foreign() bool { return c.state.OrganizationID != c.actor.OrganizationID }

// requireForward refuses an actor that may not assign.
func (c *workOrderChange) requireForward() error {
	if c.foreign() && c.state.Incoming {
		return nil
	}
	return c.require(models.GrantWorkOrdersForward, "assign work orders")
}

// requireOwn refuses identities that are not of the actor's organization.
func (c *workOrderChange) requireOwn(ctx context.Context, identity string) error {
	var own []struct{ ID string }
	queueAll(c.tx, &own, `SELECT id FROM identities WHERE id = $1 AND organization_id = $2`, identity, c.actor.OrganizationID)
	if err := c.flush(ctx); err != nil {
		return err
	}
	if len(own) == 0 {
		return models.Errorf(models.CodePermissionDenied, "A service company removes only its own people.")
	}
	return nil
}

// reassign queues the change of roles with what it leaves.
func (c *workOrderChange) reassign(added, removed roles) error {
	if len(added.all())+len(removed.all()) == 0 {
		return nil
	}
	if _, err := c.state.Status.Apply(models.OperationForward, c.state.HeldFrom); err != nil {
		return err
	}
	if gone := removed.all(); len(gone) > 0 {
		c.queue(`DELETE FROM work_order_assignees WHERE work_order_id = $1 AND identity_id = ANY ($2)`, c.recordID, gone)
	}
	for role, ids := range map[models.Role][]string{models.RoleWorker: added.Assignees, models.RoleConsultant: added.Consultants} {
		if len(ids) == 0 {
			continue
		}
		c.queue(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
			SELECT $1::text, id, $2::text, n + (SELECT coalesce(max(position), 0) FROM work_order_assignees WHERE work_order_id = $1::text)
			FROM unnest($3::text[]) WITH ORDINALITY AS named (id, n)`, c.recordID, role, ids)
	}
	c.action = string(models.EventWorkOrderAssigneesChanged)
	before := roles{c.state.Assignees, c.state.Consultants}
	after := roles{
		append(without(before.Assignees, removed.Assignees), added.Assignees...),
		append(without(before.Consultants, removed.Consultants), added.Consultants...),
	}
	if len(added.Assignees)+len(removed.Assignees) > 0 {
		c.changes["assignees"] = fromTo(before.Assignees, after.Assignees)
	}
	if len(added.Consultants)+len(removed.Consultants) > 0 {
		c.changes["consultants"] = fromTo(before.Consultants, after.Consultants)
	}
	c.events = []domainEvent{{kind: models.EventWorkOrderAssigneesChanged, data: models.JSON{"added": added, "removed": removed}}}
	c.notices = []notice{
		{"work_order.assigned", added.Assignees},
		{"work_order.consulted", added.Consultants},
		{"work_order.unassigned", removed.all()},
	}
	return nil
}

// nominations are identities named for roles, with what the rules need to know of them.
type nominations struct {
	assignees, consultants []string
	// Known exist for the actor, Connected may be named (spec section 4, rules 3 and 5).
	Known     []string
	Connected []string
}

// connectedIdentities selects those of {identities} that are connected to the
// node {node}: assigned to it or above, members of such a team, or the
// integration itself.
const connectedIdentities = `
	ARRAY(SELECT named FROM unnest({identities}) named
		WHERE named = {actor} AND {integration} OR EXISTS (
			SELECT FROM inventory_closure c JOIN assignments g ON g.node_id = c.ancestor_id
			WHERE c.node_id = {node} AND (g.identity_id = named
				OR g.identity_id IN (SELECT m.team_id FROM team_members m WHERE m.member_id = named))))`

// knownIdentities selects those of {identities} that the organization
// {organization} may name: its own and its service companies.
const knownIdentities = `
	ARRAY(SELECT i.id::text FROM identities i
		WHERE i.id = ANY ({identities}) AND (i.organization_id = {organization} OR i.id IN (
			SELECT s.company_id FROM service_companies s WHERE s.customer_id = {organization})))`

// ownIdentities selects those of {identities} that are of the organization {organization}.
const ownIdentities = `
	ARRAY(SELECT i.id::text FROM identities i WHERE i.id = ANY ({identities}) AND i.organization_id = {organization})`

// queueNominations reads what the rules need. A service company names its own
// people, each of whom it may assign; they are connected by being its own.
func (c *workOrderChange) queueNominations(n *nominations) {
	known := with(knownIdentities, "organization", "$2", "identities", "$1::text[]")
	connected := with(connectedIdentities, "node", "$3", "identities", "$1::text[]", "actor", "$4", "integration", "$5")
	args := []any{slices.Concat(n.assignees, n.consultants), c.actor.OrganizationID}
	if c.foreign() {
		known = with(ownIdentities, "organization", "$2", "identities", "$1::text[]")
		connected = known
	} else {
		args = append(args, c.state.InventoryID, c.actor.IdentityID, c.actor.Kind == models.KindIntegration)
	}
	c.queueRows(func(rows pgx.Rows) error {
		found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[struct{ Known, Connected []string }])
		if err == nil {
			// Who is assigned is known to whoever reads the work order.
			n.Known = slices.Concat(found.Known, c.state.Assignees, c.state.Consultants)
			n.Connected = found.Connected
		}
		return err
	}, `SELECT `+known+` AS known, `+connected+` AS connected`, args...)
}

// checkKnown reports ids that name nobody, and ids that are named twice.
func (n nominations) checkKnown() []models.FieldError {
	var fields []models.FieldError
	lists := []struct {
		name string
		ids  []string
	}{{"assignees", n.assignees}, {"consultants", n.consultants}}
	for _, list := range lists {
		for i, id := range list.ids {
			pointer := fmt.Sprintf("/%s/%d", list.name, i)
			if slices.Contains(list.ids[:i], id) {
				fields = append(fields, models.FieldError{Pointer: pointer, Code: "duplicate", Detail: "This identity is named twice."})
			} else if !slices.Contains(n.Known, id) {
				fields = append(fields, unknownField(pointer, "identity"))
			}
		}
	}
	return fields
}

func unknownField(pointer, what string) models.FieldError {
	return models.FieldError{Pointer: pointer, Code: "unknown", Detail: "There is no such " + what + "."}
}

// checkRules applies both_roles and assignee_not_connected, beside those who have a role already.
func (n nominations) checkRules(workers, consultants []string) error {
	for _, id := range n.assignees {
		if slices.Contains(n.consultants, id) || slices.Contains(consultants, id) {
			return models.Violation(models.RuleBothRoles, "%s cannot be both assignee and consultant.", id)
		}
	}
	for _, id := range n.consultants {
		if slices.Contains(workers, id) {
			return models.Violation(models.RuleBothRoles, "%s cannot be both assignee and consultant.", id)
		}
	}
	for _, id := range slices.Concat(n.assignees, n.consultants) {
		assigned := slices.Contains(workers, id) || slices.Contains(consultants, id)
		if !assigned && !slices.Contains(n.Connected, id) {
			return models.Violation(models.RuleAssigneeNotConnected,
				"%s is not connected to the node: assign it there or above, or to a team that is.", id)
		}
	}
	return nil
}

// check applies every rule of naming identities.
func (n nominations) check(workers, consultants []string) error {
	if fields := n.checkKnown(); len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return n.checkRules(workers, consultants)
}
