package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// shownPage is a page, and how a browser comes to it.
type shownPage struct {
	// route is its method and pattern.
	route string
	// name is the name of its pictures.
	name string
	// path is opened; then fields are filled and a button is pressed, if there are any.
	path   string
	fields map[string]string
	press  string
}

// noPages are the routes that serve no page: they redirect, serve a file, or show another
// route's page again, with the errors of a form.
var noPages = []string{
	"GET /", "GET /console/log.csv", "GET /console/work-orders.csv", "GET /console/notices/count",
	"POST /console/sign-in/organization", "POST /console/sign-out", "POST /console/people/openid", "POST /console/account/openid/unlink", "POST /console/account/sessions/end-others", "POST /console/account/sessions/:id/end",
	"POST /console/work-orders/:id/seen", "POST /console/feedback/:id/seen", "POST /console/notices/read", "POST /console/notices/:id/open",
	"POST /console/feedback/:id/resolve", "POST /console/feedback/:id/comments", "POST /console/feedback/:id/remove-comment", "POST /console/work-orders/:id/remove-comment",
	"POST /console/people/:id", "POST /console/people/:id/email", "POST /console/people/:id/ways-in", "POST /console/people/:id/deactivate", "POST /console/people/:id/activate",
	"POST /console/teams/:id/remove", "POST /console/teams/:id/delete", "POST /console/service-companies/:id/end",
	"POST /console/integrations/:id", "POST /console/integrations/:id/owners", "POST /console/integrations/:id/end-old-secret", "POST /console/integrations/:id/off", "POST /console/integrations/:id/on", "POST /console/integrations/:id/delete",
	"POST /console/inventory/:id/unassign", "POST /console/inventory", "POST /console/inventory/:id/edit", "POST /console/inventory/:id/retire", "POST /console/inventory/:id/bring-back",
	"POST /console/integrations/:id/assign", "POST /console/integrations/:id/unassign",
	"POST /console/webhooks/:id", "POST /console/webhooks/:id/off", "POST /console/webhooks/:id/on", "POST /console/webhooks/:id/missed", "POST /console/webhooks/:id/delete",
	"POST /console/work-orders/:id/assign", "POST /console/work-orders/:id/unassign", "POST /console/work-orders/:id/complete", "POST /console/work-orders/:id/start", "POST /console/work-orders/:id/hold",
	"POST /console/work-orders/:id/resume", "POST /console/work-orders/:id/cancel", "POST /console/work-orders/:id/return", "POST /console/work-orders/:id/review",
	"POST /console/deliveries/redeliver", "POST /console/deliveries/redeliver-matching", "POST /console/deliveries/:id/redeliver",
}

// Every page is accessible, fits every width, and breaks no policy, in light and dark. A
// route that is in no list fails the test: add its page.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	routes := map[string]bool{}
	for _, route := range consoletest.NewSite(t).Console.Routes() {
		routes[route.Method+" "+route.Path] = true
	}
	listed := map[string]bool{}
	for _, route := range noPages {
		listed[route] = true
	}
	for topic, list := range map[string]func(*testing.T) (*consoletest.Site, []shownPage){
		"visitors": visitorPages, "signing in again": againPages, "people": peoplePages, "feedback": feedbackPages, "inventory": inventoryPages, "integrations": integrationsPages, "a work order": workOrderPages, "webhooks": webhookPages, "deliveries": deliveryPages,
		"work orders": workOrderListPages, "new work orders": newWorkOrderPages,
	} {
		s, shown := list(t)
		for _, page := range shown {
			listed[page.route] = true
		}
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			b := s.Browser(t)
			if topic != "visitors" {
				b.SignIn("ann")
			}
			for _, page := range shown {
				page.check(b)
			}
		})
	}
	for route := range routes {
		if !listed[route] {
			t.Errorf("the page at %s is not checked: list it", route)
		}
	}
	for route := range listed {
		if !routes[route] {
			t.Errorf("there is no route %s", route)
		}
	}
}

