package access

import (
	"crypto/rand"

	"millwright/models"
	"millwright/service/store"
)

// Access admits calls.
type Access struct {
	*store.Store
	// process names this process among those that exchange counts.
	process string
	// calls counts by integration, addresses counts calls without a valid token and failed token requests,
	// visitors requests for pages without a session, and forms what people send.
	calls, addresses, visitors, forms *minuteCounts
}

// New returns the functions on a store.
func New(s *store.Store) *Access {
	return &Access{Store: s, process: rand.Text(), calls: newMinuteCounts(), addresses: newMinuteCounts(), visitors: newMinuteCounts(), forms: newMinuteCounts()}
}

// The conditions are shared by single reads, lists, writes and deliveries. Their parameters are SQL
// expressions: ids, and w, the name of a record's row.

// ReadableWorkOrder is the condition that the actor may read the work order w. It may in three ways
// (api.md 5.8): it has the grant on the node; it created the work order and may create some
// there; or the work order is assigned to it, to one of its teams, or to its
// organization and it has incoming work orders. These are scalar subqueries because the planner
// turns EXISTS into a join driven by the rights, which reads a whole list to find its first page.
func ReadableWorkOrder(w, actor string) string {
	return `((SELECT true FROM ` + RightsOn(w+".inventory_id", actor) + ` AND ` + readableBy(w, actor, "d.grants") + ` LIMIT 1) IS TRUE
		OR ` + ReadableByAssignment(w, actor) + `)`
}

// ReadableByGrants is ReadableWorkOrder for a query that has the actor's grants on the node.
func ReadableByGrants(w, actor, grants string) string {
	return `(` + readableBy(w, actor, grants) + ` OR ` + ReadableByAssignment(w, actor) + `)`
}

// readableBy is the condition that the actor with these grants on the work order's node may read it by them.
func readableBy(w, actor, grants string) string {
	return `(` + Among(models.GrantWorkOrdersRead, grants) + ` OR ` + CreatedReadably(w, actor, Among(models.GrantWorkOrdersCreate, grants)) + `)`
}

// CreatedReadably is the condition that the actor created the work order w and may create some on its node.
func CreatedReadably(w, actor, mayCreate string) string {
	return `(` + w + `.created_by = ` + actor + ` AND ` + mayCreate + `)`
}

// ReadableByAssignment is the condition that the actor may read the work order w by an assignment.
func ReadableByAssignment(w, actor string) string {
	return `(SELECT true FROM work_order_assignees x
		JOIN actor_identities a ON a.identity_id = x.identity_id AND a.actor_id = ` + actor + `
		WHERE x.work_order_id = ` + w + `.id AND ` + ReadsAs(actor) + ` AND ` + RelationHolds("a.organization_id", w+".id") + ` LIMIT 1) IS TRUE`
}

// ReadsAs is the condition that the actor may read what is assigned to the identity
// of the row a of actor_identities. For its organization it needs incoming work orders.
func ReadsAs(actor string) string {
	return `(a.identity_id <> a.organization_id OR ` + IncomingWorkOrders(actor) + `)`
}

// IncomingWorkOrders is the condition that the actor has incoming work orders.
func IncomingWorkOrders(actor string) string {
	return `EXISTS (SELECT FROM organization_rights o
				WHERE o.actor_id = ` + actor + ` AND 'incoming_work_orders' = ANY (o.grants))`
}

// RelationHolds is the condition that the organization did not lose the work order with the id by the
// end of its relation with a customer. The first part, which Postgres evaluates once where the
// organization is a parameter, spares all others the second.
func RelationHolds(organization, id string) string {
	return `((SELECT true FROM ended_relations e WHERE e.company_id = ` + organization + ` LIMIT 1) IS NULL
			OR (SELECT true FROM work_orders o JOIN ended_relations e ON e.customer_id = o.organization_id
				WHERE o.id = ` + id + ` AND e.company_id = ` + organization + ` LIMIT 1) IS NULL)`
}

// CustomerOf selects the name of the organization of the work order w for people of a
// service company with incoming work orders, NULL in their own organization and for others.
func CustomerOf(w, actor, organization string) string {
	return `CASE WHEN ` + w + `.organization_id <> ` + organization + ` AND ` + IncomingWorkOrders(actor) + `
			THEN (SELECT name FROM identities WHERE id = ` + w + `.organization_id) END`
}

// ReadableFeedback is the condition that the actor may read the feedback w: it
// has the grant on the node.
func ReadableFeedback(w, actor string) string {
	return OnNode(models.GrantFeedbackRead, w+".inventory_id", actor)
}

// ReadsRecord is the condition that the actor may read the work order or the feedback with the id.
func ReadsRecord(id, actor string) string {
	return `(EXISTS (SELECT FROM work_orders w WHERE w.id = ` + id + ` AND ` + ReadableWorkOrder("w", actor) + `)
	OR EXISTS (SELECT FROM feedback w WHERE w.id = ` + id + ` AND ` + ReadableFeedback("w", actor) + `))`
}

// RightsOn are the rows of node_rights of the actor on the node with the id: the
// assignments g with their definitions d. LIMIT makes Postgres look up the
// assignment of each of the actor's identities on the node and on each above, at
// most one. It would otherwise plan for the average identity, and read all that an
// integration was assigned if most others were assigned little.
func RightsOn(node, actor string) string {
	return `inventory_closure c
		CROSS JOIN actor_identities a
		CROSS JOIN LATERAL (SELECT * FROM assignments
			WHERE node_id = c.ancestor_id AND identity_id = a.identity_id AND organization_id = a.organization_id LIMIT 1) g
		CROSS JOIN LATERAL (SELECT * FROM permission_definitions WHERE id = g.definition_id LIMIT 1) d
		WHERE c.node_id = ` + node + ` AND a.actor_id = ` + actor + ` AND (c.depth = 0 OR d.applies_below) AND d.grants <> '{}'`
}

// OnNode is the condition that the actor has the grant on the node.
func OnNode(grant models.Grant, node, actor string) string {
	return `(SELECT true FROM ` + RightsOn(node, actor) + ` AND ` + Among(grant, "d.grants") + ` LIMIT 1) IS TRUE`
}

// Among is the condition that the grants include this one.
func Among(grant models.Grant, grants string) string {
	return `'` + string(grant) + `' = ANY (` + grants + `)`
}

// GrantsOn selects the grants of the actor on the node: an empty array if it does not see the node.
func GrantsOn(node, actor string) string {
	return `ARRAY(SELECT unnest(d.grants) FROM ` + RightsOn(node, actor) + `)`
}

// VisibleNode is the condition under which the actor sees the node: it has any
// permission there (api.md 5.8).
func VisibleNode(node, actor string) string {
	return `(SELECT true FROM ` + RightsOn(node, actor) + ` LIMIT 1)`
}

// UsableIntegration is the condition that an integration may use the service at
// all. i is the integration's row, o its organization's, p its plan's.
const UsableIntegration = `usable(i, o, p)`

// UnusableReason is why an integration that is not deleted may not use the service, for
// people; NULL if it may (UsableIntegration).
const UnusableReason = `CASE WHEN i.disabled_by_service THEN 'The operators of the service have disabled the integration.'
	WHEN NOT i.enabled THEN 'The integration is off.'
	WHEN o.suspended THEN 'The organization is suspended.'
	WHEN NOT p.api THEN 'The plan does not include the API.' END`
