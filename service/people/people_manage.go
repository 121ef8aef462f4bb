package people

import (
	"cmp"
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strings"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/store"
)

// PersonAccess is a person as someone who manages people sees and changes them.
type PersonAccess struct {
	ID             string  `json:"id"`
	OrganizationID string  `json:"organization_id"`
	Name           string  `json:"name"`
	Email          string  `json:"email"`
	Admin          bool    `json:"admin"`
	DefinitionID   *string `json:"organization_definition_id"`
	// DeactivatedAt is when the person lost access, nil for people who have it.
	DeactivatedAt *models.Time `json:"deactivated_at"`
}

func (p lockedPerson) access() PersonAccess {
	return PersonAccess{
		ID: p.person.ID, OrganizationID: p.organization.ID, Name: p.identity.Name, Email: p.person.Email, Admin: p.person.Admin,
		DefinitionID: p.person.OrganizationDefinitionID, DeactivatedAt: p.person.DeactivatedAt,
	}
}

// Invitation is what a person is invited with.
type Invitation struct {
	Email string
	// Name is "" if the e-mail address is to name the person, who may change it.
	Name  string
	Admin bool
	// DefinitionID is the organization permission definition, nil for no permissions.
	DefinitionID *string
	// TeamID names the team to join, if any.
	TeamID string
	// Node is the id or the code of a node, and RoleID the permission definition that the person gets there, if any.
	Node, RoleID string
}

// InvitePerson creates a person of the organization, and makes the link with which the
// person chooses a password; administrators are told of a person with permissions. For a
// person who is there and has never signed in, it only makes a link and gives team and role: another name or
// permissions are rejected. Errors: not_found, permission_denied, validation_failed, rate_limited, unavailable.
func (s *People) InvitePerson(ctx context.Context, actor store.Actor, key store.Key, organizationID string, in Invitation) (PersonAccess, LinkEmail, error) {
	var link LinkEmail
	var access PersonAccess
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		o, err := lockOrganization(t, actor, organizationID)
		if err != nil {
			return err
		}
		p, err := invited(t, actor, o, in)
		if err != nil {
			return err
		}
		access = p.access()
		// Its Log Record is the first: the form is about the person.
		if link, err = linkFor(t, actor, p, false); err != nil {
			return err
		}
		return in.place(ctx, t, actor, p.person.ID)
	})
	return access, link, err
}

// place adds the invited person to the team and gives the role on the node. Errors: permission_denied,
// validation_failed (/team, /node, /definition_id).
func (in Invitation) place(ctx context.Context, t *store.Tx, actor store.Actor, personID string) error {
	if in.TeamID != "" {
		l, err := lockTeam(t, actor, in.TeamID)
		if models.CodeOf(err) == models.CodeNotFound {
			err = models.Invalid(store.UnknownField("/team", "team"))
		}
		if err != nil {
			return err
		}
		changed, err := addMembers(t, actor, l, []string{personID})
		if err == nil && changed {
			err = l.save(t, actor, "team.member_added")
		}
		if err != nil {
			return err
		}
	}
	if in.Node == "" && in.RoleID == "" {
		return nil
	}
	return inventory.AssignAt(ctx, t, actor, store.NoKey, in.Node, personID, in.RoleID)
}

// invited returns the person of an invitation, whom it creates unless there is one.
func invited(t *store.Tx, actor store.Actor, o lockedOrganization, in Invitation) (p lockedPerson, err error) {
	in.Email = strings.TrimSpace(in.Email)
	fields := checkEmail(in.Email)
	name := cmp.Or(models.Trim(in.Name), nameFrom(in.Email))
	if len(fields) == 0 {
		fields = store.CheckActorName(name)
	}
	if in.Node == "" && in.RoleID != "" {
		fields = append(fields, models.FieldError{Pointer: "/node", Code: "required", Detail: "Enter the place where the person gets the role."})
	}
	if in.Node != "" && in.RoleID == "" {
		fields = append(fields, models.FieldError{Pointer: "/definition_id", Code: "required", Detail: "Choose the role that the person gets there."})
	}
	grants, unknown, err := GrantsToGive(t, o.ID, "/definition", in.DefinitionID, nil)
	if err != nil {
		return p, err
	}
	if err := store.Invalid(append(fields, unknown...)); err != nil {
		return p, err
	}
	if err := o.mayManage(in.Admin, grants); err != nil {
		return p, err
	}
	p.organization = o
	err = t.DB.Take(&p.person, "organization_id = ? AND folded_email = ?", o.ID, models.Fold(in.Email)).Error
	if store.NotFound(err) {
		in.Name = name
		return p, createPerson(t, actor, &p, in)
	}
	if err != nil {
		return p, err
	}
	if p, err = invitedAgain(t, o, p.person.ID); err != nil {
		return p, err
	}
	return p, store.Invalid(in.differences(p))
}

