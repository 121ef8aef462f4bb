package people_test

import (
	"errors"
	"slices"
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

// changeAccess changes the access of a person of the fixture.
func changeAccess(t *testing.T, f *servicetest.Fixture, actor store.Actor, key string, change people.AccessChange) error {
	change.ConfirmedEmail = f.Email(key)
	_, _, err := f.People.ChangePersonAccess(t.Context(), actor, store.NoKey, f.ID(key), change)
	return err
}

// invite invites someone to the organization.
func invite(t *testing.T, f *servicetest.Fixture, actor store.Actor, organization string, in people.Invitation) error {
	_, _, err := f.People.InvitePerson(t.Context(), actor, store.NoKey, organization, in)
	return err
}

// What makes or takes administrators is in administrators_test.go.
func TestManagingPeopleIsRejected(t *testing.T) {
	f := servicetest.New(t)
	grant(f, "bob", "people", "log_records")
	grant(f, "cat", "people", "integrations")
	grant(f, "dan", "log_records")
	ctx, acme := t.Context(), f.Acme.OrganizationID
	ann, bob, dan, pia := servicetest.Person(t, f, "ann"), servicetest.Person(t, f, "bob"), servicetest.Person(t, f, "dan"), servicetest.Person(t, f, "pia")
	catsDefinition, foreign := definitionOf("cat"), f.Polar.IDs["org_incoming"]
	setPassword(t, f, "cat")
	deactivate := func(actor store.Actor, id string) error {
		return servicetest.ErrorOf(f.People.DeactivatePerson(ctx, actor, store.NoKey, id, ""))
	}
	link := func(actor store.Actor, key string) error {
		return servicetest.ErrorOf(f.People.NewPersonLink(ctx, actor, store.NoKey, f.ID(key), false))
	}
	removeWaysIn := func(actor store.Actor, key string) error {
		return servicetest.ErrorOf(f.People.RemoveWaysIn(ctx, actor, store.NoKey, f.ID(key)))
	}
	emailOfEve := func(actor store.Actor, email string) error {
		return servicetest.ErrorOf(f.People.ChangePersonEmail(ctx, actor, store.NoKey, f.ID("eve"), email))
	}
	servicetest.Must(t, deactivate(ann, f.ID("zed")))
	for name, test := range map[string]struct {
		err  error
		code models.Code
	}{
		"someone without the permission":         {deactivate(dan, f.ID("eve")), models.CodePermissionDenied},
		"an integration":                         {deactivate(f.Actor("erp"), f.ID("eve")), models.CodePermissionDenied},
		"someone of another organization":        {deactivate(pia, f.ID("eve")), models.CodeNotFound},
		"an unknown person":                      {deactivate(ann, "idn_00000000000000000000000000"), models.CodeNotFound},
		"a manager gives more than it has":       {changeAccess(t, f, bob, "eve", people.AccessChange{DefinitionID: &catsDefinition}), models.CodePermissionDenied},
		"a manager takes over someone with more": {link(bob, "cat"), models.CodePermissionDenied},
		"a manager manages someone with less":    {deactivate(bob, f.ID("dan")), ""},
		"a person sets the password of another":  {f.People.SetPassword(ctx, ann, f.ID("bob"), password), models.CodePermissionDenied},
		"another organization's definition":      {changeAccess(t, f, ann, "eve", people.AccessChange{DefinitionID: &foreign}), models.CodeValidationFailed},
		"inviting to another organization":       {invite(t, f, ann, f.Polar.OrganizationID, people.Invitation{Email: "x@acme.example.com"}), models.CodeNotFound},
		"a manager removes ways to sign in":      {removeWaysIn(bob, "eve"), models.CodePermissionDenied},
		"an administrator removes its own":       {removeWaysIn(ann, "ann"), models.CodeRuleViolation},
		"a manager changes an e-mail address":    {emailOfEve(bob, "eve.two@acme.example.com"), models.CodePermissionDenied},
		"an address without a domain":            {emailOfEve(ann, "eve"), models.CodeValidationFailed},
		"another person's address":               {emailOfEve(ann, f.Email("bob")), models.CodeValidationFailed},
		"inviting someone who can sign in":       {invite(t, f, ann, acme, people.Invitation{Email: f.Email("cat")}), models.CodeValidationFailed},
		"inviting someone who was deactivated":   {invite(t, f, ann, acme, people.Invitation{Email: f.Email("zed")}), models.CodeValidationFailed},
		"reading another organization's person":  {servicetest.ErrorOf(f.People.PersonForPerson(ctx, ann, f.ID("pia"))), models.CodeNotFound},
	} {
		servicetest.WantCode(t, name, test.err, test.code)
	}
}

// A deactivated person is not one as whom anyone can act, and cannot sign in.
func TestDeactivatedPeopleDoNotAct(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "bob")
	_, err := f.People.DeactivatePerson(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, f.ID("bob"), "")
	servicetest.Must(t, err)
	_, err = f.Access.PersonActor(t.Context(), "bob@acme.example.com")
	servicetest.WantCode(t, "as bob", err, models.CodeNotFound)
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
	servicetest.Expect(t, "entries were logged", logged()-before, 0)
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
