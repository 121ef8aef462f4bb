package people_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// grant gives a person of the fixture the organization-wide permissions.
func grant(f *servicetest.Fixture, key string, grants ...string) {
	f.Exec(`INSERT INTO organization_permission_definitions (id, organization_id, name, grants)
		VALUES ($1, $2, 'Definition', $3) ON CONFLICT (id) DO UPDATE SET grants = excluded.grants`, definitionOf(key), f.Acme.OrganizationID, grants)
	f.Exec(`UPDATE people SET organization_definition_id = $2 WHERE id = $1`, f.ID(key), definitionOf(key))
}

// definitionOf is an id for the definition of a person of the fixture.
func definitionOf(key string) string { return "def_0000000000000000000000000" + string(key[0]) }

func TestOnlyAdministratorsManageAdministrators(t *testing.T) {
	f := servicetest.New(t)
	grant(f, "bob", "people", "log_records")
	grant(f, "cat", "people", "integrations")
	grant(f, "dan", "log_records")
	ctx := t.Context()
	ann, bob, dan, pia := servicetest.Person(t, f, "ann"), servicetest.Person(t, f, "bob"), servicetest.Person(t, f, "dan"), servicetest.Person(t, f, "pia")
	catsDefinition := definitionOf("cat")
	erp := f.Actor("erp")
	setPassword(t, f, "cat")
	if _, err := f.People.DeactivatePerson(ctx, ann, store.NoKey, f.ID("zed"), ""); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		do   func() error
		code models.Code
	}{
		"someone without the permission":  {func() error { _, err := f.People.DeactivatePerson(ctx, dan, store.NoKey, f.ID("eve"), ""); return err }, models.CodePermissionDenied},
		"an integration":                  {func() error { _, err := f.People.DeactivatePerson(ctx, erp, store.NoKey, f.ID("eve"), ""); return err }, models.CodePermissionDenied},
		"someone of another organization": {func() error { _, err := f.People.DeactivatePerson(ctx, pia, store.NoKey, f.ID("eve"), ""); return err }, models.CodeNotFound},
		"an unknown person": {func() error {
			_, err := f.People.DeactivatePerson(ctx, ann, store.NoKey, "idn_00000000000000000000000000", "")
			return err
		}, models.CodeNotFound},
		"a manager deactivates an administrator":      {func() error { _, err := f.People.DeactivatePerson(ctx, bob, store.NoKey, f.ID("ann"), ""); return err }, models.CodePermissionDenied},
		"a manager makes a link for an administrator": {func() error { _, err := f.People.NewPersonLink(ctx, bob, store.NoKey, f.ID("ann"), false); return err }, models.CodePermissionDenied},
		"a manager makes an administrator": {func() error {
			_, _, err := f.People.ChangePersonAccess(ctx, bob, store.NoKey, f.ID("eve"), people.AccessChange{Admin: true, ConfirmedEmail: f.Email("eve")})
			return err
		}, models.CodePermissionDenied},
		"a manager becomes an administrator": {func() error {
			_, _, err := f.People.ChangePersonAccess(ctx, bob, store.NoKey, f.ID("bob"), people.AccessChange{Admin: true, ConfirmedEmail: f.Email("bob")})
			return err
		}, models.CodePermissionDenied},
		"a manager invites an administrator": {func() error {
			_, _, err := f.People.InvitePerson(ctx, bob, store.NoKey, f.Acme.OrganizationID, people.Invitation{Email: "x@acme.example.com", Admin: true})
			return err
		}, models.CodePermissionDenied},
		"a manager gives more than it has": {func() error {
			_, _, err := f.People.ChangePersonAccess(ctx, bob, store.NoKey, f.ID("eve"), people.AccessChange{DefinitionID: &catsDefinition, ConfirmedEmail: f.Email("eve")})
			return err
		}, models.CodePermissionDenied},
		"a manager takes over someone with more": {func() error { _, err := f.People.NewPersonLink(ctx, bob, store.NoKey, f.ID("cat"), false); return err }, models.CodePermissionDenied},
		"a manager manages someone with less":    {func() error { _, err := f.People.DeactivatePerson(ctx, bob, store.NoKey, f.ID("dan"), ""); return err }, ""},
		"the last administrator is deactivated":  {func() error { _, err := f.People.DeactivatePerson(ctx, ann, store.NoKey, f.ID("ann"), ""); return err }, models.CodeRuleViolation},
		"the last administrator resigns": {func() error {
			_, _, err := f.People.ChangePersonAccess(ctx, ann, store.NoKey, f.ID("ann"), people.AccessChange{ConfirmedEmail: f.Email("ann")})
			return err
		}, models.CodeRuleViolation},
		"a person sets the password of another": {func() error { return f.People.SetPassword(ctx, ann, f.ID("bob"), password) }, models.CodePermissionDenied},
		"another organization's definition": {func() error {
			other := f.Polar.IDs["org_incoming"]
			_, _, err := f.People.ChangePersonAccess(ctx, ann, store.NoKey, f.ID("eve"), people.AccessChange{DefinitionID: &other, ConfirmedEmail: f.Email("eve")})
			return err
		}, models.CodeValidationFailed},
		"inviting to another organization": {func() error {
			_, _, err := f.People.InvitePerson(ctx, ann, store.NoKey, f.Polar.OrganizationID, people.Invitation{Email: "x@acme.example.com"})
			return err
		}, models.CodeNotFound},
		"a manager removes ways to sign in": {func() error { _, err := f.People.RemoveWaysIn(ctx, bob, store.NoKey, f.ID("eve")); return err }, models.CodePermissionDenied},
		"an administrator removes its own":  {func() error { _, err := f.People.RemoveWaysIn(ctx, ann, store.NoKey, f.ID("ann")); return err }, models.CodeRuleViolation},
		"a manager changes an e-mail address": {func() error {
			_, err := f.People.ChangePersonEmail(ctx, bob, store.NoKey, f.ID("eve"), "eve.two@acme.example.com")
			return err
		}, models.CodePermissionDenied},
		"an address without a domain": {func() error {
			_, err := f.People.ChangePersonEmail(ctx, ann, store.NoKey, f.ID("eve"), "eve")
			return err
		}, models.CodeValidationFailed},
		"another person's address": {func() error {
			_, err := f.People.ChangePersonEmail(ctx, ann, store.NoKey, f.ID("eve"), f.Email("bob"))
			return err
		}, models.CodeValidationFailed},
		"inviting someone who can sign in": {func() error {
			_, _, err := f.People.InvitePerson(ctx, ann, store.NoKey, f.Acme.OrganizationID, people.Invitation{Email: f.Email("cat")})
			return err
		}, models.CodeValidationFailed},
		"inviting someone who was deactivated": {func() error {
			_, _, err := f.People.InvitePerson(ctx, ann, store.NoKey, f.Acme.OrganizationID, people.Invitation{Email: f.Email("zed")})
			return err
		}, models.CodeValidationFailed},
		"reading another organization's person": {func() error { _, err := f.People.PersonForPerson(ctx, ann, f.ID("pia")); return err }, models.CodeNotFound},
	} {
		if code := models.CodeOf(test.do()); code != test.code {
			t.Errorf("%s: %q, want %q", name, code, test.code)
		}
	}
	if _, _, err := f.People.ChangePersonAccess(ctx, ann, store.NoKey, f.ID("bob"), people.AccessChange{Admin: true, ConfirmedEmail: f.Email("bob")}); err != nil {
		t.Fatal(err)
	}
	// Two administrators who remove each other at a time: one remains.
	var group sync.WaitGroup
	for _, pair := range [][2]string{{"ann", "bob"}, {"bob", "ann"}} {
		actor := servicetest.Person(t, f, pair[0])
		group.Go(func() {
			_, _, _ = f.People.ChangePersonAccess(ctx, actor, store.NoKey, f.ID(pair[1]), people.AccessChange{ConfirmedEmail: f.Email(pair[1])})
		})
	}
	group.Wait()
	if n := servicetest.Value[int](f, `SELECT count(*) FROM people WHERE organization_id = $1 AND admin`, f.Acme.OrganizationID); n != 1 {
		t.Errorf("%d administrators remain", n)
	}
}

