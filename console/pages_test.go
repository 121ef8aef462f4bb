package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// shownPage is a page, and how a browser comes to it.
type shownPage struct {
	// name is the name of its pictures.
	name string
	// path is opened; then fields are filled and a button is pressed, if there are any.
	path   string
	fields map[string]string
	press  string
}

// Every page is accessible, fits every width, and breaks no policy, in light and dark: the pages of routeCases, pages
// for visitors, and others that have something else to show.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	lists := map[string]func(*testing.T) (*consoletest.Site, []shownPage){
		"visitors": visitorPages, "signing in again": againPages, "people": peoplePages, "feedback": feedbackPages, "inventory": inventoryPages, "connections": connectionPages,
		"a work order": workOrderPages, "deliveries": deliveryPages, "work orders": workOrderListPages,
	}
	for part := range routeParts {
		lists[fmt.Sprint("routes, part ", part+1)] = func(t *testing.T) (*consoletest.Site, []shownPage) { return routePages(t, part) }
	}
	for topic, list := range lists {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			s, shown := list(t)
			b := s.Browser(t)
			if topic != "visitors" {
				b.SignIn("ann", "/console")
			}
			for _, page := range shown {
				page.open(b)
				b.Check(page.name)
			}
		})
	}
}

// open opens the page, fills its fields and presses its button.
func (p shownPage) open(b *consoletest.Browser) {
	b.Open(p.path)
	for name, text := range p.fields {
		if name == "scopes" || name == "events" {
			b.Choose(name, text)
		} else {
			b.Fill(name, text)
		}
	}
	if p.press != "" {
		b.Press(p.press)
	}
}

const routeParts = 4

// routePages are a part of the pages of routeCases.
func routePages(t *testing.T, part int) (*consoletest.Site, []shownPage) {
	s := newGuardedSite(t)
	var shown []shownPage
	for i, c := range routeCases {
		if i%routeParts == part && c.method == http.MethodGet && !c.anyone && !notPages.MatchString(c.path) {
			name := strings.NewReplacer("/", "-", ":", "").Replace(strings.TrimPrefix(c.path, "/console/"))
			shown = append(shown, shownPage{name: name, path: s.pathOf(c, nil)})
		}
	}
	return s.Site, shown
}

// notPages are paths of a download, of a part of a page, of a redirect, and of what only incoming work orders have.
var notPages = regexp.MustCompile(`\.csv$|/notices/count$|/openid/again$|/return$`)

// visitorPages are the pages of people who are not signed in.
func visitorPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.On(t, servicetest.New(t, servicetest.Mails))
	s.Exec(`UPDATE people SET email = 'ANN@acme.example.com' WHERE id = $1`, s.ID("pia")) // in two organizations
	invite(t, s, "ann", people.Invitation{Email: "nia@acme.example.com"})
	if err := s.People.ForgotPassword(t.Context(), "form", s.Email("bob"), people.Client{Network: "192.0.2.1"}); err != nil {
		t.Fatal(err)
	}
	links := s.MailedLinks()
	invite, reset := links[0].URL(""), links[1].URL("")
	return s, []shownPage{
		{"sign-in", "/console/sign-in", nil, ""},
		{"sign-in-failed", "/console/sign-in", map[string]string{"email": "no.one@example.com", "password": "wrong password"}, "Sign in"},
		{"sign-in-organization", "/console/sign-in", map[string]string{"email": "ann@acme.example.com", "password": consoletest.Password}, "Sign in"},
		{"forgotten", "/console/forgotten", nil, ""},
		{"forgotten-sent", "/console/forgotten", map[string]string{"email": "ann@acme.example.com"}, "Send me a link"},
		{"invitation-rejected", invite, map[string]string{"name": "Nia Moor", "password": "short"}, "Join"},
		{"reset-rejected", reset, map[string]string{"password": "short"}, "Save and sign in"},
		{"link-gone", "/console/invite/nothing", nil, ""},
	}
}

