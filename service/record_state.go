package service

import (
	"context"

	"millwright/models"
	"millwright/service/batch"
)

// WorkOrderState is what the workflow of a work order needs to know. Histories keep
// it, so it holds ids, codes and times, but no names or texts.
type WorkOrderState struct {
	// ID is empty if the work order does not exist.
	ID             string
	OrganizationID string
	models.Dates
	// Mail says that notices wait to be mailed and are not claimed.
	Mail bool
	// Reminders are the past and the future ones, the earliest first.
	Reminders []models.Reminder `db:"-"`
}

// FeedbackState is what the workflow of feedback needs to know, like WorkOrderState.
type FeedbackState struct {
	ID             string
	OrganizationID string
	Status         models.FeedbackStatus
	Mail           bool
}

// waitsForMail is the condition that notices about the record {w} wait to be
// mailed and are not claimed at the time {now}.
const waitsForMail = `EXISTS (SELECT FROM notices n WHERE n.record_id = {w}.id AND n.mail = 'waiting'
			AND (n.mailing_until IS NULL OR n.mailing_until < {now}))`

// workOrderStateQuery takes from the history when the target date was set and when
// the review began.
var workOrderStateQuery = `
	SELECT w.id, w.organization_id, w.status, w.target_date,
		CASE WHEN w.target_date IS NOT NULL THEN (
			SELECT max(h.created_at) FROM history h WHERE h.record_id = w.id AND h.changes ? 'target_date')
		END AS target_set_at,
		CASE WHEN w.status = 'sent_to_inspection' THEN (
			SELECT max(h.created_at) FROM history h WHERE h.record_id = w.id AND h.changes -> 'status' ->> 'to' = w.status)
		END AS in_review_since,
		` + with(waitsForMail, "w", "w", "now", "$2") + ` AS mail
	FROM work_orders w WHERE w.id = $1`

var feedbackStateQuery = `
	SELECT w.id, w.organization_id, w.status, ` + with(waitsForMail, "w", "w", "now", "$2") + ` AS mail
	FROM feedback w WHERE w.id = $1`

// WorkOrderState clears the work order's dirty mark and returns its state, which is
// empty if the work order does not exist. Errors: unavailable.
func (s *Service) WorkOrderState(ctx context.Context, id string) (WorkOrderState, error) {
	return loadState(ctx, s, workOrderStateQuery, id, func(state *WorkOrderState, now models.Time) {
		state.Reminders = state.Dates.Reminders(now)
	})
}

// FeedbackState is WorkOrderState for feedback.
func (s *Service) FeedbackState(ctx context.Context, id string) (FeedbackState, error) {
	return loadState(ctx, s, feedbackStateQuery, id, func(*FeedbackState, models.Time) {})
}

// loadState clears the dirty mark, then loads the state, in one transaction. The
// DELETE waits for an uncommitted write that set the mark; a later write waits for
// this transaction and leaves its mark. So the state includes every write whose
// mark was cleared.
func loadState[T any](ctx context.Context, s *Service, query, id string, complete func(*T, models.Time)) (T, error) {
	var found []T
	var at models.Time
	err := s.write(ctx, func(_ context.Context, t *tx) error {
		t.Queue(`DELETE FROM looks_owed WHERE record_id = $1`, id)
		batch.QueueAll(t.Tx, &found, query, id, t.at)
		at = t.at
		return nil
	})
	var state T
	if err != nil || len(found) == 0 {
		return state, err
	}
	complete(&found[0], at)
	return found[0], nil
}
