package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// A state without an icon leaves no room for one.
func TestAStateWithoutAnIconIsAWord(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "Check the belt", Priority: models.PriorityMedium}))
	for _, path := range []string{"/console/work-orders/" + id, "/console/work-orders"} {
		page := s.SignedIn("ann").Get(path).Want(http.StatusOK, `<span class="state muted">Medium</span>`)
		wantNot(t, page, `href="#icon-"`)
	}
}

// If nothing can be redelivered, no button offers to do it.
func TestNothingToRedeliver(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s)
	dispatch(t, s, "erp_hook", failingForGood(http.StatusGone, "Gone"))
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
	page := s.SignedIn("ann").Get("/console/inventory/" + s.ID("hq") + "?tab=assignees")
	if !strings.Contains(page.Body, `data-label="Permissions">`+want) {
		t.Errorf("the permissions are not %q:\n%s", want, page.Body)
	}
}

// Long names break after their punctuation, not within their words.
func TestLongNamesBreakAtPunctuation(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s)
	s.SignedIn("ann").Get("/console/deliveries").Want(http.StatusOK, "work_<wbr>order.<wbr>created</a>", "<bdi>127.<wbr>0.<wbr>0.<wbr>1:9</bdi>")
}

// Buttons copy ids, addresses and secrets. They need scripts, and are not shown without.
func TestIdsAreCopied(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	page, button := "/console/webhooks/"+s.ID("erp_hook"), `button[aria-label="Copy the id"]`
	b, plain := s.Browser(t), s.BrowserWithoutScripts(t)
	for _, one := range []*consoletest.Browser{b, plain} {
		one.SignIn("ann")
		one.Open(page)
	}
	b.Do(chromedp.Evaluate[chromedp.Void](`navigator.clipboard.writeText = text => { document.title = text; return Promise.resolve() }`))
	b.Unfold("For programs")
	b.Click(button)
	b.Do(chromedp.WaitVisible(chromedp.CSS(`button[aria-label="Copied"]`)))
	if got, err := chromedp.Run(b.Context, chromedp.Evaluate[string](`document.title`)); got != s.ID("erp_hook") {
		t.Errorf("copied is %q (%v)", got, err)
	}
	if got, err := chromedp.Run(plain.Context, chromedp.Evaluate[string]("getComputedStyle(document.querySelector('"+button+"')).visibility")); got != "hidden" {
		t.Errorf("without scripts the button is %q (%v)", got, err)
	}
}
