package service

import (
	"context"
	"slices"

	"millwright/models"
)

// WorkOrderState is what the workflow of a work order goes by. Histories keep
// it, so it holds ids, codes and times: no name, title or text.
type WorkOrderState struct {
	// ID is empty when the work order is gone.
	ID             string
	OrganizationID string
	models.Dates
	// Mail says that notices wait to be mailed and nobody has them in hand.
	Mail bool
	// Reminders are those made or still to come, the earliest first.
	Reminders []models.Reminder `db:"-"`
}

// FeedbackState is what the workflow of feedback goes by: as WorkOrderState.
type FeedbackState struct {
	ID             string
	OrganizationID string
	Status         models.FeedbackStatus
	Mail           bool
}

// waitsForMail is the condition that notices about the record {w} wait to be
// mailed at the time {now}.
const waitsForMail = `EXISTS (SELECT FROM notices n WHERE n.record_id = {w}.id AND n.mail = 'waiting'
			AND (n.mailing_until IS NULL OR n.mailing_until < {now}))`

// Since when a target date stands, and a review waits, the history knows.
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

// WorkOrderState takes away the mark that the work order's workflow has to look,
// and returns what it sees; an empty state when the work order is gone. Errors:
// unavailable.
func (s *Service) WorkOrderState(ctx context.Context, id string) (WorkOrderState, error) {
	return look(ctx, s, workOrderStateQuery, id, func(state *WorkOrderState, now models.Time) {
		state.Reminders = state.Dates.Reminders(now)
	})
}

// FeedbackState is WorkOrderState for feedback.
func (s *Service) FeedbackState(ctx context.Context, id string) (FeedbackState, error) {
	return look(ctx, s, feedbackStateQuery, id, func(*FeedbackState, models.Time) {})
}

// look takes the mark away, then reads the state. A writer that wrote the mark
// again and has not committed is waited for; one that writes it later waits for
// this transaction, and its mark stays. So the state has all whose mark is gone.
func look[T any](ctx context.Context, s *Service, query, id string, complete func(*T, models.Time)) (T, error) {
	var found []T
	var at models.Time
	err := s.write(ctx, func(_ context.Context, t *tx) error {
		t.queue(`DELETE FROM looks_owed WHERE record_id = $1`, id)
		queueAll(t, &found, query, id, t.at)
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

// Remind leaves the reminder's notices, once for each person however often it is
// called: about the target date to the people of the work order's workers, about
// the review to those of its consultants. It reports whether the reminder still
// applied; otherwise it left nothing. Errors: unavailable.
func (s *Service) Remind(ctx context.Context, id string, kind models.NoticeKind, about models.Time) (applied bool, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		var found []WorkOrderState
		t.lock(lockWorkOrder, id)
		queueAll(t, &found, workOrderStateQuery, id, t.at)
		if err := t.flush(ctx); err != nil {
			return err
		}
		applied = false
		for _, state := range found { // one, or none when it is gone
			reminders := state.Dates.Reminders(t.at)
			n := slices.IndexFunc(reminders, func(r models.Reminder) bool { return r.Is(kind, about) })
			if applied = n >= 0; applied {
				t.remind(id, reminders[n])
			}
		}
		return nil
	})
	return applied, err
}

// remind queues a notice for each person whom the reminder is for. They come in
// one order, so that two who do the same do not lock each other out.
func (t *tx) remind(id string, reminder models.Reminder) {
	assigned := `ARRAY(SELECT x.identity_id::text FROM work_order_assignees x WHERE x.work_order_id = $1::text AND x.role = $2)`
	t.queue(`
		INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, about)
		SELECT p.organization_id, p.id, $3, $1::text, $4, $5
		FROM people p WHERE p.id IN (`+with(peopleOf, "identities", assigned)+`)
		ORDER BY p.id
		ON CONFLICT (record_id, person_id, kind, about) WHERE about IS NOT NULL DO NOTHING`,
		id, reminder.Role(), reminder.Kind, t.at, reminder.About)
}
