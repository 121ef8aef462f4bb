package people

import (
	"millwright/models"
	"millwright/service/store"
)

// Inactivate leaves open work to housekeeping (inactivated_identities). What takes from an identity that it can act,
// and from a team a member or its existence, calls it: for the identity while it is in its teams, whose last
// active member it may be, and for the team.
func Inactivate(t *store.Tx, identityIDs ...string) error {
	ids := models.TextArray(identityIDs)
	return t.Exec(`
		INSERT INTO inactivated_identities (identity_id)
		SELECT id FROM unnest(CAST(? AS text[])) id UNION SELECT team_id FROM team_members WHERE member_id = ANY (?) ORDER BY 1
		ON CONFLICT (identity_id) DO UPDATE SET reached = ''`, ids, ids)
}

// moveTeams gives the person's teams a new change position: a team's record shows whether it has an active member.
func moveTeams(t *store.Tx, personID string) error {
	return t.Exec(`
		UPDATE identities SET changed_at = greatest(changed_at + interval '1 millisecond', now())
		WHERE id IN (SELECT team_id FROM team_members WHERE member_id = ?)`, personID)
}
