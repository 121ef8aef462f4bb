package people_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// administrators returns how many administrators of the fixture's organization can sign in.
func administrators(f *servicetest.Fixture) int {
	return servicetest.Value[int](f, `SELECT count(*) FROM people WHERE organization_id = $1 AND admin AND deactivated_at IS NULL`, f.Acme.OrganizationID)
}

// idsOf returns the ids of keys of the fixture.
func idsOf(f *servicetest.Fixture, keys []string) (ids []string) {
	for _, key := range keys {
		ids = append(ids, f.ID(key))
	}
	return ids
}

// resigning are the ways by which an organization can lose an administrator.
func resigning(f *servicetest.Fixture) map[string]func(ctx context.Context, actor store.Actor, key string) error {
	return map[string]func(ctx context.Context, actor store.Actor, key string) error{
		"deactivating": func(ctx context.Context, actor store.Actor, key string) error {
			return servicetest.ErrorOf(f.People.DeactivatePerson(ctx, actor, store.NoKey, f.ID(key), ""))
		},
		"taking the role": func(ctx context.Context, actor store.Actor, key string) error {
			_, _, err := f.People.ChangePersonAccess(ctx, actor, store.NoKey, f.ID(key), people.AccessChange{ConfirmedEmail: f.Email(key)})
			return err
		},
		"an operator's command": func(ctx context.Context, _ store.Actor, key string) error {
			return servicetest.ErrorOf(f.People.DeactivatePerson(ctx, store.Operator(), store.NoKey, f.ID(key), ""))
		},
		"an import": func(ctx context.Context, _ store.Actor, key string) error {
			_, err := f.Imports.Overwrite(ctx, []byte("organization: {key: acme}\npeople: [{key: "+key+", admin: false}]\n"))
			return err
		},
	}
}

// Whatever takes an administrator away leaves one: someone who was deactivated does not
// count, and two who leave at a time do not both go.
func TestOneAdministratorAlwaysRemains(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	ways := resigning(f)
	reset := func(admins ...string) {
		f.Exec(`UPDATE people SET admin = id = ANY ($1), deactivated_at = NULL WHERE organization_id = $2`, idsOf(f, admins), f.Acme.OrganizationID)
	}
	for name, resign := range ways {
		reset("ann")
		if err := resign(ctx, ann, "ann"); err == nil || !strings.Contains(err.Error(), "administrator") {
			t.Errorf("%s with one administrator: %v", name, err)
		}
		reset("ann", "bob")
		f.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, f.ID("bob"))
		if err := resign(ctx, ann, "ann"); err == nil || administrators(f) != 1 {
			t.Errorf("%s while the other is deactivated: %v", name, err)
		}
		reset("ann", "bob")
		if err := resign(ctx, ann, "bob"); err != nil || administrators(f) != 1 {
			t.Errorf("%s of one of two: %v", name, err)
		}
	}
	for first, resign := range ways {
		for second, other := range ways {
			reset("ann", "bob")
			bob := servicetest.Person(t, f, "bob")
			var group sync.WaitGroup
			var errs [2]error
			group.Go(func() { errs[0] = resign(ctx, ann, "bob") })
			group.Go(func() { errs[1] = other(ctx, bob, "ann") })
			group.Wait()
			if n := administrators(f); n != 1 {
				t.Errorf("%s and %s at a time: %d administrators remain: %v", first, second, n, errs)
			}
		}
	}
	// Many at a time, each one's own or another's.
	reset("ann", "bob", "cat", "dan", "eve")
	var group sync.WaitGroup
	everyone := []string{"ann", "bob", "cat", "dan", "eve"}
	var actors []store.Actor
	for _, key := range everyone { // before the first is deactivated
		actors = append(actors, servicetest.Person(t, f, key))
	}
	for i, key := range everyone {
		actor := actors[i]
		for _, way := range []string{"deactivating", "taking the role"} {
			group.Go(func() { _ = ways[way](ctx, actor, everyone[(i+1)%len(everyone)]) })
			group.Go(func() { _ = ways[way](ctx, actor, key) })
		}
	}
	group.Wait()
	if n := administrators(f); n < 1 {
		t.Errorf("of five %d administrators remain", n)
	}
}

