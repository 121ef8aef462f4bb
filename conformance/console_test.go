package conformance

import (
	"context"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/webhooks"
)

// app is the console on the harness's service. Ann may manage integrations, bob may not.
type app struct {
	h        *harness
	ann, bob *consoletest.Visitor
}

// openApp serves the console until the test ends.
func (h *harness) openApp(t *testing.T) app {
	site := consoletest.On(t, h.Fixture, func(o *console.Options) { o.Tester = sender{h} })
	return app{h, site.SignedIn("ann"), site.SignedIn("bob")}
}

// send opens a page as ann and sends its form, with pairs of name and value, to the path.
func (a app) send(page, path string, pairs ...string) consoletest.Page {
	return a.ann.Post(path, a.ann.Get(page).Want(http.StatusOK).Form(pairs...))
}

// shownSecret matches what a page shows once.
var shownSecret = regexp.MustCompile(`<p class="secret">([^<]+)</p>`)

// secrets returns the strings that a page shows once.
func secrets(page consoletest.Page) (shown []string) {
	for _, found := range shownSecret.FindAllStringSubmatch(page.Want(http.StatusOK).Body, -1) {
		shown = append(shown, html.UnescapeString(found[1]))
	}
	return shown
}

// sender sends tests in place of a worker.
type sender struct{ h *harness }

func (s sender) Send(ctx context.Context, test webhooks.BegunTest, kind models.EventType) error {
	to, event, err := s.h.Webhooks.TestWebhook(ctx, test.Address.ID, kind, test.EventID)
	if err != nil {
		return err
	}
	attempt, err := send(ctx, to, to.URL, event)
	if err != nil {
		return err
	}
	return s.h.Webhooks.RecordTest(ctx, to.ID, attempt)
}

// wantIntegrationsPage checks that someone with the permission creates an integration on the
// page, whose id and secret it shows once, and no one else does.
func wantIntegrationsPage(t *testing.T, h *harness) {
	a := h.openApp(t)
	const list, empty = "/console/integrations", "/console/integrations/new"
	a.bob.Get(empty).Want(http.StatusForbidden)
	a.bob.Post(list, url.Values{"form_key": {"k"}, "name": {"Theirs"}, "scopes": {"work_orders:read"}}).Want(http.StatusForbidden)

	form := a.ann.Get(empty).Want(http.StatusOK).Form("name", "Made on the page", "scopes", "work_orders:read", "organization_definition_id", h.ID("org_incoming"))
	shown := secrets(a.ann.Post(list, form))
	if len(shown) != 2 {
		t.Fatalf("the page shows %d secrets once, want the client id and secret", len(shown))
	}
	want(t, "shown when the form is sent again", len(secrets(a.ann.Post(list, form))), 0)
	credentials := h.credentials("erp", "")
	credentials.Set("client_id", shown[0])
	credentials.Set("client_secret", shown[1])
	want(t, "the scopes of its token", h.token(credentials).Want(http.StatusOK, "").Text("scope"), "work_orders:read")
	a.ann.Get(list).Want(http.StatusOK, "Made on the page")
	made := servicetest.Value[string](h.Fixture, `SELECT n.name || ' ' || array_to_string(i.scopes, ' ') || ' ' || d.name FROM integrations i
		JOIN identities n ON n.id = i.id JOIN organization_permission_definitions d ON d.id = i.organization_definition_id WHERE i.client_id = $1`, shown[0])
	want(t, "the integration", made, "Made on the page work_orders:read Incoming")
}

// wantRenewalPage checks that a secret is renewed on the integration's page.
func wantRenewalPage(t *testing.T, h *harness) {
	a := h.openApp(t)
	page := "/console/integrations/" + h.ID("erp") + "/secret"
	a.bob.Get(page).Want(http.StatusForbidden)
	shown := secrets(a.send(page, page))
	credentials := h.credentials("erp", "")
	h.token(credentials).Want(http.StatusUnauthorized, "")
	credentials.Set("client_secret", shown[len(shown)-1])
	h.token(credentials).Want(http.StatusOK, "")
}

// wantWebhooksPage checks that an address is added on the integration's page, which shows
// its signing secret once, and by no one without the permission.
func wantWebhooksPage(t *testing.T, h *harness) {
	a := h.openApp(t)
	page := "/console/integrations/" + h.ID("creator")
	a.bob.Get(page + "/webhooks/new").Want(http.StatusForbidden)
	form := a.ann.Get(page+"/webhooks/new").Want(http.StatusOK).Form("url", "http://127.0.0.1:9/on-the-page", "events", "work_order.created", "events", "issue.created")
	shown := secrets(a.ann.Post(page+"/webhooks", form))
	if len(shown) != 1 || !strings.HasPrefix(shown[0], "whsec_") {
		t.Fatalf("the page shows %q once, want the signing secret", shown)
	}
	want(t, "shown when the form is sent again", len(secrets(a.ann.Post(page+"/webhooks", form))), 0)
	a.ann.Get(page).Want(http.StatusOK, "http://127.0.0.1:9/on-the-page")
	types := servicetest.Value[string](h.Fixture, `SELECT array_to_string(events, ' ') FROM webhooks WHERE url LIKE '%/on-the-page'`)
	want(t, "its event types", types, "work_order.created issue.created")
}

