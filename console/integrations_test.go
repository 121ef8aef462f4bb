package console_test

import (
	"crypto/rand"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// managers adds servicetest.Managers, who sign in with Ann's password.
func managers(t *testing.T, s *consoletest.Site) {
	t.Helper()
	servicetest.Managers(t, s.Fixture)
	s.Exec(`UPDATE people SET password_hash = (SELECT password_hash FROM people WHERE id = $1)`, s.ID("ann"))
}

// integrationPages are the pages about an integration and an address: those to read, and
// those that are sent forms.
func integrationPages(integration, address string) (get, post []string) {
	i, h := "/console/integrations/"+integration, "/console/webhooks/"+address
	get = []string{i, i + "?see=" + integration, i + "/secret", i + "/off", i + "/delete", i + "/webhooks/new", i + "/assign", h, h + "/secret", h + "/off", h + "/missed", h + "/delete"}
	post = []string{i, i + "/secret", i + "/end-old-secret", i + "/off", i + "/on", i + "/delete", i + "/webhooks", i + "/assign", i + "/unassign?node=x", h, h + "/secret", h + "/test", h + "/off", h + "/on", h + "/missed", h + "/delete"}
	return get, post
}

// form is one that every page of integrationPages accepts.
func form() url.Values {
	return url.Values{
		"form_key": {rand.Text()}, "name": {"Taken over"}, "scopes": {"people:read"}, "url": {"http://127.0.0.1:9/taken"},
		"events": {"issue.created"}, "since": {"2026-03-01T08:00"}, "send": {"yes"}, "reason": {"No reason"},
	}
}

// state is everything that the pages could change.
func state(s *consoletest.Site) string {
	return servicetest.Value[string](s.Fixture, `
		SELECT (SELECT string_agg(to_jsonb(i)::text, '' ORDER BY id) FROM integrations i) || (SELECT string_agg(to_jsonb(n)::text, '' ORDER BY id) FROM identities n)
			|| (SELECT string_agg(to_jsonb(h)::text, '' ORDER BY id) FROM webhooks h) || (SELECT count(*) FROM webhook_tests) || (SELECT count(*) FROM log)`)
}

func TestIntegrationsTakeTheirPermission(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	managers(t, s)
	before := state(s)
	get, post := integrationPages(s.ID("erp"), s.ID("erp_hook"))
	get, post = append(get, "/console/integrations", "/console/integrations/new"), append(post, "/console/integrations")
	for _, who := range []string{"ray", "bob"} {
		v := s.SignedIn(who)
		for _, path := range get {
			v.Get(path).Want(http.StatusForbidden, "permission, which an administrator")
		}
		for _, path := range post {
			v.Post(path, form()).Want(http.StatusForbidden, "permission")
		}
		if strings.Contains(v.Get("/console").Body, `href="/console/integrations"`) {
			t.Errorf("%s is offered Integrations", who)
		}
	}
	stranger := s.NewVisitor()
	for _, path := range post {
		stranger.Post(path, form()).Want(http.StatusSeeOther)
	}
	if state(s) != before {
		t.Error("something has changed")
	}
	v := s.SignedIn("ivy")
	for _, path := range get {
		v.Get(path).Want(http.StatusOK)
	}
}

// Another organization's ids are the same 404, byte for byte, as unknown ones, and nothing of it changes.
func TestIntegrationsOfOthersAreUnknown(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	before := state(s)
	get, post := integrationPages(s.ID("dispatch"), s.ID("dispatch_hook"))
	unknownGet, unknownPost := integrationPages("idn_01kjq7k69re00b2a00av14smbj", "whk_01kjq7k69re00b2a00av14smbj")
	v := s.SignedIn("ann")
	for i, path := range get {
		want := v.Get(unknownGet[i]).Want(http.StatusNotFound)
		if got := v.Get(path); got.Status != http.StatusNotFound || got.Body != want.Body {
			t.Errorf("%s is %d:\n%s", path, got.Status, got.Body)
		}
	}
	for i, path := range post {
		want := v.Post(unknownPost[i], form()).Want(http.StatusNotFound)
		if got := v.Post(path, form()); got.Status != http.StatusNotFound || got.Body != want.Body {
			t.Errorf("POST %s is %d:\n%s", path, got.Status, got.Body)
		}
	}
	// Records of others are unknown too.
	for _, record := range []string{s.ID("depot"), s.ID("pia"), s.ID("dispatch")} {
		mine, other := v.Get("/console/integrations/"+s.ID("erp")+"?see="+record), v.Get("/console/integrations/"+s.ID("erp")+"?see="+record[:len(record)-1]+"0")
		mine.Want(http.StatusOK, "Your organization has no record with this id.")
		if dropIDs(mine.Body) != dropIDs(other.Body) {
			t.Errorf("%s differs from an unknown id", record)
		}
	}
	if state(s) != before {
		t.Error("something has changed")
	}
}

var anyID = regexp.MustCompile(`[a-z]{2,4}_[0-9a-z]{26}|name="form_key" value="[^"]*"`)

func dropIDs(text string) string { return anyID.ReplaceAllString(text, "") }

// A form that is sent twice acts once, and a secret is shown once.
func TestFormsOfIntegrationsActOnce(t *testing.T) {
	t.Parallel()
	log := &lines{}
	s := consoletest.NewSite(t, func(o *console.Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
	v := s.SignedIn("ann")
	secrets := regexp.MustCompile(`mwsec_[\w-]+|whsec_[\w+/=]+`)
	shownOnce := func(path string, f url.Values, table string) string {
		t.Helper()
		first := v.Post(path, f).Want(http.StatusOK, "This page shows it once")
		if first.Header.Get("Cache-Control") != "no-store" {
			t.Error("the page may be stored")
		}
		secret := secrets.FindString(html.UnescapeString(first.Body))
		count := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM `+table)
		second := v.Post(path, f).Want(http.StatusOK, "cannot be shown again")
		if secret == "" || secrets.MatchString(second.Body) {
			t.Errorf("%s shows %q, then %s", path, secret, second.Body)
		}
		if now := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM `+table); now != count {
			t.Errorf("%s acted twice: %d and %d", path, count, now)
		}
		if strings.Contains(log.String(), secret) {
			t.Error("a secret is in the log")
		}
		return secret
	}
	created := shownOnce("/console/integrations", v.Get("/console/integrations/new").Form("name", "Twice", "scopes", "people:read"), "integrations")
	id := servicetest.Value[string](s.Fixture, `SELECT id FROM identities WHERE name = 'Twice'`)
	page := "/console/integrations/" + id
	renewed := shownOnce(page+"/secret", v.Get(page+"/secret").Want(http.StatusOK, "unless you let it work for a while").Form("overlap", "24"), "log")
	v.Post(page+"/end-old-secret", v.Get(page).Want(http.StatusOK, "The old one works until").Form()).Want(http.StatusSeeOther)
	if body := v.Get(page).Want(http.StatusOK).Body; strings.Contains(body, "The old one works until") {
		t.Error("the old secret has not ended")
	}
	if created == renewed {
		t.Error("renewing leaves the secret as it was")
	}
	first := shownOnce(page+"/webhooks", v.Get(page+"/webhooks/new").Form("url", "http://127.0.0.1:9/x", "events", "issue.created", "events", "issue.resolved"), "webhooks")
	hook := servicetest.Value[string](s.Fixture, `SELECT id FROM webhooks WHERE integration_id = $1`, id)
	address := "/console/webhooks/" + hook
	if second := shownOnce(address+"/secret", v.Get(address+"/secret").Form(), "log"); second == first {
		t.Error("renewing leaves the signing secret as it was")
	}
	v.Get(address).Want(http.StatusOK, "The old secret works until")

	for _, action := range []struct{ ask, path string }{
		{address + "/off", address + "/off"}, {address + "/missed", address + "/on"}, {address, address + "/test"}, {address + "/delete", address + "/delete"},
		{page + "/off", page + "/off"}, {page, page + "/on"}, {page + "/delete", page + "/delete"},
	} {
		f := v.Get(action.ask).Want(http.StatusOK).Form("since", "2026-03-01T08:00")
		f.Del("etag")
		f.Set("since", "2026-03-01T08:00")
		status := http.StatusSeeOther
		if strings.HasSuffix(action.path, "/test") {
			status = http.StatusServiceUnavailable // there is no worker
		}
		v.Post(action.path, f).Want(status)
		count := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM log`)
		if done := v.Post(action.path, f).Want(http.StatusSeeOther).Done(); done != "before" {
			t.Errorf("%s is %q", action.path, done)
		}
		if now := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM log`); now != count {
			t.Errorf("%s acted twice", action.path)
		}
	}
}

// An assignment is removed after its page has stated the effects. Assignments of teams do
// not belong to the integration.
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
	if done := v.Post(ask, f).Want(http.StatusSeeOther).Done(); done != "before" {
		t.Errorf("the form again is %q", done)
	}
	managers(t, s)
	ivy := s.SignedIn("ivy") // may manage integrations, but no node
	ivy.Get(page+"/assign").Want(http.StatusOK, "you manage no place")
	ivy.Post(page+"/assign", url.Values{"node": {"HQ"}, "definition_id": {s.ID("full")}}).Want(http.StatusUnprocessableEntity)
}