// againPages ask to sign in again: no sign-in is recent.
func againPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	s.Exec(`CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.recent_until = NULL; RETURN NEW; END'`)
	s.Exec(`CREATE TRIGGER forget BEFORE INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION forget()`)
	return s, []shownPage{
		{"sign-in-again", "/console/people/new", nil, ""},
		{"sign-in-again-failed", "/console/people/new", map[string]string{"password_again": "wrong password"}, "Continue"},
	}
}

// peoplePages are the pages about people, and those that everyone has.
func peoplePages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	notify(s, "ann", "work_order.assigned", "webhook.turned_off")
	s.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'A delivery failed for good and none succeeded for 3 days.', off_at = now() WHERE id = $1`, s.ID("reader_hook"))
	noOneCan(s, newRecord(t, s))
	return s, []shownPage{
		{"start", "/console", nil, ""},
		{"people-no-match", "/console/people?q=nothing", nil, ""},
		{"invited", "/console/people/new", map[string]string{"email": "nia@acme.example.com"}, "Invite"},
		{"people-definition", "/console/people?definition=" + s.ID("org_nothing"), nil, ""},
		{"definition-new", "/console/people/definitions/edit?on=places", nil, ""},
		{"team-created", "/console/teams/new", map[string]string{"name": "Roofers"}, "Create"},
		{"team-members-rejected", "/console/teams/" + s.ID("crew") + "/members", nil, "Add"},
		{"search-no-match", "/console/search?q=nothing", nil, ""},
		{"question", "/console/forms/" + s.ID("inspection") + "/question?question=" + s.ID("q_state"), nil, ""},
		{"question-rejected", "/console/forms/" + s.ID("inspection") + "/question", map[string]string{"label": "State"}, "Save"},
		{"notices", "/console/notices", nil, ""},
		{"not-found", "/console/nowhere", nil, ""},
		{"account-dark", "/console/account", map[string]string{"theme": "dark"}, "Save"}, // the last one: it stays dark
	}
}

func feedbackPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	newFeedback(t, s)
	resolved := newFeedback(t, s)
	s.Exec(`UPDATE feedback SET subject = repeat('Wide', 50) WHERE id = $1`, resolved)
	s.Must(s.Records.ResolveFeedback(t.Context(), s.Viewer("ann"), store.NoKey, resolved))
	return s, []shownPage{
		{"feedback", "/console/feedback", nil, ""},
		{"feedback-resolved", "/console/feedback/" + resolved, nil, ""},
		{"feedback-rejected", "/console/feedback/new", map[string]string{"node": "nowhere", "subject": "It leaks"}, "Send"},
	}
}

func inventoryPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	newRecord(t, s)
	newFeedback(t, s)
	s.Exec(`UPDATE inventory_nodes SET description = 'Supply air of the north wing' WHERE id = $1`, s.ID("hvac"))
	s.Exec(`UPDATE inventory_nodes SET retired_at = now() WHERE id = $1`, s.ID("fan1"))
	hvac := "/console/inventory/" + s.ID("hvac")
	return s, []shownPage{
		{"inventory-search", "/console/inventory?q=a", nil, ""},
		{"inventory-no-match", "/console/inventory?q=nothing", nil, ""},
		{"node", hvac, nil, ""},
		{"node-work-orders", hvac + "?tab=work-orders", nil, ""},
		{"node-feedback", hvac + "?tab=feedback", nil, ""},
		{"inventory-retired", "/console/inventory?retired=yes&open=" + s.ID("ahu1"), nil, ""},
		{"node-retired", "/console/inventory/" + s.ID("fan1"), nil, ""},
		{"root-new", "/console/inventory/new", nil, ""},
		{"nodes-rejected", hvac + "/several", map[string]string{"lines": "; F-1; fan\nFan; F-2"}, "Add all"},
		{"node-retire-in-use", hvac + "/retire", nil, ""},
		{"node-assign-change", hvac + "/assign?identity=" + s.ID("reader"), nil, ""},
		{"node-assign-rejected", hvac + "/assign", map[string]string{"identity_id": "no one", "definition_id": s.ID("reading")}, "Assign"},
	}
}

// connectionPages are pages of integrations and addresses, one of which fails, one is off and one was tested.
func connectionPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE identities SET name = repeat('Wide', 50) WHERE id = $1`, s.ID("roofer"))
	failing, off := "/console/webhooks/"+s.ID("erp_hook"), "/console/webhooks/"+s.ID("reader_hook")
	s.Exec(`INSERT INTO webhook_health (webhook_id, failing_since, last_at, last_status) VALUES ($1, now(), now(), 500)
		ON CONFLICT (webhook_id) DO UPDATE SET failing_since = now(), last_at = now(), last_status = 500`, s.ID("erp_hook"))
	s.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'A delivery failed for good and none succeeded for 3 days.', off_at = now() WHERE id = $1`, s.ID("reader_hook"))
	s.Exec(`INSERT INTO webhook_tests (event_id, webhook_id, begun_at, started_at, latency_ms, status, response_body) VALUES ('evt_01kjq7k69re00b2a00av14smbj', $1, $2, $2, 31, 200, 'Thanks <script>alert(1)</script>')`,
		s.ID("reader_updates"), s.Clock.Now())
	return s, []shownPage{
		{"integrations", "/console/integrations", nil, ""},
		{"integration-secret", "/console/integrations/new", map[string]string{"name": "Warehouse", "scopes": "inventory:read"}, "Create"},
		{"webhook-secret", "/console/integrations/" + s.ID("erp") + "/webhooks/new", map[string]string{"url": "http://127.0.0.1:9/new", "events": "issue.created"}, "Add the address"},
		{"integration-sees-nothing", "/console/integrations/" + s.ID("outsider") + "?see=" + s.ID("ahu1"), nil, ""},
		{"webhook-failing", failing, nil, ""},
		{"webhook-off", off, nil, ""},
		{"webhook-tested", "/console/webhooks/" + s.ID("reader_updates"), nil, ""},
		{"webhook-no-worker", failing, nil, "Send test"},
		{"webhook-on", off + "/missed", nil, ""},
	}
}

func workOrderPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	const choose = "/console/work-orders/new"
	mine := "/console/work-orders/" + plannedWorkOrder(t, s)
	s.Exec(`UPDATE work_order_assignees SET identity_id = $1`, s.ID("ann"))
	id, open := planned(t, s)
	answer(t, s, id)
	s.Must(s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, []string{s.ID("crew"), s.Polar.OrganizationID}, nil))
	held := newRecord(t, s)
	s.Exec(`UPDATE work_orders SET status = 'on_hold' WHERE id = $1`, held)
	return s, []shownPage{
		{"work-order-node-level", choose + "?below=" + s.ID("hq"), nil, ""},
		{"work-order-node-search", choose + "?q=a", nil, ""},
		{"work-order-node-impossible", choose + "?node=" + s.ID("fan1"), nil, ""},
		{"work-order-rejected", choose + "?node=" + s.ID("ahu1"), map[string]string{"title": " "}, "Create"},
		{"work-order-answers-rejected", mine + "/answers", map[string]string{s.ID("q_hours"): "many"}, "Save the answers"},
		{"work-order", open, nil, ""},
		{"work-order-review-rejected", "/console/work-orders/" + inReview(t, s, "ann"), map[string]string{"comment": strings.Repeat("x", 1001)}, "Approve"},
		{"work-order-comment-rejected", open, map[string]string{"text": " "}, "Comment"},
		{"work-order-return", "/console/work-orders/" + incoming(t, s) + "/return", nil, ""},
		{"work-order-on-hold", "/console/work-orders/" + held, nil, ""},
	}
}

func deliveryPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, "ok"))
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusGone, ""))
	s.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, 500, 120, servicetest.Start.Add(-time.Hour))
	return s, []shownPage{
		{"deliveries-next-page", "/console/deliveries?status=failed", nil, "Next page"},
		{"deliveries-no-match", "/console/deliveries?status=held", nil, ""},
		{"deliveries-empty", "/console/webhooks/" + s.ID("reader_updates") + "/deliveries", nil, ""},
		{"delivery-charts", "/console/charts/deliveries?time=7d", nil, ""},
	}
}

// Pages without anything to show suggest what to do.
func TestEmptyPagesAreAccessible(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE integrations SET deleted_at = now(), enabled = false`)
	b := s.Browser(t)
	b.SignIn("ann", "/console")
	for path, want := range map[string]struct{ name, text string }{
		"/console/integrations": {"integrations-empty", "Three steps"}, "/console/deliveries": {"deliveries-none", "No event yet"},
		"/console/notices": {"notices-empty", "You have read everything."}, "/console/feedback": {"feedback-empty", "POST /v1/issues"},
	} {
		b.Open(path)
		b.WantText(want.text)
		b.Check(want.name)
	}
	s.Exec(`DELETE FROM assignments`)
	s.Exec(`DELETE FROM inventory_nodes`)
	b.Open("/console/inventory")
	b.WantText("There is no inventory yet", "millwright import FILE.yaml")
	b.Check("inventory-empty")
}

