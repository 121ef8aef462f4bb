package service

import (
	"context"
	"slices"

	"millwright/models"
)

// feedbackRow is feedback with what its record shows beside its own columns.
type feedbackRow struct {
	models.Feedback
	People []models.NamedIdentity
	Xid    uint64
}

func (r feedbackRow) position() position { return position{r.Xid, r.ID} }

func (r feedbackRow) record() models.FeedbackRecord {
	record := r.Record()
	record.People = r.People
	return record
}

const feedbackColumns = `
	{w}.id, {w}.organization_id, {w}.inventory_id, {w}.subject, {w}.description, {w}.external_id, {w}.status,
	{w}.created_by, {w}.created_at, {w}.changed_at, {w}.resolved_at,
	CASE WHEN {people} THEN (
		SELECT json_agg(json_build_object('identity_id', i.id, 'kind', i.kind, 'name', i.name,
			'email', p.email, 'phone', p.phone) ORDER BY i.id)
		FROM identities i LEFT JOIN people p ON p.id = i.id WHERE i.id = {w}.created_by
	) END AS people,
	{w}.changed_xid AS xid`

// FeedbackFilter narrows a list of feedback; empty fields do not.
type FeedbackFilter struct {
	Statuses    []models.FeedbackStatus
	InventoryID string // with everything below
	ExternalID  string
}

// Feedback returns feedback as GET /issues/{id} shows it, encoded. Errors:
// not_found (also when the actor may not read it), unavailable.
func (s *Service) Feedback(ctx context.Context, actor Actor, id string) ([]byte, error) {
	return feedback.one(ctx, s, actor, id)
}

// FeedbackList returns a page of the feedback the actor may read, encoded.
// Errors: invalid_request, cursor_expired, unavailable.
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
	return list(ctx, s, q, request, feedbackRow.record)
}
