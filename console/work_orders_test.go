package console_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

// plantWorkOrders inserts n work orders on AHU 1, created by the ERP, with every status and
// priority. bob is the worker of each, cat the consultant.
func plantWorkOrders(s *consoletest.Site, n int) {
	s.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, external_id, priority, status, target_date, created_by, created_at, changed_at, completed_at, cancelled_at)
		SELECT 'wo_0' || lpad(n::text, 25, '0'), $1, $2, 'Replace the filter ' || n || ' of ' || md5(n::text), 'ERP-' || n, (ARRAY['none', 'low', 'medium', 'high'])[1 + n % 4],
			status, CASE WHEN n % 2 = 0 THEN '2026-03-01'::timestamptz + n % 4 * interval '2 days' END, $3, '2026-02-01', '2026-02-01',
			CASE WHEN status = 'complete' THEN now() END, CASE WHEN status = 'cancelled' THEN now() END
		FROM (SELECT n, (ARRAY['open', 'in_progress', 'sent_to_inspection', 'back_from_inspection', 'complete', 'cancelled', 'on_hold'])[1 + n % 7] AS status FROM generate_series(1, $4::integer) n) n`,
		s.Acme.OrganizationID, s.ID("ahu1"), s.ID("erp"), n)
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
		SELECT w.id, x.id, x.role, x.nth FROM work_orders w, (VALUES ($1, 'worker', 0), ($2, 'consultant', 1)) x (id, role, nth)`, s.ID("bob"), s.ID("cat"))
}

func workOrderListPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	plantWorkOrders(s, 60)
	s.Exec(`UPDATE work_orders SET title = $1 WHERE number = 60`, strings.Repeat("Wide", 50))
	noOneCan(s, servicetest.Value[string](s.Fixture, `SELECT id FROM work_orders WHERE number = 60`))
	several := "?" + url.Values{"id": servicetest.Value[[]string](s.Fixture, `SELECT array_agg(id ORDER BY number) FROM work_orders WHERE number <= 20`)}.Encode()
	return s, []shownPage{
		{"work-orders-assign", "/console/work-orders/assign" + several, nil, ""},
		{"work-orders-due-failed", "/console/work-orders/due" + several, map[string]string{"target_date": "2026-08-03T10:00"}, "Set for all"},
		{"work-orders", "/console/work-orders", nil, ""},
		{"work-orders-next-page", "/console/work-orders?status=any", nil, "Next page"},
		{"work-orders-no-one", "/console/work-orders?who=no_one", nil, ""},
		{"work-orders-no-match", "/console/work-orders?q=nothing&status=on_hold&assignee=Bob", nil, ""},
	}
}

// noOneCan leaves the work order to zed, who was deactivated.
func noOneCan(s *consoletest.Site, id string) {
	s.Exec(`UPDATE work_order_assignees SET identity_id = $1 WHERE work_order_id = $2 AND role = 'worker'`, s.ID("zed"), id)
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("zed"))
}

// nextPage is the link to the next page of a list.
var nextPage = regexp.MustCompile(`href="([^"]+)" rel="next"`)

var numberInPage = regexp.MustCompile(`data-label="Number">(\d+)<`)

// numbersOf returns the numbers of the work orders that a page lists.
func numbersOf(page consoletest.Page) string {
	var numbers []string
	for _, found := range numberInPage.FindAllStringSubmatch(page.Body, -1) {
		numbers = append(numbers, found[1])
	}
	return strings.Join(numbers, " ")
}

