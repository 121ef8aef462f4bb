package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"millwright/activities"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/webhook"
)

// exported is what operators see of a dispatch.
type exported struct {
	metrics *prometheus.Registry
	spans   *tracetest.InMemoryExporter
	log     bytes.Buffer
}

func instrument(t *testing.T, h *harness) *exported {
	t.Helper()
	s := &exported{metrics: prometheus.NewRegistry(), spans: tracetest.NewInMemoryExporter()}
	// Only the traces of calls are sampled.
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	h.dispatcher.Instrumentation = activities.NewInstrumentation(s.metrics, provider.Tracer("test"),
		slog.New(slog.NewJSONHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	return s
}

// count returns the value of a metric, for a histogram the number of observations.
// label is the value of the metric's only label, "" if it has none.
func (s *exported) count(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, h := range family.GetMetric() {
			if family.GetName() == "millwright_"+name && (label == "" || h.GetLabel()[0].GetValue() == label) {
				return h.GetCounter().GetValue() + h.GetGauge().GetValue() + float64(h.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Fatalf("there is no metric %s of %q", name, label)
	return 0
}

const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestAttemptsAreInstrumented(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Millisecond)
	s := instrument(t, h)
	var accepted, rejected, silent string
	hold := make(chan struct{})
	r.respond = func(_ context.Context, d received) (webhook.Response, error) {
		<-hold
		switch d.RecordID {
		case rejected:
			return webhook.Response{Status: http.StatusServiceUnavailable, Latency: time.Second}, nil
		case silent:
			return webhook.Response{Latency: time.Second}, &webhook.AttemptError{Kind: webhook.KindTimeout, Detail: "erp.example.com did not respond."}
		}
		return webhook.Response{Status: http.StatusNoContent, Latency: time.Millisecond}, nil
	}
	accepted, rejected, silent = h.createWorkOrder("a"), h.createWorkOrder("b"), h.createWorkOrder("c")
	h.Exec(`UPDATE events SET trace_parent = $1 WHERE record_id IN ($2, $3)`, traceParent, accepted, rejected)
	done := h.dispatch()
	r.take(t, 3)
	for name, want := range map[string]float64{"dispatchers_active": 1, "deliveries_claimed": 3, "delivery_requests_in_flight": 3} {
		servicetest.Await(t, fmt.Sprintf("while sending, %s is %v", name, want), func() bool { return s.count(t, name, "") == want })
	}
	close(hold)
	h.end(done)
	for name, want := range map[string]float64{
		"delivery_attempts_total 2xx": 1, "delivery_attempts_total 5xx": 1, "delivery_attempts_total timeout": 1,
		"delivery_attempts_total 4xx": 0, "delivery_attempt_duration_seconds": 3, "delivery_latency_seconds": 1,
		"dispatchers_active": 0, "deliveries_claimed": 0, "delivery_requests_in_flight": 0,
	} {
		name, label, _ := strings.Cut(name, " ")
		if n := s.count(t, name, label); n != want {
			t.Errorf("%s %s is %v, want %v", name, label, n, want)
		}
	}

	spans := s.spans.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("%d spans, want one for each of the 2 deliveries whose calls are traced", len(spans))
	}
	for _, span := range spans {
		attributes := attribute.NewSet(span.Attributes...)
		record, _ := attributes.Value("millwright.record_id")
		result, _ := attributes.Value("millwright.outcome")
		want := map[string]string{accepted: "2xx", rejected: "5xx"}[record.AsString()]
		if span.Parent.SpanID().String() != "00f067aa0ba902b7" || span.Name != "deliver work_order.created" || result.AsString() != want {
			t.Errorf("%s has the span %s of %s: %s, want %s", record.AsString(), span.Name, span.Parent.SpanID(), result.AsString(), want)
		}
	}
	s.checkLog(t, h, map[string]string{accepted: "2xx DEBUG", rejected: "5xx INFO", silent: "timeout INFO"})
}

// checkLog checks that each record's attempt has one log line, with its ids and
// without the address.
func (s *exported) checkLog(t *testing.T, h *harness, want map[string]string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	for _, text := range lines {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		record, _ := line["record_id"].(string)
		if got := line["outcome"].(string) + " " + line["level"].(string); got != want[record] {
			t.Errorf("the log line of %s says %q, want %q", record, got, want[record])
		}
		delivery := h.deliveryOf(record)
		event := servicetest.Value[string](h.Fixture, `SELECT event_id FROM all_deliveries WHERE id = $1`, delivery)
		if line["delivery_id"] != delivery || line["event_id"] != event || line["webhook_id"] != h.ID("erp_hook") || line["attempt"] != 1.0 {
			t.Errorf("the log line of %s and %s is %s", delivery, event, text)
		}
		if strings.Contains(text, "http://") || strings.Contains(text, "erp.example.com") {
			t.Errorf("a log line shows the address: %s", text)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d log lines, want %d", len(lines), len(want))
	}
}

func TestTurnedOffAddressIsInstrumented(t *testing.T) {
	r := newReceiver()
	r.answer(http.StatusGone)
	h := newDispatchHarness(t, r, time.Millisecond)
	s := instrument(t, h)
	h.createWorkOrder("a")
	h.dispatchAll()
	h.Exec(`UPDATE webhook_health SET failed_at = last_at + interval '30 days' WHERE webhook_id = $1`, h.ID("erp_hook"))
	addresses := activities.Addresses{Service: h.Fixture.Service, Instrumentation: h.dispatcher.Instrumentation}
	for _, want := range []bool{true, false} {
		if off, err := addresses.TurnOffIfUnsuccessful(t.Context(), h.ID("erp_hook")); off != want || err != nil {
			t.Errorf("turned off: %t, want %t: %v", off, want, err)
		}
	}
	if s.count(t, "addresses_turned_off_total", "") != 1 || s.count(t, "delivery_attempts_total", "4xx") != 1 {
		t.Error("the metrics do not count it")
	}
	if !slices.ContainsFunc(strings.Split(s.log.String(), "\n"), func(line string) bool {
		return strings.Contains(line, `"WARN"`) && strings.Contains(line, h.ID("erp_hook"))
	}) {
		t.Errorf("the log says %s", s.log.String())
	}
}

func TestSweepsAreInstrumented(t *testing.T) {
	h := newDispatchHarness(t, newReceiver(), time.Millisecond)
	s := instrument(t, h)
	h.createWorkOrder("a")
	h.Exec(`UPDATE open_deliveries SET queued_at = queued_at - interval '1 hour'`)
	before := time.Now().Unix()
	sweeper := activities.Sweeper{Service: h.Fixture.Service, Waker: h.Wakes, Grace: time.Minute, Instrumentation: h.dispatcher.Instrumentation}
	found, err := sweeper.WakeUnclaimed(t.Context())
	if err != nil || found == 0 {
		t.Fatalf("%d were found, error %v", found, err)
	}
	if n := s.count(t, "sweep_found_total", ""); n != float64(found) {
		t.Errorf("the metric is %v, want %d", n, found)
	}
	if at := s.count(t, "sweep_last_success_timestamp_seconds", ""); at < float64(before) {
		t.Errorf("the last sweep was at %v, want now", at)
	}
}

func TestFailingDeliveriesAreStartedInTheTraceOfTheirCall(t *testing.T) {
	r := newReceiver()
	r.answer(http.StatusInternalServerError)
	h := newDispatchHarness(t, r, time.Millisecond)
	traced, untraced := h.deliveryOf(h.createWorkOrder("a")), h.deliveryOf(h.createWorkOrder("b"))
	h.Exec(`UPDATE events SET trace_parent = $1 WHERE id = (SELECT event_id FROM all_deliveries WHERE id = $2)`, traceParent, traced)
	h.dispatchAll()
	got := map[string]string{}
	for _, d := range h.Wakes.TakeFailing() {
		got[d.DeliveryID] = d.TraceParent
		if d.LastResult != "500" || d.EventType != models.EventWorkOrderCreated || d.StartOnly {
			t.Errorf("started is %+v", d)
		}
	}
	if len(got) != 2 || got[traced] != traceParent || got[untraced] != "" {
		t.Errorf("started were %v", got)
	}
}
