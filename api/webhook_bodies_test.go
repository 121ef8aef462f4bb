package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// TestDeliveriesMatchTheDocument causes every type of event and checks each body
// against the document's schema of the type.
func TestDeliveriesMatchTheDocument(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	person := func(key string) store.Actor {
		t.Helper()
		actor, err := s.Access.PersonActor(t.Context(), s.ID(key))
		if err != nil {
			t.Fatal(err)
		}
		return actor
	}
	create := func(more map[string]any) string {
		t.Helper()
		body := map[string]any{"inventory_id": s.ID("ahu1"), "title": "Replace filter"}
		maps.Copy(body, more)
		return s.As("erp", http.MethodPost, "/work-orders", body).Want(http.StatusCreated, "").Text("id")
	}
	whole := create(map[string]any{
		"description": "The one on the left.", "priority": "high", "target_date": "2026-04-01T08:00:00Z",
		"external_id": "erp-1", "assignees": []string{s.ID("erp"), s.ID("bob")}, "consultants": []string{s.ID("cat")},
	})
	s.As("erp", http.MethodPatch, "/work-orders/"+whole, map[string]any{"title": "Replace both filters", "description": nil, "external_id": "erp-2"}).Want(http.StatusOK, "")
	s.As("erp", http.MethodPost, "/work-orders/"+whole+"/assignees", map[string]any{"assignees": []string{s.ID("crew")}}).Want(http.StatusOK, "")
	s.As("erp", http.MethodPost, "/work-orders/"+whole+"/answers", map[string]any{"answers": []any{}, "complete": true}).Want(http.StatusOK, "")
	if _, err := s.Records.ReviewWorkOrder(t.Context(), person("cat"), store.NoKey, whole, records.Review{Approve: true}); err != nil {
		t.Fatal(err)
	}
	cancelled := create(nil)
	s.As("erp", http.MethodPost, "/work-orders/"+cancelled+"/cancel", map[string]any{"reason": "Not needed"}).Want(http.StatusOK, "")
	issue := s.As("erp", http.MethodPost, "/issues", map[string]any{"inventory_id": s.ID("ahu1"), "subject": "Noise"}).
		Want(http.StatusCreated, "").Text("id")
	if _, err := s.Records.ResolveFeedback(t.Context(), person("ann"), store.NoKey, issue); err != nil {
		t.Fatal(err)
	}

	claimed := servicetest.ClaimAll(t, s.Fixture, "erp_hook")
	var examples []webhooks.RenderedDelivery
	for _, hook := range []string{"erp_hook", "reader_hook"} { // with people and without
		for _, kind := range models.AllEventTypes {
			s.Clock.Advance(time.Minute) // an address gets ten tests in a minute
			_, example, err := s.Webhooks.TestWebhook(t.Context(), s.ID(hook), kind, "")
			if err != nil {
				t.Fatal(err)
			}
			examples = append(examples, example)
		}
	}
	seen := map[models.EventType]int{}
	for _, h := range claimed {
		seen[h.EventType]++
	}
	seen[models.EventPing] = 1 // only ever a test
	for _, h := range append(claimed, examples...) {
		if err := apitest.CheckDelivery(h.Body); err != nil {
			t.Errorf("%s: %v\n%s", h.EventType, err, h.Body)
		}
		var body struct {
			ID, Type string
			Test     *bool
		}
		if err := json.Unmarshal(h.Body, &body); err != nil || body.ID != h.EventID || body.Type != string(h.EventType) {
			t.Errorf("%s is called %+v in its body (%v)", h.EventType, body, err)
		}
		if test := body.Test != nil && *body.Test; test != (h.DeliveryID == "") || body.Test != nil && !test {
			t.Errorf("a test must have test, and nothing else may: %s", h.Body)
		}
	}
	if missing := slices.DeleteFunc(slices.Clone(models.AllEventTypes), func(e models.EventType) bool { return seen[e] > 0 }); len(missing) > 0 {
		t.Errorf("%v did not happen; seen: %v", missing, seen)
	}
}
