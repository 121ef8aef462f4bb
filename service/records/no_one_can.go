package records

import (
	"strconv"

	"millwright/service/access"
	"millwright/service/store"
)

// noOneCan is the condition that no one can do what comes next on the open work order {w}: no
// worker can act or, in review, no consultant. One on hold returns to the status before.
var noOneCan = `({w}.status NOT IN ('complete', 'cancelled') AND (SELECT true FROM work_order_assignees x
			WHERE x.work_order_id = {w}.id AND x.role = CASE coalesce({w}.held_from, {w}.status) WHEN 'sent_to_inspection' THEN 'consultant' ELSE 'worker' END
				AND ` + store.Fill(access.CanAct, "identity", "x.identity_id") + ` LIMIT 1) IS NOT TRUE)`

// inactiveIdentities selects the identities of the organization of @organization and its service companies
// that cannot act: only they can leave a work order to no one.
var inactiveIdentities = `SELECT i.id FROM identities i
		WHERE i.organization_id = ANY (ARRAY(SELECT @organization::text UNION ALL SELECT company_id FROM service_companies WHERE customer_id = @organization))
			AND i.kind <> 'organization' AND NOT ` + store.Fill(access.CanAct, "identity", "i.id")

// MaxNoOneCan bounds the count of NoOneCanQuery.
const MaxNoOneCan = 100

// NoOneCanQuery counts the work orders of WorkOrderSearch.NoOneCan for @actor of
// @organization, up to MaxNoOneCan and among the newest of each inactive identity: for
// inventory managers and administrators, none for others.
var NoOneCanQuery = store.Fill(`
	SELECT CASE WHEN `+access.IsAdmin+` OR EXISTS (SELECT FROM assigned_rights r WHERE r.actor_id = {actor} AND r.inventory_manager) THEN (
		SELECT count(*) FROM (
			SELECT DISTINCT x.id FROM (`+inactiveIdentities+`) i
			CROSS JOIN LATERAL (SELECT work_order_id AS id FROM work_order_assignees WHERE identity_id = i.id AND position >= 0
				ORDER BY work_order_id DESC LIMIT 1000) x
			CROSS JOIN LATERAL (SELECT * FROM work_orders WHERE id = x.id LIMIT 1) {w}
			WHERE `+noOneCan+` AND `+access.ReadableWorkOrder+` LIMIT `+strconv.Itoa(MaxNoOneCan)+`) found)
	ELSE 0 END AS no_one_can`, "w", "w", "actor", "@actor", "organization", "@organization")
