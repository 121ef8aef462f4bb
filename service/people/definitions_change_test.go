package people_test

import (
	"errors"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// An administrator makes roles of both kinds, changes and retires them.
func TestAdministratorsChangeRoles(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	for _, onNodes := range []bool{true, false} {
		grants := models.TextArray{"log_records", "people"}
		table := "organization_permission_definitions"
		if onNodes {
			grants, table = models.TextArray{"inventory.read", "work_orders.read"}, "permission_definitions"
		}
		in := people.DefinitionFields{Name: " Auditor ", Grants: models.TextArray{grants[1], grants[0]}, AppliesBelow: true, InventoryManager: onNodes}
		id, err := f.People.SaveDefinition(ctx, ann, store.NoKey, onNodes, "", in)
		servicetest.Must(t, err)
		row := func() string {
			return servicetest.Value[string](f, `SELECT concat_ws(' ', name, grants, retired) FROM `+table+` WHERE id = $1`, id)
		}
		servicetest.Expect(t, "the new role", row(), "Auditor {"+strings.Join(grants, ",")+"} f")
		in.Grants, in.Retired = grants[:1], true
		servicetest.Must(t, servicetest.ErrorOf(f.People.SaveDefinition(ctx, ann, store.NoKey, onNodes, id, in)))
		servicetest.Expect(t, "the changed role", row(), "Auditor {"+grants[0]+"} t")
		servicetest.Expect(t, "the log", strings.ReplaceAll(servicetest.LogOf(f, id), "Ann Field "+f.ID("ann")+" ", ""), "definition.created\ndefinition.retired")
		_, err = f.People.SaveDefinition(ctx, ann, store.NoKey, !onNodes, id, people.DefinitionFields{Name: "New"})
		servicetest.WantCode(t, "a role of the other kind", err, models.CodeNotFound)
		_, err = f.People.SaveDefinition(ctx, servicetest.Person(t, f, "pia"), store.NoKey, onNodes, id, people.DefinitionFields{Name: "New"})
		servicetest.WantCode(t, "another organization's administrator", err, models.CodeNotFound)
		_, err = f.People.SaveDefinition(ctx, ann, store.NoKey, onNodes, "", people.DefinitionFields{Name: "New", Grants: models.TextArray{"everything"}})
		servicetest.WantCode(t, "an unknown permission", err, models.CodeValidationFailed)
		_, err = f.People.SaveDefinition(ctx, ann, store.NoKey, onNodes, "", people.DefinitionFields{Name: " "})
		servicetest.WantCode(t, "a blank name", err, models.CodeValidationFailed)
		f.Exec(`INSERT INTO `+table+` SELECT (jsonb_populate_record(d, jsonb_build_object('id', 'pdf_' || lpad(n::text, 26, '0')))).* FROM `+table+` d, generate_series(1, 200) n WHERE d.id = $1`, id)
		_, err = f.People.SaveDefinition(ctx, ann, store.NoKey, onNodes, "", people.DefinitionFields{Name: "New"})
		servicetest.WantCode(t, "one more than can be chosen from", err, models.CodeValidationFailed)
	}
}

// Managing people is not enough: who could change a role could give herself everything.
func TestOnlyAdministratorsChangeRoles(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	servicetest.Managers(t, f)
	for _, actor := range []store.Actor{servicetest.Person(t, f, "dan"), servicetest.Person(t, f, "bob"), f.Actor("erp")} {
		for _, onNodes := range []bool{true, false} {
			_, err := f.People.SaveDefinition(t.Context(), actor, store.NoKey, onNodes, "", people.DefinitionFields{Name: "New"})
			servicetest.WantCode(t, actor.Name+" makes one", err, models.CodePermissionDenied)
		}
	}
}

// A change that leaves the permissions keeps their order, which an import compares, and tells no one.
func TestARoleKeepsItsOrder(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann, id := t.Context(), servicetest.Person(t, f, "ann"), f.ID("org_nothing")
	f.Exec(`UPDATE organization_permission_definitions SET grants = '{people,integrations}' WHERE id = $1`, id)
	_, err := f.People.SaveDefinition(ctx, ann, store.NoKey, false, id, people.DefinitionFields{Name: "Other", Grants: models.TextArray{"integrations", "people"}})
	servicetest.Must(t, err)
	servicetest.Expect(t, "the permissions", servicetest.Value[string](f, `SELECT grants::text FROM organization_permission_definitions WHERE id = $1`, id), "{people,integrations}")
	servicetest.Expect(t, "notices",
		servicetest.Value[int](f, `SELECT count(*) FROM notices WHERE kind = 'organization.access_changed'`), 0)
}

// People who gain a permission by a change of their role are signed out and lose a password that others may know; those
// who only lose one stay signed in. Who loses the Integrations permission owns no integration any longer.
func TestAWiderRoleEndsSharedSignIn(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	in := people.DefinitionFields{Name: "Keeper", Grants: models.TextArray{"integrations", "log_records"}}
	id, err := f.People.SaveDefinition(ctx, ann, store.NoKey, false, "", in)
	servicetest.Must(t, err)
	f.Exec(`UPDATE people SET organization_definition_id = $1, password_hash = 'known to others' WHERE id = $2`, id, f.ID("bob"))
	f.Exec(`UPDATE integrations SET owners = ARRAY[$1] WHERE id = $2`, f.ID("bob"), f.ID("erp"))
	state := func() string {
		return servicetest.Value[string](f, `SELECT concat_ws(' ', (SELECT count(*) FROM sessions WHERE person_id = p.id), p.password_hash IS NOT NULL,
			(SELECT cardinality(owners) FROM integrations WHERE id = $2), (SELECT count(*) FROM notices WHERE person_id = p.id AND kind = 'organization.access_changed'))
			FROM people p WHERE id = $1`, f.ID("bob"), f.ID("erp"))
	}
	servicetest.Session(f, "bob")
	for _, change := range []struct {
		grants models.TextArray
		want   string
	}{
		{models.TextArray{"integrations"}, "1 t 1 1"}, {models.TextArray{"integrations", "people"}, "0 f 1 2"}, {models.TextArray{"people"}, "0 f 0 3"},
	} {
		in.Grants = change.grants
		servicetest.Must(t, servicetest.ErrorOf(f.People.SaveDefinition(ctx, ann, store.NoKey, false, id, in)))
		servicetest.Expect(t, "sessions, password, owners and notices", state(), change.want)
	}
}

// An invitation may put the person into a team and give a role on a place, or nothing is written.
func TestAnInvitationTakesATeamAndARole(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	invite := func(in people.Invitation) (people.PersonAccess, error) {
		p, _, err := f.People.InvitePerson(ctx, ann, store.NoKey, f.ID("acme"), in)
		return p, err
	}
	for what, in := range map[string]people.Invitation{
		"/team":          {TeamID: f.ID("dispatch")},
		"/node":          {Node: "NOWHERE", RoleID: f.ID("working")},
		"/definition_id": {Node: "HQ"},
	} {
		in.Email = "new@acme.example.com"
		_, err := invite(in)
		if known, ok := errors.AsType[*models.Error](err); !ok || len(known.Fields) != 1 || known.Fields[0].Pointer != what {
			t.Errorf("%s: %v", what, err)
		}
		servicetest.Expect(t, what+": people who were invited",
			servicetest.Value[int](f, `SELECT count(*) FROM people WHERE email = $1`, in.Email), 0)
	}
	in, key := people.Invitation{Email: "new@acme.example.com", TeamID: f.ID("crew"), Node: "HQ", RoleID: f.ID("working")}, store.ForForm(f.ID("ann"), "a form", "")
	p, _, err := f.People.InvitePerson(ctx, ann, key, f.ID("acme"), in)
	servicetest.Must(t, err)
	// Sent again, the form shows the person, not the team.
	_, _, err = f.People.InvitePerson(ctx, ann, key, f.ID("acme"), in)
	if done, ok := errors.AsType[*store.FormDoneError](err); !ok || done.RecordID != p.ID {
		t.Errorf("the second time: %v", err)
	}
	servicetest.Expect(t, "the person", servicetest.Value[string](f, `SELECT concat_ws(' ', (SELECT count(*) FROM team_members WHERE team_id = $2 AND member_id = $1),
		(SELECT definition_id FROM assignments WHERE node_id = $3 AND identity_id = $1))`, p.ID, f.ID("crew"), f.ID("hq")), "1 "+f.ID("working"))
	servicetest.Expect(t, "the log of the team", servicetest.LogOf(f, f.ID("crew")), "Ann Field "+f.ID("ann")+" team.member_added")
}
