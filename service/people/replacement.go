package people

import (
	"slices"

	"millwright/models"
	"millwright/service/store"
)

// replacePerson has the replacement take over from a person who is being deactivated: in teams
// and as owner of integrations now, on open work orders by housekeeping, since there may be
// thousands. Errors: permission_denied, validation_failed (/replacement).
func replacePerson(t *store.Tx, actor store.Actor, p lockedPerson, replacement string) error {
	if actor.IdentityID == "" {
		return models.Errorf(models.CodePermissionDenied, "An operator replaces people as a person, with whose permissions work orders are assigned.")
	}
	if err := checkReplacement(t, p, replacement); err != nil {
		return err
	}
	if err := replaceInTeams(t, actor, p, replacement); err != nil {
		return err
	}
	if err := replaceOwner(t, actor, p, replacement); err != nil {
		return err
	}
	if err := t.Exec(`UPDATE people SET replaced_by = ?, passed_on = 0 WHERE id = ?`, replacement, p.person.ID); err != nil {
		return err
	}
	return t.Exec(`UPDATE inactivated_identities SET replaced_by = ?, actor_id = ?, operated = ? WHERE identity_id = ?`,
		replacement, actor.IdentityID, actor.Operated, p.person.ID)
}

// keepWork ends what replacePerson left to housekeeping.
func keepWork(t *store.Tx, personID string) error {
	if err := t.Exec(`UPDATE people SET replaced_by = NULL WHERE id = ?`, personID); err != nil {
		return err
	}
	return t.Exec(`UPDATE inactivated_identities SET replaced_by = NULL, reached = '' WHERE identity_id = ?`, personID)
}

// errReplacement is validation_failed for a replacement.
func errReplacement(detail string) error {
	return models.Invalid(models.FieldError{Pointer: "/replacement", Code: "value", Detail: detail})
}

// checkReplacement rejects who cannot replace the person, who is deactivated by now. Errors: validation_failed.
func checkReplacement(t *store.Tx, p lockedPerson, replacement string) error {
	active, err := store.ScanOne[bool](t, nil, `SELECT EXISTS (SELECT FROM people WHERE id = ? AND organization_id = ? AND deactivated_at IS NULL)`,
		replacement, p.organization.ID)
	if err == nil && !active {
		err = errReplacement("Choose another active person of the organization.")
	}
	return err
}

// replaceInTeams makes the replacement a member of the person's teams instead of the person, with whom
// the teams were inactivated.
func replaceInTeams(t *store.Tx, actor store.Actor, p lockedPerson, replacement string) error {
	left, err := store.ScanAll[string](t, `DELETE FROM team_members WHERE member_id = ? RETURNING team_id`, p.person.ID)
	if err != nil {
		return err
	}
	joined, err := store.ScanAll[string](t, `
		INSERT INTO team_members (team_id, member_id, organization_id) SELECT team, ?, ? FROM unnest(CAST(? AS text[])) team
		ON CONFLICT DO NOTHING RETURNING team_id`, replacement, p.organization.ID, models.TextArray(left))
	if err != nil {
		return err
	}
	slices.Sort(left)
	for _, team := range left {
		if slices.Contains(joined, team) {
			if err := t.Log(actor, p.organization.ID, "team.member_added", team); err != nil {
				return err
			}
			if err := notifyOfTeamAccess(t, actor, lockedTeam{organization: p.organization, identity: models.Identity{ID: team}}); err != nil {
				return err
			}
		}
		if err := t.Log(actor, p.organization.ID, "team.member_removed", team); err != nil {
			return err
		}
	}
	return nil
}
