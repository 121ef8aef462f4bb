package people

import (
	"millwright/models"
	"millwright/service/store"
)

// EndOwnership takes integrations from owners of the organization who no longer may own any,
// and tells all administrators, because those people knew the secrets. What changes who has
// the Integrations permission calls it.
func EndOwnership(t *store.ORMTx, organizationID string) error {
	lost, err := store.ScanAll[string](t, `
		UPDATE integrations i SET owners = ARRAY(SELECT o FROM unnest(i.owners) o WHERE `+store.Fill(MayOwn, "person", "o")+` ORDER BY o)
		WHERE i.organization_id = ? AND i.deleted_at IS NULL AND EXISTS (SELECT FROM unnest(i.owners) o WHERE NOT `+store.Fill(MayOwn, "person", "o")+`)
		RETURNING i.id`, organizationID)
	for _, id := range lost {
		if err := NotifySecurity(t, store.Actor{}, organizationID, models.NoticeOwnerLost, id); err != nil {
			return err
		}
	}
	return err
}

// MayOwn is the condition that the person {person} may own an integration: an active person
// with the Integrations permission.
const MayOwn = `EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = {person} AND p.deactivated_at IS NULL AND 'integrations' = ANY (r.grants))`
