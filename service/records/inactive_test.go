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
	if _, err := s.People.DeactivatePerson(s.T.Context(), s.As("ann"), store.NoKey, s.ID(key), ""); err != nil {
		s.T.Fatal(err)
	}
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
		result, err := s.Records.CreateWorkOrder(t.Context(), s.As("erp"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "Replace filter"})
		return s.WithKeys(strings.Join(s.MustWrite(result, err).Assignees, " "))
	}
	servicetest.Expect(t, "all are active", workers(), s.WithKeys(strings.Join(slices.Sorted(slices.Values(s.IDs("rita", "crew", "robot"))), " ")))
	deactivate(s, "rita")
	deactivate(s, "bob")
	servicetest.Expect(t, "without the person", workers(), s.WithKeys(strings.Join(slices.Sorted(slices.Values(s.IDs("crew", "robot"))), " ")))
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
	_, err = s.Records.CreateWorkOrder(t.Context(), s.As("erp"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "Replace filter"})
	servicetest.Expect(t, "no level has one", servicetest.Outcome(err), "rule_violation no_worker")
}

// inactiveIntegrations are the ways in which an integration cannot act.
var inactiveIntegrations = []struct{ name, sql, undo string }{
	{"off", `enabled = false`, `enabled = true`}, {"disabled", `disabled_by_service = true`, `disabled_by_service = false`},
	{"deleted", `deleted_at = now()`, `deleted_at = NULL`},
}

// An integration that is off or disabled is assigned to nothing, and neither offered nor shown as active. One that is on may
// name itself.
func TestInactiveIntegrationsAreNotAssigned(t *testing.T) {
	s := servicetest.NewHarness(t)
	create := func(identity string) error {
		_, err := s.Records.CreateWorkOrder(t.Context(), s.As("erp"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "x", Assignees: s.IDs(identity)})
		return err
	}
	offered := func(who, id, name, identity string) bool {
		t.Helper()
		choices, err := s.Records.WorkOrderAssignees(t.Context(), s.As(who), id, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(choices.Choices, func(c records.Candidate) bool { return c.ID == s.ID(identity) })
	}
	offeredForNew := func() bool {
		t.Helper()
		choices, err := s.Records.WorkOrderChoices(t.Context(), s.As("ann"), s.ID("ahu1"), "robot", nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(choices.Candidates) > 0
	}
	servicetest.Expect(t, "itself", servicetest.Outcome(create("erp")), "ok")
	for _, way := range inactiveIntegrations {
		t.Run(way.name, func(t *testing.T) {
			has := s.NewWorkOrder([]string{"robot"}, nil)
			other, theirs := s.NewWorkOrder([]string{"erp"}, nil), s.NewWorkOrder([]string{"polar"}, nil)
			if !offered("ann", other, "robot", "robot") || !offered("pia", theirs, "dispatch", "dispatch") || !offeredForNew() {
				t.Error("an active integration is not offered")
			}
			s.Exec(`UPDATE integrations SET `+way.sql+` WHERE id = ANY ($1)`, s.IDs("robot", "dispatch"))
			defer s.Exec(`UPDATE integrations SET `+way.undo+` WHERE id = ANY ($1)`, s.IDs("robot", "dispatch"))
			const inactive = "rule_violation assignee_inactive"
			servicetest.Expect(t, "a new work order", servicetest.Outcome(create("robot")), inactive)
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
	id := s.NewWorkOrder([]string{"bob", "erp"}, []string{"cat"})
	deactivate(s, "bob")
	s.Exec(`DELETE FROM team_members WHERE team_id = $1`, s.ID("crew"))
	s.Exec(`UPDATE integrations SET deleted_at = now() WHERE id = $1`, s.ID("robot"))
	assign := func(as string, workers, consultants []string) error {
		other := s.NewWorkOrder([]string{"erp", "polar"}, nil)
		_, err := s.Records.AssignWorkOrder(t.Context(), s.As(as), store.NoKey, other, s.IDs(workers...), s.IDs(consultants...))
		return err
	}
	for _, key := range []string{"bob", "crew", "robot"} {
		servicetest.Expect(t, key+" as worker", servicetest.Outcome(assign("erp", []string{key}, nil)), "rule_violation assignee_inactive")
		servicetest.Expect(t, key+" as consultant", servicetest.Outcome(assign("ann", nil, []string{key})), "rule_violation assignee_inactive")
		_, err := s.Records.CreateWorkOrder(t.Context(), s.As("erp"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "x", Assignees: s.IDs(key)})
		servicetest.Expect(t, key+" of a new one", servicetest.Outcome(err), "rule_violation assignee_inactive")
	}
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("ola"))
	servicetest.Expect(t, "of a service company", servicetest.Outcome(assign("pia", []string{"ola"}, nil)), "rule_violation assignee_inactive")
	servicetest.Expect(t, "someone unknown", servicetest.Outcome(assign("ann", []string{"ola"}, nil)), "validation_failed")
	_, err := s.Records.AssignWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, s.IDs("bob", "cat")[:1], nil)
	servicetest.Expect(t, "who is assigned already stays so", servicetest.Outcome(err), "ok")
}

func TestInactivePeopleGetNoNotices(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"crew", "erp"}, []string{"cat"})
	target := setTarget(s, id, 48*time.Hour)
	deactivate(s, "bob")
	deactivate(s, "cat")
	s.ClearEffects(id)
	if _, err := s.Records.Remind(t.Context(), id, servicetest.Reminder(models.NoticeDueSoon, *target)); err != nil {
		t.Fatal(err)
	}
	servicetest.Expect(t, "a reminder", s.NoticesOf(id), "dan due_soon")
	s.ClearEffects(id)
	s.MustWrite(s.Records.CancelWorkOrder(t.Context(), s.As("erp"), store.NoKey, id, nil))
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
	feedback := func() string {
		t.Helper()
		result, err := s.Records.CreateFeedback(t.Context(), s.As("erp"), store.NoKey, records.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "It rattles"})
		if err != nil {
			t.Fatal(err)
		}
		return s.NoticesOf(result.RecordID)
	}
	review := inReview(s, "cat")
	overdue := func() string {
		t.Helper()
		s.ClearEffects(review)
		s.Clock.Advance(200 * time.Hour)
		if applied, err := s.Records.Remind(t.Context(), review, servicetest.Reminder(models.NoticeReviewOverdue, *loaded(s, review).InReviewSince)); err != nil || !applied {
			t.Fatal(applied, err)
		}
		return s.NoticesOf(review)
	}
	servicetest.Expect(t, "feedback", feedback(), "rita created")
	deactivate(s, "rita")
	deactivate(s, "sol")
	servicetest.Expect(t, "feedback without an active manager", feedback(), "ann created, zed created")
	servicetest.Expect(t, "a review without one", overdue(), "ann review_overdue, zed review_overdue")
}

