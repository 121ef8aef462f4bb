package upkeep_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// replace deactivates a person of acme as ann, with a replacement.
func replace(s *servicetest.Harness, person, replacement string) {
	s.T.Helper()
	if _, err := s.People.DeactivatePerson(s.T.Context(), s.As("ann"), store.NoKey, s.ID(person), s.ID(replacement)); err != nil {
		s.T.Fatal(err)
	}
}

// keepHouse replaces, in batches of two, and then marks what is left.
func keepHouse(s *servicetest.Harness) {
	s.T.Helper()
	for range 2 {
		servicetest.Must(s.T, servicetest.ErrorOf(s.Upkeep.RemoveExpired(s.T.Context(), 2, func() bool { return true })))
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM inactivated_identities`); n != 0 {
		s.T.Errorf("housekeeping has not finished with %d identities", n)
	}
}

// assigned lists who is assigned to a work order, with the first letter of the role.
func assigned(s *servicetest.Harness, id string) string {
	return s.WithKeys(servicetest.Value[string](s.Fixture,
		`SELECT string_agg(left(role, 1) || ' ' || identity_id, ', ' ORDER BY position) FROM work_order_assignees WHERE work_order_id = $1`, id))
}

// isDirty reports whether the workflow has not reloaded the work order since a write.
func isDirty(s *servicetest.Harness, id string) bool {
	return servicetest.Value[bool](s.Fixture, `SELECT EXISTS (SELECT FROM dirty_records WHERE record_id = $1)`, id)
}

// Housekeeping replaces a person on every open work order, with the effects of an assignment by
// who deactivated the person. The request does not.
func TestPeopleAreReplacedOnOpenWorkOrders(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	orders := []struct {
		what, id, assigned, events, notices string
	}{
		{"a worker", s.NewWorkOrder([]string{"bob"}, nil), "w cat", "assignees_changed", "cat assigned"},
		{"one of the workers", s.NewWorkOrder([]string{"bob", "erp"}, nil), "w erp, w cat", "assignees_changed", "cat assigned"},
		{"a worker next to the replacement", s.NewWorkOrder([]string{"bob", "cat"}, nil), "w cat", "assignees_changed", ""},
		{"a consultant", s.NewWorkOrder([]string{"erp"}, []string{"bob"}), "w erp, c cat", "assignees_changed", "cat consulted"},
		{"the consultant of a review", s.NewWorkOrder([]string{"erp"}, []string{"bob"}), "w erp, c cat", "assignees_changed", "cat consulted"},
		{"a worker on hold", s.NewWorkOrder([]string{"bob"}, nil), "w cat", "assignees_changed", "cat assigned"},
		{"a worker of one that was cancelled", s.NewWorkOrder([]string{"bob"}, nil), "w bob", "", ""},
		{"no one", s.NewWorkOrder([]string{"erp"}, nil), "w erp", "", ""},
	}
	s.MustWrite(s.Records.AnswerWorkOrder(t.Context(), s.As("erp"), store.NoKey, orders[4].id, nil, records.CompleteWork))
	s.MustWrite(s.Records.HoldWorkOrder(t.Context(), s.As("ann"), store.NoKey, orders[5].id))
	s.MustWrite(s.Records.CancelWorkOrder(t.Context(), s.As("erp"), store.NoKey, orders[6].id, nil))
	changed := map[string]time.Time{}
	changedAt := func(id string) time.Time {
		return servicetest.Value[time.Time](s.Fixture, `SELECT changed_at FROM work_orders WHERE id = $1`, id)
	}
	for _, o := range orders {
		s.ClearEffects(o.id)
		changed[o.id] = changedAt(o.id)
	}
	s.Clock.Advance(time.Minute)
	actor := s.As("ann")
	actor.Operated = true
	_, err := s.People.DeactivatePerson(t.Context(), actor, store.NoKey, s.ID("bob"), s.ID("cat"))
	servicetest.Must(t, err)
	servicetest.Expect(t, "the request assigns", assigned(s, orders[0].id), "w bob")
	keepHouse(s)
	for _, o := range orders {
		servicetest.Expect(t, o.what, assigned(s, o.id), o.assigned)
		servicetest.Expect(t, o.what+": events", s.EventsOf(o.id), o.events)
		servicetest.Expect(t, o.what+": notices", s.NoticesOf(o.id), o.notices)
		log := ""
		if o.events != "" {
			log = "Ann Field (operator) work_order.assignees_changed"
		}
		servicetest.Expect(t, o.what+": log", s.LogOf(o.id), log)
		servicetest.Expect(t, o.what+": it has a new time", changedAt(o.id).After(changed[o.id]), o.events != "")
	}
	data := s.WithKeys(servicetest.Value[string](s.Fixture, `SELECT (data -> 'added')::text || (data -> 'removed')::text FROM events WHERE record_id = $1`, orders[0].id))
	servicetest.Expect(t, "the event", data, `{"assignees": ["cat"], "consultants": []}{"assignees": ["bob"], "consultants": []}`)
}

// What the rules reject stays with the person and is marked as work that no one can do.
func TestWorkOrdersThatCannotBeReplacedStay(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		consultants []string
		replacement string
		before      func(*servicetest.Harness, string)
		assigned    string
	}{
		"the replacement is the consultant": {[]string{"cat"}, "cat", nil, "w bob, c cat"},
		"the replacement is not connected": {nil, "eve", func(s *servicetest.Harness, _ string) {
			s.Exec(`DELETE FROM assignments WHERE identity_id = $1`, s.ID("crew")) // which eve joins
		}, "w bob"},
		"the replacement was deactivated by then": {nil, "cat", func(s *servicetest.Harness, _ string) {
			s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("cat"))
		}, "w bob"},
		"who deactivated the person may not assign": {nil, "cat", func(s *servicetest.Harness, _ string) {
			s.Exec(`DELETE FROM assignments WHERE identity_id = $1`, s.ID("ann"))
		}, "w bob"},
		"the organization is read-only by then": {nil, "cat", func(s *servicetest.Harness, _ string) {
			s.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, s.Acme.OrganizationID)
		}, "w bob"},
		"who deactivated the person was deactivated": {nil, "cat", func(s *servicetest.Harness, _ string) {
			s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("ann"))
		}, "w cat"},
		"someone else replaced the person by then": {nil, "cat", func(s *servicetest.Harness, id string) {
			s.MustWrite(s.Records.AssignWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, s.IDs("erp"), nil))
			s.MustWrite(s.Records.UnassignWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, s.ID("bob")))
		}, "w erp"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := servicetest.NewHarness(t)
			id := s.NewWorkOrder([]string{"bob"}, test.consultants)
			replace(s, "bob", test.replacement)
			if test.before != nil {
				test.before(s, id)
			}
			s.Exec(`DELETE FROM dirty_records`)
			keepHouse(s)
			servicetest.Expect(t, "assigned are", assigned(s, id), test.assigned)
			stays := strings.HasPrefix(test.assigned, "w bob")
			if got := isDirty(s, id); stays && !got {
				t.Error("its workflow does not look who can do it")
			}
			s.Exec(`UPDATE people SET admin = true WHERE id = $1`, s.ID("rita"))
			page, err := s.Records.SearchWorkOrders(t.Context(), s.As("rita"), records.WorkOrderSearch{NoOneCan: true}, "", 0)
			if err != nil || slices.ContainsFunc(page.Items, func(w records.WorkOrderItem) bool { return w.ID == id }) != stays {
				t.Errorf("no one can do %v, %v", page.Items, err)
			}
		})
	}
}

// A batch that was cut short, or whose end was lost in a crash, runs again and makes each change once.
func TestReplacingIsRepeated(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	var ids []string
	for range 3 {
		ids = append(ids, s.NewWorkOrder([]string{"cat"}, nil))
		s.ClearEffects(ids[len(ids)-1])
	}
	slices.Sort(ids)
	s.Exec(`CREATE FUNCTION shed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.work_order_id = '` + ids[1] + `' THEN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END IF;
		RETURN NEW; END $$`)
	s.Exec(`CREATE TRIGGER shed BEFORE INSERT ON work_order_assignees FOR EACH ROW EXECUTE FUNCTION shed()`)
	replace(s, "cat", "bob") // cat is in no team: no other identity waits
	_, err := s.Upkeep.RemoveExpired(t.Context(), 100, func() bool { return true })
	servicetest.WantCode(t, "without space", err, models.CodeUnavailable)
	servicetest.Expect(t, "cut short", assigned(s, ids[0])+", "+assigned(s, ids[1])+", "+assigned(s, ids[2]), "w bob, w cat, w cat")
	s.Exec(`DROP TRIGGER shed ON work_order_assignees`)
	for _, when := range []string{"in the end", "after a crash"} {
		keepHouse(s)
		for _, id := range ids {
			servicetest.Expect(t, when, assigned(s, id)+" after "+s.EventsOf(id), "w bob after assignees_changed")
		}
		s.Exec(`INSERT INTO inactivated_identities (identity_id, replaced_by, actor_id) VALUES ($1, $2, $3)`, s.ID("cat"), s.ID("bob"), s.ID("ann"))
	}
}

// A person who is activated before housekeeping came to the work orders keeps them.
func TestActivatedPeopleAreNotReplaced(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"bob"}, nil)
	replace(s, "bob", "cat")
	servicetest.Must(t, servicetest.ErrorOf(s.People.ActivatePerson(t.Context(), s.As("ann"), store.NoKey, s.ID("bob"))))
	keepHouse(s)
	servicetest.Expect(t, "assigned are", assigned(s, id), "w bob")
}

// A service company replaces its people on customers' work orders.
func TestServiceCompaniesReplaceTheirPeople(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"polar"}, nil)
	s.MustWrite(s.Records.AssignWorkOrder(t.Context(), s.As("pia"), store.NoKey, id, s.IDs("ola"), nil))
	_, err := s.People.DeactivatePerson(t.Context(), s.As("pia"), store.NoKey, s.ID("ola"), s.ID("pia"))
	servicetest.Must(t, err)
	keepHouse(s)
	servicetest.Expect(t, "assigned are", assigned(s, id), "w polar, w pia")
}
