package service

import "millwright/models"

// endOwnership takes integrations from owners of the organization who no longer may own any,
// and tells all administrators, because those people knew the secrets. What changes who has
// the Integrations permission calls it.
func (t *ormTx) endOwnership(organizationID string) error {
	lost, err := scanAll[string](t, `
		UPDATE integrations i SET owners = ARRAY(SELECT o FROM unnest(i.owners) o WHERE `+fill(mayOwn, "person", "o")+` ORDER BY o)
		WHERE i.organization_id = ? AND i.deleted_at IS NULL AND EXISTS (SELECT FROM unnest(i.owners) o WHERE NOT `+fill(mayOwn, "person", "o")+`)
		RETURNING i.id`, organizationID)
	for _, id := range lost {
		if err := t.notifySecurity(Actor{}, organizationID, models.NoticeOwnerLost, id); err != nil {
			return err
		}
	}
	return err
}

// mayOwn is the condition that the person {person} may own an integration: an active person
// with the Integrations permission.
const mayOwn = `EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = {person} AND p.deactivated_at IS NULL AND 'integrations' = ANY (r.grants))`
