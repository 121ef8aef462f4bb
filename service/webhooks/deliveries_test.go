package webhooks_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

func TestDeliveriesAreListedNewestFirst(t *testing.T) {
	f := servicetest.New(t)
	var ids []string
	for range 5 {
		id := servicetest.Create(t, f) // for the ERP and the reader
		ids = append(ids, servicetest.DeliveryOf(f, "erp_hook", id), servicetest.DeliveryOf(f, "reader_hook", id))
		f.Clock.Advance(time.Second)
	}
	claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
	fails(t, f, "erp_hook", claimed[1])
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, claimed[2], 0))
	ids = servicetest.Value[[]string](f, `SELECT array_agg(id::text ORDER BY id DESC) FROM all_deliveries WHERE id = ANY ($1)`, ids)

	list := func(filter webhooks.DeliveryFilter) []string {
		t.Helper()
		all, err := f.Webhooks.Deliveries(t.Context(), filter)
		servicetest.Must(t, err)
		return servicetest.Each(all, func(d webhooks.DeliveryView) string { return d.ID })
	}
	if got := list(webhooks.DeliveryFilter{}); !slices.Equal(got, ids) {
		t.Errorf("the list is\n%v, want\n%v", got, ids)
	}
	first := list(webhooks.DeliveryFilter{Limit: 4})
	rest := list(webhooks.DeliveryFilter{Before: first[3]})
	if got := slices.Concat(first, rest); len(first) != 4 || !slices.Equal(got, ids) {
		t.Errorf("two pages are\n%v, want\n%v", got, ids)
	}
	for name, test := range map[string]struct {
		filter webhooks.DeliveryFilter
		want   int
	}{
		"of an address":                   {webhooks.DeliveryFilter{WebhookID: f.ID("reader_hook")}, 5},
		"failed":                          {webhooks.DeliveryFilter{Statuses: []models.DeliveryStatus{models.DeliveryFailed}}, 1},
		"failed or retrying":              {webhooks.DeliveryFilter{Statuses: []models.DeliveryStatus{models.DeliveryFailed, models.DeliveryRetrying}}, 2},
		"failed of an address that works": {webhooks.DeliveryFilter{WebhookID: f.ID("reader_hook"), Statuses: []models.DeliveryStatus{models.DeliveryFailed}}, 0},
	} {
		if got := list(test.filter); len(got) != test.want {
			t.Errorf("%s: %d deliveries, want %d", name, len(got), test.want)
		}
	}
	for name, test := range map[string]struct {
		filter webhooks.DeliveryFilter
		code   models.Code
	}{
		"no such status":    {webhooks.DeliveryFilter{Statuses: []models.DeliveryStatus{"lost'"}}, models.CodeInvalidRequest},
		"less than nothing": {webhooks.DeliveryFilter{Limit: -1}, models.CodeInvalidRequest},
		"no such address":   {webhooks.DeliveryFilter{WebhookID: "whk_00000000000000000000000000"}, models.CodeNotFound},
	} {
		servicetest.WantCode(t, name, servicetest.ErrorOf(f.Webhooks.Deliveries(t.Context(), test.filter)), test.code)
	}
	f.Exec(`UPDATE integrations SET deleted_at = now() WHERE id = $1`, f.ID("reader"))
	if got := list(webhooks.DeliveryFilter{}); len(got) != 5 {
		t.Errorf("with a deleted integration, the list has %d deliveries, want 5", len(got))
	}
	_, err := f.Webhooks.Deliveries(t.Context(), webhooks.DeliveryFilter{WebhookID: f.ID("reader_hook")})
	servicetest.WantCode(t, "an address of a deleted integration", err, models.CodeNotFound)
}

func TestADeliveryShowsItsAttempts(t *testing.T) {
	f := servicetest.New(t)
	d := servicetest.NewDelivery(t, f)
	long := strings.Repeat("é", 2048)
	bodies := [][]byte{nil, []byte("try\nlater"), {0xff, 0xfe}, []byte("x" + long)[:4096], []byte("cut \xc3"), []byte(strings.Repeat("x", 4095) + "\xff")}
	for _, body := range bodies {
		a := servicetest.Attempt(f, d, 503)
		if body == nil {
			a = servicetest.Attempt(f, d, 0)
			a.Problem = webhook.KindTimeout
		} else {
			a.RemoteIP = "127.0.0.1"
		}
		a.ResponseBody = body
		servicetest.Record(t, f, "erp_hook", a)
		d.Attempts++
	}
	state := servicetest.LoadDelivery(t, f, d.DeliveryID)
	servicetest.Expect(t, "the class of the first error", state.Made[0].Result, "timeout")
	shown, err := f.Webhooks.DeliveryWithAttempts(t.Context(), d.DeliveryID)
	servicetest.Must(t, err)
	line, err := json.Marshal(shown)
	servicetest.Must(t, err)
	const start = `"started_at":"2026-03-02T12:15:30.000Z","latency_ms":12`
	const from = `"error":null,"remote_ip":"127.0.0.1"`
	want := fmt.Sprintf(`{"id":%q,"event_id":%q,"event_type":"work_order.created","webhook_id":%q,"status":"retrying","attempts":6,`+
		`"next_attempt_at":%q,"last_status":503,"last_error":null,"created_at":"2026-03-02T12:15:30.000Z","attempts_made":[`,
		d.DeliveryID, d.EventID, f.ID("erp_hook"), state.NextAttemptAt) +
		`{"number":1,` + start + `,"status":null,"error":"The connection was refused.","remote_ip":null,"response_body":null,"response_body_base64":false},` +
		`{"number":2,` + start + `,"status":503,` + from + `,"response_body":"try\nlater","response_body_base64":false},` +
		`{"number":3,` + start + `,"status":503,` + from + `,"response_body":"//4=","response_body_base64":true},` +
		`{"number":4,` + start + `,"status":503,` + from + `,"response_body":"x` + long[:4094] + `","response_body_base64":false},` +
		`{"number":5,` + start + `,"status":503,` + from + `,"response_body":"Y3V0IMM=","response_body_base64":true},` +
		`{"number":6,` + start + `,"status":503,` + from + `,"response_body":"` + base64.StdEncoding.EncodeToString(bodies[5]) + `","response_body_base64":true}]}`
	if !bytes.Equal(line, []byte(want)) {
		t.Errorf("it is\n%s, want\n%s", line, want)
	}

	_, err = f.Webhooks.DeliveryWithAttempts(t.Context(), "dlv_00000000000000000000000000")
	servicetest.WantCode(t, "no such delivery", err, models.CodeNotFound)
	f.Exec(`UPDATE integrations SET deleted_at = now() WHERE id = $1`, f.ID("erp"))
	_, err = f.Webhooks.DeliveryWithAttempts(t.Context(), d.DeliveryID)
	servicetest.WantCode(t, "a deleted integration", err, models.CodeNotFound)
}

