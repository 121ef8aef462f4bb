package console_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// newRecord creates a work order as the ERP integration and returns its id. Without workers, Ann is its worker.
func newRecord(t *testing.T, s *consoletest.Site, workers ...string) string {
	t.Helper()
	in := records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "Replace filter"}
	for _, key := range workers {
		in.Assignees = append(in.Assignees, s.ID(key))
	}
	return s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, in))
}

// dispatch sends everything due at the address, as its dispatcher would, to a receiver that
// makes each response, and returns how many it was.
func dispatch(t *testing.T, s *consoletest.Site, hook string, respond func(*webhooks.Attempt)) int {
	t.Helper()
	sent := 0
	for range 100 {
		claim, err := s.Webhooks.Claim(t.Context(), s.Holder(hook), webhooks.ClaimRequest{Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		var made []webhooks.Attempt
		for _, d := range claim.Deliveries {
			a := webhooks.Attempt{
				DeliveryID: d.DeliveryID, Number: d.Attempts + 1, Generation: d.Generation, Failures: d.Attempts - d.AttemptsBefore, StartedAt: models.TimeOf(s.Clock.Now()),
				Latency: 31 * time.Millisecond, RemoteIP: "192.0.2.7",
			}
			respond(&a)
			made = append(made, a)
		}
		if _, err := s.Webhooks.RecordAttempts(t.Context(), s.AddressOf(hook), made); err != nil {
			t.Fatal(err)
		}
		if sent += len(made); !claim.More {
			return sent
		}
	}
	t.Fatal("the address does not become idle")
	return sent
}

func responding(status int, body string) func(*webhooks.Attempt) {
	return func(a *webhooks.Attempt) { a.Status, a.ResponseBody = status, []byte(body) }
}

// Deliveries are redelivered alone, selected or all that match. The list is next, with its filters, and no other site.
func TestDeliveriesAreRedelivered(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, ""))
	id := servicetest.Value[string](s.Fixture, `SELECT id FROM deliveries WHERE webhook_id = $1`, s.ID("erp_hook"))
	ann := s.SignedIn("ann")
	all := "/console/deliveries/redeliver-matching?status=delivered&webhook=" + s.ID("erp_hook")
	form := ann.Get(all).Want(http.StatusOK, "1 delivery to", "1 was delivered before").Form()
	form.Set("delivery", id)
	form.Set("back", "/console/deliveries?status=failed")
	for i, path := range []string{"/console/deliveries/" + id + "/redeliver", "/console/deliveries/redeliver", all} {
		form.Set("form_key", strconv.Itoa(i))
		page := ann.Post(path, form).Want(http.StatusSeeOther)
		if path != all && (page.Done() != "redelivered" || !strings.HasPrefix(page.Location(), "/console/deliveries?")) {
			t.Errorf("%s redirects to %s with %q", path, page.Location(), page.Done())
		}
		if n := dispatch(t, s, "erp_hook", responding(http.StatusOK, "")); n != 1 {
			t.Errorf("%s sends %d", path, n)
		}
	}
	for _, wrong := range []string{"status=x", "type=x", "response=9xx", "record=x", "from=x", "before=x", "to=0001-01-01T00:00"} {
		ann.Get("/console/deliveries?" + wrong).Want(http.StatusBadRequest)
	}
	none := url.Values{"back": {"https://elsewhere.example.com/"}}
	if page := ann.Post("/console/deliveries/redeliver", none); page.Done() != "none-selected" || page.Location() != "/console/deliveries" {
		t.Errorf("a form without a delivery redirects to %s with %q", page.Location(), page.Done())
	}
}

// Deliveries have the names of what they are about, and its id behind a button. Long names break after their
// punctuation, not within their words.
func TestDeliveriesHaveNames(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusBadRequest, ""))
	s.Clock.Advance(time.Hour)
	id := servicetest.Value[string](s.Fixture, `SELECT id FROM all_deliveries WHERE webhook_id = $1`, s.ID("erp_hook"))
	ann := s.SignedIn("ann")
	ann.Post("/console/deliveries/"+id+"/redeliver", ann.Get("/console/deliveries/"+id).Want(http.StatusOK, "The receiver rejected the request.").Form()).Want(http.StatusSeeOther)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, ""))
	number := servicetest.Value[string](s.Fixture, `SELECT number::text FROM work_orders WHERE id = $1`, record)
	name := `<a href="/console/work-orders/` + record + `"><bdi>` + number + ` Replace filter</bdi></a>`
	wantNot(t, ann.Get("/console/deliveries").Want(http.StatusOK, name, `data-copy="`+record+`"`, `class="select all"`,
		"work_<wbr>order.<wbr>created</a>", "<bdi>127.<wbr>0.<wbr>0.<wbr>1:9</bdi>"), ">"+record+"<")
	page := ann.Get("/console/deliveries/"+id).Want(http.StatusOK, name, `<a href="/console/integrations/`+s.ID("erp")+`"><bdi>ERP</bdi></a>`)
	if first, second := strings.Index(page.Body, "Attempt 1"), strings.Index(page.Body, "Attempt 2"); second < 0 || first < second {
		t.Error("the newest attempt is not the first")
	}
	grant(s, "zed", string(models.GrantIntegrations)) // reads no work orders
	for _, path := range []string{"/console/deliveries", "/console/deliveries/" + id} {
		wantNot(t, s.SignedIn("zed").Get(path).Want(http.StatusOK, "A work order that you may not read"), "Replace filter")
	}
}

