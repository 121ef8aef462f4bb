package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/service"
)

// The start page has the work orders that wait for the person, and says when nothing waits.
func TestStartShowsWhatWaits(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	due := s.Clock.Now().Add(-time.Hour)
	newWorkOrder := func(title string, consultants ...string) string {
		t.Helper()
		result, err := s.CreateWorkOrder(t.Context(), s.Actor("erp"), service.Call{}, service.NewWorkOrder{
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
	page := bob.Get("/console").Want(http.StatusOK, "My work orders", "Replace the filter", "AHU 1", "Overdue")
	wantNot(t, page, "Check the belt")
	wantNot(t, page, "Nothing waits for you")
	page = cat.Get("/console").Want(http.StatusOK, "Waiting for my review", "Check the belt")
	wantNot(t, page, "Replace the filter")
	s.SignedIn("eve").Get("/console").Want(http.StatusOK, "Nothing waits for you", "Where everything is")
}

// The chart of work orders is loaded after the start page, has its figures as a table, and
// does without when they are not available.
func TestChartOfWorkOrders(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann := s.SignedIn("ann")
	ann.Get("/console/work-orders/charts").Want(http.StatusOK, "No work order was opened or closed in this time")
	newRecord(t, s)
	s.Exec(`UPDATE work_orders SET status = 'complete', completed_at = created_at WHERE id = $1`, newRecord(t, s))
	ann.Get("/console/work-orders/charts?time=7d").Want(http.StatusOK, "From 24 Feb to 2 Mar", "2 opened and 1 closed", "<td class=\"number\">2</td><td class=\"number\">1</td>")
	s.SignedIn("bob").Get("/console/work-orders/charts").Want(http.StatusOK, "No work order was opened or closed in this time")

	b := s.Browser(t)
	b.SignIn("ann")
	b.Do(chromedp.WaitVisible(chromedp.CSS("figure.chart svg")))
	b.WantText("Work orders opened and closed per day", "2 opened and 1 closed")
	b.CheckShown("start-chart")
	plain := s.BrowserWithoutScripts(t)
	plain.SignIn("ann")
	plain.Press("Chart of the work orders opened and closed")
	plain.WantText("2 opened and 1 closed")
	plain.Press("The start page")
	plain.WantPath("/console")

	s.Exec(`ALTER TABLE assignments RENAME TO away`)
	s.Exec(`ALTER TABLE work_orders RENAME TO also_away`)
	ann.Get("/console/work-orders/charts").Want(http.StatusOK, "not available just now")
}
