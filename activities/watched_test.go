package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
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
	"millwright/service"
	"millwright/service/servicetest"
	"millwright/webhook"
)

// seen is what an operator sees of a mailbox.
type seen struct {
	metrics *prometheus.Registry
	spans   *tracetest.InMemoryExporter
	log     bytes.Buffer
}

func watch(t *testing.T, m *mailbox) *seen {
	t.Helper()
	s := &seen{metrics: prometheus.NewRegistry(), spans: tracetest.NewInMemoryExporter()}
	// Traces of one's own are not kept here, those of calls are.
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	var err error
	m.Instrumentation, err = activities.NewInstrumentation(s.metrics, provider.Tracer("test"),
		slog.New(slog.NewJSONHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// count is a metric's value, of a histogram the number of observations; label is
// that of its one label, "" for none.
func (s *seen) count(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "millwright_"+name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Fatalf("there is no metric %s of %q", name, label)
	return 0
}

const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestAttemptsAreSeen(t *testing.T) {
	r := newReceiver()
	m := newMailbox(t, r, time.Millisecond)
	s := watch(t, m)
	var accepted, refused, silent string
	hold := make(chan struct{})
	r.answer = func(_ context.Context, d outgoing) (webhook.Response, error) {
		<-hold
		switch d.RecordID {
		case refused:
			return webhook.Response{Status: http.StatusServiceUnavailable, Latency: time.Second}, nil
		case silent:
			return webhook.Response{Latency: time.Second}, &webhook.AttemptError{Kind: webhook.KindTimeout, Detail: "erp.example.com said nothing."}
		}
		return webhook.Response{Status: http.StatusNoContent, Latency: time.Millisecond}, nil
	}
	accepted, refused, silent = m.create("a"), m.create("b"), m.create("c")
	m.Exec(`UPDATE events SET trace_parent = $1 WHERE record_id IN ($2, $3)`, traceParent, accepted, refused)
	done := m.drain()
	r.take(t, 3)
	for name, want := range map[string]float64{"mailboxes_active": 1, "mailbox_deliveries_in_hand": 3, "delivery_requests_in_flight": 3} {
		if n := s.count(t, name, ""); n != want {
			t.Errorf("while they are sent %s is %v, want %v", name, n, want)
		}
	}
	close(hold)
	<-done
	for name, want := range map[string]float64{
		"delivery_attempts_total 2xx": 1, "delivery_attempts_total 5xx": 1, "delivery_attempts_total timeout": 1,
		"delivery_attempts_total 4xx": 0, "delivery_attempt_duration_seconds": 3, "delivery_latency_seconds": 1,
		"mailboxes_active": 0, "mailbox_deliveries_in_hand": 0, "delivery_requests_in_flight": 0,
	} {
		name, label, _ := strings.Cut(name, " ")
		if n := s.count(t, name, label); n != want {
			t.Errorf("%s %s is %v, want %v", name, label, n, want)
		}
	}

	spans := s.spans.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("there are %d spans, want those of the 2 deliveries whose calls are traced", len(spans))
	}
	for _, span := range spans {
		attributes := attribute.NewSet(span.Attributes...)
		record, _ := attributes.Value("millwright.record_id")
		result, _ := attributes.Value("millwright.outcome")
		want := map[string]string{accepted: "2xx", refused: "5xx"}[record.AsString()]
		if span.Parent.SpanID().String() != "00f067aa0ba902b7" || span.Name != "deliver work_order.created" || result.AsString() != want {
			t.Errorf("%s has the span %s of %s: %s, want %s", record.AsString(), span.Name, span.Parent.SpanID(), result.AsString(), want)
		}
	}
	s.checkLog(t, m, map[string]string{accepted: "2xx DEBUG", refused: "5xx INFO", silent: "timeout INFO"})
}

// checkLog checks that there is one line for each record's attempt, with its ids
// and without the address.
func (s *seen) checkLog(t *testing.T, m *mailbox, want map[string]string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	for _, text := range lines {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		record, _ := line["record_id"].(string)
		if got := line["outcome"].(string) + " " + line["level"].(string); got != want[record] {
			t.Errorf("of %s the log says %q, want %q", record, got, want[record])
		}
		delivery := servicetest.Value[string](m.Fixture, `SELECT id FROM deliveries WHERE record_id = $1 AND webhook_id = $2`, record, m.ID("erp_hook"))
		event := servicetest.Value[string](m.Fixture, `SELECT event_id FROM deliveries WHERE id = $1`, delivery)
		if line["delivery_id"] != delivery || line["event_id"] != event || line["webhook_id"] != m.ID("erp_hook") || line["attempt"] != 1.0 {
			t.Errorf("a line about %s and %s says %s", delivery, event, text)
		}
		if strings.Contains(text, "http://") || strings.Contains(text, "erp.example.com") {
			t.Errorf("a line shows the address: %s", text)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("there are %d lines, want %d", len(lines), len(want))
	}
}

func TestAnAddressThatIsTurnedOffIsSeen(t *testing.T) {
	for name, attempt := range map[string]func(m *mailbox, id string){
		"by its mailbox": func(m *mailbox, _ string) { <-m.drain() },
		"by a retry": func(m *mailbox, id string) {
			m.Exec(`UPDATE deliveries SET status = 'retrying', attempts = 1, next_attempt_at = now() WHERE id = $1`, id)
			retries := activities.Deliveries{Service: m.Fixture.Service, Sender: m.Sender, Now: m.Now, Instrumentation: m.Instrumentation}
			if _, err := retries.AttemptDelivery(t.Context(), id); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver()
			r.answer = func(context.Context, outgoing) (webhook.Response, error) {
				return webhook.Response{Status: http.StatusGone}, nil
			}
			m := newMailbox(t, r, time.Millisecond)
			s := watch(t, m)
			record := m.create("a")
			attempt(m, servicetest.Value[string](m.Fixture, `SELECT id FROM deliveries WHERE record_id = $1 AND webhook_id = $2`, record, m.ID("erp_hook")))
			if s.count(t, "addresses_turned_off_total", "") != 1 || s.count(t, "delivery_attempts_total", "410") != 1 {
				t.Error("it is not counted")
			}
			if !slices.ContainsFunc(strings.Split(s.log.String(), "\n"), func(line string) bool {
				return strings.Contains(line, `"WARN"`) && strings.Contains(line, m.ID("erp_hook"))
			}) {
				t.Errorf("the log says %s", s.log.String())
			}
		})
	}
}

func TestSweepsAreSeen(t *testing.T) {
	m := newMailbox(t, newReceiver(), time.Millisecond)
	s := watch(t, m)
	m.create("a")
	m.Exec(`UPDATE deliveries SET created_at = created_at - interval '1 hour'`)
	before := time.Now().Unix()
	sweeper := activities.Sweeper{Service: m.Fixture.Service, Waker: m.Pokes, Grace: time.Minute, Instrumentation: m.Instrumentation}
	found, err := sweeper.PokeOwed(t.Context())
	if err != nil || found == 0 {
		t.Fatalf("%d were found, error %v", found, err)
	}
	if n := s.count(t, "sweep_found_total", ""); n != float64(found) {
		t.Errorf("%v were counted, want %d", n, found)
	}
	if at := s.count(t, "sweep_last_success_timestamp_seconds", ""); at < float64(before) {
		t.Errorf("the last sweep was at %v, want now", at)
	}
}

// Deliveries in trouble are handed to workflows in the trace of their call.
func TestTroubledDeliveriesAreHandedOverInTheirTrace(t *testing.T) {
	r := newReceiver()
	r.answer = func(context.Context, outgoing) (webhook.Response, error) {
		return webhook.Response{Status: http.StatusInternalServerError}, nil
	}
	m := newMailbox(t, r, time.Millisecond)
	pokes := &tracingPoker{}
	m.Waker = pokes
	traced, untraced := m.create("a"), m.create("b")
	m.Exec(`UPDATE events SET trace_parent = $1 WHERE record_id = $2`, traceParent, traced)
	<-m.drain()
	got := map[string]bool{}
	for _, w := range pokes.Take() {
		got[w.ID] = true
	}
	delivery := func(record string) string {
		return servicetest.Value[string](m.Fixture, `SELECT id FROM deliveries WHERE record_id = $1 AND webhook_id = $2`, record, m.ID("erp_hook"))
	}
	if len(got) != 2 || !got[delivery(traced)+" in "+traceParent] || !got[delivery(untraced)] {
		t.Errorf("poked were %v", got)
	}
}

// tracingPoker notes in which trace it is told.
type tracingPoker struct{ servicetest.Wakes }

func (p *tracingPoker) WakeIn(ctx context.Context, work ...service.WakeTarget) {
	for _, w := range work {
		p.Wake(service.WakeTarget{Kind: w.Kind, ID: w.ID + " in " + *service.TraceParent(ctx)})
	}
}
