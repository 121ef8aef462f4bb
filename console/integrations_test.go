package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
)

// An old secret works for the time that was chosen, or until someone ends it.
func TestAnOldSecretWorksForAWhile(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	page, address := "/console/integrations/"+s.ID("erp"), "/console/webhooks/"+s.ID("erp_hook")
	v.Post(page+"/secret", v.Get(page+"/secret").Want(http.StatusOK, "unless you let it work for a while").Form("overlap", "24")).Want(http.StatusOK)
	v.Post(page+"/end-old-secret", v.Get(page).Want(http.StatusOK, "The old one works until").Form()).Want(http.StatusSeeOther)
	wantNot(t, v.Get(page).Want(http.StatusOK), "The old one works until")
	v.Post(address+"/secret", v.Get(address+"/secret").Form()).Want(http.StatusOK)
	v.Get(address).Want(http.StatusOK, "The old secret works until")
}

// An assignment is removed after its page has stated the effects.
func TestAnIntegrationIsRemovedFromANode(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	page := "/console/integrations/" + s.ID("erp")
	ask := page + "/unassign?node=" + s.ID("hq")
	v.Get(page).Want(http.StatusOK, "Headquarters", "Remove…")
	f := v.Get(ask).Want(http.StatusOK, "ERP loses the permissions of “Full access” on Headquarters and its contents").Form()
	v.Get(page + "/unassign?node=" + s.ID("annex")).Want(http.StatusNotFound)
	if sent := v.Post(ask, f).Want(http.StatusSeeOther); !strings.HasPrefix(sent.Location(), page) || sent.Done() != "unassigned" {
		t.Errorf("removing redirects to %s with %q", sent.Location(), sent.Done())
	}
	v.Get(page).Want(http.StatusOK, "sees nothing yet: assign it to a place")
	grant(s, "bob", "integrations") // and no node
	s.SignedIn("bob").Get(page+"/assign").Want(http.StatusOK, "you manage no place")
}

// What a person entered wrongly is shown at its field.
func TestFormsOfIntegrationsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	v.Post("/console/integrations", v.Get("/console/integrations/new").Form("name", " ")).
		Want(http.StatusUnprocessableEntity, "Enter a name.", "at least one scope")
	page := "/console/integrations/" + s.ID("reader")
	v.Post(page+"/webhooks", v.Get(page+"/webhooks/new").Form("url", "http://10.0.0.1/", "events", "nothing")).
		Want(http.StatusUnprocessableEntity, `value="http://10.0.0.1/"`, "There is no event type")
	for range 3 {
		v.Post(page+"/webhooks", v.Get(page+"/webhooks/new").Form("url", "http://127.0.0.1:9/", "events", "issue.created")).Want(http.StatusOK)
	}
	v.Get(page+"/webhooks/new").Want(http.StatusOK, "at most 5 addresses")
	v.Get(page+"?see=%3Cb%3E").Want(http.StatusOK, "Nothing that you may read has", "&lt;b&gt;")
	v.Get(page+"?see="+strings.Repeat("0", 26)).Want(http.StatusOK, "Nothing that you may read has")
	v.Get(page+"?see=wo_"+strings.Repeat("0", 26)).Want(http.StatusOK, "no record with this id")
}

// While an address fails, its page shows what waits and until when.
func TestAnAddressThatFailsShowsWhatWaits(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	page := "/console/webhooks/" + s.ID("erp_hook")
	for range 3 {
		servicetest.Create(t, s.Fixture)
	}
	s.SetDeliveries(models.DeliveryRetrying, `webhook_id = $1 AND id <> (SELECT max(id) FROM open_deliveries WHERE webhook_id = $1)`, s.ID("erp_hook"))
	s.Exec(`INSERT INTO webhook_health (webhook_id, failing_since, failures, waits_until) VALUES ($1, $2, 120, $2::timestamptz + interval '40 seconds')`, s.ID("erp_hook"), s.Clock.Now())
	v.Get(page).Want(http.StatusOK, "Failing since", "Pending deliveries wait until one arrives; the oldest is tried", "2 deliveries that failed too wait until others have ended")
	s.Exec(`UPDATE webhook_health SET waits_until = NULL`)
	s.Exec(`UPDATE open_deliveries SET workflow = true`)
	wantNot(t, v.Get(page).Want(http.StatusOK, "Failing since"), "wait until")
}

