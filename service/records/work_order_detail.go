package records

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// WorkOrderDetail is a work order as its page shows it to a person.
type WorkOrderDetail struct {
	// Record is what GET /work-orders/{id} shows, with its ETag.
	Record models.WorkOrderRecord
	ETag   string
	// Customer is the name of the organization that it belongs to, for people of a service
	// company with incoming work orders; else "". Contact is whom they ask there.
	Customer string
	Contact  *Contact
	Answers  models.AnswersRecord
	// Retired are the ids of questions that are asked no longer.
	Retired []string
	// Answerers are the names of those who answered, by id.
	Answerers map[string]string
	History   HistoryPage
	// SentBack is why the work came back from its review, nil unless it is to be done again.
	SentBack *SentBack
	// Source is the feedback of which it was made, nil if the actor may not read it.
	Source *LinkedRecord
	// Inactive are the assignees who cannot act.
	Inactive []string
	// Forbidden has the reason for each operation that the actor may not do now. Completing has the
	// same reason with and without a review, and so have the two results of a review.
	Forbidden map[models.Operation]error
	// Kept has the reason for each assignee that cannot be removed; it is empty unless the actor may assign.
	Kept map[string]error
}

// Contact is a person whom others ask about a work order.
type Contact struct {
	Name  string  `json:"name"`
	Email *string `json:"email"`
	Phone *string `json:"phone"`
}

// LinkedRecord is work made of feedback, or that feedback. Number and Status are a work order's.
type LinkedRecord struct {
	ID, Title string
	Number    int64
	Status    models.WorkOrderStatus
}

// sourceQuery selects the feedback of which the work order $1 was made, if the actor $2 may read it.
var sourceQuery = `
	SELECT f.id, f.subject AS title, 0::bigint AS number, '' AS status FROM (SELECT feedback_id FROM work_orders WHERE id = $1) w
	CROSS JOIN LATERAL (SELECT * FROM feedback WHERE id = w.feedback_id LIMIT 1) f WHERE ` + access.ReadableFeedback("f", "$2")

// SentBack is what a consultant wrote who sent work back.
type SentBack struct {
	Author
	Comment string
	At      models.Time
}

// sentBackQuery selects a SentBack if the last review of the work order $1 sent it back and it was
// not completed again, by its latest changes, for a person of the organization $2.
var sentBackQuery = `
	SELECT ` + authorColumns("true", "$2") + `, coalesce(h.changes -> 'comment' ->> 'to', '') AS comment, h.created_at AS at
	FROM (SELECT * FROM (SELECT * FROM log WHERE record_id = $1 AND changes IS NOT NULL ORDER BY id DESC LIMIT 500) latest
		WHERE action IN ('work_order.sent_back', 'work_order.sent_to_inspection', 'work_order.completed', 'work_order.cancelled') ORDER BY id DESC LIMIT 1) h
	LEFT JOIN LATERAL (SELECT * FROM identities WHERE id = h.actor_id LIMIT 1) i ON true
	WHERE h.action = 'work_order.sent_back'`

// contactOf selects whom a service company asks about the work order w: who created it or, if
// that is no active person, the first by name of the nearest inventory managers.
var contactOf = `(SELECT jsonb_build_object('name', i.name, 'email', p.email, 'phone', p.phone) FROM people p JOIN identities i ON i.id = p.id
			WHERE p.deactivated_at IS NULL AND p.id = ANY (w.created_by::text || ` + nearestManagers("w.inventory_id", "'{}'::text[]") + `::text[])
			ORDER BY p.id = w.created_by DESC, i.sort_key, i.id LIMIT 1)`

// May reports whether the actor may do the operation now.
func (d WorkOrderDetail) May(operation models.Operation) bool { return d.Forbidden[operation] == nil }

// workOrderDetailRow is what the page and the rules need of a work order.
type workOrderDetailRow struct {
	lockedWorkOrder
	workOrderMember
	// Own are the assignees that belong to the actor's organization.
	Own []string
	// Active are the assignees who can act.
	Active   []string
	Customer *string
	Contact  *Contact
}

