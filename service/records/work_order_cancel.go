package records

import (
	"context"

	"millwright/models"
	"millwright/service/store"
)

// CancelWorkOrder cancels a work order in process (api.md 4.6) and
// returns it. Errors: permission_denied, validation_failed, rule_violation (status) and changeWorkOrder's.
func (s *Records) CancelWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id string, reason *string) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationCancel, nil, func(_ context.Context, c *workOrderChange) error {
		if fields := store.CheckText("/reason", reason, models.MaxCancelReason); len(fields) > 0 {
			return models.Invalid(fields...)
		}
		if err := c.apply(); err != nil {
			return err
		}
		c.Action = string(models.EventWorkOrderCancelled)
		if reason != nil {
			c.row.CancelReason = reason
		}
		c.addNotice(models.NoticeCancelled)
		return nil
	})
}
