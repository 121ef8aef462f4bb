package people_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/pages"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// membersOf returns the members of a team in keys of the fixture.
func membersOf(f *servicetest.Fixture, team string) string {
	ids := servicetest.Value[string](f, `SELECT coalesce(string_agg(member_id, ' '), '') FROM team_members WHERE team_id = $1`, team)
	for key, id := range f.Acme.IDs {
		ids = strings.ReplaceAll(ids, id, key)
	}
	keys := strings.Fields(ids)
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

func TestTeamsAreManaged(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	grant(f, "bob", "people")
	ctx, bob := t.Context(), servicetest.Person(t, f, "bob")
	team, err := f.People.CreateTeam(ctx, bob, store.NoKey, f.Acme.OrganizationID, " Roofers ")
	if err != nil || team.Name != "Roofers" || team.OrganizationID != f.Acme.OrganizationID {
		t.Fatal(team, err)
	}
	add := func(keys ...string) func() error {
		return func() error {
			return servicetest.ErrorOf(f.People.AddTeamMembers(ctx, bob, store.NoKey, team.ID, idsOf(f, keys)))
		}
	}
	rename := func(name string) func() error {
		return func() error { return servicetest.ErrorOf(f.People.RenameTeam(ctx, bob, store.NoKey, team.ID, name)) }
	}
	for _, step := range []struct {
		do      func() error
		members string
		log     string
	}{
		{add("eve", "cat", "eve"), "cat eve", "team.member_added"},
		{add("eve"), "cat eve", ""},
		{add("ann", "eve"), "ann cat eve", "team.member_added"},
		{func() error {
			return servicetest.ErrorOf(f.People.RemoveTeamMember(ctx, bob, store.NoKey, team.ID, f.ID("cat")))
		}, "ann eve", "team.member_removed"},
		{rename("Day shift"), "ann eve", "team.renamed"},
		{rename(" Day shift "), "ann eve", ""},
		{func() error { return servicetest.ErrorOf(f.People.DeleteTeam(ctx, bob, store.NoKey, team.ID)) }, "", "team.deleted"},
	} {
		before := servicetest.Value[int](f, `SELECT count(*) FROM log WHERE record_id = $1`, team.ID)
		servicetest.Must(t, step.do())
		servicetest.Expect(t, "the members after "+step.log, membersOf(f, team.ID), step.members)
		logged := servicetest.Value[int](f, `SELECT count(*) FROM log WHERE record_id = $1`, team.ID) - before
		last := servicetest.Value[string](f, `SELECT actor_name || ' ' || action FROM log WHERE record_id = $1 ORDER BY id DESC LIMIT 1`, team.ID)
		if step.log == "" && logged != 0 || step.log != "" && (logged != 1 || last != "Bob Stone "+step.log) {
			t.Errorf("%d entries are logged, the last is %q, want %q", logged, last, step.log)
		}
	}
}

func TestManagingTeamsIsRejected(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	grant(f, "bob", "integrations", "log_records", "incoming_work_orders")
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	_, err := f.People.DeactivatePerson(ctx, ann, store.NoKey, f.ID("zed"), "")
	servicetest.Must(t, err)
	contents := func() string {
		return servicetest.Value[string](f, `SELECT md5(string_agg(x::text, '' ORDER BY x::text)) FROM (SELECT (i.id, i.name, i.deleted_at, (SELECT array_agg(m ORDER BY m) FROM team_members m WHERE m.team_id = i.id)) AS x FROM identities i) i`)
	}
	before := contents()
	const nothing = "idn_00000000000000000000000000"
	for name, test := range map[string]struct {
		actor        store.Actor
		team, member string
		code         models.Code
		// member and rename are the codes of adding a member and of renaming, where they differ.
		adding models.Code
	}{
		"without the permission":        {actor: servicetest.Person(t, f, "bob"), code: models.CodePermissionDenied},
		"a member":                      {actor: servicetest.Person(t, f, "dan"), code: models.CodePermissionDenied},
		"an integration":                {actor: f.Actor("erp"), code: models.CodePermissionDenied},
		"another organization":          {actor: servicetest.Person(t, f, "pia"), code: models.CodeNotFound},
		"an unknown team":               {actor: ann, team: nothing, code: models.CodeNotFound},
		"a malformed team":              {actor: ann, team: "crew\xff", code: models.CodeNotFound},
		"a person for a team":           {actor: ann, team: f.ID("bob"), code: models.CodeNotFound},
		"an integration for a team":     {actor: ann, team: f.ID("erp"), code: models.CodeNotFound},
		"the organization for a team":   {actor: ann, team: f.Acme.OrganizationID, code: models.CodeNotFound},
		"an unknown member":             {actor: ann, member: nothing, adding: models.CodeValidationFailed},
		"a malformed member":            {actor: ann, member: "\xff", adding: models.CodeValidationFailed},
		"another organization's person": {actor: ann, member: f.ID("pia"), adding: models.CodeValidationFailed},
		"a deactivated person":          {actor: ann, member: f.ID("zed"), adding: models.CodeValidationFailed},
		"an integration as a member":    {actor: ann, member: f.ID("erp"), adding: models.CodeValidationFailed},
		"the team in itself":            {actor: ann, member: f.ID("crew"), adding: models.CodeValidationFailed},
		"no member":                     {actor: ann, member: "", adding: models.CodeValidationFailed},
	} {
		team, members := test.team, []string{test.member}
		if team == "" {
			team = f.ID("crew")
		}
		if test.code != "" {
			members = []string{f.ID("eve")}
		} else if test.member == "" {
			members = nil
		}
		want := func(what string, err error, code models.Code) {
			t.Helper()
			servicetest.WantCode(t, name+": "+what, err, code)
		}
		_, err := f.People.AddTeamMembers(ctx, test.actor, store.NoKey, team, members)
		want("adding", err, max(test.code, test.adding))
		member := append(members, "x")[0]
		_, err = f.People.RemoveTeamMember(ctx, test.actor, store.NoKey, team, member)
		want("removing", err, max(test.code, models.CodeNotFound))
		if test.code == "" {
			continue
		}
		_, err = f.People.RenameTeam(ctx, test.actor, store.NoKey, team, "Other")
		want("renaming", err, test.code)
		_, err = f.People.DeleteTeam(ctx, test.actor, store.NoKey, team)
		want("deleting", err, test.code)
		_, _, err = f.People.TeamEffects(ctx, test.actor, team)
		want("effects", err, test.code)
		if team == f.ID("crew") {
			_, err = f.People.CreateTeam(ctx, test.actor, store.NoKey, f.Acme.OrganizationID, "Other")
			want("creating", err, test.code)
		}
	}
	var many []string
	for i := range 201 {
		many = append(many, fmt.Sprintf("idn_%026d", i))
	}
	_, err = f.People.AddTeamMembers(ctx, ann, store.NoKey, f.ID("crew"), many)
	if invalid, ok := errors.AsType[*models.Error](err); !ok || len(invalid.Fields) != 1 || invalid.Fields[0].Code != "too_many" {
		t.Errorf("adding 201 people: %v", err)
	}
	for _, name := range []string{"", " \t", strings.Repeat("x", 201), "a\nb", "a\x00b", "\xff"} {
		if _, err := f.People.CreateTeam(ctx, ann, store.NoKey, f.Acme.OrganizationID, name); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("creating %q returns %v", name, err)
		}
		if _, err := f.People.RenameTeam(ctx, ann, store.NoKey, f.ID("crew"), name); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("renaming to %q returns %v", name, err)
		}
	}
	servicetest.Expect(t, "contents after rejected changes", contents(), before)
}

