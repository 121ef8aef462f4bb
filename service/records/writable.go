package records

import "millwright/models"

// organizationState is what can forbid a write in an organization. A query that
// loads it embeds it in its row.
type organizationState struct{ ReadOnly, Suspended bool }

// bothOrganizations are the columns of organizationState for the record w and an actor of
// {organization}.
const bothOrganizations = `(SELECT bool_or(o.read_only) FROM organizations o WHERE o.id IN (w.organization_id, {organization})) AS read_only,
		(SELECT bool_or(o.suspended) FROM organizations o WHERE o.id IN (w.organization_id, {organization})) AS suspended`

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
