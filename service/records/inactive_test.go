package records_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// deactivate deactivates a person of acme as the administrator ann does.
func deactivate(s *servicetest.Harness, key string) {
	s.T.Helper()
	_, err := s.People.DeactivatePerson(s.T.Context(), s.As("ann"), store.NoKey, s.ID(key), "")
	servicetest.Must(s.T, err)
}

// putOn assigns the identity to the node with the definition.
func putOn(s *servicetest.Harness, node, identity, definition string) {
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`,
		s.ID(node), s.ID(identity), s.ID(definition), s.Acme.OrganizationID)
}

// The nearest level with an active manager counts: people who were deactivated, teams without
// an active member and deleted teams and integrations are no default workers.
func TestDefaultWorkersAreActive(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, identity := range []string{"rita", "crew", "robot"} {
		putOn(s, "hvac", identity, "manager")
	}
	workers := func() string {
		t.Helper()
		assigned, _, _ := strings.Cut(s.RolesOf(s.NewWorkOrder(nil, nil)), " | ")
		return assigned
	}
	byID := func(keys ...string) string {
		return s.WithKeys(strings.Join(slices.Sorted(slices.Values(s.IDs(keys...))), " "))
	}
	servicetest.Expect(t, "all are active", workers(), byID("rita", "crew", "robot"))
	deactivate(s, "rita")
	deactivate(s, "bob")
	servicetest.Expect(t, "without the person", workers(), byID("crew", "robot"))
	deactivate(s, "dan")
	servicetest.Expect(t, "without the team, which has no active member", workers(), "robot")
	for _, way := range inactiveIntegrations {
		s.Exec(`UPDATE integrations SET `+way.sql+` WHERE id = $1`, s.ID("robot"))
		servicetest.Expect(t, "the next level, with an integration that is "+way.name, workers(), "ann")
		s.Exec(`UPDATE integrations SET `+way.undo+` WHERE id = $1`, s.ID("robot"))
		servicetest.Expect(t, "it is active again", workers(), "robot")
	}
	s.Exec(`UPDATE integrations SET deleted_at = now() WHERE id = $1`, s.ID("robot"))
	choices, err := s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), "", nil)
	if err != nil || strings.Join(choices.Managers, ", ") != "Ann Field" {
		t.Errorf("the console names %v, %v", choices.Managers, err)
	}
	s.Exec(`DELETE FROM assignments WHERE identity_id = $1`, s.ID("ann"))
	servicetest.Expect(t, "no level has one", servicetest.Outcome(creates(s, "erp")), "rule_violation no_worker")
}

const inactive = "rule_violation assignee_inactive"

// inactiveIntegrations are the ways in which an integration cannot act.
var inactiveIntegrations = []struct{ name, sql, undo string }{
	{"off", `enabled = false`, `enabled = true`}, {"disabled", `disabled_by_service = true`, `disabled_by_service = false`},
	{"deleted", `deleted_at = now()`, `deleted_at = NULL`},
}

// An integration that is off or disabled is assigned to nothing, and neither offered nor shown as active. One that is on may
// name itself.
func TestInactiveIntegrationsAreNotAssigned(t *testing.T) {
	s := servicetest.NewHarness(t)
	offered := func(who, id, name, identity string) bool {
		t.Helper()
		choices, err := s.Records.WorkOrderAssignees(t.Context(), s.As(who), id, name, nil)
		servicetest.Must(t, err)
		return slices.ContainsFunc(choices.Choices, func(c records.Candidate) bool { return c.ID == s.ID(identity) })
	}
	offeredForNew := func() bool {
		t.Helper()
		choices, err := s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), "robot", nil)
		servicetest.Must(t, err)
		return len(choices.Candidates) > 0
	}
	servicetest.Expect(t, "itself", servicetest.Outcome(creates(s, "erp", "erp")), "ok")
	for _, way := range inactiveIntegrations {
		t.Run(way.name, func(t *testing.T) {
			has := s.NewWorkOrder([]string{"robot"}, nil)
			other, theirs := s.NewWorkOrder([]string{"erp"}, nil), s.NewWorkOrder([]string{"polar"}, nil)
			if !offered("ann", other, "robot", "robot") || !offered("pia", theirs, "dispatch", "dispatch") || !offeredForNew() {
				t.Error("an active integration is not offered")
			}
			s.Exec(`UPDATE integrations SET `+way.sql+` WHERE id = ANY ($1)`, s.IDs("robot", "dispatch"))
			defer s.Exec(`UPDATE integrations SET `+way.undo+` WHERE id = ANY ($1)`, s.IDs("robot", "dispatch"))
			servicetest.Expect(t, "a new work order", servicetest.Outcome(creates(s, "erp", "robot")), inactive)
			servicetest.Expect(t, "as worker", servicetest.Outcome(assigns(s, "ann", other, []string{"robot"}, nil)), inactive)
			servicetest.Expect(t, "as consultant", servicetest.Outcome(assigns(s, "erp", other, nil, []string{"robot"})), inactive)
			servicetest.Expect(t, "of a service company", servicetest.Outcome(assigns(s, "pia", theirs, []string{"dispatch"}, nil)), inactive)
			servicetest.Expect(t, "one that has it keeps it", servicetest.Outcome(assigns(s, "erp", has, []string{"robot"}, nil)), "ok")
			if offered("ann", other, "robot", "robot") || offered("pia", theirs, "dispatch", "dispatch") || offeredForNew() {
				t.Error("it is offered")
			}
			detail, err := s.Records.WorkOrderDetail(t.Context(), s.As("ann"), has, 0)
			if err != nil || !slices.Equal(detail.Inactive, s.IDs("robot")) {
				t.Errorf("the page marks %v, %v", detail.Inactive, err)
			}
		})
	}
}

func TestInactiveIdentitiesAreNotAssigned(t *testing.T) {
	s := servicetest.NewHarness(t)
	has, other := s.NewWorkOrder([]string{"bob", "erp"}, []string{"cat"}), s.NewWorkOrder([]string{"erp", "polar"}, nil)
	deactivate(s, "bob")
	s.Exec(`DELETE FROM team_members WHERE team_id = $1`, s.ID("crew"))
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("ola"))
	for _, key := range []string{"bob", "crew"} {
		servicetest.Expect(t, key+" as worker", servicetest.Outcome(assigns(s, "erp", other, []string{key}, nil)), inactive)
		servicetest.Expect(t, key+" as consultant", servicetest.Outcome(assigns(s, "ann", other, nil, []string{key})), inactive)
		servicetest.Expect(t, key+" of a new one", servicetest.Outcome(creates(s, "erp", key)), inactive)
	}
	servicetest.Expect(t, "of a service company", servicetest.Outcome(assigns(s, "pia", other, []string{"ola"}, nil)), inactive)
	servicetest.Expect(t, "someone unknown", servicetest.Outcome(assigns(s, "ann", other, []string{"ola"}, nil)), "validation_failed")
	servicetest.Expect(t, "who is assigned already stays so", servicetest.Outcome(assigns(s, "erp", has, []string{"bob"}, nil)), "ok")
}

func TestInactivePeopleGetNoNotices(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"crew", "erp"}, []string{"cat"})
	target := setTarget(s, id, 48*time.Hour)
	deactivate(s, "bob")
	deactivate(s, "cat")
	s.ClearEffects(id)
	reminds(s, id, models.NoticeDueSoon, *target)
	servicetest.Expect(t, "a reminder", s.NoticesOf(id), "dan due_soon")
	s.ClearEffects(id)
	servicetest.Must(t, does(s, "erp", models.OperationCancel, id))
	servicetest.Expect(t, "a change", s.NoticesOf(id), "dan cancelled")
	deactivate(s, "dan")
	if mails := s.ClaimMails(s.Acme.OrganizationID); len(mails) != 0 {
		t.Errorf("mailed are %+v", mails)
	}
	servicetest.Expect(t, "the notice from before", servicetest.Value[string](s.Fixture, `SELECT mail FROM notices WHERE record_id = $1`, id), "inbox")
}

// What no inventory manager can be told goes to the administrators.
func TestAdministratorsStandInForManagers(t *testing.T) {
	s := servicetest.NewHarness(t)
	putOn(s, "hvac", "rita", "manager")
	s.Exec(`UPDATE assignments SET definition_id = $2 WHERE identity_id = $1`, s.ID("ann"), s.ID("full"))
	s.Exec(`UPDATE people SET admin = true WHERE id = ANY ($1)`, s.IDs("zed", "sol"))
	servicetest.Expect(t, "feedback", s.NoticesOf(gives(s, "erp")), "rita created")
	deactivate(s, "rita")
	deactivate(s, "sol")
	servicetest.Expect(t, "feedback without an active manager", s.NoticesOf(gives(s, "erp")), "ann created, zed created")
	review := inReview(s, "cat")
	s.Clock.Advance(200 * time.Hour)
	reminds(s, review, models.NoticeReviewOverdue, *loaded(s, review).InReviewSince)
	servicetest.Expect(t, "a review without one", s.NoticesOf(review), "ann review_overdue, zed review_overdue")
}

// Work that no one can do is found by a filter and counted for managers, and its workflow
// notifies the nearest managers once.
func TestWorkThatNoOneCanDo(t *testing.T) {
	s := servicetest.NewHarness(t)
	names := map[string]string{}
	create := func(name string, consultants []string, workers ...string) string {
		id := s.NewWorkOrder(workers, consultants)
		names[id] = name
		return id
	}
	person, team, integration := create("person", nil, "bob"), create("team", []string{"cat"}, "crew"), create("integration", nil, "robot")
	held, both, done := create("held", nil, "bob", "crew"), create("both", nil, "bob", "erp"), create("done", nil, "bob")
	create("service", nil, "bob", "polar")
	servicetest.Must(t, does(s, "erp", models.OperationCancel, done), does(s, "ann", models.OperationHold, held))
	review, waiting := create("review", []string{"cat"}, "erp"), create("waiting", []string{"erp"}, "cat")
	servicetest.Must(t, does(s, "erp", models.OperationComplete, review))
	found := func(who string) []string {
		t.Helper()
		page, err := s.Records.SearchWorkOrders(t.Context(), s.As(who), records.WorkOrderSearch{NoOneCan: true}, "", 0)
		servicetest.Must(t, err)
		ids := servicetest.Each(page.Items, func(item records.WorkOrderItem) string { return item.ID })
		queue, err := s.Records.WorkOrderQueue(t.Context(), s.As(who), "")
		counted := 0
		for _, section := range queue.Sections {
			if section.Search.NoOneCan {
				counted = section.Count
			}
		}
		if err != nil || counted != len(ids) && queue.Manages {
			t.Errorf("%s: the queue counts %d of %d, %v", who, counted, len(ids), err)
		}
		return slices.Sorted(slices.Values(ids))
	}
	expect := func(when string, want ...string) {
		t.Helper()
		name := func(id string) string { return names[id] }
		servicetest.Expect(t, when, servicetest.Listed(found("ann"), name), servicetest.Listed(slices.Sorted(slices.Values(want)), name))
	}
	expect("everyone is active")
	for _, id := range []string{person, team, integration, held, both, review, waiting} {
		loaded(s, id)
	}
	dirty := func() int {
		servicetest.Remove(t, s.Service, 2, 0) // housekeeping, in small batches
		return servicetest.Value[int](s.Fixture, `SELECT count(*) FROM dirty_records WHERE record_id LIKE 'wo%'`)
	}
	s.Exec(`DELETE FROM dirty_records`)
	deactivate(s, "bob")
	expect("a person", person)
	if n := dirty(); n != 5 { // of bob and of his team, without the cancelled one
		t.Errorf("%d work orders are to be loaded again", n)
	}
	deactivate(s, "dan")
	expect("the last member of a team", person, team, held)
	servicetest.Remove(t, s.Service, 2, 0)
	robot, operator, in := s.ID("robot"), store.Operator(), s.Integrations
	set := func(_ integrations.Record, err error) {
		t.Helper()
		servicetest.Must(t, err)
	}
	for _, way := range []struct {
		name    string
		off, on func()
	}{
		{"off", func() { set(in.TurnIntegrationOff(t.Context(), operator, store.NoKey, robot)) },
			func() { set(in.TurnIntegrationOn(t.Context(), operator, store.NoKey, robot)) }},
		{"disabled", func() { set(in.DisableIntegration(t.Context(), operator, robot)) },
			func() { set(in.EnableIntegration(t.Context(), operator, robot)) }},
	} {
		s.Exec(`DELETE FROM dirty_records`)
		way.off()
		expect("an integration that is "+way.name, person, team, held, integration)
		servicetest.Remove(t, s.Service, 2, 0)
		servicetest.Expect(t, "work to look at again, of an integration that is "+way.name, servicetest.Value[int](s.Fixture, `SELECT count(*) FROM dirty_records WHERE record_id = $1`, integration), 1)
		s.ClearEffects(integration)
		since := loaded(s, integration).NoOneCanSince
		if since == nil {
			t.Fatalf("the work of an integration that is %s has someone who can do it", way.name)
		}
		reminds(s, integration, models.NoticeNoOneCan, *since)
		servicetest.Expect(t, "told that it is "+way.name, s.NoticesOf(integration), "ann no_one_can")
		way.on()
		expect("the integration can act again", person, team, held)
	}
	s.Exec(`DELETE FROM dirty_records`)
	set(s.Integrations.DeleteIntegration(t.Context(), operator, store.NoKey, robot))
	deactivate(s, "cat")
	expect("a consultant", person, team, held, integration, review, waiting)
	if n := dirty(); n != 4 { // of the integration and of cat
		t.Errorf("%d work orders are to be loaded again", n)
	}
	if other := found("rita"); len(other) != 6 { // may read them, but is not a manager
		t.Errorf("a reader finds %d", len(other))
	}

	for id, want := range map[string]string{person: "ann no_one_can", review: "ann no_one_can", both: "", held: ""} {
		s.ClearEffects(id)
		for range 2 {
			state := loaded(s, id)
			for _, r := range servicetest.Reminders(state.Dates, s.Clock.Now()) {
				if r.Kind == models.NoticeNoOneCan {
					reminds(s, id, r.Kind, r.About)
				}
			}
			s.Clock.Advance(time.Hour)
		}
		servicetest.Expect(t, "once", s.NoticesOf(id), want)
	}
	servicetest.Must(t, assigns(s, "erp", person, []string{"erp"}, nil))
	expect("after someone else was assigned", team, held, integration, review, waiting)
	if loaded(s, person).NoOneCanSince != nil {
		t.Error("someone can do it again")
	}
}
