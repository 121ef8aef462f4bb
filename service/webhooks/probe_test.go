package webhooks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
)

// The response to a test is read by those who may test the address, for a day.
func TestResponsesToTests(t *testing.T) {
	f := servicetest.New(t)
	begun, err := f.Webhooks.BeginWebhookTest(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"))
	servicetest.Must(t, err)
	_, err = f.Webhooks.WebhookTest(t.Context(), store.Operator(), f.ID("erp_hook"), begun.EventID)
	servicetest.WantCode(t, "before it was sent", err, models.CodeNotFound)
	a := webhooks.Attempt{
		EventID: begun.EventID, StartedAt: models.TimeOf(f.Clock.Now()), Latency: 12 * time.Millisecond,
		Status: 503, RemoteIP: "192.0.2.1", ResponseBody: []byte("busy"),
	}
	servicetest.Must(t, f.Webhooks.RecordTest(t.Context(), f.ID("erp_hook"), a))
	servicetest.WantCode(t, "of a deleted address", f.Webhooks.RecordTest(t.Context(), "whk_00000000000000000000000000", a), models.CodeNotFound)
	for _, reader := range []store.Actor{store.Operator(), servicetest.Person(t, f, "ann")} {
		got, err := f.Webhooks.WebhookTest(t.Context(), reader, f.ID("erp_hook"), a.EventID)
		if err != nil || got.Failure != "The receiver answered 503." || *got.Status != 503 || got.LatencyMS != 12 || *got.ResponseBody != "busy" || got.EventID != a.EventID {
			t.Errorf("read is %+v, %v", got, err)
		}
	}
	for name, test := range map[string]struct {
		reader  store.Actor
		address string
		code    models.Code
	}{
		"a person without the permission": {servicetest.Person(t, f, "bob"), f.ID("erp_hook"), models.CodePermissionDenied},
		"another organization's person":   {servicetest.Person(t, f, "pia"), f.ID("erp_hook"), models.CodeNotFound},
		"the integration":                 {f.Actor("erp"), f.ID("erp_hook"), models.CodePermissionDenied},
		"another address":                 {store.Operator(), f.ID("reader_hook"), models.CodeNotFound},
	} {
		_, err := f.Webhooks.WebhookTest(t.Context(), test.reader, test.address, a.EventID)
		servicetest.WantCode(t, name, err, test.code)
	}
	f.Clock.Advance(webhooks.TestRetention - time.Second)
	servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
	servicetest.Expect(t, "responses a second before a day",
		servicetest.Value[int](f, `SELECT count(*) FROM webhook_tests`), 1)
	f.Clock.Advance(2 * time.Second)
	servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
	servicetest.Expect(t, "responses after a day", servicetest.Value[int](f, `SELECT count(*) FROM webhook_tests`), 0)
}

// An address gets ten tests in a minute, from the console, commands and Temporal together. Each
// counts when it begins, whether it is sent or not.
func TestTestsOfAnAddressAreLimited(t *testing.T) {
	ann := func(f *servicetest.Fixture) store.Actor { return servicetest.Person(t, f, "ann") }
	for name, test := range map[string]func(f *servicetest.Fixture, hook string) error{
		"console": func(f *servicetest.Fixture, hook string) error {
			return servicetest.ErrorOf(f.Webhooks.BeginWebhookTest(t.Context(), ann(f), store.NoKey, hook))
		},
		"command": func(f *servicetest.Fixture, hook string) error {
			test, err := f.Webhooks.BeginWebhookTest(t.Context(), store.Operator(), store.NoKey, hook)
			if err == nil {
				_, _, err = f.Webhooks.TestWebhook(t.Context(), hook, models.EventPing, test.EventID)
			}
			return err
		},
		"Temporal": func(f *servicetest.Fixture, hook string) error {
			_, _, err := f.Webhooks.TestWebhook(t.Context(), hook, models.EventWorkOrderCreated, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			hook := f.ID("erp_hook")
			for range webhooks.MaxTests {
				servicetest.WantCode(t, "a test", test(f, hook), "")
			}
			_, err := f.Webhooks.BeginWebhookTest(t.Context(), ann(f), store.NoKey, hook)
			servicetest.WantCode(t, "one more of the console", err, models.CodeRateLimited)
			_, _, err = f.Webhooks.TestWebhook(t.Context(), hook, models.EventPing, "")
			servicetest.WantCode(t, "one more of Temporal", err, models.CodeRateLimited)
			if log := servicetest.LogOf(f, hook); strings.Count(log, "webhook.tested") != webhooks.MaxTests {
				t.Errorf("logged are\n%s", log)
			}
			servicetest.WantCode(t, "another address", test(f, f.ID("reader_hook")), "")
			f.Clock.Advance(time.Minute + time.Millisecond)
			servicetest.WantCode(t, "a minute later", test(f, hook), "")
		})
	}
}

// A test is logged and counted once, for who asked for it, and sent once: whatever id an update has
// in Temporal, it sends nothing that no log shows.
func TestATestIsLoggedAndSentOnce(t *testing.T) {
	// Each returns the id of the update that sends the test which ann has begun.
	for name, begunAs := range map[string]func(t *testing.T, f *servicetest.Fixture, begun string) string{
		"that the console began": func(_ *testing.T, _ *servicetest.Fixture, begun string) string { return begun },
		"that was sent": func(t *testing.T, f *servicetest.Fixture, begun string) string {
			_, _, err := f.Webhooks.TestWebhook(t.Context(), f.ID("erp_hook"), models.EventPing, begun)
			servicetest.Must(t, err)
			return begun
		},
		"that was recorded": func(t *testing.T, f *servicetest.Fixture, begun string) string {
			made := webhooks.Attempt{EventID: begun, StartedAt: models.TimeOf(f.Clock.Now()), Status: 204}
			servicetest.Must(t, f.Webhooks.RecordTest(t.Context(), f.ID("erp_hook"), made))
			return begun
		},
		"of another address": func(t *testing.T, f *servicetest.Fixture, _ string) string {
			other, err := f.Webhooks.BeginWebhookTest(t.Context(), store.Operator(), store.NoKey, f.ID("reader_hook"))
			servicetest.Must(t, err)
			return other.EventID
		},
		"that is unknown":   func(*testing.T, *servicetest.Fixture, string) string { return "evt_01kjq7k69re00b2a00av14smbj" },
		"of Temporal's own": func(*testing.T, *servicetest.Fixture, string) string { return "a5d6f4f0-6d3f-4c2a-9a5e-0d9a7f4c1b2e" },
		"without an id":     func(*testing.T, *servicetest.Fixture, string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			hook := f.ID("erp_hook")
			begun, err := f.Webhooks.BeginWebhookTest(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, hook)
			servicetest.Must(t, err)
			_, sent, err := f.Webhooks.TestWebhook(t.Context(), hook, models.EventPing, begunAs(t, f, begun.EventID))
			servicetest.Must(t, err)
			want := []string{"Ann Field " + f.ID("ann") + " webhook.tested"}
			if name != "that the console began" {
				want = append(want, "Millwright webhook.tested")
			}
			log := strings.Split(servicetest.LogOf(f, hook), "\n")
			slices.Sort(log)
			if !slices.Equal(log, want) || (sent.EventID == begun.EventID) != (len(want) == 1) {
				t.Errorf("sent is %s after %s, logged are %q, want %q", sent.EventID, begun.EventID, log, want)
			}
			servicetest.Expect(t, "tests that count",
				servicetest.Value[int](f, `SELECT count(*) FROM webhook_tests WHERE webhook_id = $1`, hook), len(want))
		})
	}
}
