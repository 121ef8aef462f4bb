package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

var section8 = []rule{
	{item: "access token lifetime", words: "exactly 3600 seconds", code: "service/access.(*Access).IssueToken", alone: true, test: wantTokensExpire},
	{item: "webhook addresses", words: "5 per integration", code: "service/webhooks.FreeSlot", test: wantFiveAddresses},
	{item: "receiver response time", words: "10 seconds by default; the limit ends an attempt", code: "webhook.(*Client).Post", test: wantReceiverTimeout},
	{item: "signature age", words: "at most 5 minutes", code: "webhook.Verify", test: func(t *testing.T, _ *harness) {
		want(t, "the tolerance", webhook.Tolerance, 5*time.Minute)
		wantStale(t, nil)
	}},
	{item: "delivery attempts", words: "8, with waits of 1, 5 and 30 minutes, 2, 6, 12 and 24 hours", code: "models.RetrySchedule.After", alone: true, test: wantSchedule},
	{item: "address turned off", words: "after 3 days without success and a final failure", code: "service/webhooks.(*Webhooks).TurnOffIfUnsuccessful", alone: true, test: wantShutOff},
	{item: "event retention", words: "events are removed after 30 days", code: "service/upkeep.(*Upkeep).RemoveExpired", alone: true, test: wantRetention},
	{item: "plan, calls", words: "the plan sets an integration's calls per minute", code: "service/access.(*Access).admit", test: func(t *testing.T, h *harness) {
		for _, limit := range []int{7, 8} {
			h.limit(t, limit)
			me := h.get("/me")
			want(t, "the header", me.Header.Get("X-RateLimit-Limit"), fmt.Sprint(limit))
			want(t, "GET /me", me.Field("rate_limit", "limit"), any(float64(limit)))
		}
		h.As("reader", http.MethodGet, "/me", nil).Want(http.StatusOK, "")
		want(t, "another integration's remaining", h.As("reader", http.MethodGet, "/me", nil).Header.Get("X-RateLimit-Remaining"), "6")
	}},
	{item: "plan, integrations", words: "the plan limits the number of integrations of an organization", code: "service/integrations.(*Integrations).CreateIntegration, service/integrations.roomForIntegration", test: func(t *testing.T, h *harness) {
		h.changeUntilEnd(t, `UPDATE plans SET integrations = 5 WHERE organization_id = $1`, `UPDATE plans SET integrations = 10 WHERE organization_id = $1`, h.Acme.OrganizationID)
		sixth := integrations.NewIntegration{Name: "Sixth", Scopes: []string{"work_orders:read"}}
		if _, err := h.Integrations.CreateIntegration(t.Context(), h.person("ann"), store.NoKey, h.Acme.OrganizationID, sixth); models.CodeOf(err) != models.CodePlanRestricted {
			t.Errorf("a sixth integration although the plan has five: %v", err)
		}
		h.Exec(`UPDATE plans SET integrations = 50 WHERE organization_id = $1`, h.Acme.OrganizationID)
		h.createIntegration(sixth)
	}},
	{item: "over the limit", words: "429 with Retry-After, and the count in the headers", code: "service/access.Rate.Exceeded", alone: true, test: wantLimited},
}

// wantFiveAddresses adds addresses to a new integration until it has too many.
func wantFiveAddresses(t *testing.T, h *harness) {
	t.Helper()
	integration := h.createIntegration(integrations.NewIntegration{Name: "Hooked", Scopes: []string{"work_orders:read"}}).ID
	add := func(n int) error {
		in := webhooks.NewWebhook{URL: fmt.Sprintf("http://127.0.0.1:9/%d", n), Events: []models.EventType{models.EventPing}}
		_, err := h.Webhooks.CreateWebhook(t.Context(), h.person("ann"), store.NoKey, integration, in)
		return err
	}
	for n := 1; n <= 5; n++ {
		if err := add(n); err != nil {
			t.Errorf("address %d: %v", n, err)
		}
	}
	if err := add(6); err == nil || !strings.Contains(err.Error(), "at most 5") {
		t.Errorf("address 6: %v, want an error with the limit", err)
	}
	want(t, "addresses", h.count(`SELECT count(*) FROM webhooks WHERE integration_id = $1`, integration), 5)
}
