package imports

import (
	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/people"
	"millwright/service/store"
)

// signOutSuspended signs out the people of the organization if the import suspends it.
func (r *importRun) signOutSuspended() error {
	id := r.result.OrganizationID
	if stored, known := r.organizations.stored[id]; !known || stored.Suspended || !r.organizations.byID[id].row.Suspended {
		return nil
	}
	return people.SignOutOrganization(r.Tx, id)
}

// signOutChanged signs out the people whose e-mail address the import changes.
func (r *importRun) signOutChanged() error {
	var changed []string
	for _, added := range r.persons.rows {
		if stored, known := r.persons.stored[added.id]; known && stored.Email != added.row.Email {
			changed = append(changed, added.id)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return people.SignOut(r.Tx, "", changed...)
}

// endSharedSignIn ends what others may share of the ways to sign in of people who gain permissions: as administrators, with
// another organization permission definition, or because the import adds permissions to theirs.
func (r *importRun) endSharedSignIn() error {
	had, has, err := r.organizationGrants()
	if err != nil {
		return err
	}
	widened, changed := models.TextArray{}, models.TextArray{}
	for id := range r.organizationDefinitions.stored {
		if !integrations.ContainsAll(had[id], has[id]) {
			widened = append(widened, id)
		}
	}
	for _, added := range r.persons.rows {
		if _, known := r.persons.stored[added.id]; known && r.persons.changed(added.id) {
			changed = append(changed, added.id)
		}
	}
	held, err := store.ScanAll[models.Person](r.Tx, `
		SELECT id, admin, organization_definition_id FROM people
		WHERE organization_id = ? AND (organization_definition_id = ANY (?) OR id = ANY (?)) ORDER BY id`, r.result.OrganizationID, widened, changed)
	if err != nil {
		return err
	}
	var promoted []string
	for _, after := range held {
		before := after
		if stored, known := r.persons.stored[after.ID]; known {
			before = stored
		}
		gains := !integrations.ContainsAll(had[store.TextOf(before.OrganizationDefinitionID)], has[store.TextOf(after.OrganizationDefinitionID)])
		if !before.Admin && (after.Admin || gains) {
			promoted = append(promoted, after.ID)
		}
	}
	if len(promoted) == 0 {
		return nil
	}
	return people.EndSharedSignIn(r.Tx, promoted...)
}

// organizationGrants returns what the organization permission definitions grant before and after the import, by id.
func (r *importRun) organizationGrants() (had, has map[string]models.TextArray, err error) {
	var rows []models.OrganizationPermissionDefinition
	had, has = map[string]models.TextArray{}, map[string]models.TextArray{}
	err = r.DB.Find(&rows, "organization_id = ?", r.result.OrganizationID).Error
	for _, row := range rows {
		had[row.ID], has[row.ID] = row.Grants, row.Grants
	}
	for id, stored := range r.organizationDefinitions.stored {
		had[id] = stored.Grants
	}
	return had, has, err
}
