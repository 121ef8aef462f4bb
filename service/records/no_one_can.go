package records

import (
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
var inactiveIdentities = `SELECT i.id FROM identities i LEFT JOIN people p ON p.id = i.id
		WHERE i.organization_id = ANY (ARRAY(SELECT @organization::text UNION ALL SELECT company_id FROM service_companies WHERE customer_id = @organization))
			AND i.kind <> 'organization' AND NOT ` + access.JoinedCanAct
