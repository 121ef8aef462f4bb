package console_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
	"millwright/webhook"
)

// demoJobs are work orders of a day at the demo's campus: a node's key, what is to be done,
// and how urgent it is.
var demoJobs = []struct {
	node, title string
	priority    models.Priority
}{
	{"acute_tower_ahu_01", "Replace the supply filters", models.PriorityHigh},
	{"acute_tower_lft_01", "Door operator closes too slowly", models.PriorityMedium},
	{"acute_tower_gen_01", "Monthly test run of the standby generator", models.PriorityMedium},
	{"acute_tower_ups_01", "Battery string reports a weak block", models.PriorityHigh},
	{"acute_tower_020", "Lamp over the MRI console flickers", models.PriorityLow},
	{"acute_tower_chl_01", "Compressor 2 trips on high pressure", models.PriorityHigh},
	{"acute_tower_fap_01", "Loop 7 shows an earth fault", models.PriorityHigh},
	{"acute_tower_310", "Radiator in room 12 stays cold", models.PriorityMedium},
	{"acute_tower_cwp_02", "Mechanical seal drips", models.PriorityMedium},
	{"acute_tower_msb_01", "Thermography of the incoming breaker", models.PriorityLow},
	{"acute_tower_ahu_02", "Humidifier cylinder is due", models.PriorityMedium},
	{"acute_tower_120", "Nurse call in bay 4 does not reset", models.PriorityHigh},
}

