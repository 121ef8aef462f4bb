package people

import (
	"millwright/models"
	"millwright/service/store"
)

// SignOut ends the sessions and links of people, except the session. What changes who they are or how they sign in calls
// it: links went to the former e-mail address.
func SignOut(t *store.Tx, exceptSession string, personIDs ...string) error {
	ids := models.TextArray(personIDs)
	if err := t.Exec(`DELETE FROM sessions WHERE person_id = ANY (?) AND id <> ?`, ids, exceptSession); err != nil {
		return err
	}
	return t.Exec(`DELETE FROM sign_in_links WHERE person_id = ANY (?)`, ids)
}

// SignOutOrganization ends the sessions of the people of an organization that is suspended.
func SignOutOrganization(t *store.Tx, organizationID string) error {
	return t.Exec(`DELETE FROM sessions s USING people p WHERE p.id = s.person_id AND p.organization_id = ?`, organizationID)
}

// EndSharedSignIn signs out people who gain permissions, and ends the ways to sign in that others may share: these must not
// gain them too. What gives people permissions calls it.
func EndSharedSignIn(t *store.Tx, personIDs ...string) error {
	if err := SignOut(t, "", personIDs...); err != nil {
		return err
	}
	ids := models.TextArray(personIDs)
	if err := t.Exec(`DELETE FROM openid_accounts WHERE person_id = ANY (?) AND NOT private`, ids); err != nil {
		return err
	}
	return t.Exec(`UPDATE people SET password_hash = NULL WHERE id = ANY (?) AND NOT password_private AND password_hash IS NOT NULL`, ids)
}
