package service

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// candidates are identities named for roles, with what the rules need to know of them.
type candidates struct {
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

// queueCandidates reads what the rules need. A service company names its own
// people, each of whom it may assign; they are connected by being its own.
func (c *workOrderChange) queueCandidates(n *candidates) {
	known := with(knownIdentities, "organization", "$2", "identities", "$1::text[]")
	connected := with(connectedIdentities, "node", "$3", "identities", "$1::text[]", "actor", "$4", "integration", "$5")
	args := []any{slices.Concat(n.assignees, n.consultants), c.actor.OrganizationID}
	if c.forCustomer() {
		known = with(ownIdentities, "organization", "$2", "identities", "$1::text[]")
		connected = known
	} else {
		args = append(args, c.state.InventoryID, c.actor.IdentityID, c.actor.Kind == models.KindIntegration)
	}
	c.QueueRows(func(rows pgx.Rows) error {
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
func (n candidates) checkKnown() []models.FieldError {
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
func (n candidates) checkRules(workers, consultants []string) error {
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
func (n candidates) check(workers, consultants []string) error {
	if fields := n.checkKnown(); len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return n.checkRules(workers, consultants)
}
