package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// RecordAction is what an operator does to a record by an update of its workflow
// (docs/temporal.md).
type RecordAction struct {
	RecordID string
	// Update and UpdateID are the update's name and id. The action happens once for
	// an id, even if it runs again.
	Update, UpdateID string
	// Person is the identity id of the person as whom the operator acts.
	Person string
	// Approve is a review's decision.
	Approve bool
	// Text is a review's comment or the reason of a cancellation, "" if absent.
	Text string
}

// Acted is what became of an action: what the operator gets, and the state that the
// workflow shows next. Histories store it.
type Acted[State any] struct {
	Result RecordActionResult
	State  State
}

// RecordActionResult is the record after the action. Histories store it.
type RecordActionResult struct {
	ID        string      `json:"id"`
	Status    string      `json:"status"`
	ChangedAt models.Time `json:"changed_at"`
}

// ReviewWorkOrder approves the work or sends it back.
func (r *Records) ReviewWorkOrder(ctx context.Context, action RecordAction, after models.Time) (Acted[records.WorkOrderState], error) {
	return act(ctx, r, action, after, r.LoadWorkOrder, func(ctx context.Context, actor store.Actor, key store.Key) (store.WriteResult, error) {
		return r.Service.Records.ReviewWorkOrder(ctx, actor, key, action.RecordID, records.Review{Approve: action.Approve, Comment: action.Text})
	})
}

// HoldWorkOrder puts the work order on hold.
func (r *Records) HoldWorkOrder(ctx context.Context, action RecordAction, after models.Time) (Acted[records.WorkOrderState], error) {
	return act(ctx, r, action, after, r.LoadWorkOrder, func(ctx context.Context, actor store.Actor, key store.Key) (store.WriteResult, error) {
		return r.Service.Records.HoldWorkOrder(ctx, actor, key, action.RecordID)
	})
}

// ResumeWorkOrder takes the work order off hold.
func (r *Records) ResumeWorkOrder(ctx context.Context, action RecordAction, after models.Time) (Acted[records.WorkOrderState], error) {
	return act(ctx, r, action, after, r.LoadWorkOrder, func(ctx context.Context, actor store.Actor, key store.Key) (store.WriteResult, error) {
		return r.Service.Records.ResumeWorkOrder(ctx, actor, key, action.RecordID)
	})
}

// CancelWorkOrder cancels the work order.
func (r *Records) CancelWorkOrder(ctx context.Context, action RecordAction, after models.Time) (Acted[records.WorkOrderState], error) {
	return act(ctx, r, action, after, r.LoadWorkOrder, func(ctx context.Context, actor store.Actor, key store.Key) (store.WriteResult, error) {
		var reason *string
		if action.Text != "" {
			reason = &action.Text
		}
		return r.Service.Records.CancelWorkOrder(ctx, actor, key, action.RecordID, reason)
	})
}

// ResolveFeedback resolves the feedback.
func (r *Records) ResolveFeedback(ctx context.Context, action RecordAction, after models.Time) (Acted[records.FeedbackState], error) {
	return act(ctx, r, action, after, r.LoadFeedback, func(ctx context.Context, actor store.Actor, key store.Key) (store.WriteResult, error) {
		return r.Service.Records.ResolveFeedback(ctx, actor, key, action.RecordID)
	})
}

// act does something as the action's person, and loads the record with the transitions after
// the time, so that the workflow needs no wake. What the service rejects is final; its message
// is the error's and its code the error's type.
func act[State any](
	ctx context.Context, r *Records, action RecordAction, after models.Time, load func(context.Context, string, models.Time) (State, error),
	do func(context.Context, store.Actor, store.Key) (store.WriteResult, error),
) (acted Acted[State], err error) {
	if !r.OperatorActions {
		return acted, rejection(models.Errorf(models.CodePermissionDenied,
			"Operators may not act on records here: the setting OPERATOR_ACTIONS of the worker is false."))
	}
	ctx = store.WithoutWake(ctx, action.RecordID)
	actor, err := r.Service.Access.OperatorAs(ctx, action.Person, action.RecordID)
	if err != nil {
		return acted, rejection(err)
	}
	key, err := action.key()
	if err != nil {
		return acted, err
	}
	written, err := do(ctx, actor, key)
	if err != nil && err.Error() == models.NotFound().Error() {
		err = models.Errorf(models.CodeNotFound, "The person may not read this record, or it does not exist.")
	}
	if err != nil {
		return acted, rejection(err)
	}
	if acted.Result, err = recordActionResult(written); err == nil {
		acted.State, err = load(ctx, action.RecordID, after)
	}
	return acted, err
}

// key identifies the action among all that its person does: a repetition of the
// update, after a crash or a reset of the workflow, returns the first result.
func (a RecordAction) key() (store.Key, error) {
	encoded, err := json.Marshal(a)
	if err != nil {
		return store.NoKey, fmt.Errorf("encode an action: %w", err)
	}
	digest := sha256.Sum256(encoded)
	return store.ForCall(hex.EncodeToString(digest[:]), "UPDATE", a.Update+" "+a.RecordID, digest[:], ""), nil
}

func recordActionResult(written store.WriteResult) (RecordActionResult, error) {
	var record struct {
		ID        string        `json:"id"`
		Status    models.Status `json:"status"`
		ChangedAt models.Time   `json:"changed_at"`
	}
	if err := json.Unmarshal(written.Body, &record); err != nil {
		return RecordActionResult{}, errors.New("the record cannot be decoded") // the cause may quote it
	}
	return RecordActionResult{record.ID, record.Status.Code, record.ChangedAt}, nil
}
