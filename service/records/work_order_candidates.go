package records

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/people"
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
type candidateState struct {
	Known, Connected, Active []string
	// People are the candidates as the record shows them, nil if it does not.
	People []models.NamedIdentity
}

// connectedTo selects the identities that are connected to the node: those assigned
// there or above, and the members of a team that is. It ends in a WHERE clause.
func connectedTo(node string) string {
	return `
			SELECT DISTINCT connected.identity_id FROM inventory_closure c JOIN assignments g ON g.node_id = c.ancestor_id
			CROSS JOIN LATERAL (SELECT g.identity_id UNION ALL SELECT m.member_id FROM team_members m WHERE m.team_id = g.identity_id) connected
			WHERE c.node_id = ` + node
}

// connectedIdentities selects the @identities that are connected to the node, and
// the @actor itself if @integration is true.
func connectedIdentities(node string) string {
	return `
	ARRAY(SELECT named FROM unnest(@identities::text[]) named
		WHERE named = @actor AND @integration OR EXISTS (` + connectedTo(node) + ` AND connected.identity_id = named))`
}

// activeIdentities selects the identities of an array that can act.
func activeIdentities(identities string) string {
	return `
	ARRAY(SELECT named FROM unnest(` + identities + `) named WHERE ` + access.CanAct("named") + `)`
}

// candidatesQueries select a candidateState of the @identities that the @actor of the @organization names for the work order
// @id, by whether the people in the record are shown. A service company may assign all its people, so for it they
// count as connected.
var candidatesQueries = store.ByPeople(func(people string) string {
	return `
	SELECT CASE WHEN w.organization_id = @organization THEN ` + store.KnownIdentities("@identities::text[]", "@organization") + ` ELSE ` + ownIdentities("@identities::text[]", "@organization") + ` END AS known,
		CASE WHEN w.organization_id = @organization THEN ` + connectedIdentities("w.inventory_id") + ` ELSE ` + ownIdentities("@identities::text[]", "@organization") + ` END AS connected,
		` + activeIdentities("@identities::text[]") + ` AS active, ` + store.PeopleAmong(people, `SELECT unnest(@identities::text[])`) + `
	FROM work_orders w WHERE w.id = @id`
})

// queueCandidates adds the query of what the rules need to know of the candidates for the work order.
func queueCandidates(reading *pgx.Batch, n *candidates, actor store.Actor, id string) {
	store.QueueOne(reading, &n.candidateState, models.NotFound(), candidatesQueries[actor.ShowPeople], pgx.NamedArgs{
		"id": id, "actor": actor.IdentityID, "organization": actor.OrganizationID, "integration": actor.Kind == models.KindIntegration,
		"identities": difference(slices.Concat(n.assignees, n.consultants), nil),
	})
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
			"%s is not connected to the place of the work order. Assign it there or above, or add it to a team that is.", strings.Join(unconnected, ", ")).About(unconnected...)
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

// assigneeRows are the rows of those who have the roles of the work order, with places from first on.
func assigneeRows(id string, roles people.Roles, first int) []models.WorkOrderAssignee {
	var rows []models.WorkOrderAssignee
	for i, identity := range roles.Assignees {
		rows = append(rows, models.WorkOrderAssignee{WorkOrderID: id, IdentityID: identity, Role: models.RoleWorker, Position: first + i})
	}
	for i, identity := range roles.Consultants {
		rows = append(rows, models.WorkOrderAssignee{WorkOrderID: id, IdentityID: identity, Role: models.RoleConsultant, Position: first + i})
	}
	return rows
}

// withIDs returns the identities with the ids, nil without any.
func withIDs(identities []models.NamedIdentity, ids []string) []models.NamedIdentity {
	var found []models.NamedIdentity
	for _, identity := range identities {
		if slices.Contains(ids, identity.IdentityID) {
			found = append(found, identity)
		}
	}
	return found
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
