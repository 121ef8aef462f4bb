package console_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// demoNow is when the pages of the demo are seen: a Wednesday morning.
var demoNow = demoTime(18, 9, 20)

// demoTime returns a time of March 2026.
func demoTime(day, hour, minute int) time.Time {
	return time.Date(2026, time.March, day, hour, minute, 0, 0, time.UTC)
}

// demoURL is the demo's public URL, for links and QR codes.
const demoURL = "https://maintenance.northfield.example.com"

// demo is a site with the organizations of demo/ and what happened there.
type demo struct {
	*consoletest.Site
	t     *testing.T
	steps []demoStep
	// names are the names of integrations by their keys.
	names map[string]string
}

// demoStep is something that happens at a time.
type demoStep struct {
	at time.Time
	do func()
}

// sameRandom returns the same bytes each time that the test runs.
type sameRandom struct {
	mu     sync.Mutex
	source *rand.ChaCha8
}

func (r *sameRandom) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}

// newDemo returns the demo at demoNow, after two weeks of work: one address works but for two
// hours of its receiver's maintenance, one fails, one is off. All of it is the same each time.
func newDemo(t *testing.T) *demo {
	t.Helper()
	fixture := servicetest.New(t, func(o *store.Options) { o.Random = &sameRandom{source: rand.NewChaCha8([32]byte{})} })
	site := consoletest.On(t, fixture, func(o *console.Options) {
		o.PublicURL, o.WorkflowsURL = demoURL, "http://127.0.0.1:8233/namespaces/default/workflows"
	})
	d := &demo{Site: site, t: t, names: map[string]string{"erp": "ERP", "bms": "Building management system"}}
	var err error
	if d.Polar, err = d.Imports.Run(t.Context(), readDemo(t, "service-company.yaml")); err == nil {
		d.Acme, err = d.Imports.Run(t.Context(), readDemo(t, "campus.yaml"))
	}
	if err == nil {
		err = d.People.SetPassword(t.Context(), store.Operator(), d.ID("margaret_ellison"), consoletest.Password)
	}
	d.check(err)
	d.Acme.IDs["polar-lifts"] = d.Polar.OrganizationID
	d.Exec(`UPDATE people SET time_zone = 'Europe/London',
		password_hash = CASE WHEN email < 'h' OR email > 'kar' THEN (SELECT password_hash FROM people WHERE id = $1) END
		WHERE organization_id = $2`, d.ID("margaret_ellison"), d.Acme.OrganizationID)
	erp := "https://erp.northfield.example.com/hooks/maintenance"
	_, err = d.Webhooks.ChangeWebhook(t.Context(), d.Viewer("margaret_ellison"), store.NoKey, d.ID("erp_hook"), webhooks.WebhookChange{URL: &erp})
	d.check(err)
	d.Exec(`SELECT partitions.make($1, 31)`, servicetest.Start)
	d.planRoutine()
	d.planStories()
	d.planFeedback()
	d.planReports(demoNow.Add(-25 * time.Hour))
	d.live()
	return d
}

