package service

import (
	"context"
	"fmt"
	"net/mail"
	"slices"

	"golang.org/x/crypto/bcrypt"
	"gorm.io/gorm/clause"

	"millwright/models"
)

// hashPasswords hashes the passwords of new people until the context ends. It takes a
// long time, so it is done before any row is locked.
func (r *importRun) hashPasswords(ctx context.Context) error {
	r.passwords = map[string]string{}
	for _, p := range r.file.People {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.Password == nil || r.known[p.Key] {
			continue
		}
		hash, err := bcrypt.GenerateFromPassword([]byte(*p.Password), bcrypt.DefaultCost)
		if err != nil {
			r.problems.add("person %q: the password has more than 72 bytes", p.Key)
		}
		r.passwords[p.Key] = string(hash)
	}
	return nil
}

func (r *importRun) people() error {
	for _, p := range r.file.People {
		id, err := r.id(p.Key, keyPerson, models.PrefixIdentity)
		if err != nil {
			return err
		}
		where := fmt.Sprintf("person %q", p.Key)
		r.identity(where, id, models.KindPerson, p.Name)
		row, created := r.persons.row(id)
		if created {
			row.ID, row.OrganizationID = id, r.result.OrganizationID
			require(r, where, "an email", p.Email)
		}
		if hash, hashed := r.passwords[p.Key]; hashed {
			row.PasswordHash = &hash
		}
		if p.Email != nil {
			if address, err := mail.ParseAddress(*p.Email); err != nil || address.Address != *p.Email {
				r.problems.add("%s: the e-mail address is malformed", where)
			}
		}
		overwrite(&row.Email, p.Email)
		overwrite(&row.Admin, p.Admin)
		if p.Phone != nil {
			row.Phone = p.Phone
		}
		if p.OrganizationDefinition != nil {
			row.OrganizationDefinitionID = r.organizationDefinition(where, *p.OrganizationDefinition)
		}
		if r.persons.changed(id) {
			r.identities.touch(id)
		}
	}
	return nil
}

func (r *importRun) teams() error {
	for _, team := range r.file.Teams {
		id, err := r.id(team.Key, keyTeam, models.PrefixIdentity)
		if err != nil {
			return err
		}
		where := fmt.Sprintf("team %q", team.Key)
		r.identity(where, id, models.KindTeam, team.Name)
		if team.Members == nil {
			continue
		}
		r.teamMembers.teams = append(r.teamMembers.teams, id)
		for _, key := range team.Members {
			r.teamMembers.wanted = append(r.teamMembers.wanted, models.TeamMember{
				TeamID: id, MemberID: r.lookup(where, key, keyPerson), OrganizationID: r.result.OrganizationID,
			})
		}
	}
	return nil
}

// teamMembers are the members of the teams whose members the file lists.
type teamMembers struct {
	stored, wanted []models.TeamMember
	teams          []string
}

func (r *importRun) readTeamMembers() error {
	return r.db.Find(&r.teamMembers.stored, "team_id = ANY (?)", models.TextArray(r.stored[keyTeam])).Error
}

// saveTeamMembers makes the members of the teams those of the file.
func (r *importRun) saveTeamMembers() error {
	m := r.teamMembers
	var gone []models.TeamMember
	for _, member := range m.stored {
		if slices.Contains(m.teams, member.TeamID) && !slices.Contains(m.wanted, member) {
			gone = append(gone, member)
		}
	}
	if len(gone) > 0 {
		if err := r.db.Delete(&gone).Error; err != nil {
			return err
		}
	}
	return create(r.db.Clauses(clause.OnConflict{DoNothing: true}), m.wanted)
}