// differences are the fields in which the invitation differs from the person who is there.
func (in Invitation) differences(p lockedPerson) (fields []models.FieldError) {
	differs := func(pointer, detail string) {
		fields = append(fields, models.FieldError{Pointer: pointer, Code: "value", Detail: "This person is in the organization already, " + detail + ". Change that on the person's page."})
	}
	if name := models.Trim(in.Name); name != "" && models.Fold(name) != models.Fold(p.identity.Name) {
		differs("/name", "as "+p.identity.Name)
	}
	if in.DefinitionID != nil && *in.DefinitionID != store.TextOf(p.person.OrganizationDefinitionID) {
		differs("/definition", "with other permissions")
	}
	if in.Admin && !p.person.Admin {
		differs("/admin", "and is no administrator")
	}
	return fields
}

// invitedAgain returns a person who is invited once more. Errors: validation_failed if the
// person needs no invitation, permission_denied.
func invitedAgain(t *store.Tx, o lockedOrganization, id string) (lockedPerson, error) {
	p, err := o.lockPerson(t, id)
	if err != nil {
		return p, err
	}
	taken := func(detail string) error {
		return models.Invalid(models.FieldError{Pointer: "/email", Code: "taken", Detail: "A person with this e-mail address " + detail})
	}
	if p.person.DeactivatedAt != nil {
		return p, taken("was deactivated. Activate the person instead.")
	}
	if may, err := canSignIn(t, p); err != nil || may {
		return p, cmp.Or(err, taken("can sign in already."))
	}
	return p, o.mayManage(p.person.Admin, p.grants)
}

func createPerson(t *store.Tx, actor store.Actor, p *lockedPerson, in Invitation) error {
	id, err := t.NewID(models.PrefixIdentity)
	if err != nil {
		return err
	}
	p.identity = models.Identity{ID: id, OrganizationID: p.organization.ID, Kind: models.KindPerson, Searched: models.Searched{Name: in.Name}, CreatedAt: t.At, ChangedAt: t.At}
	p.person = models.Person{ID: id, OrganizationID: p.organization.ID, Email: in.Email, Admin: in.Admin, OrganizationDefinitionID: in.DefinitionID}
	if err := t.DB.Create(&p.identity).Error; err != nil {
		return err
	}
	if err := t.DB.Create(&p.person).Error; err != nil || !in.Admin && in.DefinitionID == nil {
		return err
	}
	return NotifySecurity(t, actor, p.organization.ID, models.NoticeRoleChanged, id)
}

// nameFrom is the name of a person who is invited without one: the part of the e-mail address
// before the @, the whole address if that part is no name for a person.
func nameFrom(email string) string {
	name, _, _ := strings.Cut(email, "@")
	if models.IsReservedName(name) {
		return email
	}
	return name
}

// checkEmail returns what is wrong with the e-mail address of a person.
func checkEmail(email string) []models.FieldError {
	field := models.FieldError{Pointer: "/email", Code: "value", Detail: "Enter an e-mail address, such as ann@example.com."}
	if address, err := mail.ParseAddress(email); err != nil || address.Address != email || len(email) > 254 || !models.IsText(email) {
		return []models.FieldError{field}
	}
	return nil
}

// changePerson changes a person for an actor in one transaction. change reports whether
// anything is different, since only then the action is logged. Errors: lockPerson's
// and change's, *FormStaleError.
func (s *People) changePerson(ctx context.Context, actor store.Actor, key store.Key, id, action string, change func(*store.Tx, *lockedPerson) (changed bool, err error)) (PersonAccess, error) {
	var access PersonAccess
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		p, err := lockPerson(t, actor, id)
		if err != nil {
			return err
		}
		if err := t.Matches(ctx, key, p.access(), p.organization.ID, id); err != nil {
			return err
		}
		changed, err := change(t, &p)
		if err != nil {
			return err
		}
		access = p.access()
		if !changed {
			return nil
		}
		p.identity.ChangedAt = t.At.After(p.identity.ChangedAt)
		if err := t.UpdateColumns(&p.identity, "changed_at"); err != nil {
			return err
		}
		if err := EndOwnership(t, p.organization.ID); err != nil {
			return err
		}
		return t.Log(actor, p.organization.ID, action, id)
	})
	return access, err
}

