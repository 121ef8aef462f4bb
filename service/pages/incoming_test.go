package pages_test

import (
	"strings"
	"testing"
	"time"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Customers' work orders wait for a service company's dispatcher until one of the company's
// people or teams is assigned.
func TestWaitingForAServiceCompany(t *testing.T) {
	s := servicetest.NewHarness(t)
	add := func(title string, due time.Duration, workers, consultants []string) string {
		t.Helper()
		s.Clock.Advance(time.Millisecond)
		id := s.NewWorkOrder(workers, consultants)
		s.Exec(`UPDATE work_orders SET title = $2 WHERE id = $1`, id, title)
		if due != 0 {
			s.Exec(`UPDATE work_orders SET target_date = $2 WHERE id = $1`, id, servicetest.Start.Add(due))
		}
		return id
	}
	forward := func(id string, workers ...string) {
		t.Helper()
		s.MustWrite(s.Records.AssignWorkOrder(t.Context(), s.As("pia"), store.NoKey, id, s.IDs(workers...), nil))
	}
	listed := func(by string, search records.WorkOrderSearch) string {
		t.Helper()
		page, err := s.Records.SearchWorkOrders(t.Context(), s.As(by), search, "", 0)
		servicetest.Must(t, err)
		return strings.Join(servicetest.Each(page.Items, func(item records.WorkOrderItem) string { return item.Title }), " ")
	}
	add("a", 0, []string{"polar"}, nil)
	add("b", -time.Hour, []string{"polar", "bob"}, nil)
	forward(add("c", -2*time.Hour, []string{"polar"}, nil), "stock")
	forward(add("d", 0, []string{"polar"}, nil), "pia")
	reviewed := add("e", 0, []string{"bob"}, []string{"polar"})
	closed := add("g", -time.Hour, []string{"polar"}, nil)
	add("h", -time.Hour, []string{"bob"}, nil)
	s.Exec(`UPDATE work_orders SET status = 'sent_to_inspection' WHERE title = 'e'`)
	s.Exec(`UPDATE work_orders SET status = 'complete', completed_at = now() WHERE id = $1`, closed)
	for by, want := range map[string]string{
		"pia": "incoming: b a e, overdue: c, later: d", "ola": "overdue: c", "bob": "overdue: b h",
	} {
		servicetest.Expect(t, by, queueOf(s, by), want)
	}
	for _, test := range []struct{ by, customer, want string }{{"pia", "acme", listed("pia", records.WorkOrderSearch{})}, {"pia", "acme nowhere", ""}, {"pia", "polar", ""}, {"ola", "acme", ""}} {
		servicetest.Expect(t, test.by+" of "+test.customer, listed(test.by, records.WorkOrderSearch{Customer: test.customer}), test.want)
	}
	incoming := records.WorkOrderSearch{Incoming: true}
	for by, want := range map[string]string{"pia": "e b a", "ola": "", "ann": "", "bob": ""} {
		servicetest.Expect(t, "Incoming of "+by, listed(by, incoming), want)
	}
	servicetest.Expect(t, "with words", listed("pia", records.WorkOrderSearch{Incoming: true, Text: "b"}), "b")
	servicetest.Expect(t, "Mine", listed("ola", records.WorkOrderSearch{Assignee: records.SearchMe, ToDo: true}), "c")
	servicetest.Expect(t, "Overdue", listed("pia", records.WorkOrderSearch{Due: records.DueOverdue}), "c b")
	servicetest.Expect(t, "Overdue without incoming work orders", listed("ola", records.WorkOrderSearch{Due: records.DueOverdue}), "c")

	// It comes in again if the only one of the company who was assigned has left.
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("ola"))
	servicetest.Expect(t, "without the one who had it", listed("pia", incoming), "e c b a")
	if _, err := s.Records.ReturnWorkOrder(t.Context(), s.As("pia"), store.NoKey, reviewed, "Busy"); servicetest.Outcome(err) != "rule_violation status" {
		t.Errorf("the only consultant returns it: %v", err)
	}
}
