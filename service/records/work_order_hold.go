package records

import (
	"context"

	"millwright/models"
	"millwright/service/store"
)

// HoldWorkOrder puts the work order on hold (api.md 3.2, an operation of the
// console) and returns it. Until it is resumed or cancelled, it accepts no changes and
// no answers. Only a person may: one with the permission to change it, or one
// assigned to it in either role, directly or through a team or service company.
// Errors: permission_denied, rule_violation (status) and changeWorkOrder's.
func (s *Records) HoldWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id string) (store.WriteResult, error) {
	return s.hold(ctx, actor, key, id, models.OperationHold, models.NoticeHeld)
}

// ResumeWorkOrder returns the work order from hold to its previous status. The
// permission and the errors are the same as for HoldWorkOrder.
func (s *Records) ResumeWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id string) (store.WriteResult, error) {
	return s.hold(ctx, actor, key, id, models.OperationResume, models.NoticeResumed)
}

func (s *Records) hold(
	ctx context.Context, actor store.Actor, key store.Key, id string, operation models.Operation, kind models.NoticeKind,
) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, key, id, operation, nil, func(_ context.Context, c *workOrderChange) error {
		if err := c.apply(); err != nil {
			return err
		}
		c.Action = string(kind)
		c.addNotice(kind)
		return nil
	})
}
