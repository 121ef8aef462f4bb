package people_test

import (
	"testing"

	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Someone who gains permissions and has no way to sign in left gets a link.
func TestAPromotionMayNeedALink(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	for key, needed := range map[string]bool{"bob": true, "cat": false} {
		if !needed {
			f.Exec(`UPDATE people SET password_hash = 'x', password_private = true WHERE id = $1`, f.ID(key))
		}
		_, link, err := f.People.ChangePersonAccess(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, f.ID(key),
			people.AccessChange{Admin: true, ConfirmedEmail: f.Email(key)})
		if err != nil || (link != nil) != needed || needed && link.Email != f.Email(key) {
			t.Errorf("%s gets the link %+v, %v; needed: %t", key, link, err, needed)
		}
	}
}

// signOutFile gives bob and cat a definition, and adds one that grants more.
const signOutFile = `
organization: {key: acme}
organization_permission_definitions:
  - {key: org_viewers, name: Viewers, grants: [integrations]}
  - {key: org_more, name: More, grants: [integrations, people]}
people: [{key: bob, organization_definition: org_viewers}, {key: cat, organization_definition: org_viewers}]`

// Each write that takes a person's access, changes its e-mail address or gives it permissions ends sessions, links and ways
// to sign in. Imports do it for people whom their files leave out, as cat here, too.
func TestWritesEndSessionsAndWaysToSignIn(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	overwrite := func(file string) func() error {
		return func() error { return servicetest.ErrorOf(f.Imports.Overwrite(ctx, []byte(file))) }
	}
	access := func(admin bool, definition string) func() error {
		return func() error {
			change := people.AccessChange{Admin: admin, ConfirmedEmail: f.Email("bob")}
			if definition != "" {
				id := f.ID(definition)
				change.DefinitionID = &id
			}
			_, _, err := f.People.ChangePersonAccess(ctx, ann, store.NoKey, f.ID("bob"), change)
			return err
		}
	}
	plant := func(key string) {
		servicetest.Session(f, key)
		f.Exec(`DELETE FROM openid_accounts WHERE person_id = $1`, f.ID(key))
		f.Exec(`UPDATE people SET admin = false, deactivated_at = NULL, email = $2, password_hash = 'x', password_private = false WHERE id = $1`, f.ID(key), key+"@acme.example.com")
		f.Exec(`INSERT INTO sign_in_links (token_hash, organization_id, person_id, kind, created_at, expires_at)
			VALUES (sha256($1::text::bytea), $2, $1, 'reset', now(), now()) ON CONFLICT DO NOTHING`, f.ID(key), f.Acme.OrganizationID)
		f.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at, private) VALUES ('i', 'shared', $1, now(), false), ('i', 'private', $1, now(), true)`, f.ID(key))
	}
	left := func(key string) string {
		return servicetest.Value[string](f, `SELECT concat_ws(' ',
			(SELECT 'session' FROM sessions WHERE person_id = p.id LIMIT 1), (SELECT 'link' FROM sign_in_links WHERE person_id = p.id),
			(SELECT string_agg(subject, ' ' ORDER BY private) FROM openid_accounts WHERE person_id = p.id), CASE WHEN password_hash IS NOT NULL THEN 'password' END)
			FROM people p WHERE id = $1`, f.ID(key))
	}
	const everything = "session link shared private password"
	for _, step := range []struct {
		what     string
		do       func() error
		bob, cat string
	}{
		{"deactivated", func() error {
			return servicetest.ErrorOf(f.People.DeactivatePerson(ctx, ann, store.NoKey, f.ID("bob"), ""))
		}, "password", everything},
		{"ways to sign in removed", func() error {
			return servicetest.ErrorOf(f.People.RemoveWaysIn(ctx, ann, store.NoKey, f.ID("bob")))
		}, "", everything},
		{"another address", func() error {
			return servicetest.ErrorOf(f.People.ChangePersonEmail(ctx, ann, store.NoKey, f.ID("bob"), "robert@acme.example.com"))
		}, "shared private password", everything},
		{"an administrator", access(true, "org_viewers"), "private", everything},
		{"a definition with more", access(false, "org_more"), "private", everything},
		{"a definition with less", access(false, "org_viewers"), everything, everything},
		{"no definition", access(false, ""), everything, everything},
		{"imported: an address", overwrite("organization: {key: acme}\npeople: [{key: bob, email: robert@acme.example.com}]"), "shared private password", everything},
		{"imported: an administrator", overwrite("organization: {key: acme}\npeople: [{key: bob, admin: true}]"), "private", everything},
		{"imported: a definition with more", overwrite("organization: {key: acme}\npeople: [{key: bob, organization_definition: org_more}]"), "private", everything},
		{"imported: a definition with less", overwrite("organization: {key: acme}\npeople: [{key: bob, organization_definition: org_nothing}]"), everything, everything},
		{"imported: a telephone number", overwrite("organization: {key: acme}\npeople: [{key: bob, phone: '+12025550100'}]"), everything, everything},
		{"imported: more for a definition", overwrite("organization: {key: acme}\norganization_permission_definitions: [{key: org_viewers, grants: [integrations, people]}]"), "private", "private"},
		{"imported: less for a definition", overwrite("organization: {key: acme}\norganization_permission_definitions: [{key: org_viewers, grants: []}]"), everything, everything},
		{"imported: more for a definition that a person leaves", overwrite("organization: {key: acme}\n" +
			"people: [{key: bob, organization_definition: org_nothing}]\n" +
			"organization_permission_definitions: [{key: org_viewers, grants: [integrations, people]}]"), everything, "private"},
		{"imported: suspended", overwrite("organization: {key: acme, suspended: true}"), "link shared private password", "link shared private password"},
		{"imported: no longer suspended", overwrite("organization: {key: acme, suspended: false}"), everything, everything},
	} {
		imported, err := f.Imports.Overwrite(ctx, []byte(signOutFile))
		servicetest.Must(t, err)
		f.Acme.IDs = imported.IDs
		plant("bob")
		plant("cat")
		if err := step.do(); err != nil {
			t.Fatal(step.what, err)
		}
		servicetest.Expect(t, step.what+": bob", left("bob"), step.bob)
		servicetest.Expect(t, step.what+": cat", left("cat"), step.cat)
	}
}
