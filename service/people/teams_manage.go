package people

import (
	"context"
	"slices"

	"gorm.io/gorm/clause"

	"millwright/models"
	"millwright/service/store"
)

// maxNewMembers limits the people that one write adds to a team.
const maxNewMembers = models.MaxPageSize

// lockedTeam is a team and its organization, both locked until the transaction ends.
type lockedTeam struct {
	organization lockedOrganization
	identity     models.Identity
}

func (l lockedTeam) team() Team {
	return Team{ID: l.identity.ID, OrganizationID: l.organization.ID, Name: l.identity.Name}
}

// lockTeam locks a team for an actor who may manage the people of its organization. Errors:
// not_found (unknown, deleted, or another organization's), permission_denied, unavailable.
func lockTeam(t *store.Tx, actor store.Actor, id string) (l lockedTeam, err error) {
	if !models.IsID(id, models.PrefixIdentity) {
		return l, models.NotFound()
	}
	if l.identity, err = store.ReadRow[models.Identity](t.DB.Where("kind = ?", models.KindTeam), id); err != nil {
		return l, err
	}
	if l.organization, err = lockOrganization(t, actor, l.identity.OrganizationID); err != nil {
		return l, err
	}
	if l.identity, err = store.LockRow[models.Identity](t, id); err == nil && l.identity.DeletedAt != nil {
		err = models.NotFound()
	}
	return l, err
}

// changeTeam changes a team for an actor in one transaction. change reports whether anything
// is different, since only then the action is logged. Errors: lockTeam's and
// change's, *FormStaleError.
func (s *People) changeTeam(ctx context.Context, actor store.Actor, key store.Key, id, action string, change func(*store.Tx, *lockedTeam) (changed bool, err error)) (Team, error) {
	var team Team
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		l, err := lockTeam(t, actor, id)
		if err != nil {
			return err
		}
		if err := t.Matches(ctx, key, l.team(), l.organization.ID, id); err != nil {
			return err
		}
		changed, err := change(t, &l)
		if err != nil {
			return err
		}
		team = l.team()
		if !changed {
			return nil
		}
		return l.save(t, actor, action)
	})
	return team, err
}

// save writes a change of the team.
func (l lockedTeam) save(t *store.Tx, actor store.Actor, action string) error {
	l.identity.ChangedAt = t.At.After(l.identity.ChangedAt)
	if err := t.UpdateColumns(&l.identity, "name", "changed_at", "deleted_at"); err != nil {
		return err
	}
	return t.Log(actor, l.organization.ID, action, l.identity.ID)
}

// CreateTeam creates a team without members. Errors: not_found, permission_denied,
// validation_failed, unavailable.
func (s *People) CreateTeam(ctx context.Context, actor store.Actor, key store.Key, organizationID, name string) (Team, error) {
	var team Team
	name = models.Trim(name)
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		o, err := lockOrganization(t, actor, organizationID)
		if err != nil {
			return err
		}
		if err := store.Invalid(store.CheckActorName(name)); err != nil {
			return err
		}
		id, err := t.NewID(models.PrefixIdentity)
		if err != nil {
			return err
		}
		identity := models.Identity{ID: id, OrganizationID: o.ID, Kind: models.KindTeam, Searched: models.Searched{Name: name}, CreatedAt: t.At, ChangedAt: t.At}
		if err := t.DB.Create(&identity).Error; err != nil {
			return err
		}
		team = lockedTeam{o, identity}.team()
		return t.Log(actor, o.ID, "team.created", id)
	})
	return team, err
}

// RenameTeam gives a team another name. Errors: not_found, permission_denied,
// validation_failed, *FormStaleError, unavailable.
func (s *People) RenameTeam(ctx context.Context, actor store.Actor, key store.Key, id, name string) (Team, error) {
	name = models.Trim(name)
	return s.changeTeam(ctx, actor, key, id, "team.renamed", func(_ *store.Tx, l *lockedTeam) (bool, error) {
		if err := store.Invalid(store.CheckActorName(name)); err != nil {
			return false, err
		}
		changed := l.identity.Name != name
		l.identity.Name = name
		return changed, nil
	})
}

// AddTeamMembers adds people of the organization to a team, at most 200. Those who are
// members stay. Members have the team's permissions on nodes and its work orders. Errors:
// not_found, permission_denied, validation_failed (/person: no one chosen, unknown, or
// deactivated), *FormStaleError, unavailable.
func (s *People) AddTeamMembers(ctx context.Context, actor store.Actor, key store.Key, id string, personIDs []string) (Team, error) {
	return s.changeTeam(ctx, actor, key, id, "team.member_added", func(t *store.Tx, l *lockedTeam) (bool, error) {
		return addMembers(t, actor, *l, personIDs)
	})
}

