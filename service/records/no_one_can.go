package records

import (
	"millwright/models"
	"millwright/service/access"
)

// UntoldNoOneCan is the condition that no one can do what comes next on the open work order w, and no
// one was notified of that since its assignees or its status changed.
var UntoldNoOneCan = `(` + noOneCan + ` AND NOT EXISTS (SELECT FROM notices n WHERE n.record_id = w.id AND n.kind = '` + string(models.NoticeNoOneCan) + `'
		AND n.about >= (SELECT max(h.created_at) FROM history h WHERE h.record_id = w.id AND h.changes ?| ARRAY['assignees', 'consultants', 'status'])))`

// noOneCan is the condition that no one can do what comes next on the open work order w: no
// worker can act or, in review, no consultant can review. One on hold returns to its workers.
var noOneCan = `(w.status NOT IN ('complete', 'cancelled') AND (SELECT true FROM work_order_assignees x
			WHERE x.work_order_id = w.id AND CASE WHEN w.status = 'sent_to_inspection'
				THEN x.role = 'consultant' AND ` + access.CanReview("x.identity_id", "coalesce(w.completed_by, '')") + `
				ELSE x.role = 'worker' AND ` + access.CanAct("x.identity_id") + ` END LIMIT 1) IS NOT TRUE)`

// inactiveIdentities selects the identities of the organization of @organization and its service companies
// that cannot act: mostly they leave a work order to no one. Others are found among what the actor reads.
var inactiveIdentities = `SELECT i.id FROM identities i LEFT JOIN people p ON p.id = i.id
		WHERE i.organization_id = ANY (ARRAY(SELECT @organization::text UNION ALL SELECT company_id FROM service_companies WHERE customer_id = @organization))
			AND i.kind <> 'organization' AND NOT ` + access.JoinedCanAct