// wantTestPage checks that Send test posts a ping and shows the response.
func wantTestPage(t *testing.T, h *harness) {
	a := h.openApp(t)
	types := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		types <- r.Header.Get("Service-Event-Type")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}))
	defer receiver.Close()
	h.Exec(`UPDATE webhooks SET url = $2 WHERE id = $1`, h.ID("erp_hook"), receiver.URL)
	page := "/console/webhooks/" + h.ID("erp_hook")
	a.send(page, page+"/test").Want(http.StatusSeeOther)
	want(t, "the event", <-types, "ping")
	a.ann.Get(page).Want(http.StatusOK, "418", "short and stout")
}

// wantRedeliverPage checks that a failed delivery is in the list of its address, and is sent
// again from there.
func wantRedeliverPage(t *testing.T, h *harness) {
	a := h.openApp(t)
	id := h.workOrder(nil)
	failed := h.pendingDeliveries("erp_hook", id)[0]
	failed = servicetest.MadeBefore(h.Fixture, failed, 7)
	h.attempt("erp_hook", failed, 500)
	list := "/console/webhooks/" + h.ID("erp_hook") + "/deliveries?status=failed"
	a.bob.Get(list).Want(http.StatusForbidden)
	a.send(list, "/console/deliveries/"+failed.DeliveryID+"/redeliver").Want(http.StatusSeeOther)
	h.attempt("erp_hook", h.pendingDeliveries("erp_hook", id)[0], 200)
	want(t, "the status", h.delivery(failed.DeliveryID).Status, models.DeliveryDelivered)
	if strings.Contains(a.ann.Get(list).Want(http.StatusOK).Body, failed.DeliveryID) {
		t.Error("it is still listed as failed")
	}
}

// wantOffPage checks that an address's page shows why the address was turned off, turns it
// on again and sends what was held.
func wantOffPage(t *testing.T, h *harness) {
	a := h.openApp(t)
	page := "/console/webhooks/" + h.ID("erp_hook")
	const reason = "Nothing was delivered for 3 days."
	h.Exec(`UPDATE webhooks SET enabled = false, off_at = $2, off_reason = $3 WHERE id = $1`, h.ID("erp_hook"), h.Clock.Now(), reason)
	h.workOrder(nil)
	a.ann.Get(page).Want(http.StatusOK, reason)
	on := a.ann.Get(page + "/missed?since=2026-03-01T00:00").Want(http.StatusOK)
	a.ann.Post(page+"/on", on.Form("send", "yes")).Want(http.StatusSeeOther)
	if body := a.ann.Get(page).Want(http.StatusOK).Body; strings.Contains(body, reason) {
		t.Error("the page still shows the address as off")
	}
	want(t, "addresses that are on", h.count(`SELECT count(*) FROM webhooks WHERE id = $1 AND enabled`, h.ID("erp_hook")), 1)
}

// wantEditPage checks that a change on a work order page sends the event of a call, and is
// in the log under the person's name.
func wantEditPage(t *testing.T, h *harness) {
	a := h.openApp(t)
	id := h.workOrder(nil)
	h.forgetDeliveries()
	page := "/console/work-orders/" + id
	a.send(page+"/edit", page+"/edit", "title", "Changed on the page").Want(http.StatusSeeOther)
	h.wantEvents(id, "work_order.updated")
	want(t, "the title", h.read(id).Text("title"), "Changed on the page")
	h.wantLoggedOnPage(t, id, "work_order.updated")
}

// wantAnswersPage checks the same of answers that complete the work.
func wantAnswersPage(t *testing.T, h *harness) {
	a := h.openApp(t)
	id := h.workOrder(object{"assignees": h.ids("erp", "ann"), "form_id": h.ID("inspection")})
	h.forgetDeliveries()
	page := "/console/work-orders/" + id
	a.send(page+"/answers", page+"/answers", h.ID("q_note"), "Done").Want(http.StatusSeeOther)
	h.wantEvents(id, "work_order.status_changed")
	h.wantStatus(id, models.StatusInProgress)
	h.wantLoggedOnPage(t, id, "work_order.answered")
}

// wantLoggedOnPage checks that Ann's change is in the work order's history and in the log.
func (h *harness) wantLoggedOnPage(t *testing.T, id, action string) {
	t.Helper()
	for _, table := range []string{"history", "log_records"} {
		want(t, "entries of "+table, h.count(`SELECT count(*) FROM `+table+` WHERE record_id = $1 AND action = $2 AND actor_id = $3`, id, action, h.ID("ann")), 1)
	}
}
