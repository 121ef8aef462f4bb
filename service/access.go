package service

import (
	"strings"

	"millwright/models"
)

// An actor may read a work order in three ways (spec section 5, permissions):
// its node allows it, the actor created it where it may create, or it is
// assigned to the actor, to a team of its, or to its organization when the
// actor has incoming work orders. {w} is the work order's row, {actor} the
// actor's identity id. Single reads, lists, writes and deliveries use these.
//
// Each is a scalar subquery, not EXISTS: the planner turns EXISTS into a join
// driven by the rights, which reads a whole list to find its first page.
var (
	readableByCreation   = createdReadably(onNode)
	readableByAssignment = `(SELECT true FROM work_order_assignees x
		JOIN actor_identities a ON a.identity_id = x.identity_id AND a.actor_id = {actor}
		WHERE x.work_order_id = {w}.id AND ` + readsAs + ` LIMIT 1) IS TRUE`
	readableWorkOrder = workOrderReadable(onNode)
	// readableByGrants is readableWorkOrder where the actor's grants on the node are known as {grants}.
	readableByGrants = workOrderReadable(among)
)

// workOrderReadable is the condition with granted saying whether the actor has a grant on the node.
func workOrderReadable(granted func(models.Grant) string) string {
	return `(` + granted(models.GrantWorkOrdersRead) + ` OR ` + createdReadably(granted) + ` OR ` + readableByAssignment + `)`
}

func createdReadably(granted func(models.Grant) string) string {
	return `({w}.created_by = {actor} AND ` + granted(models.GrantWorkOrdersCreate) + `)`
}

// readsAs is the condition under which {actor} reads what is assigned to one of
// the identities it acts as, a row a of actor_identities: what came to its
// organization only with incoming work orders.
const readsAs = `(a.identity_id <> a.organization_id OR EXISTS (SELECT FROM organization_rights o
				WHERE o.actor_id = {actor} AND 'incoming_work_orders' = ANY (o.grants)))`

// readableFeedback is the condition under which an actor may read feedback: its
// node allows it. {w} is the feedback's row.
var readableFeedback = onNode(models.GrantFeedbackRead)

// onNode is the condition that {actor} has the grant on the node of the record {w}.
func onNode(grant models.Grant) string {
	return `(SELECT true FROM node_rights r
		WHERE r.node_id = {w}.inventory_id AND r.actor_id = {actor} AND '` + string(grant) + `' = ANY (r.grants) LIMIT 1) IS TRUE`
}

// among is the condition that {grants} have the grant.
func among(grant models.Grant) string { return `'` + string(grant) + `' = ANY ({grants})` }

// grantsOn are the grants of {actor} on the node {node}; none where it does not see the node.
const grantsOn = `ARRAY(SELECT g FROM node_rights r, unnest(r.grants) g WHERE r.node_id = {node} AND r.actor_id = {actor})`

// usableIntegration is the condition under which an integration may use the
// service at all. {i} is the integration's row, {o} its organization's, {p} its plan's.
const usableIntegration = `({i}.enabled AND NOT {i}.disabled_by_service AND {i}.deleted_at IS NULL
	AND NOT {o}.suspended AND {p}.api)`

// with fills the placeholders of a condition: with(readableWorkOrder, "w", "w", "actor", "$1").
func with(condition string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		condition = strings.ReplaceAll(condition, "{"+pairs[i]+"}", pairs[i+1])
	}
	return condition
}