func readDemo(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile("../demo/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (d *demo) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// at plans a step.
func (d *demo) at(when time.Time, do func()) { d.steps = append(d.steps, demoStep{when, do}) }

// live takes the planned steps, at their times, and ends at demoNow.
func (d *demo) live() {
	slices.SortStableFunc(d.steps, func(a, b demoStep) int { return a.at.Compare(b.at) })
	for _, step := range d.steps {
		d.Clock.Advance(step.at.Sub(d.Clock.Now()))
		step.do()
	}
	d.Clock.Advance(demoNow.Sub(d.Clock.Now()))
	d.retry()
	d.Exec(`INSERT INTO rate_counters (subject, window_start, calls) VALUES ($1, date_trunc('minute', $4::timestamptz), 42), ($2, date_trunc('minute', $4::timestamptz), 7), ($3, date_trunc('minute', $4::timestamptz) - interval '3 hours', 12)`,
		d.ID("erp"), d.ID("energy"), d.ID("bms"), demoNow)
	d.Exec(`INSERT INTO webhook_tests (event_id, webhook_id, begun_at, started_at, latency_ms, status, response_body) VALUES ('evt_01kjq7k69re00b2a00av14smbj', $1, $2, $2, 84, 200, 'Received, thank you.')`,
		d.ID("erp_hook"), demoNow.Add(-6*time.Minute))
}

// retry makes more attempts, as the delivery workflows do: deliveries to the ERP succeed
// after its maintenance, and the oldest one to the energy dashboard fails again. The ids of such
// deliveries, which Postgres makes, become the same each time.
func (d *demo) retry() {
	d.t.Helper()
	d.Exec(`UPDATE attempts a SET delivery_id = 'dlv_' || substr(o.event_id, 5) FROM open_deliveries o WHERE a.delivery_id = o.id AND o.status = 'retrying'`)
	d.Exec(`UPDATE open_deliveries SET id = 'dlv_' || substr(event_id, 5) WHERE status = 'retrying'`)
	d.Exec(`WITH tried AS (UPDATE open_deliveries SET attempts = 2, last_status = 204, last_error = NULL WHERE webhook_id = $1 AND status = 'retrying' RETURNING id)
		INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, remote_ip)
		SELECT a.delivery_id, 2, a.started_at + interval '2 hours', 91, 204, a.remote_ip FROM attempts a JOIN tried ON tried.id = a.delivery_id`, d.ID("erp_hook"))
	d.SetDeliveries(models.DeliveryDelivered, `webhook_id = $1 AND status = 'retrying'`, d.ID("erp_hook"))
	d.Exec(`UPDATE open_deliveries SET next_attempt_at = $1 WHERE status = 'retrying'`, demoNow.Add(25*time.Minute))
	d.Acme.IDs["retried"] = servicetest.Value[string](d.Fixture, `SELECT id::text FROM open_deliveries WHERE webhook_id = $1 AND status = 'retrying' ORDER BY id LIMIT 1`, d.ID("energy_hook"))
	next := servicetest.Value[time.Time](d.Fixture, `SELECT started_at FROM attempts WHERE delivery_id = $1`, d.ID("retried"))
	for attempt := 2; ; attempt++ {
		wait, _ := models.DefaultRetrySchedule.After(attempt - 1)
		if next = next.Add(wait); next.After(demoNow) {
			d.Exec(`UPDATE open_deliveries SET attempts = $2, next_attempt_at = $3 WHERE id = $1`, d.ID("retried"), attempt-1, next)
			return
		}
		d.Exec(`INSERT INTO attempts (delivery_id, number, started_at, latency_ms, error, remote_ip)
			SELECT delivery_id, $2, $3, latency_ms, error, remote_ip FROM attempts WHERE delivery_id = $1 AND number = 1`, d.ID("retried"), attempt, next)
	}
}

// actor returns a person or an integration.
func (d *demo) actor(key string) store.Actor {
	if name := d.names[key]; name != "" {
		actor := d.Actor(key)
		actor.Name = name
		return actor
	}
	return d.Viewer(key)
}

// ids returns the ids of keys.
func (d *demo) ids(keys []string) []string {
	var ids []string
	for _, key := range keys {
		ids = append(ids, d.ID(key))
	}
	return ids
}

// demoWork is a work order, with the keys of its node, form and people. Its own key is name.
type demoWork struct {
	name, creator, node, title, text, form, externalID string
	priority                                           models.Priority
	due                                                time.Time
	workers, consultants                               []string
}

func (d *demo) create(w demoWork) (id string) {
	d.t.Helper()
	in := records.NewWorkOrder{InventoryID: d.ID(w.node), Title: w.title, Priority: w.priority, Assignees: d.ids(w.workers), Consultants: d.ids(w.consultants)}
	if in.Priority == "" {
		in.Priority = models.PriorityNone
	}
	for text, to := range map[*string]**string{&w.text: &in.Description, &w.externalID: &in.ExternalID} {
		if *text != "" {
			*to = text
		}
	}
	if w.form != "" {
		in.FormID = new(d.ID(w.form))
	}
	if !w.due.IsZero() {
		in.TargetDate = new(models.TimeOf(w.due))
	}
	created, err := d.Records.CreateWorkOrder(d.t.Context(), d.actor(w.creator), store.NoKey, in)
	d.check(err)
	if w.name != "" {
		d.Acme.IDs[w.name] = created.RecordID
	}
	return created.RecordID
}

// complete completes a work order, or sends it to review.
func (d *demo) complete(person, id string) {
	d.t.Helper()
	d.answer(person, id, records.CompleteWork)
}

func (d *demo) answer(person, id string, then records.Completion, answers ...records.GivenAnswer) {
	d.t.Helper()
	_, err := d.Records.AnswerWorkOrder(d.t.Context(), d.Viewer(person), store.NoKey, id, answers, then)
	d.check(err)
}

// chosen is the answer to a question with options.
func (d *demo) chosen(question string, options ...string) records.GivenAnswer {
	if len(options) == 1 && question != "ahu_checked_parts" {
		return records.GivenAnswer{QuestionID: d.ID(question), Value: d.ID(options[0])}
	}
	var several []any
	for _, id := range d.ids(options) {
		several = append(several, id)
	}
	return records.GivenAnswer{QuestionID: d.ID(question), Value: several}
}

// entered is the answer to a question for a number.
func (d *demo) entered(question, number string) records.GivenAnswer {
	return records.GivenAnswer{QuestionID: d.ID(question), Value: json.Number(number)}
}

// integrate adds an integration that reads the hospital's work orders, with an address.
func (d *demo) integrate(key, name, address string) {
	d.t.Helper()
	ctx, margaret := d.t.Context(), d.Viewer("margaret_ellison")
	made, err := d.Integrations.CreateIntegration(ctx, margaret, store.NoKey, d.Acme.OrganizationID, integrations.NewIntegration{Name: name, Scopes: []string{"inventory:read", "work_orders:read"}})
	d.check(err)
	d.check(d.Inventory.Assign(ctx, margaret, store.NoKey, d.ID("hospital"), made.ID, d.ID("reader")))
	hook, err := d.Webhooks.CreateWebhook(ctx, margaret, store.NoKey, made.ID, webhooks.NewWebhook{URL: address, Events: []models.EventType{models.EventWorkOrderCreated, models.EventWorkOrderCancelled}})
	d.check(err)
	d.Acme.IDs[key], d.Acme.IDs[key+"_hook"] = made.ID, hook.ID
}

// deliver delivers what an address waits for, and the address responds. problem is why it does not.
func (d *demo) deliver(hook string, latency time.Duration, status int, body, problem string) {
	d.t.Helper()
	dispatch(d.t, d.Site, hook, func(a *webhooks.Attempt) {
		if problem != "" {
			a.Problem = webhook.KindTimeout
		}
		a.Status, a.Latency, a.ResponseBody, a.Error, a.RemoteIP = status, latency, []byte(body), problem, "203.0.113.20"
	})
}

func (d *demo) deliverToERP() {
	d.deliver("erp_hook", 84*time.Millisecond, http.StatusNoContent, "", "")
}

// deliverReport delivers the events of the n-th report of the last day.
func (d *demo) deliverReport(n int) {
	latency := time.Duration(70+n*37%190) * time.Millisecond
	if n >= 10 && n < 12 {
		d.deliver("erp_hook", 3*latency, http.StatusServiceUnavailable, "Down for maintenance until 20:00.\n", "")
	} else {
		d.deliver("erp_hook", latency, http.StatusNoContent, "", "")
	}
	if n < 13 {
		d.deliver("energy_hook", latency/2, http.StatusOK, `{"ok": true}`, "")
	} else {
		d.deliver("energy_hook", 10*time.Second, 0, "", "No response came within 10 seconds.")
	}
	if n < 6 {
		d.deliver("rooms_hook", 2*latency, http.StatusAccepted, "", "")
		return
	}
	d.deliver("rooms_hook", latency, http.StatusGone, `{"error": "This hook was removed on Monday."}`, "")
	d.Exec(`UPDATE webhook_health SET failed_at = 'infinity' WHERE webhook_id = $1`, d.ID("rooms_hook"))
	_, err := d.Webhooks.TurnOffIfUnsuccessful(d.t.Context(), d.ID("rooms_hook"))
	d.check(err)
}
