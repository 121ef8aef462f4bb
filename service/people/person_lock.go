package people

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// managesPeople is the condition under which the actor may manage the people of
// the organization: a person with the permission for it.
func managesPeople(actor, organization string) string {
	return `EXISTS (SELECT FROM people a JOIN organization_rights r ON r.actor_id = a.id
		WHERE a.id = ` + actor + ` AND r.organization_id = ` + organization + ` AND 'people' = ANY (r.grants))`
}

func errNoPeopleGrant() *models.Error {
	return models.Errorf(models.CodePermissionDenied, "Managing people and teams requires the People permission.")
}

// queueMayManagePeople has the round trip fail unless the actor may manage the people and
// teams of its organization. Errors: permission_denied.
func queueMayManagePeople(pipeline *pgx.Batch, actor store.Actor) {
	pipeline.Queue(`SELECT `+managesPeople("$1", "$2"), actor.IdentityID, actor.OrganizationID).QueryRow(func(row pgx.Row) error {
		var may bool
		if err := row.Scan(&may); err != nil || may {
			return err
		}
		return errNoPeopleGrant()
	})
}

// lockedOrganization is an organization whose people an actor manages, locked until the
// transaction ends, so that of two administrators who remove each other one remains.
type lockedOrganization struct {
	ID   string
	Name string
	// May is whether the actor may manage its people, Admin whether the actor is an
	// administrator or an operator, Held the actor's permissions.
	May, Admin bool
	Held       models.TextArray
	// OpenIDRequired is whether its people sign in only with OpenID Connect.
	OpenIDRequired bool `gorm:"column:openid_required"`
}

var lockOrganizationQuery = `
	SELECT o.id, i.name, o.openid_required, @operator OR ` + managesPeople("@actor", "o.id") + ` AS may,
		@operator OR coalesce((SELECT admin FROM people WHERE id = @actor), false) AS admin,
		coalesce((SELECT grants FROM organization_rights WHERE actor_id = @actor), '{}') AS held
	FROM organizations o JOIN identities i ON i.id = o.id
	WHERE o.id = @id AND (@operator OR o.id = @organization)
	FOR NO KEY UPDATE OF o`

// lockOrganization locks an organization for the actor, who must be an operator or a
// person of it with the people permission. Errors: not_found, permission_denied, unavailable.
func lockOrganization(t *store.Tx, actor store.Actor, id string) (lockedOrganization, error) {
	if !models.IsID(id, models.PrefixIdentity) {
		return lockedOrganization{}, models.NotFound()
	}
	locked, err := store.ScanOne[lockedOrganization](t, models.NotFound(), lockOrganizationQuery, map[string]any{
		"id": id, "operator": actor.IsOperator(), "actor": actor.IdentityID, "organization": actor.OrganizationID,
	})
	if err == nil && !locked.May {
		err = errNoPeopleGrant()
	}
	return locked, err
}

// mayManage rejects an actor who would get more permissions than its own by managing
// someone with these: only administrators manage administrators. Errors: permission_denied.
func (o lockedOrganization) mayManage(admin bool, grants []string) error {
	switch {
	case o.Admin:
		return nil
	case admin:
		return models.Errorf(models.CodePermissionDenied, "Only administrators manage administrators.")
	}
	for _, grant := range grants {
		if !slices.Contains(o.Held, grant) {
			return models.Errorf(models.CodePermissionDenied, "Only someone who has the %s permission, or an administrator, manages people with it.", grant)
		}
	}
	return nil
}

// lockedPerson is a person and the organization, both locked until the transaction ends.
type lockedPerson struct {
	organization lockedOrganization
	person       models.Person
	identity     models.Identity
	// grants are the person's organization-wide permissions.
	grants []string
}

// lockPerson locks a person for an actor who may manage the person. Errors: not_found
// (unknown, or another organization's), permission_denied, unavailable.
func lockPerson(t *store.Tx, actor store.Actor, id string) (p lockedPerson, err error) {
	if !models.IsID(id, models.PrefixIdentity) {
		return p, models.NotFound()
	}
	person, err := store.ReadRow[models.Person](t.DB, id)
	if err != nil {
		return p, err
	}
	o, err := lockOrganization(t, actor, person.OrganizationID)
	if err != nil {
		return p, err
	}
	if p, err = o.lockPerson(t, id); err != nil {
		return p, err
	}
	return p, o.mayManage(p.person.Admin, p.grants)
}

// lockPerson locks a person of the organization.
func (o lockedOrganization) lockPerson(t *store.Tx, id string) (p lockedPerson, err error) {
	p.organization = o
	if p.person, err = store.LockRow[models.Person](t, id); err != nil {
		return p, err
	}
	if p.identity, err = store.LockRow[models.Identity](t, id); err != nil {
		return p, err
	}
	p.grants, err = GrantsOfDefinition(t, o.ID, p.person.OrganizationDefinitionID)
	return p, err
}

// GrantsOfDefinition returns the permissions of an organization permission definition, nil
// for no definition. Errors: not_found.
func GrantsOfDefinition(t *store.Tx, organizationID string, id *string) ([]string, error) {
	return grantsOf(t, organizationID, id, id)
}

// GrantsToGive is GrantsOfDefinition for a definition that is to replace held: a retired one is
// given to no one who does not have it. unknown is the error of the field at pointer if there
// is no such definition.
func GrantsToGive(t *store.Tx, organizationID, pointer string, id, held *string) (grants []string, unknown []models.FieldError, err error) {
	grants, err = grantsOf(t, organizationID, id, held)
	if models.CodeOf(err) == models.CodeNotFound {
		return nil, []models.FieldError{store.UnknownField(pointer, "role")}, nil
	}
	return grants, nil, err
}

func grantsOf(t *store.Tx, organizationID string, id, held *string) ([]string, error) {
	if id == nil {
		return nil, nil
	}
	if !models.IsID(*id, models.PrefixDefinition) {
		return nil, models.NotFound()
	}
	definition, err := store.ReadRow[models.OrganizationPermissionDefinition](t.DB.Where("organization_id = ?", organizationID), *id)
	if err == nil && definition.Retired && *id != store.TextOf(held) {
		err = models.NotFound()
	}
	return definition.Grants, err
}

// anotherAdmin rejects that the organization loses its last administrator or, unless by an operator, who makes links for
// others, the last one who can sign in. The organization is locked. Errors: rule_violation.
func anotherAdmin(t *store.Tx, actor store.Actor, p lockedPerson) error {
	if !p.person.Admin || p.person.DeactivatedAt != nil {
		return nil
	}
	may, err := canSignIn(t, p)
	if err != nil {
		return err
	}
	may = may && !actor.IsOperator()
	others, err := store.ScanOne[int](t, nil, `SELECT count(*) FROM people
		WHERE organization_id = @organization AND admin AND deactivated_at IS NULL AND id <> @person AND (NOT @signs_in OR `+waysIn("@openid_required")+`)`,
		map[string]any{"organization": p.organization.ID, "person": p.person.ID, "signs_in": may, "openid_required": p.organization.OpenIDRequired})
	if err == nil && others == 0 {
		last := "last administrator"
		if may {
			last += " who can sign in"
		}
		return models.Violation(models.RuleLastAdministrator, "%s is the organization's %s. Make someone else an administrator first.", p.identity.Name, last)
	}
	return err
}
