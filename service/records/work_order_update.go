package records

import (
	"context"
	"slices"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/store"
)

// WorkOrderPatch holds the fields of a PATCH. A field sent as null is Set and
// its Value is nil.
type WorkOrderPatch struct {
	Title       Sent[string]
	Description Sent[*string]
	Priority    Sent[models.Priority]
	TargetDate  Sent[*models.Time]
	ExternalID  Sent[*string]
}

// Sent is a field that a request may leave out.
type Sent[T any] struct {
	Value T
	Set   bool
}

// UpdateWorkOrder changes the fields that were sent (api.md 4.4) and
// returns the work order. Errors: permission_denied, validation_failed,
// rule_violation (status) and changeWorkOrder's.
func (s *Records) UpdateWorkOrder(ctx context.Context, actor store.Actor, key store.Key, id string, patch WorkOrderPatch) (store.WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, key, id, models.OperationUpdate, nil, func(_ context.Context, c *workOrderChange) error {
		fields := append(CheckTargetDate(patch.TargetDate.Value), store.CheckDescribed(patch.Description.Value, patch.ExternalID.Value)...)
		if patch.Title.Set {
			fields = append(fields, checkTitle("/title", patch.Title.Value)...)
		}
		fields = append(fields, checkPriority(patch.Priority.Value)...)
		if len(fields) > 0 {
			return models.Invalid(fields...)
		}
		if err := c.apply(); err != nil {
			return err
		}
		c.Action = string(models.EventWorkOrderUpdated)
		patch.apply(&c.row.WorkOrder)
		changes := workOrderChanges(&c.state.WorkOrderRow, &c.row)
		// The event and the notices do not name the caller's reference (api.md 4.4).
		changed := slices.DeleteFunc([]string{"title", "description", "priority", "target_date"}, func(field string) bool { return changes[field] == nil })
		if len(changed) > 0 {
			c.Events = []effects.Event{{Type: models.EventWorkOrderUpdated, Data: models.JSON{"fields": changed}}}
			c.addNotice(models.NoticeUpdated)
		}
		return nil
	})
}

// apply sets the fields that were sent.
func (p WorkOrderPatch) apply(order *models.WorkOrder) {
	set(&order.Title, p.Title)
	set(&order.Description, p.Description)
	set(&order.Priority, p.Priority)
	set(&order.TargetDate, p.TargetDate)
	set(&order.ExternalID, p.ExternalID)
}

func set[T any](field *T, sent Sent[T]) {
	if sent.Set {
		*field = sent.Value
	}
}