// A deleted team is unknown, cannot be given work or permissions, and is still named by the
// records and the log that have it.
func TestADeletedTeamIsUnknown(t *testing.T) {
	t.Parallel()
	h := servicetest.NewHarness(t)
	ctx, ann, erp := t.Context(), h.As("ann"), h.As("erp")
	crew := h.ID("crew")
	created, err := h.Records.CreateWorkOrder(ctx, ann, store.NoKey, records.NewWorkOrder{InventoryID: h.ID("hvac"), Title: "x", Assignees: []string{crew}})
	record := h.MustWrite(created, err)
	if team, workOrders, err := h.People.TeamEffects(ctx, ann, crew); err != nil || team.Members != 2 || team.Nodes != 1 || workOrders != 1 {
		t.Errorf("the effects are %+v and %d work orders, %v", team, workOrders, err)
	}
	servicetest.Must(t, servicetest.ErrorOf(h.People.DeleteTeam(ctx, ann, store.NoKey, crew)))
	for what, call := range map[string]func() error{
		"reading it":      func() error { return servicetest.ErrorOf(h.People.TeamForPerson(ctx, ann, crew, lists.NameFilter{})) },
		"its record":      func() error { return servicetest.ErrorOf(h.People.Team(ctx, erp, crew)) },
		"its assignments": func() error { return servicetest.ErrorOf(h.Records.AssignmentsForPerson(ctx, ann, crew)) },
		"its effects":     func() error { _, _, err := h.People.TeamEffects(ctx, ann, crew); return err },
		"deleting it":     func() error { return servicetest.ErrorOf(h.People.DeleteTeam(ctx, ann, store.NoKey, crew)) },
		"renaming it":     func() error { return servicetest.ErrorOf(h.People.RenameTeam(ctx, ann, store.NoKey, crew, "x")) },
		"adding to it": func() error {
			return servicetest.ErrorOf(h.People.AddTeamMembers(ctx, ann, store.NoKey, crew, []string{h.ID("eve")}))
		},
		"removing from it": func() error {
			return servicetest.ErrorOf(h.People.RemoveTeamMember(ctx, ann, store.NoKey, crew, h.ID("bob")))
		},
		"one of its members": func() error { _, _, err := h.People.TeamMemberForPerson(ctx, ann, crew, h.ID("bob")); return err },
	} {
		servicetest.WantCode(t, what, call(), models.CodeNotFound)
	}
	servicetest.WantCode(t, "assigning it to a node",
		h.Inventory.Assign(ctx, ann, store.NoKey, h.ID("hq"), crew, h.ID("working")), models.CodeValidationFailed)
	_, err = h.Records.CreateWorkOrder(ctx, ann, store.NoKey, records.NewWorkOrder{InventoryID: h.ID("hvac"), Title: "x", Assignees: []string{crew}})
	servicetest.WantCode(t, "giving it work", err, models.CodeValidationFailed)
	choices, err := h.Records.AssigneeChoices(ctx, ann, h.ID("hq"))
	if err != nil || slices.ContainsFunc(choices.Identities, func(i inventory.AssignableIdentity) bool { return i.ID == crew }) {
		t.Errorf("it can be chosen: %v, %v", choices.Identities, err)
	}
	if page, err := h.People.Teams(ctx, h.As("erp"), lists.ListRequest{}); err != nil || strings.Contains(string(page), crew) {
		t.Errorf("the list of teams is %s, %v", page, err)
	}
	if list, err := h.People.TeamsForPerson(ctx, ann, lists.NameFilter{}); err != nil || len(list) != 0 {
		t.Errorf("the teams are %v, %v", list, err)
	}
	if body, err := h.Records.WorkOrder(ctx, ann, record.ID); err != nil || !strings.Contains(string(body), `"Crew"`) {
		t.Errorf("the work order is %s, %v", body, err)
	}
	servicetest.Expect(t, "assignments are left",
		servicetest.Value[int](h.Fixture, `SELECT count(*) FROM assignments WHERE identity_id = $1`, crew), 0)
	log, err := h.Pages.LogRecords(ctx, ann, "", pages.LogFilter{RecordID: crew})
	if err != nil || len(log.Records) != 1 || log.Records[0].RecordName == nil || *log.Records[0].RecordName != "Crew" {
		t.Errorf("the log is %+v, %v", log.Records, err)
	}
}