// The list is restricted to an integration or an address, which are chosen by their names.
func TestDeliveriesOfAnIntegration(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s)
	ann := s.SignedIn("ann")
	erp, reader := "/console/webhooks/"+s.ID("erp_hook"), "/console/webhooks/"+s.ID("reader_hook")
	ann.Get("/console/deliveries").Want(http.StatusOK, `href="`+erp+`"`, `href="`+reader+`"`, `<option value="`+s.ID("reader")+`">Reader</option>`, `<option value="`+s.ID("reader_hook")+`">`)
	page := ann.Get("/console/deliveries?integration="+s.ID("reader")).Want(http.StatusOK, `href="`+reader+`"`, `<option value="`+s.ID("reader")+`" selected>Reader</option>`,
		"redeliver-matching?integration="+s.ID("reader"))
	wantNot(t, page, `href="`+erp+`"`)
	wantNot(t, page, `<option value="`+s.ID("erp_hook")+`">`)
	ann.Get("/console/deliveries?webhook="+s.ID("erp_hook")).Want(http.StatusOK, "<h1>Deliveries to <bdi>http://127.0.0.1:9/erp</bdi></h1>", `<option value="`+s.ID("erp_hook")+`" selected>`)
	wantNot(t, ann.Get("/console/deliveries/redeliver-matching?integration="+s.ID("reader")).Want(http.StatusOK), "127.0.0.1:9/erp")
	ann.Get("/console/deliveries?webhook=" + s.ID("dispatch_hook")).Want(http.StatusNotFound)
	ann.Get("/console/deliveries?integration=" + s.ID("dispatch")).Want(http.StatusNotFound)
}

// Charts are loaded after the page they are in, and are pages themselves without scripts.
func TestChartsOfDeliveries(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, ""))
	s.Clock.Advance(time.Minute)
	newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusServiceUnavailable, ""))
	b := s.Browser(t)
	b.SignIn("ann", "/console/webhooks/"+s.ID("erp_hook")+"/deliveries")
	b.Unfold("Charts of the address")
	b.Do(chromedp.WaitVisible(chromedp.CSS("figure.chart svg")))
	b.WantText("Attempts per hour by outcome", "1 delivered, 1 failed and repeated", "Latency per hour")
	b.Open("/console/charts/deliveries?time=7d")
	b.WantText("Attempts per 6 hours by outcome")
	b.Do(chromedp.Click(chromedp.CSS("#outcomes-title ~ details summary")))
	if _, err := chromedp.RunResponse(b.Context, chromedp.Click(chromedp.CSS("#outcomes-title ~ details a"))); err != nil {
		t.Fatal(err)
	}
	b.WantPath("/console/deliveries")
	b.WantText("200 OK", "503 Service Unavailable")

	plain := s.BrowserWithoutScripts(t)
	plain.SignIn("ann", "/console/deliveries")
	plain.Unfold("Charts of all deliveries")
	plain.Press("Open them as a page")
	plain.WantText("Attempts per hour by outcome")

	fragment := s.SignedIn("ann").Do(http.MethodGet, "/console/charts/deliveries", nil, "HX-Request", "true").Want(http.StatusOK, "figure")
	wantNot(t, fragment, "<html")
	s.SignedIn("bob").Get("/console/charts/deliveries").Want(http.StatusForbidden)
	s.Exec(`ALTER TABLE delivery_hours RENAME TO away`)
	s.SignedIn("ann").Get("/console/charts/deliveries").Want(http.StatusOK, "not available just now")
}

// The box in the heading selects all rows, a click with Shift those since the last click, and keys
// one after the other. The page counts them.
func TestRowsAreSelectedAtOnce(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	plantWorkOrders(s, 4)
	s.Exec(`UPDATE work_orders SET status = 'open', completed_at = NULL, cancelled_at = NULL`)
	b := s.Browser(t)
	const list = "/console/work-orders"
	b.SignIn("ann", list)
	b.WantNoText("selected")
	want := func(rows string) {
		t.Helper()
		servicetest.Expect(t, "selected", evaluated(t, b, `[...document.querySelectorAll("table [type=checkbox]")].map(box => box.indeterminate ? "-" : +box.checked).join("")`), rows)
	}
	b.Click("thead .all")
	want("11111")
	b.WantText("4 selected")
	b.CheckWidth("work orders, four selected")
	b.Click("thead .all")
	want("00000")
	b.Click("tbody tr:nth-child(2) input")
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("tbody tr:nth-child(4) input").dispatchEvent(new MouseEvent("click", {shiftKey: true, bubbles: true}))`))
	want("-0111")
	b.Open(list)
	b.Type("jjx")
	want("-0100")
	b.Type("kxjx")
	want("-1000")
	b.WantText("1 selected")
	b.Type("?")
	if keys := evaluated(t, b, `document.querySelector("dialog[open]").innerText`); !strings.Contains(keys, "Select the row.") {
		t.Errorf("the keys are %s", keys)
	}
	b.Type("xc") // the page below is left alone
	want("-1000")
	b.Open("/console/feedback")
	b.Type("c")
	b.WantPath("/console/feedback/new")
}

// Charts that are loaded after a page are at its end: nothing moves when they come.
func TestChartsMoveNothing(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, ""))
	s.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, 500, 60, s.Clock.Now().Add(-time.Hour))
	b := s.Browser(t)
	b.SignIn("ann", "/console")
	for _, path := range []string{
		"/console/work-orders", "/console/deliveries", "/console/webhooks/" + s.ID("erp_hook") + "/deliveries", "/console/work-orders/" + record, "/console",
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
