package records

import (
	"fmt"
	"slices"
	"strings"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/batch"
	"millwright/service/store"
)

// candidates are the identities that a request names for roles, with what the
// rules need to know of them (api.md 4.3 and 4.5).
type candidates struct {
	assignees, consultants []string
	candidateState
}

// candidateState tells the candidates apart: Known are those that the actor may know of,
// Connected those connected to the node, Active those that can act.
type candidateState struct{ Known, Connected, Active []string }

// connectedTo selects the identities that are connected to the node {node}: those assigned
// there or above, and the members of a team that is. It ends in a WHERE clause.
const connectedTo = `
			SELECT DISTINCT connected.identity_id FROM inventory_closure c JOIN assignments g ON g.node_id = c.ancestor_id
			CROSS JOIN LATERAL (SELECT g.identity_id UNION ALL SELECT m.member_id FROM team_members m WHERE m.team_id = g.identity_id) connected
			WHERE c.node_id = {node}`

// connectedIdentities selects the {identities} that are connected to the node {node}, and
// {actor} itself if {integration} is true.
const connectedIdentities = `
	ARRAY(SELECT named FROM unnest({identities}) named
		WHERE named = {actor} AND {integration} OR EXISTS (` + connectedTo + ` AND connected.identity_id = named))`

// activeIdentities selects the {identities} that can act.
var activeIdentities = `
	ARRAY(SELECT named FROM unnest({identities}) named WHERE ` + store.Fill(access.CanAct, "identity", "named") + `)`

// queueCandidates queues loading what the rules need. A service company may
// assign all its people, so for it they count as connected.
func (c *workOrderChange) queueCandidates(n *candidates) {
	known := store.Fill(store.KnownIdentities, "organization", "$2", "identities", "$1::text[]")
	connected := store.Fill(connectedIdentities, "node", "$3", "identities", "$1::text[]", "actor", "$4", "integration", "$5")
	args := []any{slices.Concat(n.assignees, n.consultants), c.Actor.OrganizationID}
	if c.forCustomer() {
		known = store.Fill(ownIdentities, "organization", "$2", "identities", "$1::text[]")
		connected = known
	} else {
		args = append(args, c.state.InventoryID, c.Actor.IdentityID, c.Actor.Kind == models.KindIntegration)
	}
	batch.QueueOne(c.Tx.Tx, &n.candidateState, nil, `SELECT `+known+` AS known, `+connected+` AS connected, `+store.Fill(activeIdentities, "identities", "$1::text[]")+` AS active`, args...)
}

// checkKnown reports unknown and duplicate ids.
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
				fields = append(fields, store.UnknownField(pointer, "identity"))
			}
		}
	}
	return fields
}

// checkRules applies both_roles, assignee_inactive and assignee_not_connected, given the workers and
// consultants that the work order already has. Errors: rule_violation.
func (n candidates) checkRules(workers, consultants []string) error {
	var both, inactive, unconnected []string
	for _, id := range slices.Concat(n.assignees, n.consultants) {
		worker, consultant := slices.Contains(workers, id), slices.Contains(consultants, id)
		switch {
		case (worker || slices.Contains(n.assignees, id)) && (consultant || slices.Contains(n.consultants, id)):
			both = append(both, id)
		case worker || consultant: // stays assigned as it is
		case !slices.Contains(n.Active, id):
			inactive = append(inactive, id)
		case !slices.Contains(n.Connected, id):
			unconnected = append(unconnected, id)
		}
	}
	if len(both) > 0 {
		both = slices.Compact(slices.Sorted(slices.Values(both))) // one may be named in both roles
		return models.Violation(models.RuleBothRoles, "%s cannot be both assignee and consultant.", strings.Join(both, ", ")).About(both...)
	}
	if len(inactive) > 0 {
		return models.Violation(models.RuleAssigneeInactive, "%s is not active and cannot be assigned.", strings.Join(inactive, ", ")).About(inactive...)
	}
	if len(unconnected) > 0 {
		return models.Violation(models.RuleAssigneeNotConnected,
			"%s is not connected to the node. Assign it there or above, or add it to a team that is.", strings.Join(unconnected, ", ")).About(unconnected...)
	}
	return nil
}

// check applies all rules for candidates. Errors: validation_failed, rule_violation.
func (n candidates) check(workers, consultants []string) error {
	if fields := n.checkKnown(); len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return n.checkRules(workers, consultants)
}
