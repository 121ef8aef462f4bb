package people

import (
	"millwright/models"
	"millwright/service/store"
)

// EndOwnership takes integrations from owners of the organization who no longer may own any,
// and tells all administrators, because those people knew the secrets. What changes who has
// the Integrations permission calls it.
func EndOwnership(t *store.Tx, organizationID string) error {
	lost, err := store.ScanAll[string](t, `
		UPDATE integrations i SET owners = ARRAY(SELECT o FROM unnest(i.owners) o WHERE `+MayOwn("o")+` ORDER BY o)
		WHERE i.organization_id = ? AND i.deleted_at IS NULL AND EXISTS (SELECT FROM unnest(i.owners) o WHERE NOT `+MayOwn("o")+`)
		RETURNING i.id`, organizationID)
	for _, id := range lost {
		if err := NotifySecurity(t, store.Actor{}, organizationID, models.NoticeOwnerLost, id); err != nil {
			return err
		}
	}
	return err
}

// replaceOwner makes the replacement an owner of the person's integrations instead of the person.
// Errors: validation_failed (/replacement).
func replaceOwner(t *store.Tx, actor store.Actor, p lockedPerson, replacement string) error {
	owned, err := store.ScanAll[string](t, `
		UPDATE integrations SET owners = ARRAY(SELECT DISTINCT o FROM unnest(array_replace(owners, CAST(@person AS text), CAST(@replacement AS text))) o ORDER BY o)
		WHERE organization_id = @organization AND deleted_at IS NULL AND @person = ANY (owners) RETURNING id`,
		map[string]any{"person": p.person.ID, "replacement": replacement, "organization": p.organization.ID})
	if err != nil || len(owned) == 0 {
		return err
	}
	may, err := store.ScanOne[bool](t, nil, `SELECT `+MayOwn("?"), replacement)
	switch {
	case err != nil:
		return err
	case !p.organization.Admin:
		return errReplacement("Only administrators name the owners of an integration, and " + p.identity.Name + " owns one.")
	case !may:
		return errReplacement(p.identity.Name + " owns an integration: choose someone with the Integrations permission.")
	}
	for _, id := range owned {
		if err := logSecurity(t, actor, p.organization.ID, "integration.owners_changed", models.NoticeOwnersChanged, id, replacement); err != nil {
			return err
		}
	}
	return nil
}

// MayOwn is the condition that the person may own an integration: an active person
// with the Integrations permission.
func MayOwn(person string) string {
	return `EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = ` + person + ` AND p.deactivated_at IS NULL AND 'integrations' = ANY (r.grants))`
}