// A form that was filled from an older state lists the changes since, and keeps the input.
func TestStaleFormsOfIntegrationsAreRejected(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	managers(t, s)
	v := s.SignedIn("ann")
	page := "/console/integrations/" + s.ID("reader")
	f := v.Get(page).Form("name", "My name", "scopes", "people:read")
	if _, err := s.Integrations.RenameIntegration(t.Context(), s.Viewer("ivy"), s.ID("reader"), "Other name"); err != nil {
		t.Fatal(err)
	}
	stale := v.Post(page, f).Want(http.StatusConflict, "<bdi>Ivy Marsh</bdi> renamed the integration", `value="My name"`)
	f = stale.Form("name", "My name", "scopes", "people:read")
	v.Post(page, f).Want(http.StatusSeeOther)
	v.Get(page).Want(http.StatusOK, "My name", "people:read")

	f = v.Get(page).Form("owners", s.ID("ann"))
	if _, err := s.Integrations.RenameIntegration(t.Context(), s.Viewer("ivy"), s.ID("reader"), "Other name"); err != nil {
		t.Fatal(err)
	}
	stale = v.Post(page+"/owners", f).Want(http.StatusConflict, `value="Other name"`, `name="owners" value="`+s.ID("ann")+`" checked`)
	wantNow(t, stale, "nothing chosen")

	page = "/console/webhooks/" + s.ID("reader_hook")
	s.Exec(`UPDATE integrations SET owners = ARRAY[$1] WHERE id = $2`, s.ID("ivy"), s.ID("reader"))
	f = v.Get(page).Form("url", "http://127.0.0.1:9/mine", "events", "issue.created")
	other := "http://127.0.0.1:9/other"
	if _, err := s.Webhooks.ChangeWebhook(t.Context(), s.Viewer("ivy"), store.NoKey, s.ID("reader_hook"), webhooks.WebhookChange{URL: &other}); err != nil {
		t.Fatal(err)
	}
	stale = v.Post(page, f).Want(http.StatusConflict, "<bdi>Ivy Marsh</bdi> changed the webhook address", `value="http://127.0.0.1:9/mine"`)
	v.Post(page, stale.Form("url", "http://127.0.0.1:9/mine", "events", "issue.created")).Want(http.StatusSeeOther)
	v.Get(page).Want(http.StatusOK, "http://127.0.0.1:9/mine")
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
	if body := v.Get(page).Want(http.StatusOK, "Failing since").Body; strings.Contains(body, "wait until") {
		t.Error("the page shows that deliveries wait")
	}
}