// A filter of the URL restricts the list and its file; the form shows it again, and
// its pages continue it.
func TestWorkOrdersAreFiltered(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	plantWorkOrders(s, 60)
	v := s.SignedIn("ann")
	for query, want := range map[string]string{
		"q=57": "57", "q=%2357": "57", "q=ERP-57": "57", "q=57+filter+REPL": "57", "external=ERP-57": "57", "q=nothing": "", "q=57&status=open": "",
		"status=open&priority=high": "7 35", "status=open&priority=high&due=overdue": "", "due=overdue&priority=none&status=back_from_inspection": "24 52",
		"node=AHU-1&status=open&priority=low": "21 49", "node=" + s.ID("roof"): "", "node=HQ&only=yes": "",
		"assignee=me": "", "assignee=Bob&status=open&priority=low": "21 49", "assignee=" + s.ID("bob") + "&status=open&priority=low": "21 49", "assignee=Zed": "",
		"by=ERP&status=open&priority=low": "21 49", "by=Ann": "", "kind=integration&status=open&priority=low": "21 49", "kind=person": "",
		"review=me": "", "review=any&priority=low": "9 37",
	} {
		page := v.Get("/console/work-orders?" + query).Want(http.StatusOK)
		servicetest.Expect(t, query+" lists", numbersOf(page), want)
		file, err := csv.NewReader(strings.NewReader(v.Get("/console/work-orders.csv?" + query).Want(http.StatusOK).Body)).ReadAll()
		if err != nil || len(file) != 1+len(strings.Fields(want)) {
			t.Errorf("the file of %s has %d lines (%v)", query, len(file), err)
		}
	}
	servicetest.Expect(t, "the review of cat", numbersOf(s.SignedIn("cat").Get("/console/work-orders?review=me&priority=low")), "9 37")
	servicetest.Expect(t, "assigned to bob", numbersOf(s.SignedIn("bob").Get("/console/work-orders?assignee=me&status=open&priority=low")), "21 49")
	first := v.Get("/console/work-orders?by=ERP").Want(http.StatusOK, `value="ERP"`, `rel="next"`)
	next := unescaped(nextPage.FindAllStringSubmatch(first.Body, -1))[0]
	second := v.Get(next).Want(http.StatusOK, "Previous page")
	if all := numbersOf(first) + " " + numbersOf(second); len(strings.Fields(all)) != 60 || strings.Fields(all)[59] != "1" {
		t.Errorf("the pages list %s", all)
	}
	v.Get(strings.Replace(next, "by=ERP", "by=Ann", 1)).Want(http.StatusBadRequest, "other filters")
	for _, query := range []string{"status=lost", "priority=extreme", "kind=team", "review=you", "after=x", "q=" + strings.Repeat("a+", 50), "assignee=" + strings.Repeat("a", 500)} {
		v.Get("/console/work-orders?" + query).Want(http.StatusBadRequest)
	}
}

// Without a match the page names the filters, each of which can be removed, and all cleared.
func TestAnEmptyListNamesItsFilters(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	v.Get("/console/work-orders?status=any").Want(http.StatusOK, "There is no work order that you may read")
	v.Get("/console/work-orders?q=pump&status=open&node=AHU-1&assignee=me&by=erp").Want(http.StatusOK,
		"with “pump”", "status Open", "at AHU 1 and its contents", "assigned to me or a team of mine", "created by ERP",
		`href="/console/work-orders?assignee=me&amp;by=erp&amp;node=AHU-1&amp;q=pump"`, `<a href="/console/work-orders">Clear the filters</a>`)
	wantNot(t, v.Get("/console/work-orders?node="+s.ID("depot")).Want(http.StatusOK), "Depot")
}

// A list shows where each work order is, who works on it and since when it is overdue.
func TestTheListShowsWhatIsToBeDone(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	plantWorkOrders(s, 8)
	page := s.SignedIn("ann").Get("/console/work-orders?q=8").Want(http.StatusOK,
		"<bdi>Headquarters</bdi> › ", "<bdi>HVAC</bdi> › ", "<bdi>AHU 1</bdi>", "BS", "<bdi>Bob Stone</bdi>", "In progress", `<span class="state muted">None</span>`, "1 Mar 2026 00:00:00", "1 day late")
	wantNot(t, page, "Cat Rivers", `href="#icon-"`) // a state without an icon leaves no room for one
	zed := s.SignedIn("zed")
	zed.Get("/console/work-orders").Want(http.StatusOK, "Nothing is to be done")
	zed.Get("/console/work-orders?status=any").Want(http.StatusOK, "There is no work order that you may read")
}

// A link to the board that was here shows the list with its filters.
func TestTheBoardIsTheList(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	for query, want := range map[string]string{"view=board": "", "view=board&status=open&q=pump": "?q=pump&status=open"} {
		v.Get("/console/work-orders?" + query).WantRedirect("/console/work-orders" + want)
	}
}