func (p shownPage) check(b *consoletest.Browser) {
	p.open(b)
	b.Check(p.name)
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
		{"GET /console/sign-in", "sign-in", "/console/sign-in", nil, ""},
		{"POST /console/sign-in", "sign-in-failed", "/console/sign-in", map[string]string{"email": "no.one@example.com", "password": "wrong password"}, "Sign in"},
		{"POST /console/sign-in", "sign-in-organization", "/console/sign-in", map[string]string{"email": "ann@acme.example.com", "password": consoletest.Password}, "Sign in"},
		{"GET /console/forgotten", "forgotten", "/console/forgotten", nil, ""},
		{"POST /console/forgotten", "forgotten-sent", "/console/forgotten", map[string]string{"email": "ann@acme.example.com"}, "Send me a link"},
		{"GET /console/invite/:token", "invitation", invite, nil, ""},
		{"POST /console/invite/:token", "invitation-rejected", invite, map[string]string{"name": "Nia Moor", "password": "short"}, "Join"},
		{"GET /console/reset/:token", "reset", reset, nil, ""},
		{"POST /console/reset/:token", "reset-rejected", reset, map[string]string{"password": "short"}, "Save and sign in"},
		{"GET /console/invite/:token", "link-gone", "/console/invite/nothing", nil, ""},
	}
}

// againPages ask to sign in again: no sign-in is recent.
func againPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	s.Exec(`CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.recent_until = NULL; RETURN NEW; END'`)
	s.Exec(`CREATE TRIGGER forget BEFORE INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION forget()`)
	return s, []shownPage{
		{"GET /console/sign-in/again", "sign-in-again", "/console/people/new", nil, ""},
		{"POST /console/sign-in/again", "sign-in-again-failed", "/console/people/new", map[string]string{"password_again": "wrong password"}, "Continue"},
	}
}