// Missed deliveries since a time are counted, and sent.
func TestMissedDeliveriesAreCountedAndSent(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	s.Exec(`INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
		SELECT 'evt_' || substr($1, 5, 10) || lpad(n::text, 16, '0'), $2, 'work_order.created', 'wo_x', $3, '{}', $4 FROM generate_series(1, 3) n`,
		newDeliveryID(s), s.Acme.OrganizationID, s.ID("ann"), s.Clock.Now())
	s.Exec(`INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, created_at)
		SELECT 'dlv_' || substr(id, 5), id, $1, record_id, 'failed', created_at FROM events`, s.ID("erp_hook"))
	page := "/console/webhooks/" + s.ID("erp_hook")
	v.Get(page).Want(http.StatusOK, "3 deliveries failed or were held")
	v.Get(page+"/missed?since=2026-03-02T13:00").Want(http.StatusOK, "0 deliveries of events since")
	asked := v.Get(page+"/missed?since=2026-03-02T12:00").Want(http.StatusOK, "3 deliveries of events since", "Send 3 deliveries")
	v.Post(page+"/missed", asked.Form()).Want(http.StatusSeeOther)
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM open_deliveries WHERE status = 'pending'`); n != 3 {
		t.Errorf("%d deliveries are pending, want 3", n)
	}
	v.Post(page+"/off", v.Get(page+"/off").Form("reason", strings.Repeat("x", models.MaxOffReason+1))).Want(http.StatusUnprocessableEntity, "at most")
	v.Post(page+"/off", v.Get(page+"/off").Want(http.StatusOK, "3 deliveries that wait now").Form("reason", "Moving house")).Want(http.StatusSeeOther)
	v.Get(page).Want(http.StatusOK, "Moving house", "Turn on")
	asked = v.Get(page+"/missed?since=2026-03-02T12:00").Want(http.StatusOK, "Turn on and send 3 deliveries")
	v.Post(page+"/on", asked.Form("send", "yes")).Want(http.StatusSeeOther)
	v.Get(page).Want(http.StatusOK)
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM open_deliveries WHERE status = 'pending'`); n != 3 {
		t.Errorf("%d deliveries are pending after turning on, want 3", n)
	}
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
	if again := v.Get(page).Want(http.StatusOK); strings.Contains(again.Body, "The integration is off") || strings.Contains(again.Body, "failed or were held") {
		t.Error("the page still shows deliveries as held")
	}
	if n := servicetest.WithStatus(s.Fixture, "erp_hook", models.DeliveryPending); n != 1 {
		t.Errorf("%d deliveries are pending, want the one that was held", n)
	}
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

// newDeliveryID returns an id whose time is now.
func newDeliveryID(s *consoletest.Site) string {
	return servicetest.Value[string](s.Fixture, `SELECT partitions.first_id('dlv', $1)`, s.Clock.Now())
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