// notify puts notices of the kinds into the inbox of a person of the fixture.
func notify(s *consoletest.Site, key string, kinds ...string) {
	for _, kind := range kinds {
		record := s.ID("reader_hook")
		s.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail) VALUES ($1, $2, $3, $4, now(), 'inbox')`,
			s.Acme.OrganizationID, s.ID(key), kind, record)
	}
}

func TestTheFrontPageLeadsToTheConsole(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.NewVisitor()
	if to := v.Get("/").Want(http.StatusFound).Location(); to != "/console" {
		t.Errorf("/ redirects to %s", to)
	}
	v.Get("/console").WantRedirect("/console/sign-in")
	v.Get("/console/people?q=a").WantRedirect("/console/sign-in?next=%2Fconsole%2Fpeople%3Fq%3Da")
}

var currentEntry = regexp.MustCompile(`<a href="(/console[^"]*)" aria-current="(page|true)"(?: class="button")?><svg`)

// The sidebar shows on each page, and on those below it, in which part of the console it is.
func TestTheSidebarShowsThePart(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	v := s.SignedIn("ann")
	parts := map[string]string{"webhooks": "integrations", "service-companies": "teams", "charts": "deliveries"}
	tried := 0
	for _, c := range routeCases {
		topic, _, below := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(c.path, "/console"), "/"), "/")
		if c.method != http.MethodGet || c.anyone || topic == "sign-in" || topic == "openid" || topic == "search" {
			continue
		}
		path := s.pathOf(c, func(_ *string, query, _ url.Values) { clear(query) })
		page := v.Get(path)
		if !strings.Contains(page.Body, `<div class="sidebar">`) {
			continue // a file or a redirect
		}
		part, other := parts[topic]
		if !other {
			part = topic
		}
		want := [2]string{strings.TrimSuffix("/console/"+part, "/"), "true"}
		if !below && part == topic {
			want[1] = "page"
		}
		without, _, barred := strings.Cut(page.Body, `<nav class="bar"`)
		if !barred {
			t.Errorf("%s has no bar for telephones", path)
		}
		marks := currentEntry.FindAllStringSubmatch(without, -1) // the sidebar's and the menu's
		entries := 2
		if topic == "account" {
			entries = 1 // below the person's name
		}
		if len(marks) != entries || [2]string(marks[0][1:]) != want || [2]string(marks[entries-1][1:]) != want {
			t.Errorf("%s: the current entries are %v, want %v", path, marks, want)
		}
		tried++
	}
	if tried < 60 {
		t.Errorf("only %d pages were checked", tried)
	}
	v.Get("/console").Want(http.StatusOK, ">Work<", ">Organization<", ">Connections<")
	wantNot(t, s.SignedIn("bob").Get("/console"), ">Connections<")
}
