package records

import (
	"context"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/effects"
	"millwright/service/store"
)

// write is store.Write, of which a replay shows the record only to those who may read it now
// (api.md 4.17). Errors: Write's, not_found.
func (s *Records) write(
	ctx context.Context, actor store.Actor, key store.Key, status int, lock store.Lock, read func(*pgx.Batch),
	do func(*store.Tx) (id string, record any, err error),
) (store.WriteResult, error) {
	result, err := s.Write(ctx, actor, key, status, lock, read, do)
	if err == nil && result.Replayed {
		err = s.checkReplay(ctx, actor, result)
	}
	if err != nil {
		return store.WriteResult{}, err
	}
	return result, nil
}

// replayableQuery selects whether the @actor may read the record @id or, if it could not at the time of the
// write (@readable), may still give the feedback that it gave then.
var replayableQuery = `SELECT ` + access.ReadsRecord("@id", "@actor") + ` OR NOT @readable::boolean AND EXISTS (
	SELECT FROM feedback w WHERE w.id = @id AND w.created_by = @actor AND ` + access.OnNode(models.GrantFeedbackCreate, "w.inventory_id", "@actor") + `) AS may`

// checkReplay rejects a replay for an actor that could read the record at the time of the write and may
// not now. Errors: not_found, unavailable.
func (s *Records) checkReplay(ctx context.Context, actor store.Actor, replay store.WriteResult) error {
	found, err := store.FindOne[struct{ May bool }](ctx, s.Store, actor.OrganizationID, models.NotFound(), replayableQuery, pgx.NamedArgs{
		"id": replay.RecordID, "actor": actor.IdentityID, "readable": replay.Readable,
	})
	if err != nil {
		return err
	}
	if found.May && (!replay.Readable || actor.HasReadScope(replay.RecordID)) {
		return nil
	}
	return &models.Error{
		Code: models.CodeNotFound, Replayed: true,
		Detail: "This repeats a write that was made. Its record may no longer be read.",
	}
}

// The fields of work orders and feedback (api.md 2.9). The API's schema has the
// same limits; in the console these rules report them.

// checkTitle returns what is wrong with a title or a subject.
func checkTitle(pointer, text string) []models.FieldError {
	if fields := store.CheckBlank(pointer, text); fields != nil {
		return fields
	}
	return store.CheckText(pointer, &text, models.MaxTitle)
}

// checkPriority rejects an unknown priority; "" means that the caller named no priority.
func checkPriority(priority models.Priority) []models.FieldError {
	if priority == "" || slices.Contains(models.Priorities, priority) {
		return nil
	}
	return []models.FieldError{{Pointer: "/priority", Code: "value", Detail: "The priority must be one of none, low, medium and high."}}
}

// CheckTargetDate rejects a time that no calendar has, the year 0, or that RFC 3339
// cannot express in UTC.
func CheckTargetDate(at *models.Time) []models.FieldError {
	if at == nil || at.Year() >= 1 && at.Year() <= 9999 {
		return nil
	}
	return []models.FieldError{{Pointer: "/target_date", Code: "value", Detail: "In UTC, the year must be from 1 to 9999."}}
}

// organizationState is what can forbid a write in an organization. A query that
// loads it embeds it in its row.
type organizationState struct{ ReadOnly, Suspended bool }

// bothOrganizations are the columns of organizationState for the record w and an actor of
// the organization.
func bothOrganizations(organization string) string {
	return `(SELECT bool_or(o.read_only) FROM organizations o WHERE o.id IN (w.organization_id, ` + organization + `)) AS read_only,
		(SELECT bool_or(o.suspended) FROM organizations o WHERE o.id IN (w.organization_id, ` + organization + `)) AS suspended`
}

// readOnlyPolicy is the effect of a read-only organization on a write.
type readOnlyPolicy int

const (
	// rejectReadOnly is for writes that a read-only organization may not make: creating and
	// changing work orders (api.md 4.8).
	rejectReadOnly readOnlyPolicy = iota
	// allowReadOnly is for feedback, comments, and for writes that finish work that has begun: form
	// answers, reviews, and resuming what is on hold.
	allowReadOnly
)

// requireWritable rejects a write that the organization's state forbids. Errors:
// permission_denied (suspended), read_only.
func (s organizationState) requireWritable(policy readOnlyPolicy) error {
	switch {
	case s.Suspended:
		return models.Errorf(models.CodePermissionDenied, "The organization is suspended; changes are not allowed.")
	case s.ReadOnly && policy == rejectReadOnly:
		return models.Errorf(models.CodeReadOnly, "The organization is read-only; creating and changing work orders is not allowed.")
	}
	return nil
}

// changedFields are the fields in which after differs from before, nil for a new record, as the history shows them.
func changedFields(before, after map[string]any) models.JSON {
	changes := models.JSON{}
	for field, value := range after {
		if !reflect.DeepEqual(before[field], value) {
			changes[field] = effects.FromTo(before[field], value)
		}
	}
	return changes
}

func ifSet[T any](field *T) any {
	if field == nil {
		return nil
	}
	return *field
}