func TestDeliveriesOfAnyStatusCanBeRedelivered(t *testing.T) {
	f := servicetest.New(t)
	for range 6 {
		servicetest.Create(t, f)
		f.Clock.Advance(time.Millisecond)
	}
	claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
	fails(t, f, "erp_hook", claimed[0])
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, claimed[1], 500), servicetest.Attempt(f, claimed[2], 204))
	f.Exec(`UPDATE open_deliveries SET queued_at = queued_at - interval '1 hour' WHERE id = $1`, claimed[3].DeliveryID)
	f.Exec(`UPDATE webhooks SET held_before = $2 WHERE id = $1`, f.ID("erp_hook"), servicetest.Start.Add(-time.Minute))
	f.SetDeliveries(models.DeliverySkipped, `id = $1`, claimed[4].DeliveryID)
	for n, was := range []models.DeliveryStatus{
		models.DeliveryFailed, models.DeliveryRetrying, models.DeliveryDelivered, models.DeliveryHeld, models.DeliverySkipped, models.DeliveryPending,
	} {
		id := claimed[n].DeliveryID
		if got := servicetest.Status(t, f, id); got != was {
			t.Fatalf("delivery %d is %s, want %s", n+1, got, was)
		}
		f.Wakes.Take()
		before := len(logged(f))
		now, err := f.Webhooks.RedeliverDelivery(t.Context(), store.Operator(), store.NoKey, id)
		if err != nil || now.ID != id || now.Status != models.DeliveryPending || now.NextAttemptAt != nil {
			t.Errorf("%s: after redelivery it is %+v, %v", was, now, err)
		}
		if !servicetest.Value[bool](f, `SELECT attempts_before = attempts FROM all_deliveries WHERE id = $1`, id) {
			t.Errorf("%s: it does not have the whole schedule before it", was)
		}
		work, lines := f.Wakes.Take(), len(logged(f))-before
		want := []store.WakeTarget{{Kind: store.TargetWebhook, ID: f.ID("erp_hook")}}
		if was == models.DeliveryPending {
			want = nil // nothing happened
		}
		if !slices.Equal(work, want) || lines != min(1, len(want)) {
			t.Errorf("%s: woken are %v, with %d Log Records", was, work, lines)
		}
	}
	again := servicetest.Claim(t, f, "erp_hook").Deliveries
	if !slices.EqualFunc(again, claimed, func(a, b webhooks.RenderedDelivery) bool { return a.DeliveryID == b.DeliveryID }) {
		t.Errorf("they are sent in the order %v, want %v", again, claimed)
	}
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, again[0], 500))
	state := servicetest.LoadDelivery(t, f, again[0].DeliveryID)
	if state.Status != models.DeliveryRetrying || state.Attempts != 9 || state.NextAttemptAt.Sub(f.Clock.Now()) != time.Minute {
		t.Errorf("after its ninth attempt it is %+v, want another attempt in a minute", state)
	}
}

func TestRedeliverSinceAnEvent(t *testing.T) {
	f := servicetest.New(t)
	for range 4 {
		servicetest.Create(t, f)
		f.Clock.Advance(time.Minute)
	}
	claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
	for _, d := range claimed[:3] {
		fails(t, f, "erp_hook", d)
	}
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, claimed[3], 500)) // still retrying
	f.SetDeliveries(models.DeliveryFailed, `webhook_id = $1`, f.ID("reader_hook"))
	f.Wakes.Take()
	since := models.TimeOf(servicetest.Start.Add(time.Minute)) // the time of the second event
	for _, want := range []int{3, 0} {
		n, err := f.Webhooks.RedeliverSince(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), since)
		if err != nil || n.Due != want || n.Expired != 0 {
			t.Errorf("%+v are redelivered, %v; want %d", n, err, want)
		}
	}
	if work := f.Wakes.Take(); len(work) != 1 || work[0].ID != f.ID("erp_hook") {
		t.Errorf("woken are %v", work)
	}
	for n, want := range []models.DeliveryStatus{models.DeliveryFailed, models.DeliveryPending, models.DeliveryPending, models.DeliveryPending} {
		servicetest.Expect(t, fmt.Sprint("delivery ", n+1), servicetest.Status(t, f, claimed[n].DeliveryID), want)
	}
	servicetest.Expect(t, "released deliveries of another address",
		servicetest.WithStatus(f, "reader_hook", models.DeliveryPending), 0)
}
