package records

import "millwright/service/access"

// Incoming is the condition that the work order w in process is a customer's, is assigned to
// the service company @organization, while no active person or team of the company is assigned.
var Incoming = `(w.organization_id <> @organization AND w.status NOT IN ('complete', 'cancelled')
		AND (SELECT true FROM work_order_assignees x WHERE x.work_order_id = w.id AND x.identity_id = @organization LIMIT 1)
		AND (SELECT true FROM work_order_assignees x JOIN identities i ON i.id = x.identity_id
			WHERE x.work_order_id = w.id AND i.organization_id = @organization AND i.kind IN ('person', 'team')
				AND ` + access.CanAct("i.id") + ` LIMIT 1) IS NOT TRUE)`
