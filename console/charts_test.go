package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/models"
)

// The integration page shows a chart of its calls, including rejected ones.
func TestChartOfCalls(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE plans SET calls_per_minute = 2`)
	call := func(times int) {
		t.Helper()
		token, err := s.Access.IssueToken(t.Context(), "cli_erp", "secret-of-the-erp-integration", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range times {
			caller, _, err := s.Access.Admit(t.Context(), token.AccessToken, nil)
			if err != nil && models.CodeOf(err) != models.CodeRateLimited {
				t.Fatal(err)
			}
			caller.End()
		}
		if err := s.Access.ExchangeCounts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	page := "/console/integrations/" + s.ID("erp")
	ann := s.SignedIn("ann")
	ann.Get(page+"/charts").Want(http.StatusOK, "No calls in this time.")
	call(5)
	if chart := ann.Get(page+"/charts").Want(http.StatusOK, "From 1 Mar 13:00 to 2 Mar 12:00 2 calls within the limit, and 3 over it", "<span>5 calls</span>"); strings.Contains(chart.Body, "polyline") {
		t.Error("a limit far above the calls is drawn")
	}
	s.Clock.Advance(time.Minute)
	s.Exec(`UPDATE call_hours SET calls = 90`)
	call(1)
	ann.Get(page+"/charts").Want(http.StatusOK, "91 calls within the limit", "<span>120 calls</span>", "<polyline", "The limit of a minute all the time")

	b := s.Browser(t)
	b.SignIn("ann")
	b.Open(page)
	b.Do(chromedp.WaitVisible(chromedp.CSS("figure.chart svg")))
	b.WantText("Calls per hour", "91 calls within the limit", "The plan allows 2 in a minute")
	b.Open(page + "/charts?time=30d")
	b.WantText("Calls per day")
	b.Press("The integration")
	b.WantPath(page)

	plain := s.BrowserWithoutScripts(t)
	plain.SignIn("ann")
	plain.Open(page)
	plain.Press("Chart of the calls")
	plain.WantText("Calls per hour")

	s.SignedIn("bob").Get(page + "/charts").Want(http.StatusForbidden)
	s.Exec(`ALTER TABLE call_hours RENAME TO away`)
	ann.Get(page+"/charts").Want(http.StatusOK, "not available just now")
}

// Charts that are loaded after a page are at its end: nothing moves when they come.
func TestChartsMoveNothing(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, ""))
	s.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, 500, 60, s.Clock.Now().Add(-time.Hour))
	b := s.Browser(t)
	b.SignIn("ann")
	for _, path := range []string{
		"/console/work-orders", "/console/deliveries", "/console/webhooks/" + s.ID("erp_hook") + "/deliveries", "/console/integrations/" + s.ID("erp"), "/console/work-orders/" + record, "/console",
	} {
		for _, width := range []int64{1280, 390} {
			// A busy browser sometimes shows a table before it has read all rows, and its columns move.
			// Charts that move a page move it each time.
			moved := b.LayoutShift(path, width)
			for n := 0; n < 4 && moved >= 0.02; n++ {
				moved = min(moved, b.LayoutShift(path, width))
			}
			if moved >= 0.02 {
				t.Errorf("%s at %d px moves by %.3f", path, width, moved)
			}
		}
	}
}