// addMembers adds people to a locked team and reports whether any is new. Errors: validation_failed.
func addMembers(t *store.Tx, actor store.Actor, l lockedTeam, personIDs []string) (changed bool, err error) {
	members, err := newMembers(t, l, personIDs)
	if err != nil {
		return false, err
	}
	added := t.DB.Clauses(clause.OnConflict{DoNothing: true}).Create(&members)
	if added.Error != nil || added.RowsAffected == 0 {
		return false, added.Error
	}
	return true, notifyOfTeamAccess(t, actor, l)
}

// notifyOfTeamAccess tells the administrators that people joined a team that has permissions
// on nodes: someone with the People permission can get these that way.
func notifyOfTeamAccess(t *store.Tx, actor store.Actor, l lockedTeam) error {
	has, err := store.ScanOne[bool](t, nil, `SELECT EXISTS (SELECT FROM assignments WHERE identity_id = ?)`, l.identity.ID)
	if err != nil || !has {
		return err
	}
	return NotifySecurity(t, actor, l.organization.ID, models.NoticeTeamAccess, l.identity.ID)
}

// newMembers returns the rows of people to add to a team. Errors: validation_failed.
func newMembers(t *store.Tx, l lockedTeam, personIDs []string) ([]models.TeamMember, error) {
	wanted := models.TextArray(slices.Compact(slices.Sorted(slices.Values(personIDs))))
	field := models.FieldError{Pointer: "/person", Code: "required", Detail: "Choose at least one person."}
	switch {
	case len(wanted) == 0:
		return nil, models.Invalid(field)
	case len(wanted) > maxNewMembers:
		field.Code, field.Detail = "too_many", "Choose at most 200 people at a time."
		return nil, models.Invalid(field)
	case slices.ContainsFunc(wanted, func(id string) bool { return !models.IsID(id, models.PrefixIdentity) }):
		return nil, models.Invalid(store.UnknownField("/person", "person"))
	}
	var known int64
	err := t.DB.Model(&models.Person{}).Where("id = ANY (?) AND organization_id = ? AND deactivated_at IS NULL", wanted, l.organization.ID).Count(&known).Error
	if err != nil {
		return nil, err
	}
	if int(known) < len(wanted) {
		return nil, models.Invalid(store.UnknownField("/person", "person"))
	}
	members := make([]models.TeamMember, len(wanted))
	for i, personID := range wanted {
		members[i] = models.TeamMember{TeamID: l.identity.ID, MemberID: personID, OrganizationID: l.organization.ID}
	}
	return members, nil
}

// RemoveTeamMember removes a member from a team. Errors: not_found (including someone who is
// no member), permission_denied, *FormStaleError, unavailable.
func (s *People) RemoveTeamMember(ctx context.Context, actor store.Actor, key store.Key, id, memberID string) (Team, error) {
	return s.changeTeam(ctx, actor, key, id, "team.member_removed", func(t *store.Tx, _ *lockedTeam) (bool, error) {
		if !models.IsID(memberID, models.PrefixIdentity) {
			return false, models.NotFound()
		}
		removed := t.DB.Delete(&models.TeamMember{}, "team_id = ? AND member_id = ?", id, memberID)
		if removed.Error == nil && removed.RowsAffected == 0 {
			return false, models.NotFound()
		}
		if removed.Error != nil {
			return false, removed.Error
		}
		return true, Inactivate(t, id)
	})
}

// DeleteTeam deletes a team for good and returns its last state. Its identity stays, so that
// records and the log still name it, and it stays assigned to its work orders; its members
// and permissions on nodes are removed. Imports can use its key again if they overwrite.
// Errors: not_found, permission_denied, *FormStaleError, unavailable.
func (s *People) DeleteTeam(ctx context.Context, actor store.Actor, key store.Key, id string) (Team, error) {
	return s.changeTeam(ctx, actor, key, id, "team.deleted", func(t *store.Tx, l *lockedTeam) (bool, error) {
		l.identity.DeletedAt = &t.At
		if err := Inactivate(t, id); err != nil {
			return false, err
		}
		// The members first: an assignment that ends is checked for each of them.
		if err := t.DB.Delete(&models.TeamMember{}, "team_id = ?", id).Error; err != nil {
			return false, err
		}
		if err := t.DB.Delete(&models.Assignment{}, "identity_id = ?", id).Error; err != nil {
			return false, err
		}
		return true, t.DB.Delete(&models.ImportKey{}, "organization_id = ? AND id = ?", l.organization.ID, id).Error
	})
}