// A service company sees its customers' work orders with the customer's name, if the person
// has incoming work orders.
func TestCustomersAreNamed(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	order := newRecord(t, s, "polar")
	pia := s.SignedIn("pia")
	pages := []string{"/console", "/console/work-orders", "/console/work-orders?q=replace", "/console/work-orders?assignee=polar"}
	for _, path := range pages {
		pia.Get(path).Want(http.StatusOK, "Replace filter", "<bdi>Acme Facilities</bdi>")
	}
	wantNot(t, s.SignedIn("ann").Get("/console/work-orders").Want(http.StatusOK, "Polar Lifts"), "Customer")
	s.Exec(`UPDATE people SET admin = false WHERE id = $1`, s.ID("pia"))
	wantNot(t, pia.Get("/console/work-orders").Want(http.StatusOK), "Replace filter")
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) VALUES ($1, $2, 'worker', 1)`, order, s.ID("pia"))
	for _, path := range pages[:2] {
		wantNot(t, pia.Get(path).Want(http.StatusOK, "Replace filter"), "Acme")
	}
}

// A file has at most 10,000 work orders, whatever the list has.
func TestTheFileOfWorkOrdersIsBounded(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	plantWorkOrders(s, 10_050)
	began := time.Now()
	body := s.SignedIn("ann").Get("/console/work-orders.csv?status=any").Want(http.StatusOK).Body
	t.Logf("the file of %d bytes took %s", len(body), time.Since(began))
	if n := strings.Count(body, "\r\n"); n != 10_001 || !strings.Contains(body, "Replace the filter 10050 of") || strings.Contains(body, "Replace the filter 50 of") {
		t.Errorf("the file has %d lines", n)
	}
	// Looking for what few match goes on to the end.
	s.Exec(`UPDATE work_orders SET priority = 'none'`)
	s.Exec(`UPDATE work_orders SET priority = 'high' WHERE number = 2`)
	v := s.SignedIn("ann")
	page := v.Get("/console/work-orders?priority=high").Want(http.StatusOK, "Few work orders match")
	on := unescaped(nextPage.FindAllStringSubmatch(page.Body, -1))[0]
	v.Get(on).Want(http.StatusOK, "Replace the filter 2 of")
	if body := v.Get("/console/work-orders.csv?priority=high").Want(http.StatusOK).Body; strings.Count(body, "\r\n") != 2 {
		t.Errorf("the file of what few match has %d lines", strings.Count(body, "\r\n"))
	}
}

// A filter that is not understood stays in its list, with what was entered and the message at its field.
func TestAWrongFilterStaysOnItsPage(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann := s.SignedIn("ann")
	s.Exec(`UPDATE inventory_nodes SET external_id = 'AHU-1' WHERE id = $1`, s.ID("roof"))
	s.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
		SELECT 'idn_' || lpad(n::text, 26, '0'), $1, 'team', 'Shift ' || n, now(), now() FROM generate_series(1, 30) n`, s.Acme.OrganizationID)
	hook := "/console/webhooks/" + s.ID("erp_hook") + "/deliveries"
	for _, c := range []struct{ page, query, field, message string }{
		{"/console/deliveries", "from=x", `value="x"><p class="problem" role="alert">A time is written`, "<h1>Deliveries"},
		{"/console/deliveries", "record=nothing", `<p class="problem" role="alert">Nothing that you may read has`, `value="nothing"`},
		{hook, "to=x", `value="x"><p class="problem" role="alert">A time is written`, "<h1>Deliveries"},
		{"/console/log", "from=x&who=Ann", `value="x"><p class="problem" role="alert">A time is written`, `value="Ann"`},
		{"/console/work-orders", "node=AHU-1", `value="AHU-1"><p class="problem" role="alert">Several places have this code.`, "Work orders"},
		{"/console/work-orders", "assignee=Shift", `<p class="problem" role="alert">More than 20 people`, `value="Shift"`},
		{"/console/work-orders", "by=Shift", `<p class="problem" role="alert">More than 20 people`, `value="Shift"`},
	} {
		ann.Get(c.page+"?"+c.query).Want(http.StatusBadRequest, c.field, c.message, "details open")
	}
}