// Missed deliveries since a time are counted, and sent.
func TestMissedDeliveriesAreCountedAndSent(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	s.Exec(`INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
		SELECT 'evt_' || substr($1, 5, 10) || lpad(n::text, 16, '0'), $2, 'work_order.created', 'wo_x', $3, '{}', $4 FROM generate_series(1, 3) n`,
		servicetest.Value[string](s.Fixture, `SELECT partitions.first_id('dlv', $1)`, s.Clock.Now()), s.Acme.OrganizationID, s.ID("ann"), s.Clock.Now())
	s.Exec(`INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, created_at)
		SELECT 'dlv_' || substr(id, 5), id, $1, record_id, 'failed', created_at FROM events`, s.ID("erp_hook"))
	page := "/console/webhooks/" + s.ID("erp_hook")
	v.Get(page).Want(http.StatusOK, "3 deliveries failed or were held")
	v.Get(page+"/missed?since=2026-03-02T13:00").Want(http.StatusOK, "0 deliveries of events since")
	asked := v.Get(page+"/missed?since=2026-03-02T12:00").Want(http.StatusOK, "3 deliveries of events since", "Send 3 deliveries")
	v.Post(page+"/missed", asked.Form()).Want(http.StatusSeeOther)
	s.WantRows(3, `open_deliveries WHERE status = 'pending'`)
	v.Post(page+"/off", v.Get(page+"/off").Form("reason", strings.Repeat("x", models.MaxOffReason+1))).Want(http.StatusUnprocessableEntity, "at most")
	v.Post(page+"/off", v.Get(page+"/off").Want(http.StatusOK, "3 deliveries that wait now").Form("reason", "Moving house")).Want(http.StatusSeeOther)
	v.Get(page).Want(http.StatusOK, "Moving house", "Turn on")
	asked = v.Get(page+"/missed?since=2026-03-02T12:00").Want(http.StatusOK, "Turn on and send 3 deliveries")
	v.Post(page+"/on", asked.Form("send", "yes")).Want(http.StatusSeeOther)
	v.Get(page).Want(http.StatusOK)
	s.WantRows(3, `open_deliveries WHERE status = 'pending'`)
}

// While the integration is off, the pages give the reason; when it is on again, what was held is due.
func TestDeliveriesThatTheIntegrationHoldsAreDueWhenItIsOnAgain(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	integration, page := "/console/integrations/"+s.ID("erp"), "/console/webhooks/"+s.ID("erp_hook")
	servicetest.Create(t, s.Fixture)
	v.Post(integration+"/off", v.Get(integration+"/off").Want(http.StatusOK, "are held", "they are sent").Form()).Want(http.StatusSeeOther)
	v.Get(integration).Want(http.StatusOK, "Its deliveries are held")
	v.Get(page).Want(http.StatusOK, "The integration is off. Its deliveries are held.", "1 delivery failed or were held")
	v.Get(page+"/deliveries").Want(http.StatusOK, "Deliveries to the address are held: The integration is off.")
	v.Post(integration+"/on", v.Get(integration).Form()).Want(http.StatusSeeOther)
	wantNot(t, v.Get(page).Want(http.StatusOK), "The integration is off", "failed or were held")
}

// A selection leaves expired events out and tells how many.
func TestASelectionTellsHowManyExpiredEventsItLeavesOut(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	id := servicetest.DeliveryOf(s.Fixture, "erp_hook", servicetest.Create(t, s.Fixture))
	s.SetDeliveries(models.DeliveryFailed, `id = $1`, id)
	for name, test := range map[string]struct {
		ids  []string
		want string
	}{
		"one of two": {[]string{id, "dlv_01k00000000000000000000000"}, "Redelivered: it goes out in a moment. 1 delivery was left out"},
		"only one":   {[]string{"dlv_01k00000000000000000000000"}, "Nothing was redelivered. 1 delivery was left out"},
	} {
		at := v.Post("/console/deliveries/redeliver", url.Values{"form_key": {name}, "delivery": test.ids}).Want(http.StatusSeeOther).Location()
		v.Get(at).Want(http.StatusOK, test.want)
	}
}

// The process that serves people does not connect to addresses: neither when one is saved nor
// when a test is sent, which takes a worker.
func TestOnlyWorkersConnectToReceivers(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	var requests atomic.Int64
	r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(r.Close)
	v := s.SignedIn("ann")
	page := "/console/webhooks/" + s.ID("erp_hook")
	change := v.Get(page).Want(http.StatusOK).Form("url", r.URL+"/hook", "events", "work_order.created")
	v.Post(page, change).Want(http.StatusSeeOther)
	v.Post(page+"/test", v.Get(page).Form("type", "work_order.seen")).Want(http.StatusBadRequest, "There is no event type")
	test := v.Get(page).Want(http.StatusOK, r.URL+"/hook").Form("type", "ping")
	v.Post(page+"/test", test).Want(http.StatusServiceUnavailable, "No worker has sent the test in time")
	if n := requests.Load(); n != 0 {
		t.Errorf("the receiver got %d requests", n)
	}
}
