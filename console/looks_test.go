package console_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
)

// If nothing can be redelivered, no button offers to do it.
func TestNothingToRedeliver(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, ""))
	s.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, http.StatusGone, 1, s.Clock.Now())
	s.Exec(`UPDATE webhooks SET enabled = false, off_at = now(), off_reason = 'Gone' WHERE id = $1`, s.ID("erp_hook"))
	ann := s.SignedIn("ann")
	for query, says := range map[string]string{
		"status=failed": "1 delivery to http://127.0.0.1:9/erp. This address is off, so nothing is sent to it: turn it on first.",
		"status=held":   "Nothing matches the filters, so nothing would be sent.",
	} {
		page := ann.Get("/console/deliveries/redeliver-matching?"+query).Want(http.StatusOK, says, ">Back</a>")
		wantNot(t, page, "Redeliver 0")
		wantNot(t, page, "They go out")
	}
}

// Permissions are always listed in the same order.
func TestPermissionsHaveAnOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE permission_definitions SET grants = '{feedback.read,work_orders.read,inventory.read}' WHERE id = $1`, s.ID("working"))
	const want = "inventory: read; work orders: read; feedback: read"
	s.SignedIn("ann").Get("/console/inventory/"+s.ID("hq")+"?tab=assignees").Want(http.StatusOK, `data-label="Permissions">`+want)
}

// Buttons copy ids, addresses and secrets. They need scripts, and are not shown without.
func TestIdsAreCopied(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	page, button := "/console/webhooks/"+s.ID("erp_hook"), `button[aria-label="Copy the id"]`
	b, plain := s.Browser(t), s.BrowserWithoutScripts(t)
	for _, one := range []*consoletest.Browser{b, plain} {
		one.SignIn("ann", page)
	}
	b.Do(chromedp.Evaluate[chromedp.Void](`navigator.clipboard.writeText = text => { document.title = text; return Promise.resolve() }`))
	b.Unfold("For programs")
	b.Click(button)
	b.Do(chromedp.WaitVisible(chromedp.CSS(`button[aria-label="Copied"]`)))
	servicetest.Expect(t, "copied", evaluated(t, b, `document.title`), s.ID("erp_hook"))
	visibility := evaluated(t, plain, "getComputedStyle(document.querySelector('"+button+"')).visibility")
	servicetest.Expect(t, "without scripts the button", visibility, "hidden")
}