// peoplePages are the pages about people, and those that everyone has.
func peoplePages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	notify(s, "ann", "work_order.assigned", "webhook.turned_off")
	s.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'A delivery failed for good and none succeeded for 3 days.', off_at = now() WHERE id = $1`, s.ID("reader_hook"))
	noOneCan(s, newRecord(t, s))
	bob, crew := "/console/people/"+s.ID("bob"), "/console/teams/"+s.ID("crew")
	return s, []shownPage{
		{"GET /console", "start", "/console", nil, ""},
		{"GET /console/account", "account", "/console/account", nil, ""},
		{"POST /console/account", "account-rejected", "/console/account", map[string]string{"name": " "}, "Save"},
		{"POST /console/account/password", "password-rejected", "/console/account", map[string]string{"old_password": "wrong password", "password": "a good long password"}, "Change the password"},
		{"GET /console/people", "people", "/console/people", nil, ""},
		{"GET /console/people", "people-no-match", "/console/people?q=nothing", nil, ""},
		{"GET /console/people/openid", "people-openid", "/console/people/openid", nil, ""},
		{"GET /console/people/new", "people-new", "/console/people/new", nil, ""},
		{"POST /console/people", "invited", "/console/people/new", map[string]string{"email": "nia@acme.example.com"}, "Invite"},
		{"GET /console/people/:id", "person", bob, nil, ""},
		{"POST /console/people/:id/link", "person-link", bob, nil, "Make a link"},
		{"GET /console/people/:id/ways-in", "person-ways-in", bob + "/ways-in", nil, ""},
		{"GET /console/people/:id/deactivate", "deactivate", bob + "/deactivate", nil, ""},
		{"GET /console/people/:id/deactivate", "deactivate-no-match", bob + "/deactivate?q=nothing", nil, ""},
		{"GET /console/people", "people-definition", "/console/people?definition=" + s.ID("org_nothing"), nil, ""},
		{"GET /console/people/definitions", "definitions", "/console/people/definitions", nil, ""},
		{"GET /console/people/definitions/edit", "definition-new", "/console/people/definitions/edit?on=places", nil, ""},
		{"POST /console/people/definitions/edit", "definition-rejected", "/console/people/definitions/edit?role=" + s.ID("org_nothing"), map[string]string{"name": " "}, "Save"},
		{"GET /console/teams", "teams", "/console/teams", nil, ""},
		{"GET /console/teams", "teams-no-match", "/console/teams?q=nothing", nil, ""},
		{"GET /console/teams/new", "team-new", "/console/teams/new", nil, ""},
		{"POST /console/teams", "team-created", "/console/teams/new", map[string]string{"name": "Roofers"}, "Create"},
		{"GET /console/teams/:id", "team", crew, nil, ""},
		{"POST /console/teams/:id", "team-rejected", crew, map[string]string{"name": " "}, "Save"},
		{"GET /console/teams/:id/members", "team-members", crew + "/members", nil, ""},
		{"POST /console/teams/:id/members", "team-members-rejected", crew + "/members", nil, "Add"},
		{"GET /console/teams/:id/members", "team-members-no-match", crew + "/members?q=nothing", nil, ""},
		{"GET /console/teams/:id/remove", "team-remove", crew + "/remove?member=" + s.ID("bob"), nil, ""},
		{"GET /console/teams/:id/delete", "team-delete", crew + "/delete", nil, ""},
		{"GET /console/service-companies/:id/end", "company-end", "/console/service-companies/" + s.ID("polar") + "/end", nil, ""},
		{"GET /console/search", "search", "/console/search?q=AHU-1", nil, ""},
		{"GET /console/search", "search-no-match", "/console/search?q=nothing", nil, ""},
		{"GET /console/forms", "forms", "/console/forms", nil, ""},
		{"GET /console/forms", "forms-no-match", "/console/forms?q=nothing", nil, ""},
		{"GET /console/forms/:id", "form", "/console/forms/" + s.ID("inspection"), nil, ""},
		{"GET /console/forms/new", "form-new", "/console/forms/new", nil, ""},
		{"POST /console/forms", "form-rejected", "/console/forms/new", map[string]string{"name": " "}, "Create"},
		{"GET /console/forms/:id/edit", "form-edit", "/console/forms/" + s.ID("inspection") + "/edit", nil, ""},
		{"POST /console/forms/:id/edit", "form-edit-rejected", "/console/forms/" + s.ID("inspection") + "/edit", map[string]string{"name": " "}, "Save"},
		{"GET /console/forms/:id/question", "question", "/console/forms/" + s.ID("inspection") + "/question?question=" + s.ID("q_state"), nil, ""},
		{"POST /console/forms/:id/question", "question-rejected", "/console/forms/" + s.ID("inspection") + "/question", map[string]string{"label": "State"}, "Save"},
		{"GET /console/log", "log", "/console/log", nil, ""},
		{"GET /console/log", "log-empty", "/console/log?what=person.activated", nil, ""},
		{"GET /console/notices", "notices", "/console/notices", nil, ""},
		{"GET /console/people/:id", "not-found", "/console/nowhere", nil, ""},
		{"POST /console/account", "account-dark", "/console/account", map[string]string{"theme": "dark"}, "Save"}, // the last one: it stays dark
	}
}

func feedbackPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	id, resolved := newFeedback(t, s), newFeedbackOf(t, s, s.Viewer("ann"), strings.Repeat("Wide", 50))
	s.Must(s.Records.ResolveFeedback(t.Context(), s.Viewer("ann"), store.NoKey, resolved))
	return s, []shownPage{
		{"GET /console/feedback", "feedback", "/console/feedback", nil, ""},
		{"GET /console/feedback", "feedback-no-match", "/console/feedback?state=open&node=" + s.ID("annex"), nil, ""},
		{"GET /console/feedback", "feedback-filtered", "/console/feedback?state=open&node=" + s.ID("hq") + "&by=" + s.ID("erp"), nil, ""},
		{"GET /console/feedback/:id", "feedback-one", "/console/feedback/" + id, nil, ""},
		{"GET /console/feedback/:id", "feedback-resolved", "/console/feedback/" + resolved, nil, ""},
		{"GET /console/feedback/:id/remove-comment", "feedback-comment-remove", "/console/feedback/" + id + "/remove-comment?comment=" + commentOn(t, s, "ann", id, "Since when?"), nil, ""},
		{"GET /console/feedback/new", "feedback-new", "/console/feedback/new", nil, ""},
		{"GET /console/feedback/new", "feedback-new-at", "/console/feedback/new?node=AHU-1", nil, ""},
		{"POST /console/feedback", "feedback-rejected", "/console/feedback/new", map[string]string{"node": "nowhere", "subject": "It leaks"}, "Send"},
	}
}

func inventoryPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	newRecord(t, s)
	s.Must(s.Records.CreateFeedback(t.Context(), s.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "It rattles"}))
	s.Exec(`UPDATE inventory_nodes SET name = repeat('Wide', 50), external_id = repeat('W', 200) WHERE id = $1`, s.ID("mast"))
	s.Exec(`UPDATE inventory_nodes SET description = 'Supply air of the north wing' WHERE id = $1`, s.ID("hvac"))
	s.Exec(`UPDATE inventory_nodes SET retired_at = now() WHERE id = $1`, s.ID("fan1"))
	hvac := "/console/inventory/" + s.ID("hvac")
	return s, []shownPage{
		{"GET /console/inventory", "inventory", "/console/inventory", nil, ""},
		{"GET /console/inventory", "inventory-open", "/console/inventory?open=" + s.ID("hvac"), nil, ""},
		{"GET /console/inventory", "inventory-search", "/console/inventory?q=a", nil, ""},
		{"GET /console/inventory", "inventory-no-match", "/console/inventory?q=nothing", nil, ""},
		{"GET /console/inventory/:id", "node", hvac, nil, ""},
		{"GET /console/inventory/:id", "node-work-orders", hvac + "?tab=work-orders", nil, ""},
		{"GET /console/inventory/:id", "node-feedback", hvac + "?tab=feedback", nil, ""},
		{"GET /console/inventory/:id", "node-assignees", hvac + "?tab=assignees", nil, ""},
		{"GET /console/inventory/:id", "node-wide", "/console/inventory/" + s.ID("mast"), nil, ""},
		{"GET /console/inventory", "inventory-retired", "/console/inventory?retired=yes&open=" + s.ID("ahu1"), nil, ""},
		{"GET /console/inventory/:id", "node-retired", "/console/inventory/" + s.ID("fan1"), nil, ""},
		{"GET /console/inventory/new", "node-new", "/console/inventory/new?node=" + s.ID("hvac"), nil, ""},
		{"GET /console/inventory/new", "root-new", "/console/inventory/new", nil, ""},
		{"GET /console/inventory/:id/several", "nodes-new", hvac + "/several", nil, ""},
		{"POST /console/inventory/:id/several", "nodes-rejected", hvac + "/several", map[string]string{"lines": "; F-1; fan\nFan; F-2"}, "Add all"},
		{"GET /console/inventory/:id/edit", "node-edit", hvac + "/edit", nil, ""},
		{"GET /console/inventory/:id/move", "node-move", hvac + "/move", nil, ""},
		{"POST /console/inventory/:id/move", "node-move-rejected", hvac + "/move", map[string]string{"node": "nowhere"}, "Move"},
		{"GET /console/inventory/:id/retire", "node-retire-in-use", hvac + "/retire", nil, ""},
		{"GET /console/inventory/:id/retire", "node-retire", "/console/inventory/" + s.ID("mast") + "/retire", nil, ""},
		{"GET /console/inventory/:id/label", "label", hvac + "/label", nil, ""},
		{"GET /console/inventory/:id/label", "label-wide", "/console/inventory/" + s.ID("mast") + "/label", nil, ""},
		{"GET /console/inventory/:id/assign", "node-assign", hvac + "/assign", nil, ""},
		{"GET /console/inventory/:id/assign", "node-assign-change", hvac + "/assign?identity=" + s.ID("reader"), nil, ""},
		{"POST /console/inventory/:id/assign", "node-assign-rejected", hvac + "/assign", map[string]string{"identity_id": "no one", "definition_id": s.ID("reading")}, "Assign"},
		{"GET /console/inventory/:id/unassign", "node-unassign", "/console/inventory/" + s.ID("hq") + "/unassign?identity=" + s.ID("ann"), nil, ""},
	}
}

func integrationsPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE identities SET name = repeat('Wide', 50) WHERE id = $1`, s.ID("roofer"))
	s.Exec(`UPDATE plans SET calls_per_minute = 2`)
	erp := "/console/integrations/" + s.ID("erp")
	s.Exec(`UPDATE integrations SET previous_secret_hash = secret_hash, previous_secret_until = $1 WHERE id = $2`, s.Clock.Now().Add(time.Hour), s.ID("erp"))
	return s, []shownPage{
		{"GET /console/integrations", "integrations", "/console/integrations", nil, ""},
		{"GET /console/integrations/new", "integration-new", "/console/integrations/new", nil, ""},
		{"POST /console/integrations", "integration-secret", "/console/integrations/new", map[string]string{"name": "Warehouse", "scopes": "inventory:read"}, "Create"},
		{"GET /console/integrations/:id", "integration", erp, nil, ""},
		{"GET /console/integrations/:id", "integration-see", erp + "?see=" + s.ID("ahu1"), nil, ""},
		{"GET /console/integrations/:id", "integration-sees-nothing", "/console/integrations/" + s.ID("outsider") + "?see=" + s.ID("ahu1"), nil, ""},
		{"GET /console/integrations/:id/secret", "integration-renew", erp + "/secret", nil, ""},
		{"POST /console/integrations/:id/secret", "integration-renewed", erp + "/secret", nil, "Renew the secret"},
		{"GET /console/integrations/:id/off", "integration-off", erp + "/off", nil, ""},
		{"GET /console/integrations/:id/assign", "integration-assign", erp + "/assign", nil, ""},
		{"GET /console/integrations/:id/unassign", "integration-unassign", erp + "/unassign?node=" + s.ID("hq"), nil, ""},
		{"GET /console/integrations/:id/delete", "integration-delete", erp + "/delete", nil, ""},
		{"GET /console/integrations/:id/webhooks/new", "webhook-new", erp + "/webhooks/new", nil, ""},
		{"POST /console/integrations/:id/webhooks", "webhook-secret", erp + "/webhooks/new", map[string]string{"url": "http://127.0.0.1:9/new", "events": "issue.created"}, "Add the address"},
	}
}

func webhookPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	failing, off := "/console/webhooks/"+s.ID("erp_hook"), "/console/webhooks/"+s.ID("reader_hook")
	s.Exec(`INSERT INTO webhook_health (webhook_id, failing_since, last_at, last_status) VALUES ($1, now(), now(), 500)
		ON CONFLICT (webhook_id) DO UPDATE SET failing_since = now(), last_at = now(), last_status = 500`, s.ID("erp_hook"))
	s.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'A delivery failed for good and none succeeded for 3 days.', off_at = now() WHERE id = $1`, s.ID("reader_hook"))
	s.Exec(`INSERT INTO webhook_tests (event_id, webhook_id, begun_at, started_at, latency_ms, status, response_body) VALUES ('evt_01kjq7k69re00b2a00av14smbj', $1, $2, $2, 31, 200, 'Thanks <script>alert(1)</script>')`,
		s.ID("reader_updates"), s.Clock.Now())
	return s, []shownPage{
		{"GET /console/webhooks/:id", "webhook-failing", failing, nil, ""},
		{"GET /console/webhooks/:id", "webhook-off", off, nil, ""},
		{"GET /console/webhooks/:id", "webhook-tested", "/console/webhooks/" + s.ID("reader_updates"), nil, ""},
		{"POST /console/webhooks/:id/test", "webhook-no-worker", failing, nil, "Send test"},
		{"GET /console/webhooks/:id/secret", "webhook-renew", failing + "/secret", nil, ""},
		{"POST /console/webhooks/:id/secret", "webhook-renewed", failing + "/secret", nil, "Renew the secret"},
		{"GET /console/webhooks/:id/off", "webhook-turn-off", failing + "/off", nil, ""},
		{"GET /console/webhooks/:id/missed", "webhook-missed", failing + "/missed", nil, ""},
		{"GET /console/webhooks/:id/missed", "webhook-on", off + "/missed", nil, ""},
		{"GET /console/webhooks/:id/delete", "webhook-delete", failing + "/delete", nil, ""},
	}
}

// newWorkOrderPages are the pages on which work orders are created and changed.
func newWorkOrderPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	const choose = "/console/work-orders/new"
	planned := "/console/work-orders/" + plannedWorkOrder(t, s)
	s.Exec(`UPDATE work_order_assignees SET identity_id = $1`, s.ID("ann"))
	other := "/console/work-orders/" + plannedWorkOrder(t, s)
	return s, []shownPage{
		{"GET /console/work-orders/new", "work-order-node", choose, nil, ""},
		{"GET /console/work-orders/new", "work-order-node-level", choose + "?below=" + s.ID("hq"), nil, ""},
		{"GET /console/work-orders/new", "work-order-node-search", choose + "?q=a", nil, ""},
		{"GET /console/work-orders/new", "work-order-node-no-match", choose + "?q=nowhere", nil, ""},
		{"GET /console/work-orders/new", "work-order-node-impossible", choose + "?node=" + s.ID("fan1"), nil, ""},
		{"GET /console/work-orders/new", "work-order-new", choose + "?node=" + s.ID("ahu1"), nil, ""},
		{"POST /console/work-orders", "work-order-rejected", choose + "?node=" + s.ID("ahu1"), map[string]string{"title": " "}, "Create"},
		{"GET /console/work-orders/:id/edit", "work-order-edit", planned + "/edit", nil, ""},
		{"POST /console/work-orders/:id/edit", "work-order-edit-rejected", planned + "/edit", map[string]string{"title": " "}, "Save"},
		{"GET /console/work-orders/:id/answers", "work-order-answers", planned + "/answers", nil, ""},
		{"POST /console/work-orders/:id/answers", "work-order-answers-rejected", planned + "/answers", map[string]string{s.ID("q_hours"): "many"}, "Save the answers"},
		{"GET /console/work-orders/:id/answers", "work-order-answers-impossible", other + "/answers", nil, ""},
	}
}

func workOrderPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	id, open := planned(t, s)
	answer(t, s, id)
	s.Must(s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, []string{s.ID("crew"), s.Polar.OrganizationID}, nil))
	held := newRecord(t, s)
	s.Exec(`UPDATE work_orders SET status = 'on_hold' WHERE id = $1`, held)
	reviewed, mine := "/console/work-orders/"+inReview(t, s, "ann"), "/console/work-orders/"+newRecord(t, s)
	return s, []shownPage{
		{"GET /console/work-orders/:id", "work-order", open, nil, ""},
		{"GET /console/work-orders/:id", "work-order-review", reviewed, nil, ""},
		{"POST /console/work-orders/:id/review", "work-order-review-rejected", reviewed, map[string]string{"comment": strings.Repeat("x", 1001)}, "Approve"},
		{"POST /console/work-orders/:id/comments", "work-order-comment-rejected", open, map[string]string{"text": " "}, "Comment"},
		{"GET /console/work-orders/load", "work-orders-load", "/console/work-orders/load", nil, ""},
		{"GET /console/work-orders/count", "work-orders-count", "/console/work-orders/count", nil, ""},
		{"GET /console/work-orders/:id/remove-comment", "work-order-comment-remove", open + "/remove-comment?comment=" + commentOn(t, s, "ann", id, "Since when?"), nil, ""},
		{"GET /console/work-orders/:id/integrations", "work-order-integrations", open + "/integrations", nil, ""},
		{"GET /console/work-orders/:id/assign", "work-order-assign", open + "/assign", nil, ""},
		{"GET /console/work-orders/:id/assign", "work-order-assign-no-match", open + "/assign?find=nothing", nil, ""},
		{"GET /console/work-orders/:id/cancel", "work-order-cancel", open + "/cancel", nil, ""},
		{"GET /console/work-orders/:id/complete", "work-order-complete", mine + "/complete", nil, ""},
		{"GET /console/work-orders/:id/return", "work-order-return", "/console/work-orders/" + incoming(t, s) + "/return", nil, ""},
		{"GET /console/work-orders/:id", "work-order-on-hold", "/console/work-orders/" + held, nil, ""},
	}
}

func deliveryPages(t *testing.T) (*consoletest.Site, []shownPage) {
	s := consoletest.NewSite(t)
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", failingForGood(http.StatusGone, "<b>Gone</b>"))
	s.Exec(`UPDATE webhooks SET enabled = true, off_at = NULL, off_reason = NULL`)
	newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, "ok"))
	s.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, 500, 120, servicetest.Start.Add(-time.Hour))
	gone := servicetest.Value[string](s.Fixture, `SELECT id FROM all_deliveries WHERE webhook_id = $1 ORDER BY id LIMIT 1`, s.ID("erp_hook"))
	address := "/console/webhooks/" + s.ID("erp_hook")
	return s, []shownPage{
		{"GET /console/deliveries", "deliveries", "/console/deliveries", nil, ""},
		{"GET /console/deliveries", "deliveries-next-page", "/console/deliveries?status=failed", nil, "Next page"},
		{"GET /console/deliveries", "deliveries-no-match", "/console/deliveries?status=held", nil, ""},
		{"GET /console/deliveries/redeliver-matching", "redeliver-matching", "/console/deliveries/redeliver-matching?status=failed", nil, ""},
		{"GET /console/deliveries/:id", "delivery", "/console/deliveries/" + gone, nil, ""},
		{"GET /console/webhooks/:id/deliveries", "webhook-deliveries", address + "/deliveries", nil, ""},
		{"GET /console/webhooks/:id/deliveries", "deliveries-empty", "/console/webhooks/" + s.ID("reader_updates") + "/deliveries", nil, ""},
		{"GET /console/stuck", "stuck", "/console/stuck", nil, ""},
		{"GET /console/charts/deliveries", "delivery-charts", "/console/charts/deliveries?time=7d", nil, ""},
		{"GET /console/webhooks/:id/charts", "webhook-charts", address + "/charts", nil, ""},
	}
}

// Pages without anything to show suggest what to do.
func TestEmptyPagesAreAccessible(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE integrations SET deleted_at = now(), enabled = false`)
	b := s.Browser(t)
	b.SignIn("ann")
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
