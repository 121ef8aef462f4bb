package service_test

import (
	"fmt"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// The response to a test is read by those who may test the address, for a day.
func TestResponsesToTests(t *testing.T) {
	f := servicetest.New(t)
	a := service.Attempt{
		EventID: "evt_01kjq7k69re00b2a00av14smbj", StartedAt: models.TimeOf(f.Clock.Now()), Latency: 12 * time.Millisecond,
		Status: 503, RemoteIP: "192.0.2.1", ResponseBody: []byte("busy"),
	}
	if err := f.RecordTest(t.Context(), f.ID("erp_hook"), a); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "of a deleted address", f.RecordTest(t.Context(), "whk_00000000000000000000000000", a), models.CodeNotFound)
	for _, reader := range []service.Actor{service.Operator(), person(t, f, "ann")} {
		got, err := f.WebhookTest(t.Context(), reader, f.ID("erp_hook"), a.EventID)
		if err != nil || got.Failure != "The receiver answered 503." || *got.Status != 503 || got.LatencyMS != 12 || *got.ResponseBody != "busy" || got.EventID != a.EventID {
			t.Errorf("read is %+v, %v", got, err)
		}
	}
	for name, test := range map[string]struct {
		reader  service.Actor
		address string
		code    models.Code
	}{
		"a person without the permission": {person(t, f, "bob"), f.ID("erp_hook"), models.CodePermissionDenied},
		"another organization's person":   {person(t, f, "pia"), f.ID("erp_hook"), models.CodeNotFound},
		"the integration":                 {f.Actor("erp"), f.ID("erp_hook"), models.CodePermissionDenied},
		"another address":                 {service.Operator(), f.ID("reader_hook"), models.CodeNotFound},
	} {
		_, err := f.WebhookTest(t.Context(), test.reader, test.address, a.EventID)
		wantCode(t, name, err, test.code)
	}
	f.Clock.Advance(service.TestRetention - time.Second)
	remove(t, f.Service, service.RemovalBatch, 0)
	if n := servicetest.Value[int](f, `SELECT count(*) FROM webhook_tests`); n != 1 {
		t.Error("the response is gone before its time")
	}
	f.Clock.Advance(2 * time.Second)
	remove(t, f.Service, service.RemovalBatch, 0)
	if n := servicetest.Value[int](f, `SELECT count(*) FROM webhook_tests`); n != 0 {
		t.Error("the response stays for longer than a day")
	}
}

// An address gets ten tests in a minute, from the console and commands together.
func TestTestsOfAnAddressAreLimited(t *testing.T) {
	f := servicetest.New(t)
	ann, hook := person(t, f, "ann"), f.ID("erp_hook")
	begin := map[string]func() error{
		"console": func() error { _, err := f.BeginWebhookTest(t.Context(), ann, hook); return err },
		"command": func() error { _, err := f.MayTestWebhook(t.Context(), service.Operator(), hook); return err },
		"worker": func() error {
			_, _, err := f.TestWebhook(t.Context(), service.Operator(), hook, models.EventPing)
			return err
		},
	}
	want := func(code models.Code) {
		t.Helper()
		for name, test := range begin {
			wantCode(t, name, test(), code)
		}
	}
	attempt := func(n int) service.Attempt {
		return service.Attempt{EventID: fmt.Sprintf("evt_01kjq7k69re00b2a00av14sm%02d", n), StartedAt: models.TimeOf(f.Clock.Now()), Status: 200}
	}
	for n := range service.MaxTests {
		want("")
		if err := f.RecordTest(t.Context(), hook, attempt(n)); err != nil {
			t.Fatal(err)
		}
	}
	want(models.CodeRateLimited)
	if _, err := f.WebhookTest(t.Context(), ann, hook, attempt(0).EventID); err != nil {
		t.Errorf("reading a response: %v", err)
	}
	_, err := f.MayTestWebhook(t.Context(), service.Operator(), f.ID("reader_hook"))
	wantCode(t, "another address", err, "")
	f.Clock.Advance(time.Minute + time.Millisecond)
	want("")
}
