package service

import (
	"context"
	"slices"

	"millwright/models"
)

// HoldWorkOrder puts the work order on hold (spec section 3, an action of the
// app) and returns it. Until it is resumed or cancelled, it accepts no changes and
// no answers. Only a person may: one with the permission to change it, or one
// assigned to it in either role, directly or through a team or service company.
// Errors: permission_denied, rule_violation (status) and those of changeWorkOrder.
func (s *Service) HoldWorkOrder(ctx context.Context, actor Actor, call Call, id string) (WriteResult, error) {
	return s.hold(ctx, actor, call, id, models.OperationHold, models.NoticeHeld)
}

// ResumeWorkOrder returns the work order from hold to its previous status. The
// permission and the errors are those of HoldWorkOrder.
func (s *Service) ResumeWorkOrder(ctx context.Context, actor Actor, call Call, id string) (WriteResult, error) {
	return s.hold(ctx, actor, call, id, models.OperationResume, models.NoticeResumed)
}

func (s *Service) hold(
	ctx context.Context, actor Actor, call Call, id string, operation models.Operation, kind models.NoticeKind,
) (WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, call, id, rejectReadOnly, func(ctx context.Context, c *workOrderChange) error {
		if err := c.requireInvolved(ctx); err != nil {
			return err
		}
		if err := c.applyOperation(operation); err != nil {
			return err
		}
		c.action = string(kind)
		return c.addNoticeToAll(ctx, kind)
	})
}

// requireInvolved rejects an actor that may not hold and resume the work order.
func (c *workOrderChange) requireInvolved(ctx context.Context) error {
	if err := requirePerson(c.actor, "Putting a work order on hold or resuming it"); err != nil || c.hasGrant(models.GrantWorkOrdersUpdate) {
		return err
	}
	assigned, err := c.actsAs(ctx, slices.Concat(c.state.Assigned.Assignees, c.state.Assigned.Consultants))
	if err == nil && !assigned {
		err = models.Errorf(models.CodePermissionDenied,
			"Only a person who may change work orders on this node or is assigned to this one may put it on hold or resume it.")
	}
	return err
}
