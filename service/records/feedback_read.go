package records

import (
	"context"
	"slices"

	"golang.org/x/text/unicode/norm"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/store"
)

// FeedbackRow is feedback with what its record shows besides its own columns.
type FeedbackRow struct {
	models.Feedback
	Inventory *models.NodeReference
	People    []models.NamedIdentity // as in WorkOrderRow
	Xid       uint64
}

// Position is the row's place in a list.
func (r *FeedbackRow) Position() lists.Position { return lists.Position{Xid: r.Xid, ID: r.ID} }

// Record returns Shown, for a reader or a list.
func (r *FeedbackRow) Record() any { return r.Shown() }

// Shown returns the feedback as GET /issues/{id} shows it.
func (r *FeedbackRow) Shown() *models.FeedbackRecord {
	return &models.FeedbackRecord{
		ID:             r.ID,
		OrganizationID: r.OrganizationID,
		InventoryID:    r.InventoryID,
		Inventory:      *r.Inventory,
		Subject:        r.Subject,
		Description:    r.Description,
		ExternalID:     r.ExternalID,
		Status:         models.StatusOf(r.Status),
		CreatedBy:      r.CreatedBy,
		CreatedAt:      r.CreatedAt,
		ChangedAt:      r.ChangedAt,
		ResolvedAt:     r.ResolvedAt,
		People:         r.People,
	}
}

// Node returns the id of the record's node, and where the node belongs.
func (r *FeedbackRow) Node() (id string, into **models.NodeReference) {
	return r.InventoryID, &r.Inventory
}

// Identities returns the ids of the people in the record, and where they belong.
func (r *FeedbackRow) Identities() (ids []string, into *[]models.NamedIdentity) {
	return []string{r.CreatedBy}, &r.People
}

// listedFeedback is a FeedbackRow of a page.
type listedFeedback struct {
	FeedbackRow
	lists.Shared
}

var (
	listedFeedbackColumns = ownFeedbackColumns + `, ` + lists.SharedColumns
	ownFeedbackColumns    = store.ColumnsOf[models.Feedback]("w") + `, w.changed_xid AS xid`

	// FeedbackReader reads single feedback.
	FeedbackReader = store.NewRecordReader("feedback", FeedbackColumns, access.ReadableFeedback("w", "$2"), (*FeedbackRow).Record, models.PrefixFeedback)
)

// FeedbackColumns are the columns of FeedbackRow for the feedback w.
func FeedbackColumns(people string) string {
	return ownFeedbackColumns + `, ` + store.InventoryOf + `, ` + store.PeopleAmong(people, "w.created_by")
}

// Feedback returns feedback as GET /issues/{id} shows it to the actor, encoded.
// Errors: not_found (including when the actor may not read it), unavailable.
func (s *Records) Feedback(ctx context.Context, actor store.Actor, id string) ([]byte, error) {
	return FeedbackReader.Read(ctx, s.Store, actor, id)
}

// FeedbackFilter restricts a list of feedback. Empty fields restrict nothing.
type FeedbackFilter struct {
	Statuses    []models.FeedbackStatus
	InventoryID string // includes everything below it
	ExternalID  string
	CreatorID   string
	// Text are words of the subject and the external id, for people: the newest with all of them are
	// listed.
	Text string
}

// FeedbackList returns a page of feedback that the actor may read, encoded. An
// organization's feedback is visible to its operator (OperatorIn).
// Errors: invalid_request (a cursor or sync token of another list),
// cursor_expired, unavailable.
func (s *Records) FeedbackList(ctx context.Context, actor store.Actor, filter FeedbackFilter, request lists.ListRequest) ([]byte, error) {
	filter.Statuses = slices.Compact(slices.Sorted(slices.Values(filter.Statuses)))
	q := lists.NewQuery("feedback", listedFeedbackColumns, actor, filter)
	q.ShowsPeople("SELECT created_by FROM page")
	q.NarrowBy(models.GrantFeedbackRead, filter.InventoryID)
	q.OfStatuses(store.TextsOf(filter.Statuses))
	q.WhereText("inventory_id", "IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = @node)", "node", filter.InventoryID)
	if filter.ExternalID != "" {
		q.Where("external_key", "= @key", "key", models.Trim(norm.NFC.String(filter.ExternalID))) // which the index has
		q.Where("external_id", "= @external", "external", norm.NFC.String(filter.ExternalID))
	}
	q.OfCreator(filter.CreatorID)
	return lists.List[listedFeedback](ctx, s.Store, q, request)
}