// AccessChange is what a person may do in the organization from now on.
type AccessChange struct {
	Admin bool
	// DefinitionID is the organization permission definition, nil for no permissions.
	DefinitionID *string
	// ConfirmedEmail is the person's e-mail address as the actor has confirmed it. It is only
	// needed if the person gains permissions.
	ConfirmedEmail string
}

// PromotionError is returned if a person would gain permissions, which requires a confirmation of the
// e-mail address: someone who reads its e-mails gets them.
type PromotionError struct{ Name, Email string }

// Error returns a sentence for people.
func (e *PromotionError) Error() string {
	return fmt.Sprintf("Confirm the e-mail address of %s, who gains permissions.", e.Name)
}

// ChangePersonAccess makes a person an administrator or not, and sets the organization
// permission definition. One administrator always remains. Someone who gains permissions
// is signed out and loses the ways to sign in that others may share; if none is left, it
// returns a link, nil otherwise. Errors: not_found, permission_denied, validation_failed,
// rule_violation last_administrator, *PromotionError, *FormStaleError, rate_limited,
// unavailable.
func (s *People) ChangePersonAccess(ctx context.Context, actor store.Actor, key store.Key, id string, change AccessChange) (access PersonAccess, link *LinkEmail, err error) {
	access, err = s.changePerson(ctx, actor, key, id, "person.access_changed", func(t *store.Tx, p *lockedPerson) (bool, error) {
		link = nil
		grants, unknown, err := GrantsToGive(t, p.organization.ID, "/definition", change.DefinitionID, p.person.OrganizationDefinitionID)
		if err == nil {
			err = store.Invalid(unknown)
		}
		if err == nil {
			err = p.organization.mayManage(change.Admin, grants)
		}
		if err == nil && !change.Admin {
			err = anotherAdmin(t, actor, *p)
		}
		if err != nil || p.person.Admin == change.Admin && EqualText(p.person.OrganizationDefinitionID, change.DefinitionID) {
			return false, err
		}
		promoted := p.gains(change.Admin, grants)
		if promoted && change.ConfirmedEmail != p.person.Email {
			return false, &PromotionError{p.identity.Name, p.person.Email}
		}
		p.person.Admin, p.person.OrganizationDefinitionID = change.Admin, change.DefinitionID
		if err := t.UpdateColumns(&p.person, "admin", "organization_definition_id"); err != nil {
			return false, err
		}
		if promoted {
			if err := EndSharedSignIn(t, id); err != nil {
				return false, err
			}
			if link, err = linkIfNone(t, actor, *p); err != nil {
				return false, err
			}
		}
		return true, NotifySecurity(t, actor, p.organization.ID, models.NoticeRoleChanged, id, id)
	})
	return access, link, err
}

// gains reports whether the person would get permissions that it does not have.
func (p lockedPerson) gains(admin bool, grants []string) bool {
	return !p.person.Admin && (admin || slices.ContainsFunc(grants, func(grant string) bool { return !slices.Contains(p.grants, grant) }))
}

// linkIfNone makes a link for a person who cannot sign in otherwise, nil for others.
func linkIfNone(t *store.Tx, actor store.Actor, p lockedPerson) (*LinkEmail, error) {
	may, err := canSignIn(t, p)
	if err != nil || may || p.person.DeactivatedAt != nil {
		return nil, err
	}
	link, err := linkFor(t, actor, p, false)
	return &link, err
}

