package service

import (
	"context"
	"slices"

	"millwright/models"
	"millwright/service/batch"
)

// feedbackRow is feedback with what its record shows besides its own columns.
type feedbackRow struct {
	models.Feedback
	Inventory, People []byte // as in workOrderRow
	Xid               uint64
}

func (r *feedbackRow) position() position { return position{r.Xid, r.ID} }
func (r *feedbackRow) record() any        { return r }

// node returns the record's node and where its JSON belongs.
func (r *feedbackRow) node() (id string, into *[]byte) { return r.InventoryID, &r.Inventory }

// listedFeedback is a feedbackRow of a page.
type listedFeedback struct {
	feedbackRow
	pageNodes
}

var (
	// feedbackColumns are the columns of feedbackRow for the feedback {w}.
	feedbackColumns = columnsOf[models.Feedback]() + `, ` + inventoryOf + `, ` + peopleAmong("{w}.created_by") + `, {w}.changed_xid AS xid`

	feedback = newRecordReader("feedback", feedbackColumns, readableFeedback, (*feedbackRow).record, models.PrefixFeedback)
)

// queueFeedback queues loading feedback as its GET shows it to the actor.
func (t *tx) queueFeedback(into *feedbackRow, id string, actor Actor) {
	batch.QueueBulkOne(t.Tx, feedback.unchecked[actor.ShowPeople], into, nil, id)
}

// Feedback returns feedback as GET /issues/{id} shows it to the actor, encoded.
// Errors: not_found (including when the actor may not read it), unavailable.
func (s *Service) Feedback(ctx context.Context, actor Actor, id string) ([]byte, error) {
	return feedback.read(ctx, s, actor, id)
}

// FeedbackFilter restricts a list of feedback. Empty fields restrict nothing.
type FeedbackFilter struct {
	Statuses    []models.FeedbackStatus
	InventoryID string // includes everything below it
	ExternalID  string
	// CreatorID is empty in cursors of earlier versions.
	CreatorID string `json:",omitempty"`
}

// FeedbackList returns a page of feedback that the actor may read, encoded. An
// organization's feedback is visible to its operator (OperatorIn).
// Errors: invalid_request (a cursor or sync token of another list),
// cursor_expired, unavailable.
func (s *Service) FeedbackList(ctx context.Context, actor Actor, filter FeedbackFilter, request ListRequest) ([]byte, error) {
	filter.Statuses = slices.Compact(slices.Sorted(slices.Values(filter.Statuses)))
	q := newListQuery("feedback", feedbackColumns, actor, filter)
	q.narrowBy(models.GrantFeedbackRead, filter.InventoryID)
	q.ofStatuses(textsOf(filter.Statuses))
	if filter.InventoryID != "" {
		q.where("{w}.inventory_id IN (SELECT node_id FROM inventory_closure WHERE ancestor_id = @node)", "node", filter.InventoryID)
	}
	if filter.ExternalID != "" {
		q.where("{w}.external_id = @external", "external", filter.ExternalID)
	}
	q.ofCreator(filter.CreatorID)
	return list[listedFeedback](ctx, s, q, request)
}