// newDemoSite is a site with the organizations of demo/ after a day of work: one address
// works but for two hours of its receiver's maintenance, one fails, one is off.
func newDemoSite(t *testing.T) *consoletest.Site {
	t.Helper()
	s := consoletest.NewSite(t, withExamples, func(o *console.Options) {
		o.WorkflowsURL = "http://127.0.0.1:8233/namespaces/default/workflows"
	})
	began := time.Now().UTC().Truncate(time.Hour).Add(-25 * time.Hour)
	s.Clock.Advance(began.Sub(s.Clock.Now()))
	ctx := t.Context()
	for _, file := range []string{"service-company.yaml", "campus.yaml"} {
		content, err := os.ReadFile("../demo/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if s.Acme, err = s.Import(ctx, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetPassword(ctx, service.Operator(), s.ID("margaret_ellison"), consoletest.Password); err != nil {
		t.Fatal(err)
	}
	s.Exec(`UPDATE people SET password_hash = (SELECT password_hash FROM people WHERE id = $1) WHERE organization_id = $2 AND email < 'h'`, s.ID("margaret_ellison"), s.Acme.OrganizationID)
	margaret := s.Viewer("margaret_ellison")
	erp := "https://erp.northfield.example.com/hooks/maintenance"
	if _, err := s.ChangeWebhook(ctx, margaret, s.ID("erp_hook"), service.WebhookChange{URL: &erp}); err != nil {
		t.Fatal(err)
	}
	for key, address := range map[string]string{"energy": "https://energy.northfield.example.com/events", "rooms": "https://booking.campus.example.com/millwright"} {
		name := map[string]string{"energy": "Energy dashboard", "rooms": "Room booking"}[key]
		made, err := s.CreateIntegration(ctx, margaret, s.Acme.OrganizationID, service.NewIntegration{Name: name, Scopes: []string{"inventory:read", "work_orders:read"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Assign(ctx, margaret, s.ID("hospital"), made.ID, s.ID("reader")); err != nil {
			t.Fatal(err)
		}
		hook, err := s.CreateWebhook(ctx, margaret, made.ID, service.NewWebhook{URL: address, Events: []models.EventType{models.EventWorkOrderCreated, models.EventWorkOrderCancelled}})
		if err != nil {
			t.Fatal(err)
		}
		s.Acme.IDs[key], s.Acme.IDs[key+"_hook"] = made.ID, hook.ID
	}
	workADay(t, s)
	return s
}

// workADay has the ERP create and cancel work orders, and the addresses respond to their events.
func workADay(t *testing.T, s *consoletest.Site) {
	t.Helper()
	respond := func(hook string, latency time.Duration, status int, body, problem string) {
		dispatch(t, s, hook, func(a *service.Attempt) {
			if problem != "" {
				a.Problem = webhook.KindTimeout
			}
			a.Status, a.Latency, a.ResponseBody, a.Error, a.RemoteIP = status, latency, []byte(body), problem, "203.0.113.20"
		})
	}
	erp := s.Actor("erp")
	erp.Name = "ERP"
	// The last hour is quiet.
	for n := 0; s.Clock.Now().Before(time.Now().Add(-75 * time.Minute)); n++ {
		job := demoJobs[n%len(demoJobs)]
		created, err := s.CreateWorkOrder(t.Context(), erp, service.Call{}, service.NewWorkOrder{InventoryID: s.ID(job.node), Title: job.title, Priority: job.priority})
		if err != nil {
			t.Fatal(err)
		}
		if n%9 == 4 {
			s.Clock.Advance(2 * time.Minute)
			if _, err := s.CancelWorkOrder(t.Context(), erp, service.Call{}, created.RecordID, new("Reported twice")); err != nil {
				t.Fatal(err)
			}
		}
		latency := time.Duration(70+n*37%190) * time.Millisecond
		if n >= 10 && n < 13 {
			respond("erp_hook", 3*latency, http.StatusServiceUnavailable, "Down for maintenance until 06:00.\n", "")
		} else {
			respond("erp_hook", latency, http.StatusNoContent, "", "")
		}
		if n < 20 {
			respond("energy_hook", latency/2, http.StatusOK, `{"ok": true}`, "")
		} else {
			respond("energy_hook", 10*time.Second, 0, "", "No response came within 10 seconds.")
		}
		if n < 6 {
			respond("rooms_hook", 2*latency, http.StatusAccepted, "", "")
		} else {
			respond("rooms_hook", latency, http.StatusGone, `{"error": "This hook was removed on Monday."}`, "")
			if _, err := s.TurnOffIfUnsuccessful(t.Context(), s.ID("rooms_hook")); err != nil {
				t.Fatal(err)
			}
		}
		s.Clock.Advance(time.Duration(35+n*13%30) * time.Minute)
	}
	s.Clock.Advance(time.Since(s.Clock.Now()))
	s.Exec(`INSERT INTO rate_counters (subject, window_start, calls) VALUES ($1, date_trunc('minute', $4::timestamptz), 42), ($2, date_trunc('minute', $4::timestamptz), 7), ($3, date_trunc('minute', $4::timestamptz) - interval '3 hours', 12)`,
		s.ID("erp"), s.ID("energy"), s.ID("bms"), s.Clock.Now())
}

// The pages of the demo open. With CONSOLE_DOCS=folder their pictures are kept: docs/console
// has them (make screenshots).
func TestPagesOfTheDemo(t *testing.T) {
	t.Parallel()
	s := newDemoSite(t)
	b := s.Browser(t)
	b.Open("/console/sign-in")
	b.Picture("sign-in", "light", 1280, "")
	b.SignIn("margaret_ellison")
	newest := servicetest.Value[string](s.Fixture, `SELECT id::text FROM all_deliveries WHERE webhook_id = $1 AND status = 'retrying' ORDER BY attempts DESC, seq LIMIT 1`, s.ID("energy_hook"))
	node := s.ID("acute_tower_ahu_01")
	for _, page := range []struct{ name, path, wait string }{
		{"start", "/console", ""}, {"integrations", "/console/integrations", ""},
		{"integration", "/console/integrations/" + s.ID("energy") + "?see=" + node, ""},
		{"webhook", "/console/webhooks/" + s.ID("energy_hook"), ""},
		{"deliveries", "/console/deliveries", "figure.chart svg"},
		{"delivery", "/console/deliveries/" + newest, ""},
		{"latency", "/console/webhooks/" + s.ID("erp_hook") + "/deliveries", "#latencies-title"},
		{"inventory", "/console/inventory?open=" + s.ID("acute_tower"), ""}, {"node", "/console/inventory/" + node + "?tab=assignees", ""}, {"label", "/console/inventory/" + node + "/label", ""},
		{"people", "/console/people", ""}, {"person", "/console/people/" + s.ID("david_pryce"), ""}, {"log", "/console/log", ""}, {"notices", "/console/notices", ""}, {"account", "/console/account", ""},
	} {
		b.Open(page.path)
		b.WantPath(strings.Split(page.path, "?")[0])
		b.Picture(page.name, "light", 1280, page.wait)
		switch page.name {
		case "start", "integrations", "integration", "webhook", "deliveries", "delivery":
			b.Picture(page.name, "dark", 1280, page.wait)
		}
		switch page.name {
		case "start", "deliveries":
			b.Picture(page.name, "light", 390, page.wait)
		}
	}
	// The widest table has columns of whole words, and the page does not scroll sideways.
	b.Open("/console/deliveries")
	b.CheckWidths(640, 700, 768, 900, 1024, 1259, 1260)
}