// Work that no one can do is found by a filter and counted for managers, and its workflow
// notifies the nearest managers once.
func TestWorkThatNoOneCanDo(t *testing.T) {
	s := servicetest.NewHarness(t)
	create := func(workers, consultants []string) string { return s.NewWorkOrder(workers, consultants) }
	person, team, integration, held := create([]string{"bob"}, nil), create([]string{"crew"}, []string{"cat"}), create([]string{"robot"}, nil), create([]string{"bob", "crew"}, nil)
	both, done, service := create([]string{"bob", "erp"}, nil), create([]string{"bob"}, nil), create([]string{"bob", "polar"}, nil)
	s.MustWrite(s.Records.CancelWorkOrder(t.Context(), s.As("erp"), store.NoKey, done, nil))
	s.MustWrite(s.Records.HoldWorkOrder(t.Context(), s.As("ann"), store.NoKey, held))
	review, waiting := inReview(s, "cat"), create([]string{"cat"}, []string{"erp"})
	found := func(who string) []string {
		t.Helper()
		page, err := s.Records.SearchWorkOrders(t.Context(), s.As(who), records.WorkOrderSearch{NoOneCan: true}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, item := range page.Items {
			ids = append(ids, item.ID)
		}
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
		names := map[string]string{person: "person", team: "team", integration: "integration", held: "held", both: "both", done: "done", service: "service", review: "review", waiting: "waiting"}
		var got, wanted []string
		for _, id := range found("ann") {
			got = append(got, names[id])
		}
		for _, id := range slices.Sorted(slices.Values(want)) {
			wanted = append(wanted, names[id])
		}
		servicetest.Expect(t, when, strings.Join(got, " "), strings.Join(wanted, " "))
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
	robot, operator := s.ID("robot"), store.Operator()
	set := func(_ integrations.Record, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, way := range []struct {
		name    string
		off, on func() (integrations.Record, error)
	}{{
		"off",
		func() (integrations.Record, error) {
			return s.Integrations.TurnIntegrationOff(t.Context(), operator, store.NoKey, robot)
		},
		func() (integrations.Record, error) {
			return s.Integrations.TurnIntegrationOn(t.Context(), operator, store.NoKey, robot)
		},
	}, {
		"disabled",
		func() (integrations.Record, error) {
			return s.Integrations.DisableIntegration(t.Context(), operator, robot)
		},
		func() (integrations.Record, error) {
			return s.Integrations.EnableIntegration(t.Context(), operator, robot)
		},
	}} {
		s.Exec(`DELETE FROM dirty_records`)
		set(way.off())
		expect("an integration that is "+way.name, person, team, held, integration)
		servicetest.Remove(t, s.Service, 2, 0)
		if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM dirty_records WHERE record_id = $1`, integration); n != 1 {
			t.Errorf("the work of an integration that is %s is not looked at again", way.name)
		}
		s.ClearEffects(integration)
		since := loaded(s, integration).NoOneCanSince
		if since == nil {
			t.Fatalf("the work of an integration that is %s has someone who can do it", way.name)
		}
		if applied, err := s.Records.Remind(t.Context(), integration, servicetest.Reminder(models.NoticeNoOneCan, *since)); err != nil || !applied {
			t.Error(applied, err)
		}
		servicetest.Expect(t, "told that it is "+way.name, s.NoticesOf(integration), "ann no_one_can")
		set(way.on())
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
					if applied, err := s.Records.Remind(t.Context(), id, r); err != nil || !applied {
						t.Error(applied, err)
					}
				}
			}
			s.Clock.Advance(time.Hour)
		}
		servicetest.Expect(t, "once", s.NoticesOf(id), want)
	}
	s.MustWrite(s.Records.AssignWorkOrder(t.Context(), s.As("erp"), store.NoKey, person, s.IDs("erp"), nil))
	expect("after someone else was assigned", team, held, integration, review, waiting)
	if loaded(s, person).NoOneCanSince != nil {
		t.Error("someone can do it again")
	}
}
