package console_test

import (
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// The start page has the work orders that wait for the person, and says when nothing waits.
func TestStartShowsWhatWaits(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	due := s.Clock.Now().Add(-time.Hour)
	newWorkOrder := func(title string, consultants ...string) string {
		t.Helper()
		return s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: title, Assignees: []string{s.ID("bob")}, Consultants: consultants,
		}))
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
	servicetest.Expect(t, "a consultant has to do", numbersOf(cat.Get("/console/work-orders?assignee=me&status=to_do")), "")
	s.SignedIn("eve").Get("/console").Want(http.StatusOK, "What is wrong, and where?")
}

// Inventory managers and administrators see how many work orders no one can do, with a link to them; others have the
// filter for those that they may read.
func TestStartCountsWorkThatNoOneCanDo(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	left := newRecord(t, s)
	newRecord(t, s)
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, 'consultant', 1)`, left, s.ID("cat"))
	s.Exec(`UPDATE work_orders SET status = 'on_hold' WHERE id = $1`, left)
	// Eve administers and has no permission on a node, bob manages, cat only works.
	s.Exec(`UPDATE people SET admin = true WHERE id = $1`, s.ID("eve"))
	s.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, s.ID("manager"), s.ID("bob"))
	const list = "/console/work-orders?who=no_one"
	ann := s.SignedIn("ann") // an administrator and inventory manager
	wantNot(t, ann.Get("/console").Want(http.StatusOK), "no one can act")
	noOneCan(s, left)
	for who, sees := range map[string]struct {
		counted bool
		listed  string
	}{"ann": {true, "1"}, "bob": {true, "1"}, "cat": {false, "1"}, "eve": {false, ""}} {
		v := s.SignedIn(who)
		start := v.Get("/console").Want(http.StatusOK)
		if sees.counted {
			start.Want(http.StatusOK, `Unassigned, or no one can act</h2> <span class="muted">1 work order</span>`)
			wantNot(t, start, "Nothing waits for you")
		} else {
			wantNot(t, start, "no one can act")
		}
		servicetest.Expect(t, who+" lists", numbersOf(v.Get(list).Want(http.StatusOK, `<input type="hidden" name="who" value="no_one">`)), sees.listed)
	}
	ann.Get(list+"&q=nothing").Want(http.StatusOK, "unassigned, or no one can act", `<a href="/console/work-orders">Clear the filters</a>`)
}