var workOrderDetailQuery = `
	SELECT ` + lockedColumns("true", "$2", "$3") + `,
		ARRAY(` + actedIdentities(assignedIn("w.id", "true"), "$2") + `) AS acts_as, ` + onlyReviewer(assignedIn("w.id", isConsultant), "$2") + ` AS only_reviewer,
		` + ownIdentities(assignedIn("w.id", "true"), "$3") + ` AS own, ` + activeIdentities(assignedIn("w.id", "true")) + ` AS active,
		customer.name AS customer, CASE WHEN customer.name IS NOT NULL THEN ` + contactOf + ` END AS contact
	FROM (SELECT * FROM work_orders WHERE id = $1) w ` + grantsOfWorkOrder("$2") + `
	CROSS JOIN LATERAL (SELECT ` + access.CustomerOf("w", "$2", "$3") + ` AS name OFFSET 0) customer`

// WorkOrderDetail returns a work order that the person may read with its answers, a part of its
// history and what the person may do with it, as the writes check it. Errors: not_found, permission_denied for an integration, unavailable.
func (s *Records) WorkOrderDetail(ctx context.Context, actor store.Actor, id string, before int64) (WorkOrderDetail, error) {
	if err := access.RequirePerson(actor, "The work order page"); err != nil {
		return WorkOrderDetail{}, err
	}
	if !models.IsID(id, models.PrefixWorkOrder) {
		return WorkOrderDetail{}, models.NotFound()
	}
	var row workOrderDetailRow
	var answers answersRow
	var answerers []NamedRecord
	var sentBack []SentBack
	var sources []LinkedRecord
	history := historyRead{actor: actor, before: before, limit: shownChanges}
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &row, models.NotFound(), workOrderDetailQuery, id, actor.IdentityID, actor.OrganizationID)
		queueAnswers(pipeline, &answers, id, actor)
		store.QueueAll(pipeline, &answerers, `SELECT DISTINCT i.id, i.name FROM answers a JOIN identities i ON i.id = a.answered_by WHERE a.work_order_id = $1`, id)
		store.QueueAll(pipeline, &sentBack, sentBackQuery, id, actor.OrganizationID)
		store.QueueAll(pipeline, &sources, sourceQuery, id, actor.IdentityID)
		history.queueChanges(pipeline, id)
		return nil
	}, func(pipeline *pgx.Batch) error {
		if !row.Readable {
			return models.NotFound()
		}
		return history.queueNames(pipeline)
	}}, func() (WorkOrderDetail, error) {
		detail, err := row.detail(actor, answers, history)
		detail.Answerers = namesByID(answerers)
		if len(sentBack) > 0 {
			detail.SentBack = &sentBack[0]
		}
		if len(sources) > 0 {
			detail.Source = &sources[0]
		}
		return detail, err
	})
}

// shownChanges limits the changes that a record's page shows.
const shownChanges = 30

// detail returns what the page shows.
func (r *workOrderDetailRow) detail(actor store.Actor, answers answersRow, history historyRead) (detail WorkOrderDetail, err error) {
	detail.Record = *r.Shown()
	if detail.ETag, err = store.ETagOf(detail.Record); err != nil {
		return detail, err
	}
	detail.Customer, detail.Contact = store.TextOf(r.Customer), r.Contact
	detail.Retired, detail.Inactive = answers.Retired, difference(r.Assigned.All(), r.Active)
	if detail.Answers, err = answers.record(); err != nil {
		return detail, err
	}
	detail.History = history.page()
	a := workOrderActor{acting: actor, state: r.lockedWorkOrder, workOrderMember: r.workOrderMember}
	detail.Forbidden, detail.Kept = map[models.Operation]error{}, map[string]error{}
	for _, operation := range models.Operations {
		if err := a.forbids(operation); err != nil {
			detail.Forbidden[operation] = err
		}
	}
	if detail.May(models.OperationComplete) {
		if err := unansweredError(unanswered(detail.Answers)); err != nil {
			detail.Forbidden[models.OperationComplete], detail.Forbidden[models.OperationCompleteToReview] = err, err
		}
	}
	if detail.May(models.OperationAssign) {
		for _, identity := range r.Assigned.All() {
			if err := a.checkUnassign(identity, slices.Contains(r.Own, identity)); err != nil {
				detail.Kept[identity] = err
			}
		}
	}
	return detail, nil
}

