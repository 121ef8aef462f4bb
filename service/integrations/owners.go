package integrations

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/people"
	"millwright/service/store"
)

// SetIntegrationOwners makes the people the integration's owners, instead of those who are.
// Only administrators and operators may; the people need the Integrations permission. An
// owner who leaves knew the secrets: renew them. Errors: not_found, permission_denied,
// validation_failed (/owners/n), *FormStaleError, unavailable.
func (s *Integrations) SetIntegrationOwners(ctx context.Context, actor store.Actor, key store.Key, id string, owners []string) (Record, error) {
	return s.updateIntegration(ctx, actor, key, id, "integration.owners_changed", func(t *store.Tx, r *integrationRows) (bool, error) {
		if !r.integration.Rights.Admin {
			return false, models.Errorf(models.CodePermissionDenied, "Only administrators name the owners of an integration.")
		}
		wanted := models.TextArray{}
		wanted = append(wanted, owners...)
		slices.Sort(wanted)
		wanted = slices.Compact(wanted)
		able, err := store.ScanAll[string](t, `SELECT i.id FROM identities i WHERE i.id = ANY (?) AND i.organization_id = ? AND `+people.MayOwn("i.id"),
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
		if err := store.Invalid(fields); err != nil {
			return false, err
		}
		before := r.integration.Owners
		if slices.Equal(before, wanted) {
			return false, nil
		}
		r.integration.Owners = wanted
		if err := t.UpdateColumns(&r.integration.Integration, "owners"); err != nil {
			return false, err
		}
		return true, people.NotifySecurity(t, actor, r.integration.OrganizationID, models.NoticeOwnersChanged, id, append(slices.Clone(before), wanted...)...)
	})
}

// Owner is a person who owns an integration, or may.
type Owner struct{ ID, Name string }

// PossibleOwners returns the people who may own integrations of the actor's organization, at
// most 200, by name. Errors: permission_denied, unavailable.
func (s *Integrations) PossibleOwners(ctx context.Context, actor store.Actor) ([]Owner, error) {
	var found []Owner
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		access.QueueMayManage(pipeline, actor)
		store.QueueAll(pipeline, &found, `
			SELECT i.id, i.name FROM organization_rights r JOIN people p ON p.id = r.actor_id JOIN identities i ON i.id = p.id
			WHERE r.organization_id = $1 AND p.deactivated_at IS NULL AND 'integrations' = ANY (r.grants)
			ORDER BY i.sort_key, i.id LIMIT $2`, actor.OrganizationID, inventory.MaxChoices)
		return nil
	}, func() ([]Owner, error) { return found, nil })
}
