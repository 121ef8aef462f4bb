package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// SetIntegrationOwners makes the people the integration's owners, instead of those who are.
// Only administrators and operators may; the people need the Integrations permission. An
// owner who leaves knew the secrets: renew them. Errors: not_found, permission_denied,
// validation_failed (/owners/n), *FormStaleError, unavailable.
func (s *Service) SetIntegrationOwners(ctx context.Context, actor Actor, id string, owners []string) (IntegrationRecord, error) {
	return s.updateIntegration(ctx, actor, id, "integration.owners_changed", func(t *ormTx, r *integrationRows) (bool, error) {
		if !r.integration.Rights.Admin {
			return false, models.Errorf(models.CodePermissionDenied, "Only administrators name the owners of an integration.")
		}
		wanted := models.TextArray{}
		wanted = append(wanted, owners...)
		slices.Sort(wanted)
		wanted = slices.Compact(wanted)
		able, err := scanAll[string](t, `SELECT i.id FROM identities i WHERE i.id = ANY (?) AND i.organization_id = ? AND `+fill(mayOwn, "person", "i.id"),
			wanted, r.integration.OrganizationID)
		if err != nil {
			return false, err
		}
		var fields []models.FieldError
		for n, person := range owners {
			if !slices.Contains(able, person) {
				fields = append(fields, models.FieldError{Pointer: fmt.Sprintf("/owners/%d", n), Code: "unknown", Detail: "An owner is an active person of the organization with the Integrations permission."})
			}
		}
		if err := invalid(fields); err != nil {
			return false, err
		}
		before := r.integration.Owners
		if slices.Equal(before, wanted) {
			return false, nil
		}
		r.integration.Owners = wanted
		if err := t.update(&r.integration.Integration, "owners"); err != nil {
			return false, err
		}
		return true, t.notifySecurity(actor, r.integration.OrganizationID, models.NoticeOwnersChanged, id, append(slices.Clone(before), wanted...)...)
	})
}

// IntegrationOwner is a person who owns an integration, or may.
type IntegrationOwner struct{ ID, Name string }

// PossibleOwners returns the people who may own integrations of the actor's organization, at
// most 200, by name. Errors: permission_denied, unavailable.
func (s *Service) PossibleOwners(ctx context.Context, actor Actor) ([]IntegrationOwner, error) {
	var found []IntegrationOwner
	return read(ctx, s, actor.OrganizationID, func() ([]IntegrationOwner, error) { return found, nil }, func(pipeline *pgx.Batch) error {
		queueMayManage(pipeline, actor)
		queueAll(pipeline, &found, `
			SELECT i.id, i.name FROM organization_rights r JOIN people p ON p.id = r.actor_id JOIN identities i ON i.id = p.id
			WHERE r.organization_id = $1 AND p.deactivated_at IS NULL AND 'integrations' = ANY (r.grants)
			ORDER BY lower(i.name), i.id LIMIT $2`, actor.OrganizationID, maxChoices)
		return nil
	})
}
