package console_test

import (
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/store"
)

// The start page has the work orders that wait for the person, and says when nothing waits.
func TestStartShowsWhatWaits(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	due := s.Clock.Now().Add(-time.Hour)
	newWorkOrder := func(title string, consultants ...string) string {
		t.Helper()
		result, err := s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: title, Assignees: []string{s.ID("bob")}, Consultants: consultants,
		})
		if err != nil {
			t.Fatal(err)
		}
		return result.RecordID
	}
	newWorkOrder("Replace the filter")
	inspected := newWorkOrder("Check the belt", s.ID("cat"))
	s.Exec(`UPDATE work_orders SET status = 'sent_to_inspection' WHERE id = $1`, inspected)
	s.Exec(`UPDATE work_orders SET target_date = $1 WHERE id <> $2`, due, inspected)
	s.Exec(`DELETE FROM notices`)
	bob, cat := s.SignedIn("bob"), s.SignedIn("cat")
	page := bob.Get("/console").Want(http.StatusOK, "Overdue", "Replace the filter", "AHU 1", "1 hour late")
	wantNot(t, page, "Check the belt")
	wantNot(t, page, "Nothing waits for you")
	page = cat.Get("/console").Want(http.StatusOK, "To review", "Check the belt")
	wantNot(t, page, "Replace the filter")
	// A section that is longer links to all of it.
	for range records.MaxQueued {
		newWorkOrder("Clean the duct")
	}
	s.Exec(`UPDATE work_orders SET target_date = $1 WHERE title = 'Clean the duct'`, due.Add(-time.Hour))
	const overdue = "assignee=me&due=overdue&status=to_do"
	bob.Get("/console").Want(http.StatusOK, `Overdue</h2> <span class="muted">9 work orders</span>`, `href="/console/work-orders?`+html.EscapeString(overdue)+`">All of them`)
	list := bob.Get("/console/work-orders?"+overdue).Want(http.StatusOK, "9 work orders")
	if got := numbersOf(list); len(strings.Fields(got)) != 9 || !strings.HasSuffix(got, " 1") {
		t.Errorf("overdue are %s", got)
	}
	if got := numbersOf(cat.Get("/console/work-orders?assignee=me&status=to_do")); got != "" {
		t.Errorf("a consultant has %s to do", got)
	}
	s.SignedIn("eve").Get("/console").Want(http.StatusOK, "What is wrong, and where?")
}

// Inventory managers and administrators see how many work orders no one can do, with a link to
// them, whatever their status; others have the filter for those that they may read.
func TestStartCountsWorkThatNoOneCanDo(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann := s.SignedIn("ann") // an administrator and inventory manager
	create := func(title, worker string) string {
		t.Helper()
		result, err := s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: title, Assignees: []string{s.ID(worker)},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(time.Second)
		return result.RecordID
	}
	create("Replace the filter", "bob")
	held, review := create("Check the belt", "dan"), create("Clean the duct", "cat")
	create("Grease the bearing", "ann")
	if _, err := s.Records.HoldWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, held); err != nil {
		t.Fatal(err)
	}
	s.Exec(`UPDATE work_orders SET status = 'sent_to_inspection' WHERE id = $1`, review)
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, 'consultant', 1)`, review, s.ID("dan"))
	// Eve administers and has no permission on a node, zed manages, cat only works.
	s.Exec(`UPDATE people SET admin = true WHERE id = $1`, s.ID("eve"))
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`,
		s.ID("hq"), s.ID("zed"), s.ID("manager"), s.Acme.OrganizationID)
	wantNot(t, ann.Get("/console").Want(http.StatusOK), "no one can act")
	if got := numbersOf(ann.Get("/console/work-orders?who=no_one").Want(http.StatusOK)); got != "" {
		t.Errorf("no one can do %s", got)
	}
	for _, who := range []string{"bob", "dan"} {
		if _, err := s.People.DeactivatePerson(t.Context(), s.Viewer("ann"), store.NoKey, s.ID(who), ""); err != nil {
			t.Fatal(err)
		}
	}
	const list = "/console/work-orders?who=no_one"
	for _, test := range []struct{ who, counted, listed string }{
		{"ann", "3", "1 2 3"}, {"zed", "3", "1 2 3"}, {"cat", "", "3"}, {"eve", "", ""},
	} {
		v := s.SignedIn(test.who)
		start := v.Get("/console").Want(http.StatusOK)
		if test.counted == "" {
			wantNot(t, start, "no one can act")
		} else {
			start.Want(http.StatusOK, `Unassigned, or no one can act</h2> <span class="muted">`+test.counted+` work orders</span>`)
			wantNot(t, start, "Nothing waits for you")
		}
		page := v.Get(list).Want(http.StatusOK, `<input type="hidden" name="who" value="no_one">`)
		if got := numbersOf(page); got != test.listed {
			t.Errorf("%s lists %q, want %q", test.who, got, test.listed)
		}
	}
	ann.Get(list+"&q=nothing").Want(http.StatusOK, "unassigned, or no one can act", `<a href="/console/work-orders">Clear the filters</a>`)
	if _, err := s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, review, nil, []string{s.ID("ann")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Records.ResumeWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, held); err != nil {
		t.Fatal(err)
	}
	if got := numbersOf(ann.Get(list)); got != "1 2" {
		t.Errorf("after one was given to someone else and one resumed, no one can do %s", got)
	}
}

// A customer's name is for those with incoming work orders.
func TestStartNamesCustomers(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	result, err := s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Replace the filter", Assignees: []string{s.ID("polar")},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, 'worker', 1)`, result.RecordID, s.ID("pia"))
	pia := s.SignedIn("pia")
	pia.Get("/console").Want(http.StatusOK, "Replace the filter", "Acme Facilities")
	s.Exec(`UPDATE people SET admin = false WHERE id = $1`, s.ID("pia"))
	wantNot(t, pia.Get("/console").Want(http.StatusOK, "Replace the filter"), "Acme Facilities")
}
