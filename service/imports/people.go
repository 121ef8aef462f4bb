package imports

import (
	"bytes"
	"context"
	"crypto/hmac"
	"net/mail"
	"slices"

	"gorm.io/gorm/clause"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/store"
)

// newPasswords hashes the passwords of the file's people who are new, until the context
// ends. It takes a long time, so no transaction is open during it.
func (s *Imports) newPasswords(ctx context.Context, file *importFile) (map[string]string, error) {
	persons := slices.DeleteFunc(slices.Clone(file.People), func(p importPerson) bool { return p.Password == nil })
	if len(persons) == 0 {
		return nil, nil
	}
	keys := models.TextArray{}
	for _, p := range persons {
		keys = append(keys, p.Key)
	}
	var known []string
	if err := s.ORM.WithContext(ctx).Raw(`
		SELECT k.key FROM import_keys k JOIN organizations o ON o.id = k.organization_id
		WHERE o.key = ? AND k.key = ANY (?)`, file.Organization.Key, keys).Scan(&known).Error; err != nil {
		return nil, s.Translate(err)
	}
	return s.hashPasswords(ctx, slices.DeleteFunc(persons, func(p importPerson) bool { return slices.Contains(known, p.Key) }))
}

// hashPasswords returns the hashes of the people's passwords by their keys, without
// those that are too long.
func (s *Imports) hashPasswords(ctx context.Context, persons []importPerson) (map[string]string, error) {
	hashes := map[string]string{}
	for _, p := range persons {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if people.IsPasswordTooLong(*p.Password) {
			continue
		}
		hash, err := people.HashPassword(ctx, s.people, "", *p.Password)
		if err != nil {
			return nil, err
		}
		hashes[p.Key] = hash
	}
	return hashes, nil
}

func (r *importRun) people() error {
	for _, p := range r.file.People {
		e, err := r.entry(p.Key, keyPerson, models.PrefixIdentity)
		if err != nil {
			return err
		}
		r.identity(e, models.KindPerson, p.Name)
		row, created := rowOf(e, &r.persons)
		if created {
			row.ID, row.OrganizationID = e.id, r.result.OrganizationID
			require(e, "an email", p.Email)
			if p.Password != nil && people.IsPasswordTooLong(*p.Password) {
				r.problems.add("%s: the password has more than %d characters", e, models.MaxPassword)
			}
			if p.Password != nil && !people.IsPasswordOfText(*p.Password) {
				r.problems.add("%s: the password has characters that cannot be entered everywhere, such as control characters", e)
			}
			if hash, hashed := r.passwords[p.Key]; hashed {
				row.PasswordHash, row.PasswordPrivate = &hash, true
			}
		}
		if p.Email != nil {
			if address, err := mail.ParseAddress(*p.Email); err != nil || address.Address != *p.Email {
				r.problems.add("%s: the e-mail address is malformed", e)
			}
		}
		setField(e, "email", &row.Email, p.Email).hide()
		setField(e, "phone", &row.Phone, given(p.Phone)).hide()
		setField(e, "admin", &row.Admin, p.Admin)
		setField(e, "organization_definition", &row.OrganizationDefinitionID, r.organizationDefinition(e, p.OrganizationDefinition, row.OrganizationDefinitionID)).names()
		if r.persons.changed(e.id) {
			r.identities.touch(e.id)
		}
	}
	return nil
}

func (r *importRun) teams() error {
	for _, team := range r.file.Teams {
		e, err := r.entry(team.Key, keyTeam, models.PrefixIdentity)
		if err != nil {
			return err
		}
		r.identity(e, models.KindTeam, team.Name)
		var wanted *models.TextArray
		if team.Members != nil {
			wanted = &models.TextArray{}
			for _, key := range team.Members {
				*wanted = append(*wanted, r.lookup(e.String(), key, keyPerson))
			}
			slices.Sort(*wanted)
			*wanted = slices.Compact(*wanted)
		}
		members := r.teamMembers.stored[e.id]
		if members == nil {
			members = models.TextArray{}
		}
		setField(e, "members", &members, wanted).names()
		r.teamMembers.change(e.id, r.result.OrganizationID, members)
	}
	return nil
}

// teamMembers are the members of the file's teams, and how the import changes them.
type teamMembers struct {
	// stored are the ids of the members before the import, sorted, by team.
	stored     map[string]models.TextArray
	gone, come []models.TeamMember
}

func (r *importRun) readTeamMembers() error {
	var rows []models.TeamMember
	r.teamMembers.stored = map[string]models.TextArray{}
	if err := r.DB.Order("team_id, member_id").Find(&rows, "team_id = ANY (?)", models.TextArray(r.stored[keyTeam])).Error; err != nil {
		return err
	}
	for _, id := range r.stored[keyTeam] {
		r.teamMembers.stored[id] = models.TextArray{}
	}
	for _, row := range rows {
		r.teamMembers.stored[row.TeamID] = append(r.teamMembers.stored[row.TeamID], row.MemberID)
	}
	return nil
}

