package records

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/store"
)

// WorkOrderState is what a work order workflow needs to know. Histories keep
// it, so it holds ids, codes and times, but no names or descriptions.
type WorkOrderState struct {
	// ID is empty if the work order does not exist.
	ID             string
	OrganizationID string
	// IntegrationID is the integration that created it, "" if a person did.
	IntegrationID string `json:",omitempty"`
	models.Dates
	// Required and Answered count the questions of its form that must be answered, and of
	// these the answered ones.
	Required, Answered int
	// Review and LoadedAt are what its clocks need besides the dates.
	Review   models.ReviewPeriods `db:"-"`
	LoadedAt models.Time          `db:"-"`
	// Page is the URL of its page in the console.
	Page string `db:"-" json:",omitempty"`
	// Transitions are those after the time that the caller gave, oldest first.
	Transitions []Transition `db:"-" json:",omitempty"`
}

// FeedbackState is what the workflow of feedback needs to know, like WorkOrderState.
type FeedbackState struct {
	ID             string
	OrganizationID string
	Status         models.FeedbackStatus
	Page           string       `db:"-" json:",omitempty"`
	Transitions    []Transition `db:"-" json:",omitempty"`
}

// Transition is a change of a record's status. A record's transitions have different times.
type Transition struct {
	At models.Time
	// From is "" for the creation.
	From, To string
	// By is the identity id of who made the change.
	By string
}

// maxTransitions bounds how many transitions one load returns: the newest.
const maxTransitions = 200

const transitionsQuery = `
	SELECT h.created_at AS at, coalesce(h.changes -> 'status' ->> 'from', '') AS "from", h.changes -> 'status' ->> 'to' AS "to",
		coalesce(h.actor_id, '') AS by
	FROM history h WHERE h.record_id = @id AND h.created_at > @after AND h.changes ? 'status'
	ORDER BY h.id DESC LIMIT @limit`

// workOrderStateQuery takes from the history when the target date was set, when the review
// began, and since when the work order has been as it is for those who cannot do it.
var workOrderStateQuery = `
	SELECT w.id, w.organization_id, w.status, w.target_date,
		coalesce((SELECT id FROM identities WHERE id = w.created_by AND kind = 'integration'), '') AS integration_id,
		CASE WHEN w.target_date IS NOT NULL THEN (
			SELECT max(h.created_at) FROM history h WHERE h.record_id = w.id AND h.changes ? 'target_date')
		END AS target_set_at,
		CASE WHEN w.status = 'sent_to_inspection' THEN (
			SELECT max(h.created_at) FROM history h WHERE h.record_id = w.id AND h.changes -> 'status' ->> 'to' = w.status)
		END AS in_review_since,
		CASE WHEN ` + noOneCan + ` THEN (
			SELECT max(h.created_at) FROM history h WHERE h.record_id = w.id AND h.changes ?| ARRAY['assignees', 'consultants', 'status'])
		END AS no_one_can_since,
		form.required, form.answered
	FROM work_orders w
	CROSS JOIN LATERAL (
		SELECT count(*) AS required, count(a.question_id) AS answered
		FROM questions q LEFT JOIN answers a ON a.work_order_id = w.id AND a.question_id = q.id
		WHERE q.form_id = w.form_id AND q.required AND NOT q.retired) form
	WHERE w.id = @id`

const feedbackStateQuery = `SELECT id, organization_id, status FROM feedback WHERE id = @id`

// WorkOrderState clears the work order's dirty mark and returns its state with the
// transitions after the time. The state is empty if the work order does not exist.
// Errors: unavailable.
func (s *Records) WorkOrderState(ctx context.Context, id string, after models.Time) (WorkOrderState, error) {
	return loadState(ctx, s.Store, workOrderStateQuery, id, after, func(state *WorkOrderState, transitions []Transition, now models.Time) {
		state.Review, state.LoadedAt, state.Page, state.Transitions = s.ReviewPeriods, now, effects.PageURL(s.Issuer, id), transitions
	})
}

// FeedbackState is WorkOrderState for feedback.
func (s *Records) FeedbackState(ctx context.Context, id string, after models.Time) (FeedbackState, error) {
	return loadState(ctx, s.Store, feedbackStateQuery, id, after, func(state *FeedbackState, transitions []Transition, _ models.Time) {
		state.Page, state.Transitions = effects.PageURL(s.Issuer, id), transitions
	})
}

// loadState clears the dirty mark, then loads the state, in one transaction. The
// DELETE waits for an uncommitted write that set the mark; a later write waits for
// this transaction and leaves its mark. So the state includes every write whose
// mark was cleared.
func loadState[T any](
	ctx context.Context, s *store.Store, query, id string, after models.Time, complete func(*T, []Transition, models.Time),
) (T, error) {
	var found []T
	var transitions []Transition
	var at models.Time
	// The organization is not known yet: the record takes its turn for itself.
	err := s.Run(ctx, id, store.Lock{}, func(reading *pgx.Batch) {
		args := pgx.NamedArgs{"id": id, "after": after, "limit": maxTransitions}
		reading.Queue(`DELETE FROM dirty_records WHERE record_id = @id`, args)
		store.QueueAll(reading, &found, query, args)
		store.QueueAll(reading, &transitions, transitionsQuery, args)
	}, func(t *store.Tx) error {
		at = t.At
		return nil
	})
	var state T
	if err != nil || len(found) == 0 {
		return state, err
	}
	slices.Reverse(transitions)
	complete(&found[0], transitions, at)
	return found[0], nil
}