// Someone who manages people and is no administrator makes none, by no way.
func TestOnlyAdministratorsManageAdministrators(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx := t.Context()
	f.Exec(`UPDATE people SET admin = true, deactivated_at = now() WHERE id = $1`, f.ID("eve"))
	invited, _, err := f.People.InvitePerson(ctx, servicetest.Person(t, f, "ann"), store.NoKey, f.Acme.OrganizationID, people.Invitation{Email: "nia@acme.example.com", Admin: true})
	servicetest.Must(t, err)
	grant(f, "bob", "people", "integrations", "incoming_work_orders", "log_records")
	bob, pia := servicetest.Person(t, f, "bob"), servicetest.Person(t, f, "pia")
	activate := func(key string) error {
		return servicetest.ErrorOf(f.People.ActivatePerson(ctx, bob, store.NoKey, f.ID(key)))
	}
	link := func(id string) error {
		return servicetest.ErrorOf(f.People.NewPersonLink(ctx, bob, store.NoKey, id, false))
	}
	deactivate := func(key string) error {
		return servicetest.ErrorOf(f.People.DeactivatePerson(ctx, bob, store.NoKey, f.ID(key), ""))
	}
	access := func(actor store.Actor, key string, admin bool) func() error {
		return func() error { return changeAccess(t, f, actor, key, people.AccessChange{Admin: admin}) }
	}
	inviting := func(in people.Invitation) func() error {
		return func() error { return invite(t, f, bob, f.Acme.OrganizationID, in) }
	}
	for name, do := range map[string]func() error{
		"activating a former one":              func() error { return activate("eve") },
		"taking the role from a former":        access(bob, "eve", false),
		"inviting one":                         inviting(people.Invitation{Email: "x@acme.example.com", Admin: true}),
		"inviting one again":                   inviting(people.Invitation{Email: "nia@acme.example.com"}),
		"a link for an invited one":            func() error { return link(invited.ID) },
		"a link for one":                       func() error { return link(f.ID("ann")) },
		"making someone one":                   access(bob, "cat", true),
		"becoming one":                         access(bob, "bob", true),
		"deactivating one":                     func() error { return deactivate("ann") },
		"taking the role from one":             access(bob, "ann", false),
		"making one in another's organization": access(pia, "cat", true),
	} {
		before := administrators(f)
		if code := models.CodeOf(do()); code != models.CodePermissionDenied && code != models.CodeNotFound {
			t.Errorf("%s: %q", name, code)
		}
		servicetest.Expect(t, name+": administrators", administrators(f), before)
	}
}

// An import may name administrators of an organization that has none, and change the last
// one's other fields.
func TestImportsOfAdministrators(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	file := func(people string) []byte {
		return []byte(fmt.Sprintf("organization: {key: acme}\npeople: [%s]\n", people))
	}
	for people, allowed := range map[string]bool{
		"{key: ann, phone: \"+12025550199\"}":                true,
		"{key: ann, admin: false}, {key: bob, admin: true}":  true,
		"{key: bob, admin: false}, {key: cat, admin: false}": false,
	} {
		f.Exec(`UPDATE people SET admin = id = $1 WHERE organization_id = $2`, f.ID("ann"), f.Acme.OrganizationID)
		if !allowed {
			f.Exec(`UPDATE people SET admin = id = ANY ($1) WHERE organization_id = $2`, idsOf(f, []string{"bob", "cat"}), f.Acme.OrganizationID)
		}
		_, dry := f.Imports.Compare(t.Context(), file(people))
		_, err := f.Imports.Overwrite(t.Context(), file(people))
		if (err == nil) != allowed || (dry == nil) != allowed {
			t.Errorf("%s: %v, dry %v", people, err, dry)
		}
	}
}

// An administrator who cannot sign in does not replace one who can.
func TestTheLastAdministratorWhoCanSignInRemains(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`UPDATE people SET admin = id = ANY ($1), password_hash = NULL WHERE organization_id = $2`, idsOf(f, []string{"ann", "bob"}), f.Acme.OrganizationID)
	setPassword(t, f, "ann")
	for what, resign := range resigning(f) {
		if what == "an import" || what == "an operator's command" {
			continue // an operator makes links for others
		}
		if err := resign(t.Context(), servicetest.Person(t, f, "ann"), "ann"); models.CodeOf(err) != models.CodeRuleViolation {
			t.Errorf("%s: %v, want %s", what, err, models.CodeRuleViolation)
		}
	}
	_, err := f.People.DeactivatePerson(t.Context(), store.Operator(), store.NoKey, f.ID("bob"), "")
	servicetest.WantCode(t, "one who cannot sign in is deactivated", err, "")
}

// An invitation of someone who is there is rejected with another name or other permissions.
func TestAnInvitationOfSomeoneWhoIsThere(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`UPDATE people SET password_hash = NULL`)
	ann, definition := servicetest.Person(t, f, "ann"), f.Acme.IDs["org_integrations"]
	for name, test := range map[string]struct {
		in   people.Invitation
		want string
	}{
		"with nothing else":    {people.Invitation{}, ""},
		"by the same name":     {people.Invitation{Name: " Eve HILL "}, ""},
		"by another name":      {people.Invitation{Name: "Evelyn"}, "/name"},
		"with permissions":     {people.Invitation{DefinitionID: &definition}, "/definition"},
		"as administrator":     {people.Invitation{Admin: true}, "/admin"},
		"a role without place": {people.Invitation{RoleID: "any"}, "/node"},
		"a place without role": {people.Invitation{Node: "AHU-1"}, "/definition_id"},
	} {
		test.in.Email = f.Email("eve")
		_, _, err := f.People.InvitePerson(t.Context(), ann, store.NoKey, f.Acme.OrganizationID, test.in)
		got := ""
		if known, ok := errors.AsType[*models.Error](err); ok && len(known.Fields) == 1 {
			got = known.Fields[0].Pointer
		}
		if got != test.want || (err == nil) != (test.want == "") {
			t.Errorf("%s: %q, want %q, %v", name, got, test.want, err)
		}
	}
}
