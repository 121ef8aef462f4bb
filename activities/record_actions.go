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

// RecordActionResult is the record after the action. Histories store it.
type RecordActionResult struct {
	ID        string      `json:"id"`
	Status    string      `json:"status"`
	ChangedAt models.Time `json:"changed_at"`
}

// ReviewWorkOrder approves the work or sends it back.
func (r *Records) ReviewWorkOrder(ctx context.Context, action RecordAction) (RecordActionResult, error) {
	return r.act(ctx, action, func(actor store.Actor, call store.RequestKey) (store.WriteResult, error) {
		return r.Service.ReviewWorkOrder(ctx, actor, call, action.RecordID, records.Review{Approve: action.Approve, Comment: action.Text})
	})
}

// HoldWorkOrder puts the work order on hold.
func (r *Records) HoldWorkOrder(ctx context.Context, action RecordAction) (RecordActionResult, error) {
	return r.act(ctx, action, func(actor store.Actor, call store.RequestKey) (store.WriteResult, error) {
		return r.Service.HoldWorkOrder(ctx, actor, call, action.RecordID)
	})
}

// ResumeWorkOrder takes the work order off hold.
func (r *Records) ResumeWorkOrder(ctx context.Context, action RecordAction) (RecordActionResult, error) {
	return r.act(ctx, action, func(actor store.Actor, call store.RequestKey) (store.WriteResult, error) {
		return r.Service.ResumeWorkOrder(ctx, actor, call, action.RecordID)
	})
}

// CancelWorkOrder cancels the work order.
func (r *Records) CancelWorkOrder(ctx context.Context, action RecordAction) (RecordActionResult, error) {
	return r.act(ctx, action, func(actor store.Actor, call store.RequestKey) (store.WriteResult, error) {
		var reason *string
		if action.Text != "" {
			reason = &action.Text
		}
		return r.Service.CancelWorkOrder(ctx, actor, call, action.RecordID, reason)
	})
}

// ResolveFeedback resolves the feedback.
func (r *Records) ResolveFeedback(ctx context.Context, action RecordAction) (RecordActionResult, error) {
	return r.act(ctx, action, func(actor store.Actor, call store.RequestKey) (store.WriteResult, error) {
		return r.Service.ResolveFeedback(ctx, actor, call, action.RecordID)
	})
}

// act does something as the action's person. What the service rejects is final; its
// sentence is the error's message and its code the error's type.
func (r *Records) act(
	ctx context.Context, action RecordAction, do func(store.Actor, store.RequestKey) (store.WriteResult, error),
) (result RecordActionResult, err error) {
	if !r.OperatorActions {
		return result, rejection(models.Errorf(models.CodePermissionDenied,
			"Operators may not act on records here: the setting OPERATOR_ACTIONS of the worker is false."))
	}
	actor, err := r.Service.OperatorAs(ctx, action.Person, action.RecordID)
	if err != nil {
		return result, rejection(err)
	}
	call, err := action.call()
	if err != nil {
		return result, err
	}
	written, err := do(actor, call)
	if err != nil && err.Error() == models.NotFound().Error() {
		err = models.Errorf(models.CodeNotFound, "The person may not read this record, or it does not exist.")
	}
	if err != nil {
		return result, rejection(err)
	}
	return recordActionResult(written)
}

// call identifies the action among all that its person does: a repetition of the
// update, after a crash or a reset of the workflow, returns the first result.
func (a RecordAction) call() (store.RequestKey, error) {
	encoded, err := json.Marshal(a)
	if err != nil {
		return store.RequestKey{}, fmt.Errorf("encode an action: %w", err)
	}
	digest := sha256.Sum256(encoded)
	return store.RequestKey{Key: hex.EncodeToString(digest[:]), Method: "UPDATE", Path: a.Update + " " + a.RecordID, Fingerprint: digest[:]}, nil
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