// change replaces the team's members by the sorted members.
func (m *teamMembers) change(teamID, organizationID string, members models.TextArray) {
	only := func(some, others models.TextArray) (rows []models.TeamMember) {
		for _, id := range some {
			if _, both := slices.BinarySearch(others, id); !both {
				rows = append(rows, models.TeamMember{TeamID: teamID, MemberID: id, OrganizationID: organizationID})
			}
		}
		return rows
	}
	m.gone = append(m.gone, only(m.stored[teamID], members)...)
	m.come = append(m.come, only(members, m.stored[teamID])...)
}

func (r *importRun) saveTeamMembers() error {
	var left []string
	for rows := range slices.Chunk(r.teamMembers.gone, importBatchSize) {
		if err := r.DB.Delete(&rows).Error; err != nil {
			return err
		}
		for _, row := range rows {
			left = append(left, row.TeamID)
		}
	}
	if len(left) > 0 {
		if err := people.Inactivate(r.Tx, left...); err != nil {
			return err
		}
	}
	return create(r.DB.Clauses(clause.OnConflict{DoNothing: true}), r.teamMembers.come)
}

// joinedWithPermissions returns who joins a team that was there before and has permissions
// on nodes.
func (r *importRun) joinedWithPermissions() ([]string, error) {
	teams := models.TextArray{}
	for _, row := range r.teamMembers.come {
		if _, known := r.teamMembers.stored[row.TeamID]; known {
			teams = append(teams, row.TeamID)
		}
	}
	var permitted []string
	err := r.DB.Model(&models.Assignment{}).Distinct().Where("identity_id = ANY (?)", teams).Pluck("identity_id", &permitted).Error
	var joined []string
	for _, row := range r.teamMembers.come {
		if slices.Contains(permitted, row.TeamID) {
			joined = append(joined, row.MemberID)
		}
	}
	return joined, err
}

// sharedSecrets reports whether the import changes who knows a secret of a stored integration or
// what the integration may do, and returns the owners concerned.
func (r *importRun) sharedSecrets() (changed bool, owners []string) {
	for _, added := range r.integrations.rows {
		stored, known := r.integrations.stored[added.id]
		if known && (!hmac.Equal(stored.SecretHash, added.row.SecretHash) || !slices.Equal(stored.Owners, added.row.Owners) ||
			!people.EqualText(stored.OrganizationDefinitionID, added.row.OrganizationDefinitionID)) {
			changed, owners = true, slices.Concat(owners, stored.Owners, added.row.Owners)
		}
	}
	for _, added := range r.webhooks.rows {
		stored, known := r.webhooks.stored[added.id]
		changed = changed || known && !bytes.Equal(stored.SecretSealed, added.row.SecretSealed)
	}
	return changed, owners
}

// notifyAccess leaves one notice for the administrators if the import changes who may do what
// or how people sign in, and one for each person concerned. If the e-mail address changes,
// the person's is mailed to the former one. The first import of an organization tells no one.
func (r *importRun) notifyAccess() error {
	if !r.known[r.file.Organization.Key] {
		return nil
	}
	changed, persons, former, formerEmails := false, models.TextArray{}, models.TextArray{}, models.TextArray{}
	for _, added := range r.persons.rows {
		stored, known := r.persons.stored[added.id]
		emailChanged := known && stored.Email != added.row.Email
		if !emailChanged && stored.Admin == added.row.Admin && people.EqualText(stored.OrganizationDefinitionID, added.row.OrganizationDefinitionID) {
			continue
		}
		changed = true
		if known {
			persons = append(persons, added.id)
		}
		if emailChanged {
			former, formerEmails = append(former, added.id), append(formerEmails, stored.Email)
		}
	}
	for _, added := range r.organizationDefinitions.rows {
		if stored, known := r.organizationDefinitions.stored[added.id]; !known || slices.Equal(stored.Grants, added.row.Grants) {
			continue
		}
		changed = true
		held, err := store.ScanAll[string](r.Tx, `SELECT id FROM people WHERE organization_definition_id = ?`, added.id)
		if err != nil {
			return err
		}
		persons = append(persons, held...)
	}
	shared, owners := r.sharedSecrets()
	joined, err := r.joinedWithPermissions()
	if err != nil {
		return err
	}
	persons = slices.Concat(persons, owners, joined)
	if !changed && !shared && len(joined) == 0 {
		return nil
	}
	id := r.result.OrganizationID
	if err := people.NotifySecurity(r.Tx, store.Operator(), id, models.NoticeAccessChanged, id, persons...); err != nil {
		return err
	}
	return r.Exec(`
		UPDATE notices n SET mail_to = u.email FROM unnest(?::text[], ?::text[]) u (id, email)
		WHERE n.record_id = ? AND n.kind = ? AND n.created_at = ? AND n.person_id = u.id AND n.mail = 'waiting'`,
		former, formerEmails, id, models.NoticeAccessChanged, r.At)
}
