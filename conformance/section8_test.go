package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/service"
	"millwright/service/servicetest"
	"millwright/webhook"
)

var section8 = []rule{
	{item: "access token lifetime", words: "3600 seconds, not one more", alone: true, test: func(t *testing.T, h *harness) {
		want(t, "expires_in", h.token(h.credentials("erp", "")).Field("expires_in"), any(3600.0))
		h.get("/me").Want(http.StatusOK, "")
		h.Clock.Advance(3599 * time.Second)
		h.get("/me").Want(http.StatusOK, "")
		h.Clock.Advance(time.Second)
		h.get("/me").Want(http.StatusUnauthorized, "invalid_token")
	}},
	{item: "webhook addresses", words: "5 an integration", test: func(t *testing.T, h *harness) { wantFiveAddresses(t, h, "hooked_8") }},
	{item: "receiver response time", words: "10 seconds by default, and the limit ends an attempt", test: func(t *testing.T, _ *harness) {
		wantSlowReceiverRefused(t)
	}},
	{item: "signature age", words: "5 minutes, not a second more", test: func(t *testing.T, _ *harness) {
		want(t, "the tolerance", webhook.Tolerance, 5*time.Minute)
		wantStale(t)
	}},
	{item: "delivery attempts", words: "8, at waits of 1, 5 and 30 minutes, 2, 6, 12 and 24 hours", alone: true, test: wantSchedule},
	{item: "address turned off", words: "3 days without success and a final failure", alone: true, test: wantShutOff},
	{item: "event retention", words: "events go after 30 days", alone: true, test: wantRetention},
	{item: "plan, calls", words: "the plan sets an integration's calls a minute", test: func(t *testing.T, h *harness) {
		for _, limit := range []int{7, 8} {
			h.limit(t, limit)
			me := h.get("/me")
			want(t, "the header", me.Header.Get("X-RateLimit-Limit"), fmt.Sprint(limit))
			want(t, "GET /me", me.Field("rate_limit", "limit"), any(float64(limit)))
		}
		h.As("reader", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
		want(t, "another integration's remaining", h.As("reader", http.MethodGet, "/me", nil).Header.Get("X-RateLimit-Remaining"), "6")
	}},
	{item: "plan, integrations", words: "the plan sets how many integrations an organization has", test: func(t *testing.T, h *harness) {
		h.changeUntilEnd(t, `UPDATE plans SET integrations = 5 WHERE organization_id = $1`, `UPDATE plans SET integrations = 10 WHERE organization_id = $1`, h.Acme.OrganizationID)
		_, err := h.Import(t.Context(), []byte(`
organization: {key: acme}
integrations: [{key: sixth, name: Sixth, scopes: []}]
`))
		if err == nil || !strings.Contains(err.Error(), "the plan allows 5 integrations") {
			t.Errorf("a sixth integration where the plan has five: %v", err)
		}
	}},
	{item: "over the limit", words: "one call too many: 429 and Retry-After, with the count in the headers", test: func(t *testing.T, h *harness) {
		h.Token("erp") // asking for it is counted elsewhere
		h.limit(t, 2)
		for _, remaining := range []string{"1", "0"} {
			response := h.get("/me").Want(http.StatusOK, "")
			want(t, "remaining", response.Header.Get("X-RateLimit-Remaining"), remaining)
			want(t, "reset", response.Header.Get("X-RateLimit-Reset"), "30")
		}
		response := h.get("/me").Want(http.StatusTooManyRequests, "rate_limited")
		want(t, "Retry-After", response.Header.Get("Retry-After"), "30")
		want(t, "the limit on a refusal", response.Header.Get("X-RateLimit-Limit"), "2")
	}},
}

// wantFiveAddresses gives a new integration addresses until they are too many.
func wantFiveAddresses(t *testing.T, h *harness, key string) {
	t.Helper()
	add := func(n int) error {
		_, err := h.Import(t.Context(), fmt.Appendf(nil, `
organization: {key: acme}
integrations: [{key: %s, name: Hooked, scopes: ["work_orders:read"], webhooks: [{key: %s_%d, url: "http://127.0.0.1:9/%d", events: [ping]}]}]`, key, key, n, n))
		return err
	}
	for n := 1; n <= 5; n++ {
		if err := add(n); err != nil {
			t.Errorf("address %d: %v", n, err)
		}
	}
	if err := add(6); err == nil || !strings.Contains(err.Error(), "at most 5") {
		t.Errorf("address 6: %v, want it refused with the limit", err)
	}
	want(t, "addresses", h.count(`SELECT count(*) FROM webhooks h JOIN import_keys k ON k.id = h.integration_id WHERE k.key = $1`, key), 5)
}

// wantSchedule has every attempt at a delivery fail and looks when the next is due.
func wantSchedule(t *testing.T, h *harness) {
	d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
	for _, wait := range []time.Duration{
		time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	} {
		h.attempt("erp_hook", d, 500)
		state := h.delivery(d.DeliveryID)
		if state.Status != "retrying" || state.NextAttemptAt == nil {
			t.Fatalf("after attempt %d the delivery is %s", d.Attempts+1, state.Status)
		}
		want(t, fmt.Sprintf("the wait after attempt %d", d.Attempts+1), state.NextAttemptAt.Sub(h.Clock.Now()), wait)
		h.Clock.Advance(wait)
		claim, err := h.ClaimRetry(t.Context(), d.DeliveryID)
		if err != nil || len(claim.Deliveries) != 1 {
			t.Fatalf("claimed %+v, %v", claim, err)
		}
		d = claim.Deliveries[0]
	}
	want(t, "attempts so far", d.Attempts, 7)
	h.attempt("erp_hook", d, 0)
	want(t, "after the eighth", h.delivery(d.DeliveryID).Status, "failed")
}

// wantShutOff lets a delivery fail for good just before and at three days without success.
func wantShutOff(t *testing.T, h *harness) {
	enabled := func() bool {
		return servicetest.Value[bool](h.Fixture, `SELECT enabled FROM webhooks WHERE id = $1`, h.ID("erp_hook"))
	}
	final := func() service.RenderedDelivery {
		d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
		d.Attempts = 7
		return d
	}
	first, early, late, other := final(), final(), final(), final()
	first.Attempts = 0
	h.attempt("erp_hook", first, 200)
	h.Clock.Advance(72*time.Hour - time.Second)
	h.attempt("erp_hook", early, 500)
	want(t, "on a second before three days are over", enabled(), true)
	h.Clock.Advance(time.Second)
	other.Attempts = 3
	h.attempt("erp_hook", other, 500)
	want(t, "on after a failure that is not final", enabled(), true)
	h.attempt("erp_hook", late, 500)
	want(t, "on after a final failure then", enabled(), false)
	reason := servicetest.Value[string](h.Fixture, `SELECT off_reason FROM webhooks WHERE id = $1`, h.ID("erp_hook"))
	want(t, "the reason tells of the days", strings.Contains(reason, "3 days"), true)
}

// wantRetention has housekeeping look at an event a moment before it is 30 days old, and then.
func wantRetention(t *testing.T, h *harness) {
	d := h.pendingDeliveries("erp_hook", h.workOrder(nil))[0]
	h.attempt("erp_hook", d, 500)
	keepHouse := func(what string, left int) {
		t.Helper()
		if _, err := h.RemoveExpired(t.Context(), service.RemovalBatch, func() bool { return true }); err != nil {
			t.Fatal(err)
		}
		want(t, "the event "+what, h.count(`SELECT count(*) FROM events WHERE id = $1`, d.EventID), left)
		want(t, "its delivery "+what, h.count(`SELECT count(*) FROM deliveries WHERE id = $1`, d.DeliveryID), left)
		want(t, "its attempts "+what, h.count(`SELECT count(*) FROM attempts WHERE delivery_id = $1`, d.DeliveryID), left)
	}
	h.Clock.Advance(30*24*time.Hour - time.Millisecond)
	keepHouse("a moment before 30 days are over", 1)
	h.Clock.Advance(time.Millisecond)
	keepHouse("then", 0)
}