// If two people change a team at a time, each change is made once.
func TestTeamsAreChangedAtOnce(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	grant(f, "cat", "people")
	cat := servicetest.Person(t, f, "cat")
	var group sync.WaitGroup
	for _, who := range []store.Actor{ann, cat} {
		for _, key := range []string{"eve", "zed", "eve"} {
			group.Go(func() {
				if _, err := f.People.AddTeamMembers(ctx, who, store.NoKey, f.ID("crew"), []string{f.ID(key)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	servicetest.Expect(t, "the members", membersOf(f, f.ID("crew")), "bob dan eve zed")
	servicetest.Expect(t, "entries are logged",
		servicetest.Value[int](f, `SELECT count(*) FROM log WHERE action = 'team.member_added'`), 2)
	deleted := make([]error, 2)
	for i, who := range []store.Actor{ann, cat} {
		group.Go(func() { _, deleted[i] = f.People.DeleteTeam(ctx, who, store.NoKey, f.ID("crew")) })
	}
	group.Go(func() { _, _ = f.People.AddTeamMembers(ctx, ann, store.NoKey, f.ID("crew"), []string{f.ID("cat")}) })
	group.Wait()
	if (deleted[0] == nil) == (deleted[1] == nil) || models.CodeOf(deleted[0])+models.CodeOf(deleted[1]) != models.CodeNotFound {
		t.Errorf("the deletions return %v", deleted)
	}
	servicetest.Expect(t, "members of the deleted team", membersOf(f, f.ID("crew")), "")
}

// A member has the permissions of the team as long as it is in the team.
func TestMembersHaveTheTeamsPermissions(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann, zed := t.Context(), servicetest.Person(t, f, "ann"), servicetest.Person(t, f, "zed")
	sees := func() bool { _, err := f.Inventory.Node(ctx, zed, "location", f.ID("hq")); return err == nil }
	if sees() {
		t.Fatal("zed sees the node already")
	}
	if _, err := f.People.AddTeamMembers(ctx, ann, store.NoKey, f.ID("crew"), []string{f.ID("zed")}); err != nil || !sees() {
		t.Errorf("as a member zed does not see the node: %v", err)
	}
	if _, err := f.People.RemoveTeamMember(ctx, ann, store.NoKey, f.ID("crew"), f.ID("zed")); err != nil || sees() {
		t.Errorf("zed sees the node after leaving: %v", err)
	}
	if _, err := f.People.AddTeamMembers(ctx, ann, store.NoKey, f.ID("crew"), []string{f.ID("zed")}); err != nil || !sees() {
		t.Errorf("as a member again zed does not see the node: %v", err)
	}
	if _, err := f.People.DeleteTeam(ctx, ann, store.NoKey, f.ID("crew")); err != nil || sees() {
		t.Errorf("zed sees the node after the team is deleted: %v", err)
	}
}

// An import that would undo what people did to a team is rejected.
func TestAnImportDoesNotUndoChangesOfTeams(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	file := func(members string) []byte {
		return []byte("organization: {key: acme}\nteams: [{key: crew, name: Crew, members: [" + members + "]}]\n")
	}
	_, err := f.People.AddTeamMembers(ctx, ann, store.NoKey, f.ID("crew"), []string{f.ID("eve")})
	servicetest.Must(t, err)
	if _, err := f.Imports.Run(ctx, file("bob, dan")); err == nil {
		t.Error("an import removes a member whom a person added")
	}
	servicetest.Must(t, servicetest.ErrorOf(f.People.DeleteTeam(ctx, ann, store.NoKey, f.ID("crew"))))
	if _, err := f.Imports.Run(ctx, file("bob, dan")); err == nil {
		t.Error("an import creates a deleted team again")
	}
	result, err := f.Imports.Overwrite(ctx, file("bob, dan"))
	if err != nil || result.IDs["crew"] == f.ID("crew") {
		t.Fatalf("an import that overwrites returns %v, %v", result.IDs, err)
	}
	servicetest.Expect(t, "the members", membersOf(f, result.IDs["crew"]), "bob dan")
}

// Lists of an organization with 10,000 people and hundreds of teams, one of which has all
// of them, are read in bounded pages and time.
func TestBigOrganizationsHaveTeams(t *testing.T) {
	t.Parallel()
	h := servicetest.NewHarness(t)
	h.Exec(`VACUUM ANALYZE`) // plans are made while there is little
	ctx, ann := t.Context(), h.As("ann")
	team, session, page := h.ID("crew"), servicetest.Session(h.Fixture, "bob"), lists.NameFilter{Limit: 51}
	reads := map[string]servicetest.BoundedRead{}
	// add adds a read of all tables: a team of all people is sorted by name.
	add := func(name string, most int, do func() error) {
		reads[name] = servicetest.BoundedRead{Do: do, Tables: []string{"%"}, Most: most}
	}
	add("a session", 300, func() error { return servicetest.ErrorOf(h.People.Session(ctx, session)) })
	add("teams", 20_000, func() error { return servicetest.ErrorOf(h.People.TeamsForPerson(ctx, ann, page)) })
	add("teams by name", 1000, func() error {
		return servicetest.ErrorOf(h.People.TeamsForPerson(ctx, ann, lists.NameFilter{Search: "nowhere", Limit: 51}))
	})
	add("a team", 45_000, func() error { return servicetest.ErrorOf(h.People.TeamForPerson(ctx, ann, team, page)) })
	add("people to add", 30_000, func() error {
		return servicetest.ErrorOf(h.People.ListForPerson(ctx, ann, "", people.PersonFilter{OutsideTeam: team, NameFilter: page}))
	})
	add("a person's", 1500, func() error { return servicetest.ErrorOf(h.People.TeamsOfPerson(ctx, ann, h.ID("bob"))) })
	add("assignments", 30_000, func() error { return servicetest.ErrorOf(h.Records.AssignmentsForPerson(ctx, ann, team)) })
	add("definitions", 25_000, func() error { return servicetest.ErrorOf(h.Inventory.Definitions(ctx, ann)) })
	add("before deletion", 11_000, func() error { _, _, err := h.People.TeamEffects(ctx, ann, team); return err })
	add("one member", 11_000, func() error { _, _, err := h.People.TeamMemberForPerson(ctx, ann, team, h.ID("bob")); return err })
	servicetest.WantBounded(t, h.Fixture, reads, func() { plantPeople(h, 10_000, 400) })
	servicetest.Must(t, servicetest.ErrorOf(h.People.DeleteTeam(ctx, ann, store.NoKey, team))) // of everyone
}

// plantPeople creates people who all are in the team crew and some teams each, and teams
// with permissions on a hundred nodes.
func plantPeople(h *servicetest.Harness, count, teams int) {
	h.T.Helper()
	acme := h.Acme.OrganizationID
	id := func(prefix string) string { return fmt.Sprintf(`'idn_%s' || lpad(n::text, 25, '0')`, prefix) }
	for first := 1; first <= count; first += 2500 { // a statement has a limited time
		numbers := fmt.Sprintf(` FROM generate_series(%d, %d) n`, first, first+2499)
		h.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at) SELECT `+id("1")+`, $1, 'person', md5(n::text), now(), now()`+numbers, acme)
		h.Exec(`INSERT INTO people (id, organization_id, email, folded_email, organization_definition_id) SELECT `+id("1")+`, $1, md5(n::text) || '@acme.example.com', md5(n::text) || '@acme.example.com', $2`+numbers, acme, h.ID("org_nothing"))
	}
	h.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at) SELECT `+id("2")+`, $1, 'team', 'Team ' || md5(n::text), now(), now() FROM generate_series(1, $2::integer) n`, acme, teams)
	h.Exec(`ALTER TABLE team_members DISABLE TRIGGER USER`)
	h.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) SELECT $2, `+id("1")+`, $1 FROM generate_series(1, $3::integer) n`, acme, h.ID("crew"), count)
	h.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) SELECT 'idn_2' || lpad((n % $2 + 1)::text, 25, '0'), `+id("1")+`, $1 FROM generate_series(1, $3::integer) n`, acme, teams, count)
	h.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) SELECT `+id("2")+`, $2, $1 FROM generate_series(1, $3::integer) n`, acme, h.ID("bob"), teams)
	h.Exec(`ALTER TABLE team_members ENABLE TRIGGER USER`)
	h.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'x', now(), now() FROM generate_series(1, 300) n`, acme, h.ID("hvac"))
	h.Exec(`ALTER TABLE assignments DISABLE TRIGGER USER`)
	h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) SELECT 'eqp_' || lpad(n::text, 26, '0'), i.id, $2, $1
		FROM generate_series(1, 300) n, (SELECT $3::text AS id UNION ALL SELECT 'idn_2' || lpad(m::text, 25, '0') FROM generate_series(1, 50) m) i`, acme, h.ID("reading"), h.ID("crew"))
	h.Exec(`ALTER TABLE assignments ENABLE TRIGGER USER`)
	h.Exec(`ANALYZE`)
}
