package records

import (
	"context"
	"unicode/utf8"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/store"
)

// Review is a consultant's decision about completed work.
type Review struct {
	// Approve completes the work order; otherwise it goes back to its workers.
	Approve bool
	// Comment is kept in the history. Sending back requires one: the workers have to know why.
	Comment string
}

// ReviewWorkOrder approves the work order in review, which completes it, or sends
// it back to its workers (api.md 3.2, an operation of the console), and returns it.
// Only a person may who is its consultant or belongs to a team or a service
// company that is, and who did not complete it. A read-only organization allows it because it finishes what
// completing began. Errors: permission_denied, validation_failed, rule_violation
// (own_work, status) and changeWorkOrder's.
func (s *Records) ReviewWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id string, review Review) (store.WriteResult, error) {
	operation, action, kind := models.OperationSendBack, "work_order.sent_back", models.NoticeSentBack
	if review.Approve {
		operation, action, kind = models.OperationApprove, "work_order.approved", models.NoticeCompleted
	}
	return s.changeWorkOrder(ctx, actor, key, id, operation, nil, func(_ context.Context, c *workOrderChange) error {
		if fields := review.check(); len(fields) > 0 {
			return models.Invalid(fields...)
		}
		if err := c.apply(); err != nil {
			return err
		}
		c.Action = action
		if !review.Approve {
			c.row.CompletedBy = nil // until it is completed again
		}
		if !models.IsBlank(review.Comment) {
			c.Changes["comment"] = effects.FromTo(nil, review.Comment)
		}
		c.addNotice(kind)
		return nil
	})
}

// check returns what is wrong with the review.
func (r Review) check() []models.FieldError {
	switch {
	case !r.Approve && models.IsBlank(r.Comment):
		return []models.FieldError{{Pointer: "/comment", Code: "required", Detail: "Sending work back requires a comment that tells the workers why."}}
	case !models.IsPlain(r.Comment):
		return []models.FieldError{{Pointer: "/comment", Code: "value", Detail: models.PlainTextRule}}
	case utf8.RuneCountInString(r.Comment) > models.MaxReviewComment:
		return []models.FieldError{{Pointer: "/comment", Code: "too_long", Detail: "The comment has at most 1,000 characters."}}
	}
	return nil
}
