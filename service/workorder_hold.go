package service

import (
	"context"
	"slices"

	"millwright/models"
)

// HoldWorkOrder puts the work order on hold (spec section 3, an action of the
// app) and answers it: until it is resumed or cancelled, it takes no changes and
// no answers. Who may is a person with the permission to change it, or assigned
// to it in either role, alone or by a team or service company. Errors:
// permission_denied, rule_violation (status) and those of changeWorkOrder.
func (s *Service) HoldWorkOrder(ctx context.Context, actor Actor, id string) (WriteResult, error) {
	return s.hold(ctx, actor, id, models.OperationHold, models.NoticeHeld)
}

// ResumeWorkOrder takes the work order off hold, back to the status it had, and
// answers it. Who may, and the errors, are those of HoldWorkOrder.
func (s *Service) ResumeWorkOrder(ctx context.Context, actor Actor, id string) (WriteResult, error) {
	return s.hold(ctx, actor, id, models.OperationResume, models.NoticeResumed)
}

func (s *Service) hold(ctx context.Context, actor Actor, id string, operation models.Operation, kind models.NoticeKind) (WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, Call{}, id, false, func(ctx context.Context, c *workOrderChange) error {
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

// requireInvolved refuses whoever has no hand in the work order.
func (c *workOrderChange) requireInvolved(ctx context.Context) error {
	if err := requirePerson(c.actor, "Putting on hold and resuming"); err != nil || c.hasGrant(models.GrantWorkOrdersUpdate) {
		return err
	}
	assigned, err := c.actsAs(ctx, slices.Concat(c.state.Assignees, c.state.Consultants))
	if err == nil && !assigned {
		err = models.Errorf(models.CodePermissionDenied,
			"Whoever may change a work order on this node, or is assigned to it, puts it on hold and resumes it. The person is neither.")
	}
	return err
}
