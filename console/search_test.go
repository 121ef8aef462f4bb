package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

func searchFor(text string) string { return "/console/search?q=" + url.QueryEscape(text) }

// A search finds records of all kinds that the viewer may read, first what the text names.
func TestSearchOfEverything(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	code := "TICKET-7/3"
	id, number := workOrderWith(t, s, code)
	feedback := newFeedback(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusInternalServerError, ""))
	subject := servicetest.Value[string](s.Fixture, `SELECT subject FROM feedback WHERE id = $1`, feedback)
	ann := s.SignedIn("ann")
	workOrder, node, delivery := `href="/console/work-orders/`+id+`"`, `href="/console/inventory/`+s.ID("ahu1")+`"`, `href="/console/deliveries/dlv_`
	for text, links := range map[string][]string{
		"hq filter ahu": {workOrder, `href="/console/work-orders?q=hq&#43;filter&#43;ahu`}, "ticket 7": {workOrder},
		code:                    {"With the number, external id or code", workOrder, delivery, "Deliveries of", `href="/console/deliveries?record=` + id + `"`},
		fmt.Sprint("#", number): {"With the number", workOrder}, "AHU-1": {"With the number", node}, "hq 1 ahu": {node, workOrder}, "stone": {`href="/console/people/` + s.ID("bob") + `"`},
		subject: {`href="/console/feedback/` + feedback + `"`},
	} {
		ann.Get(searchFor(text)).Want(http.StatusOK, links...)
	}
	ann.Get(searchFor("nothing like this")).Want(http.StatusOK, "Nothing that you may read matches.")
	ann.Get("/console/search").Want(http.StatusOK, "Enter words")
	wantNot(t, s.SignedIn("zed").Get(searchFor(id)).Want(http.StatusOK, "Nothing that you may read matches."), "Replace the filter")
}

// An id, and a URL of the console or the API, redirects those who may open the record to it.
func TestSearchLeadsToTheRecordOfAnID(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusInternalServerError, ""))
	delivery := servicetest.Value[string](s.Fixture, `SELECT id FROM all_deliveries WHERE webhook_id = $1`, s.ID("erp_hook"))
	ann, bob := s.SignedIn("ann"), s.SignedIn("bob")
	for text, to := range map[string]string{
		record: "/console/work-orders/" + record, " https://api.example.com/v1/work-orders/" + record + "/answers?x=1 ": "/console/work-orders/" + record,
		s.ID("bob"): "/console/people/" + s.ID("bob"), s.ID("crew"): "/console/teams/" + s.ID("crew"), s.ID("hvac"): "/console/inventory/" + s.ID("hvac"),
		"/console/inventory/" + s.ID("hvac"): "/console/inventory/" + s.ID("hvac"), s.ID("inspection"): "/console/forms/" + s.ID("inspection"),
		s.ID("erp"): "/console/integrations/" + s.ID("erp"), s.ID("erp_hook"): "/console/webhooks/" + s.ID("erp_hook"), delivery: "/console/deliveries/" + delivery,
	} {
		page := ann.Get(searchFor(text))
		servicetest.Expect(t, text, fmt.Sprint(page.Status, " ", page.Header.Get("Location")), "303 "+to)
	}
	for _, id := range []string{s.ID("erp"), s.ID("erp_hook"), delivery, s.ID("annex"), s.ID("depot")} {
		bob.Get(searchFor(id)).Want(http.StatusOK, "Nothing that you may read matches.")
	}
	ann.Get(searchFor("https://evil.example/console/people")).Want(http.StatusOK) // of another site
}

// A search that stops before it has found anything links to where it goes on.
func TestSearchLinksToOlderWorkOrders(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, CASE WHEN n <= 2100 THEN 'Renew the seal' ELSE 'Replace' END, 'none', 'open', $3, now(), now()
		FROM generate_series(1, 11000) n`, s.Acme.OrganizationID, s.ID("roof"), s.ID("erp"))
	s.SignedIn("ann").Get(searchFor("seal")).Want(http.StatusOK, `<a href="/console/work-orders?q=seal"><bdi>Search older work orders`)
}

// Keys focus the search.
func TestKeysFocusTheSearch(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.Browser(t)
	b.SignIn("ann", "/console")
	focused := chromedp.WaitVisible(chromedp.CSS("#search:focus"))
	b.Type("/")
	b.Do(focused)
	b.Open("/console/teams")
	b.Do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.Do(focused)
	b.Type("bob/") // a slash in the field is one
	b.Enter()
	b.WantText("Search for “bob/”")
}
