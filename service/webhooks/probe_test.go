package webhooks_test

import (
	"fmt"
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
	a := webhooks.Attempt{
		EventID: "evt_01kjq7k69re00b2a00av14smbj", StartedAt: models.TimeOf(f.Clock.Now()), Latency: 12 * time.Millisecond,
		Status: 503, RemoteIP: "192.0.2.1", ResponseBody: []byte("busy"),
	}
	if err := f.RecordTest(t.Context(), f.ID("erp_hook"), a); err != nil {
		t.Fatal(err)
	}
	servicetest.WantCode(t, "of a deleted address", f.RecordTest(t.Context(), "whk_00000000000000000000000000", a), models.CodeNotFound)
	for _, reader := range []store.Actor{store.Operator(), servicetest.Person(t, f, "ann")} {
		got, err := f.WebhookTest(t.Context(), reader, f.ID("erp_hook"), a.EventID)
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
		_, err := f.WebhookTest(t.Context(), test.reader, test.address, a.EventID)
		servicetest.WantCode(t, name, err, test.code)
	}
	f.Clock.Advance(webhooks.TestRetention - time.Second)
	servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
	if n := servicetest.Value[int](f, `SELECT count(*) FROM webhook_tests`); n != 1 {
		t.Error("the response is gone before its time")
	}
	f.Clock.Advance(2 * time.Second)
	servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
	if n := servicetest.Value[int](f, `SELECT count(*) FROM webhook_tests`); n != 0 {
		t.Error("the response stays for longer than a day")
	}
}

// An address gets ten tests in a minute, from the console and commands together.
func TestTestsOfAnAddressAreLimited(t *testing.T) {
	f := servicetest.New(t)
	ann, hook := servicetest.Person(t, f, "ann"), f.ID("erp_hook")
	begin := map[string]func() error{
		"console": func() error { _, err := f.BeginWebhookTest(t.Context(), ann, hook); return err },
		"command": func() error { _, err := f.BeginWebhookTest(t.Context(), store.Operator(), hook); return err },
		"worker": func() error {
			_, _, err := f.TestWebhook(t.Context(), store.Operator(), hook, models.EventPing, false)
			return err
		},
	}
	want := func(code models.Code) {
		t.Helper()
		for name, test := range begin {
			servicetest.WantCode(t, name, test(), code)
		}
	}
	attempt := func(n int) webhooks.Attempt {
		return webhooks.Attempt{EventID: fmt.Sprintf("evt_01kjq7k69re00b2a00av14sm%02d", n), StartedAt: models.TimeOf(f.Clock.Now()), Status: 200}
	}
	for n := range webhooks.MaxTests {
		want("")
		if err := f.RecordTest(t.Context(), hook, attempt(n)); err != nil {
			t.Fatal(err)
		}
	}
	want(models.CodeRateLimited)
	if _, err := f.WebhookTest(t.Context(), ann, hook, attempt(0).EventID); err != nil {
		t.Errorf("reading a response: %v", err)
	}
	_, err := f.BeginWebhookTest(t.Context(), store.Operator(), f.ID("reader_hook"))
	servicetest.WantCode(t, "another address", err, "")
	f.Clock.Advance(time.Minute + time.Millisecond)
	want("")
}
