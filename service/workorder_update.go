package service

import (
	"context"
	"slices"

	"millwright/models"
)

// WorkOrderPatch names the fields of a PATCH that were sent; a field that was
// sent as null is set and holds nil.
type WorkOrderPatch struct {
	Title       Sent[string]
	Description Sent[*string]
	Priority    Sent[models.Priority]
	TargetDate  Sent[*models.Time]
	ExternalID  Sent[*string]
}

// Sent is a field that may have been left out.
type Sent[T any] struct {
	Value T
	Set   bool
}

// UpdateWorkOrder changes the fields that were sent (spec section 4, rule 4) and
// answers the work order. Errors: not_found, read_only, permission_denied,
// validation_failed, rule_violation (status) and those of changeWorkOrder.
func (s *Service) UpdateWorkOrder(ctx context.Context, actor Actor, call Call, id string, patch WorkOrderPatch) (WriteResult, error) {
	return s.changeWorkOrder(ctx, actor, call, id, false, func(_ context.Context, c *workOrderChange) error {
		if err := c.requireGrant(models.GrantWorkOrdersUpdate, "change work orders"); err != nil {
			return err
		}
		if fields := checkTargetDate(patch.TargetDate.Value); len(fields) > 0 {
			return models.Invalid(fields...)
		}
		if err := c.applyOperation(models.OperationUpdate); err != nil {
			return err
		}
		c.action = string(models.EventWorkOrderUpdated)
		old := c.state
		fields := slices.Concat(
			set(c, "title", old.Title, patch.Title),
			setNullable(c, "description", old.Description, patch.Description),
			set(c, "priority", old.Priority, patch.Priority),
			setNullable(c, "target_date", old.TargetDate, patch.TargetDate),
		)
		// A reference is the caller's own; changing only it is no event (spec section 3).
		fields = append(fields, setNullable(c, "external_id", old.ExternalID, patch.ExternalID)...)
		if len(fields) > 0 && !slices.Equal(fields, []string{"external_id"}) {
			c.events = []domainEvent{{kind: models.EventWorkOrderUpdated, data: models.JSON{"fields": fields}}}
		}
		return nil
	})
}

// checkTargetDate refuses a time whose year in UTC RFC 3339 cannot write.
func checkTargetDate(at *models.Time) []models.FieldError {
	if at == nil || at.Year() >= 0 && at.Year() <= 9999 {
		return nil
	}
	return []models.FieldError{{Pointer: "/target_date", Code: "value", Detail: "In UTC, the year must be from 0 to 9999."}}
}

// set changes a column when the sent value differs and returns its name then.
func set[T comparable](c *workOrderChange, name string, old T, sent Sent[T]) []string {
	if !sent.Set || sent.Value == old {
		return nil
	}
	c.columns[name] = sent.Value
	c.changes[name] = fromTo(old, sent.Value)
	return []string{name}
}

// setNullable is set for columns that may be null.
func setNullable[T comparable](c *workOrderChange, name string, old *T, sent Sent[*T]) []string {
	if !sent.Set || old == nil && sent.Value == nil || old != nil && sent.Value != nil && *old == *sent.Value {
		return nil
	}
	c.columns[name] = sent.Value
	c.changes[name] = fromTo(old, sent.Value)
	return []string{name}
}
