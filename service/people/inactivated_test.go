package people_test

import (
	"slices"
	"strings"
	"testing"

	"millwright/service/servicetest"
	"millwright/service/store"
)

// What takes from identities that they can act leaves their work and the work of their teams to housekeeping. Teams
// whose members change, or can act no longer, get a new change position.
func TestWorkOfInactivatedIsLeftToHousekeeping(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	f.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) VALUES ($1, $2, $3)`, f.ID("crew"), f.ID("outsider"), f.Acme.OrganizationID)
	imported := func(file string) error {
		return servicetest.ErrorOf(f.Imports.Overwrite(ctx, []byte("organization: {key: acme}\n"+file)))
	}
	deactivate := func(key, replacement string) func() error {
		return func() error {
			return servicetest.ErrorOf(f.People.DeactivatePerson(ctx, ann, store.NoKey, f.ID(key), replacement))
		}
	}
	outsider := f.ID("outsider")
	for _, step := range []struct {
		what  string
		do    func() error
		left  string
		moved bool
	}{
		{"a person of no team", deactivate("eve", ""), "eve", false},
		{"a member", deactivate("bob", ""), "bob crew", true},
		{"a member who is activated", func() error {
			return servicetest.ErrorOf(f.People.ActivatePerson(ctx, ann, store.NoKey, f.ID("bob")))
		}, "bob", true},
		{"a member who is replaced", deactivate("bob", f.ID("cat")), "bob crew", true},
		{"an integration that is off", func() error {
			return servicetest.ErrorOf(f.Integrations.TurnIntegrationOff(ctx, ann, store.NoKey, outsider))
		}, "crew outsider", false},
		{"an integration that is on", func() error {
			return servicetest.ErrorOf(f.Integrations.TurnIntegrationOn(ctx, ann, store.NoKey, outsider))
		}, "", false},
		{"an integration that is disabled", func() error {
			return servicetest.ErrorOf(f.Integrations.DisableIntegration(ctx, store.Operator(), outsider))
		}, "crew outsider", false},
		{"an integration that is deleted", func() error {
			return servicetest.ErrorOf(f.Integrations.DeleteIntegration(ctx, ann, store.NoKey, outsider))
		}, "crew outsider", true},
		{"a member who leaves", func() error {
			return servicetest.ErrorOf(f.People.RemoveTeamMember(ctx, ann, store.NoKey, f.ID("crew"), f.ID("cat")))
		}, "crew", true},
		{"a member whom an import adds", func() error { return imported(`teams: [{key: crew, members: [dan, ann]}]`) }, "", true},
		{"a member whom an import removes", func() error { return imported(`teams: [{key: crew, members: [dan]}]`) }, "crew", true},
		{"a team", func() error { return servicetest.ErrorOf(f.People.DeleteTeam(ctx, ann, store.NoKey, f.ID("crew"))) }, "crew", true},
	} {
		f.Exec(`UPDATE inactivated_identities SET reached = 'wo_'`) // each step starts housekeeping again
		position := func() string {
			return servicetest.Value[string](f, `SELECT changed_xid || ' ' || changed_at FROM identities WHERE id = $1`, f.ID("crew"))
		}
		before := position()
		if err := step.do(); err != nil {
			t.Fatal(step.what, err)
		}
		left := strings.Fields(f.WithKeys(servicetest.Value[string](f, `
			SELECT coalesce(string_agg(identity_id, ' '), '') FROM inactivated_identities WHERE reached = ''`)))
		slices.Sort(left)
		servicetest.Expect(t, step.what, strings.Join(left, " "), step.left)
		servicetest.Expect(t, step.what+": the team has a new position", position() != before, step.moved)
	}
}