// EqualText reports whether both are nil or the same string.
func EqualText(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// DeactivatePerson takes a person's access away: sessions, links and linked accounts end, and
// the person cannot sign in or act. Records keep the person. So do teams and open work orders,
// unless another person of the organization is the replacement, "" for no one: in teams and as
// owner of integrations at once, on open work orders soon and as far as the actor may assign
// it. One administrator always remains. Errors: not_found, permission_denied, validation_failed
// (/replacement), rule_violation last_administrator, *FormStaleError, unavailable.
func (s *People) DeactivatePerson(ctx context.Context, actor store.Actor, key store.Key, id, replacement string) (PersonAccess, error) {
	return s.changePerson(ctx, actor, key, id, "person.deactivated", func(t *store.Tx, p *lockedPerson) (bool, error) {
		if p.person.DeactivatedAt != nil {
			if replacement != "" {
				return false, errReplacement(p.identity.Name + " was deactivated before. Activate " + p.identity.Name + " to replace and deactivate in one step.")
			}
			return false, nil
		}
		if err := anotherAdmin(t, actor, *p); err != nil {
			return false, err
		}
		p.person.DeactivatedAt = &t.At
		if err := t.UpdateColumns(&p.person, "deactivated_at"); err != nil {
			return false, err
		}
		if err := moveTeams(t, id); err != nil {
			return false, err
		}
		if err := Inactivate(t, id); err != nil {
			return false, err
		}
		if err := SignOut(t, "", id); err != nil {
			return false, err
		}
		if err := unlinkAccounts(t, id); err != nil {
			return false, err
		}
		if replacement != "" {
			if err := replacePerson(t, actor, *p, replacement); err != nil {
				return false, err
			}
		}
		return true, NotifySecurity(t, actor, p.organization.ID, models.NoticeRoleChanged, id)
	})
}

// ActivatePerson gives a person access again; what a replacement took over by then stays with
// the replacement. Errors: not_found, permission_denied, *FormStaleError, unavailable.
func (s *People) ActivatePerson(ctx context.Context, actor store.Actor, key store.Key, id string) (PersonAccess, error) {
	return s.changePerson(ctx, actor, key, id, "person.activated", func(t *store.Tx, p *lockedPerson) (bool, error) {
		if p.person.DeactivatedAt == nil {
			return false, nil
		}
		p.person.DeactivatedAt = nil
		if err := t.UpdateColumns(&p.person, "deactivated_at"); err != nil {
			return false, err
		}
		if err := moveTeams(t, id); err != nil {
			return false, err
		}
		if err := keepWork(t, id); err != nil {
			return false, err
		}
		return true, NotifySecurity(t, actor, p.organization.ID, models.NoticeRoleChanged, id, id)
	})
}

// NewPersonLink makes a link: an invitation for a person who has no way to sign in, else one
// for a forgotten password. Where links are mailed, show returns it to an administrator
// instead. Errors: not_found, permission_denied, rule_violation for a deactivated person and
// for one with a linked account whose organization requires OpenID Connect, rate_limited,
// unavailable.
func (s *People) NewPersonLink(ctx context.Context, actor store.Actor, key store.Key, id string, show bool) (LinkEmail, error) {
	var link LinkEmail
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		p, err := lockPerson(t, actor, id)
		if err != nil {
			return err
		}
		if show && !p.organization.Admin {
			return models.Errorf(models.CodePermissionDenied, "Only administrators see links that can be sent by e-mail.")
		}
		if p.person.DeactivatedAt != nil {
			return models.Errorf(models.CodeRuleViolation, "%s was deactivated and cannot sign in.", p.identity.Name)
		}
		link, err = linkFor(t, actor, p, show)
		return err
	})
	return link, err
}

// SetPassword sets a person's password for an operator; the person's sessions, links and linked
// accounts end. Errors:
// not_found, permission_denied, validation_failed, unavailable.
func (s *People) SetPassword(ctx context.Context, actor store.Actor, id, password string) error {
	if !actor.IsOperator() {
		return models.Errorf(models.CodePermissionDenied, "Only operators of the service set the passwords of others.")
	}
	if err := store.Invalid(checkNewPassword(password, "", "")); err != nil {
		return err
	}
	hash, err := HashPassword(ctx, s, "", password)
	if err != nil {
		return err
	}
	return s.Transaction(ctx, "", store.NoKey, func(t *store.Tx) error {
		p, err := lockPerson(t, actor, id)
		if err != nil {
			return err
		}
		if err := storePassword(t, id, hash, true); err != nil {
			return err
		}
		if err := unlinkAccounts(t, id); err != nil {
			return err
		}
		if err := SignOut(t, "", id); err != nil {
			return err
		}
		return logSecurity(t, actor, p.organization.ID, "person.password_set", models.NoticePasswordChanged, id, id)
	})
}