// unanswered returns the ids of the required questions without an answer.
func unanswered(answers models.AnswersRecord) []string {
	var missing []string
	for _, q := range answers.Questions {
		if q.Required && !models.Answered(q.Value) {
			missing = append(missing, q.ID)
		}
	}
	return missing
}

// WorkOrderAssignees are those that a person may assign to a work order.
type WorkOrderAssignees struct {
	Choices []Candidate
	// More is true if there are others: search by name.
	More bool
	// OnlyWorkers is true for a service company, which names no consultants.
	OnlyWorkers bool
}

// maxAssigneeChoices bounds the choices of a page.
const maxAssigneeChoices = 50

func assigneeChoicesQuery(candidates string) string {
	return leastLoaded(`
	SELECT i.id, i.name, i.kind, i.sort_key, i.id = ANY ($6::text[]) AS chosen FROM (` + candidates + `) c JOIN identities i ON i.id = c.identity_id
	WHERE (i.organization_id = $2 OR i.id IN (SELECT s.company_id FROM service_companies s WHERE s.customer_id = $2))
		AND i.id <> ALL ($3) AND (i.id = ANY ($6::text[]) OR ($4 = '' OR i.words @@ $4::tsquery) AND (i.kind <> 'integration' OR $4 <> ''))
		AND ` + access.CanAct("i.id") + `
	ORDER BY i.id = ANY ($6::text[]) DESC, ` + byKind + `, i.sort_key, i.id LIMIT $5`)
}

// WorkOrderAssignees returns those whom the person may assign to the work order and whose name
// has the words of the search, after the chosen ones: teams, people, service companies, and integrations
// if there is a search. They are identities connected to its node, or, for a customer's work
// order, the person's own people, teams and integrations (api.md 4.3 and 4.5). Errors:
// not_found, and as for assigning: permission_denied, read_only.
func (s *Records) WorkOrderAssignees(ctx context.Context, actor store.Actor, id, search string, chosen []string) (WorkOrderAssignees, error) {
	if !models.IsID(id, models.PrefixWorkOrder) {
		return WorkOrderAssignees{}, models.NotFound()
	}
	var row workOrderDetailRow
	var a workOrderActor
	var choices []Candidate
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &row, models.NotFound(), workOrderDetailQuery, id, actor.IdentityID, actor.OrganizationID)
		return nil
	}, func(pipeline *pgx.Batch) error {
		if !row.Readable {
			return models.NotFound()
		}
		a = workOrderActor{acting: actor, state: row.lockedWorkOrder}
		if err := a.forbids(models.OperationAssign); err != nil {
			return err
		}
		candidates := connectedTo("$1")
		if a.forCustomer() {
			candidates = `SELECT id AS identity_id FROM identities WHERE organization_id = $2 AND kind <> 'organization' AND $1 <> ''`
		}
		store.QueueAll(pipeline, &choices, assigneeChoicesQuery(candidates),
			row.InventoryID, actor.OrganizationID, row.Assigned.All(), models.WordQuery(models.SearchWords(search), ""), maxAssigneeChoices+1, append([]string{}, chosen...))
		return nil
	}}, func() (WorkOrderAssignees, error) {
		return WorkOrderAssignees{choices[:min(len(choices), maxAssigneeChoices)], len(choices) > maxAssigneeChoices, a.forCustomer()}, nil
	})
}
