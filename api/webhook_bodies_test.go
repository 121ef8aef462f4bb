package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/webhooks"
)

// The tests of every type of event match the document, as the events themselves do (conformance). Only a test has
// the field test.
func TestDeliveriesMatchTheDocument(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("ahu1"), "title": "Replace filter"}).Want(http.StatusCreated, "")
	sent := servicetest.ClaimAll(t, s.Fixture, "erp_hook")
	want(t, "events", len(sent), 1)
	for _, hook := range []string{"erp_hook", "reader_hook"} { // with people and without
		for _, kind := range models.AllEventTypes {
			s.Clock.Advance(time.Minute) // an address gets ten tests in a minute
			_, example, err := s.Webhooks.TestWebhook(t.Context(), s.ID(hook), kind, "")
			if err != nil {
				t.Fatal(err)
			}
			want(t, "the type", example.EventType, kind)
			sent = append(sent, example)
		}
	}
	for _, d := range sent {
		if err := apitest.CheckDelivery(d.Body); err != nil {
			t.Errorf("%s: %v\n%s", d.EventType, err, d.Body)
		}
		wantTestSaysSo(t, d)
	}
}

func wantTestSaysSo(t *testing.T, d webhooks.RenderedDelivery) {
	t.Helper()
	var body struct {
		ID, Type string
		Test     *bool
	}
	if err := json.Unmarshal(d.Body, &body); err != nil || body.ID != d.EventID || body.Type != string(d.EventType) {
		t.Errorf("%s is called %+v in its body (%v)", d.EventType, body, err)
	}
	if test := body.Test != nil && *body.Test; test != (d.DeliveryID == "") || body.Test != nil && !test {
		t.Errorf("a test must have test, and nothing else may: %s", d.Body)
	}
}
