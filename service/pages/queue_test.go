package pages_test

import (
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
)

// queueOf returns the queue of a person: the titles of each section.
func queueOf(s *servicetest.Harness, by string) string {
	s.T.Helper()
	queue, err := s.Records.WorkOrderQueue(s.T.Context(), s.As(by), "")
	servicetest.Must(s.T, err)
	var sections []string
	for _, section := range queue.Sections {
		q := section.Search
		name := string(q.Due)
		switch {
		case q.Review != "":
			name = "review"
		case q.Incoming:
			name = "incoming"
		case q.NoOneCan:
			name = "no one"
		case q.Status != "":
			name = "back"
		}
		titles := []string{name + ":"}
		for _, one := range section.Items {
			titles = append(titles, one.Title)
		}
		sections = append(sections, strings.Join(titles, " "))
	}
	return strings.Join(sections, ", ")
}

// The queue has the work orders of the person and its teams that can be worked on, those that
// wait for its review and, for managers, all that are due or that no one can do.
func TestWorkOrderQueue(t *testing.T) {
	s := servicetest.NewHarness(t)
	add := func(title string, status models.WorkOrderStatus, due time.Duration, worker, consultant string) string {
		t.Helper()
		s.Clock.Advance(time.Millisecond)
		id, err := models.NewID(models.PrefixWorkOrder, s.Clock.Now(), strings.NewReader(strings.Repeat(title, 16)))
		servicetest.Must(t, err)
		var target *time.Time
		if due != 0 {
			target = new(servicetest.Start.Add(due))
		}
		s.Exec(`INSERT INTO work_orders (id, organization_id, number, inventory_id, title, priority, status, target_date, created_by, created_at, changed_at, completed_at, cancelled_at)
			VALUES ($1, $2, 1, $3, $4, 'none', $5, $6, $7, now(), now(), CASE WHEN $5 = 'complete' THEN now() END, CASE WHEN $5 = 'cancelled' THEN now() END)`,
			id, s.Acme.OrganizationID, s.ID("ahu1"), title, status, target, s.ID("erp"))
		for role, key := range map[string]string{"worker": worker, "consultant": consultant} {
			if key != "" {
				s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, $3, 0)`, id, s.ID(key), role)
			}
		}
		return id
	}
	add("a", models.StatusOpen, 0, "bob", "cat")
	add("b", models.StatusInProgress, -time.Hour, "crew", "cat")
	add("c", models.StatusSentToInspection, 0, "bob", "cat")
	add("d", models.StatusBackFromInspection, time.Hour, "bob", "")
	add("e", models.StatusOnHold, -2*time.Hour, "bob", "")
	add("f", models.StatusComplete, -time.Hour, "bob", "cat")
	add("g", models.StatusCancelled, -time.Hour, "bob", "cat")
	add("h", models.StatusOpen, -3*time.Hour, "erp", "")
	add("i", models.StatusSentToInspection, 0, "cat", "crew")
	add("j", models.StatusOpen, 0, "polar", "")
	for by, want := range map[string]string{
		"bob": "back: d, review: i, overdue: b, later: a",
		"dan": "review: i, overdue: b", "cat": "review: c", "ann": "overdue: h e b, today: d", "eve": "", "zed": "", "pia": "incoming: j",
	} {
		servicetest.Expect(t, by, queueOf(s, by), want)
	}
	// Many that are finished do not hide those in process.
	for i := range records.MaxQueued + 2 {
		add(string(rune('k'+i)), models.StatusOpen, 0, "cat", "")
	}
	queue, err := s.Records.WorkOrderQueue(t.Context(), s.As("cat"), "")
	if last := queue.Sections[len(queue.Sections)-1]; err != nil || len(last.Items) != records.MaxQueued || last.Count != records.MaxQueued+2 || last.More {
		t.Errorf("%d of many, %d %v %v", len(last.Items), last.Count, last.More, err)
	}
	s.Exec(`INSERT INTO work_orders (id, organization_id, number, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at)
		SELECT 'wo_7' || lpad(n::text, 25, '0'), $1, n, $2, 'done', 'none', 'complete', $3, now(), now(), now() FROM generate_series(1, 1500) n`,
		s.Acme.OrganizationID, s.ID("ahu1"), s.ID("erp"))
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT id, $1, 'worker', 0 FROM work_orders WHERE title = 'done'`, s.ID("bob"))
	servicetest.Expect(t, "bob with many that are done", queueOf(s, "bob"), "back: d, review: i, overdue: b, later: a")
}

// The start page reads a bounded number of work orders, even if its plan was made while the
// tables were empty.
func TestWorkOrderQueueReadsLittle(t *testing.T) {
	t.Parallel()
	s := servicetest.NewHarness(t)
	tables := []string{"work_orders", "work_order_assignees"}
	s.AnalyzeOnce(tables)
	reads := map[string]servicetest.BoundedRead{}
	for _, reader := range []string{"ann", "bob", "cat"} {
		reads[reader] = servicetest.BoundedRead{Tables: tables, Most: 1000, Do: func() error { queueOf(s, reader); return nil }}
	}
	servicetest.WantBounded(t, s.Fixture, reads, func() {
		s.Plant(`INSERT INTO work_orders (id, organization_id, number, inventory_id, title, priority, status, target_date, created_by, created_at, changed_at, completed_at)
			SELECT 'wo_' || lpad(n::text, 26, '0'), $1, n, $2, 'x', 'none', CASE WHEN n % 2 = 1 THEN 'open' ELSE 'complete' END, $4::timestamptz - n * interval '1 minute', $3, now(), now(),
				CASE WHEN n % 2 = 0 THEN now() END
			FROM generate_series(1, 5000) n`, s.Acme.OrganizationID, s.ID("ahu1"), s.ID("erp"), s.Clock.Now())
		s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position, closed) SELECT id, $1, 'worker', 0, true FROM work_orders WHERE number % 2 = 0`, s.ID("bob"))
	})
}
