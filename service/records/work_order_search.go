package records

import (
	"cmp"
	"context"
	"slices"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// SearchMe stands for the actor and its teams in a WorkOrderSearch.
const SearchMe = "me"

// ReviewWait is whether a work order waits for a consultant's review.
type ReviewWait string

// The values of ReviewWait that restrict a search.
const (
	ReviewByAnyone ReviewWait = "any"
	ReviewByMe     ReviewWait = "me" // the actor, or a team of the actor, is a consultant, and someone else completed it
)

// WorkOrderSearch restricts work orders for people. Empty fields restrict nothing.
type WorkOrderSearch struct {
	// Text are words of the number, the external id, the title and the node's names and codes, also
	// of those above it, all of which must occur. The last may be the beginning of one.
	Text string
	// Status and Priority restrict nothing if empty.
	Status   models.WorkOrderStatus
	Priority models.Priority
	// ToDo selects work orders in which workers have something to do. Assignee then names a
	// worker, not a consultant.
	ToDo bool `json:",omitempty"`
	// Node is a node's id or its code (external_id): with everything below it unless OnlyNode.
	Node     string
	OnlyNode bool
	// Assignee and Creator are SearchMe, an identity's id, or a part of a name.
	Assignee, Creator string
	// Customer are words of the name of a customer, for people with incoming work orders.
	Customer string `json:",omitempty"`
	// CreatorKind is models.KindPerson or models.KindIntegration.
	CreatorKind models.IdentityKind
	ExternalID  string
	// Due selects work orders in process, by the days of the time zone Zone ("" is UTC).
	Due  Due    `json:",omitempty"`
	Zone string `json:",omitempty"`
	// ByDue sorts by target date, then by priority, rather than newest first. It requires that the
	// other fields select only work orders in process.
	ByDue bool `json:",omitempty"`
	// NoOneCan selects work orders in process that no one can do: no one is assigned, or people
	// were deactivated and teams and integrations deleted.
	NoOneCan bool `json:",omitempty"`
	// Incoming selects customers' work orders in process that are assigned to the actor's service
	// company while no active person or team of the company is assigned.
	Incoming bool `json:",omitempty"`
	Review   ReviewWait
}

// WorkOrderItem is a work order in a list for people, with names next to ids.
type WorkOrderItem struct {
	models.WorkOrder
	Node models.NodeReference
	// Customer is the name of the work order's organization if it is not the actor's.
	Customer string
	// Workers and Consultants are in the record's order.
	Workers, Consultants []models.NamedIdentity
	Creator              models.NamedIdentity
	Overdue              bool
}

// WorkOrderPage is a page of a search.
type WorkOrderPage struct {
	Items []WorkOrderItem
	// Next is the position of the next page, "" on the last one, Previous of the one before.
	Next, Previous string
	// Stopped is true if the page ends because it has looked at as many work orders as one page
	// may. SearchedTo is then when the last one was created or, by due, is due, nil without a date.
	Stopped    bool
	SearchedTo *models.Time
	// Names are what the ids and names of the search stand for.
	Names SearchNames
}

// SearchNames are the records that a search names, as far as the actor may see them.
type SearchNames struct {
	Assignees, Creators []NamedRecord
	// Nodes has the node, if the actor sees one with this id or code.
	Nodes []NamedRecord
}

// NamedRecord is a record's id with its name.
type NamedRecord struct{ ID, Name string }

const (
	// maxLooked limits the work orders of each source that one page looks at: with filters
	// that few match it takes no longer in an organization with many.
	maxLooked = 8_000
	// maxSorted limits the newest work orders in process of someone, or created by someone, that are sorted by due.
	maxSorted = 10_000
	// maxWordMatches limits the matches of words that are looked up one by one. With more, the
	// list is read in its own order.
	maxWordMatches = 2_000
	// maxWordNodes limits the nodes whose work orders are searched for words, maxMixed the queries
	// for work orders with some words in their own fields and the others on their node's path.
	maxWordNodes, maxMixed = 300, 3
	// maxSearchNames limits the people, teams and integrations that a part of a name may name.
	maxSearchNames = 20
	// maxSearchText and maxSearchWords limit a search string.
	maxSearchText, maxSearchWords = 400, 40
	// maxCustomers is of how many customers a service company searches words.
	maxCustomers = 1000
)

// check rejects what no work order can have. Errors: invalid_request.
func (q WorkOrderSearch) check() error {
	bad := func(format string, args ...any) error {
		return models.Errorf(models.CodeInvalidRequest, format, args...)
	}
	switch {
	case q.Status != "" && !slices.Contains(models.WorkOrderStatuses, q.Status):
		return bad("There is no status %q of work orders.", q.Status)
	case q.Priority != "" && !slices.Contains(models.Priorities, q.Priority):
		return bad("There is no priority %q.", q.Priority)
	case q.CreatorKind != "" && q.CreatorKind != models.KindPerson && q.CreatorKind != models.KindIntegration:
		return bad("Work orders are created by a person or an integration, not by %q.", q.CreatorKind)
	case q.Due != "" && !slices.Contains(Dues, q.Due):
		return bad("Work orders are due overdue, today, in the week or later, not %q.", q.Due)
	case q.ByDue && !q.InProcess():
		return bad("Only work orders in process are sorted by due.")
	case q.Review != "" && q.Review != ReviewByAnyone && q.Review != ReviewByMe:
		return bad("A review is awaited from anyone or from me, not from %q.", q.Review)
	}
	for _, text := range []string{q.Text, q.Node, q.Assignee, q.Creator, q.ExternalID, q.Customer} {
		if utf8.RuneCountInString(text) > maxSearchText {
			return bad("A text to search for has at most %d characters.", maxSearchText)
		}
	}
	return nil
}

// statuses are those that the filters allow, nil for all.
func (q WorkOrderSearch) statuses() []string {
	allowed := models.WorkOrderStatuses
	restrict := func(to ...models.WorkOrderStatus) {
		var both []models.WorkOrderStatus
		for _, status := range allowed {
			if slices.Contains(to, status) {
				both = append(both, status)
			}
		}
		allowed = both
	}
	if q.Status != "" {
		restrict(q.Status)
	}
	if q.ToDo {
		restrict(models.Workable()...)
	}
	if q.Due != "" || q.NoOneCan || q.Incoming {
		restrict(models.InProcess()...)
	}
	if q.Review != "" {
		restrict(models.StatusSentToInspection)
	}
	if len(allowed) == len(models.WorkOrderStatuses) {
		return nil
	}
	return store.TextsOf(allowed)
}

// InProcess reports whether the search selects only work orders in process.
func (q WorkOrderSearch) InProcess() bool {
	statuses := q.statuses()
	return statuses != nil && !slices.ContainsFunc(statuses, func(status string) bool {
		return models.WorkOrderStatus(status).Phase() == models.PhaseClosed
	})
}

// SearchWorkOrders returns a page of the work orders that the actor may read. after is Next or
// Previous of another page, "" for the first one. A page looks
// at a bounded number of work orders: with filters that few match it may be short, and say
// so. Errors: permission_denied for an integration, invalid_request (including a name of too
// many), unavailable.
func (s *Records) SearchWorkOrders(ctx context.Context, actor store.Actor, search WorkOrderSearch, after string, limit int) (WorkOrderPage, error) {
	f, err := s.newWorkOrderFinder(actor, search, after)
	if err != nil {
		return WorkOrderPage{}, err
	}
	limit = min(cmp.Or(max(limit, 0), models.DefaultPageSize), models.MaxPageSize)
	var found []foundWorkOrder
	page := func(looked int) func(*pgx.Batch) error {
		return func(pipeline *pgx.Batch) error {
			if found == nil || isCutShort(found, limit) {
				if found != nil {
					f.cuts = found[len(found)-1].Cuts
				}
				queueFound(pipeline, f, &found, f.pageSQL(looked, limit))
			}
			return nil
		}
	}
	rounds := store.Rounds{f.queueNames, f.queueAccess, f.queueMixed, page(4 * limit), page(maxLooked)}
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, rounds, func() (WorkOrderPage, error) { return f.page(found, limit) })
}

// isCutShort reports whether a page is neither full nor the last. A full one may be the last,
// and the next one empty: looking further takes longer than that is worth.
func isCutShort(found []foundWorkOrder, limit int) bool {
	return len(found) <= limit && len(found) > 0 && found[len(found)-1].Cuts > 0
}