// A deactivated person is not one as whom anyone can act, and cannot sign in.
func TestDeactivatedPeopleDoNotAct(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "bob")
	if _, err := f.People.DeactivatePerson(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, f.ID("bob"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Access.PersonActor(t.Context(), "bob@acme.example.com"); models.CodeOf(err) != models.CodeNotFound {
		t.Errorf("as bob: %v", err)
	}
	if _, err := signIn(t, f, "bob@acme.example.com", password); !errors.Is(err, people.ErrSignInFailed) {
		t.Errorf("signing in: %v", err)
	}
}

// A change that makes no difference is not logged.
func TestChangesThatMakeNoDifference(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	logged := func() int { return servicetest.Value[int](f, `SELECT count(*) FROM log`) }
	before := logged()
	for what, do := range map[string]func() (people.PersonAccess, error){
		"the same address": func() (people.PersonAccess, error) {
			return f.People.ChangePersonEmail(ctx, ann, store.NoKey, f.ID("eve"), " eve@acme.example.com ")
		},
		"activated while active": func() (people.PersonAccess, error) {
			return f.People.ActivatePerson(ctx, ann, store.NoKey, f.ID("eve"))
		},
	} {
		if access, err := do(); err != nil || access.Email != "eve@acme.example.com" || access.DeactivatedAt != nil {
			t.Errorf("%s: %+v, %v", what, access, err)
		}
	}
	if n := logged() - before; n != 0 {
		t.Errorf("%d entries were logged", n)
	}
}

func TestOperatorsFindPeople(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE people SET email = 'EVE@acme.example.com' WHERE id = $1`, s.ID("pia"))
	for _, test := range []struct {
		reference, organization string
		want                    []string
		code                    models.Code
	}{
		{reference: "Eve@Acme.Example.com", want: s.IDs("eve", "pia")},
		{reference: "eve@acme.example.com", organization: "acme", want: s.IDs("eve")},
		{reference: "eve@acme.example.com", organization: s.Polar.OrganizationID, want: s.IDs("pia")},
		{reference: s.ID("eve"), organization: "polar"},
		{reference: s.ID("eve"), want: s.IDs("eve")},
		{reference: s.ID("erp")},
		{reference: "eve\xff"},
		{reference: "eve@acme.example.com", organization: "unknown", code: models.CodeNotFound},
	} {
		found, err := s.People.Find(t.Context(), test.reference, test.organization)
		slices.Sort(test.want)
		if models.CodeOf(err) != test.code || !slices.Equal(found, test.want) {
			t.Errorf("%q in %q: %v, %v; want %v", test.reference, test.organization, found, err, test.want)
		}
	}
}
