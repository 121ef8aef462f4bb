package service

import (
	"context"

	"millwright/models"
)

// HoldWorkOrder puts the work order on hold (spec section 3, an action of the
// app) and returns it. Until it is resumed or cancelled, it accepts no changes and
// no answers. Only a person may: one with the permission to change it, or one
// assigned to it in either role, directly or through a team or service company.
// Errors: permission_denied, rule_violation (status) and changeWorkOrder's.
func (s *Service) HoldWorkOrder(ctx context.Context, actor Actor, call RequestKey, id string) (WriteResult, error) {
	return s.hold(ctx, actor, call, id, ActionHold, models.NoticeHeld)
}

// ResumeWorkOrder returns the work order from hold to its previous status. The
// permission and the errors are the same as for HoldWorkOrder.
func (s *Service) ResumeWorkOrder(ctx context.Context, actor Actor, call RequestKey, id string) (WriteResult, error) {
	return s.hold(ctx, actor, call, id, ActionResume, models.NoticeResumed)
}

func (s *Service) hold(
	ctx context.Context, actor Actor, call RequestKey, id string, action WorkOrderAction, kind models.NoticeKind,
) (WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, call, id, action, func(ctx context.Context, c *workOrderChange) error {
		if err := c.apply(); err != nil {
			return err
		}
		c.action = string(kind)
		return c.addNoticeToAll(ctx, kind)
	})
}
