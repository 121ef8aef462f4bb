package activities

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"millwright/service"
	"millwright/webhook"
)

// Instrumentation is how operators see what a worker does to the world: metrics, spans
// and log lines. All of its methods do nothing on nil.
type Instrumentation struct {
	tracer trace.Tracer
	log    *slog.Logger

	attempts  *prometheus.CounterVec
	answer    prometheus.Histogram
	latency   prometheus.Histogram
	mailboxes prometheus.Gauge
	inHand    prometheus.Gauge
	inFlight  prometheus.Gauge
	off       prometheus.Counter
	mails     *prometheus.CounterVec
	swept     prometheus.Gauge
	found     prometheus.Counter
	cleaned   prometheus.Gauge
}

// The outcomes of attempts that got an answer; the others are webhook.Kinds.
const (
	outcomeSuccess = "2xx"
	outcomeGone    = "410"
)

// NewInstrumentation returns a Watched whose metrics are registered. The tracer may be
// nil: then there are no spans.
func NewInstrumentation(registerer prometheus.Registerer, tracer trace.Tracer, log *slog.Logger) (*Instrumentation, error) {
	const namespace = "millwright"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	}
	w := &Instrumentation{
		tracer: tracer, log: log,
		attempts: prometheus.NewCounterVec(counter("delivery_attempts_total",
			"Requests made to receivers, by outcome: the class of the answer's status, or why there was none."), []string{"outcome"}),
		answer: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "delivery_attempt_duration_seconds",
			Help:    "Time a receiver took to answer, or until the attempt failed.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "delivery_latency_seconds",
			Help:    "Time from an event to the receiver's acceptance of it, retries included.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 120, 600, 3600, 6 * 3600, 24 * 3600, 72 * 3600},
		}),
		mailboxes: gauge("mailboxes_active", "Mailboxes this worker has awake."),
		inHand:    gauge("mailbox_deliveries_in_hand", "Deliveries in the windows of this worker's mailboxes; a window holds 256."),
		inFlight:  gauge("delivery_requests_in_flight", "Requests to receivers under way."),
		off:       prometheus.NewCounter(counter("addresses_turned_off_total", "Webhook addresses turned off because they failed.")),
		mails: prometheus.NewCounterVec(counter("mails_total",
			"Letters to people, by outcome: sent, kept in the inbox for good, or put off until the mail server takes them."), []string{"outcome"}),
		swept:   gauge("sweep_last_success_timestamp_seconds", "When this worker last finished a sweep; 0 for never."),
		found:   prometheus.NewCounter(counter("sweep_found_total", "Workflows that sweeps found owing something and poked.")),
		cleaned: gauge("housekeeping_last_success_timestamp_seconds", "When this worker last finished a round of housekeeping; 0 for never."),
	}
	outcomes := []string{outcomeSuccess, "3xx", "4xx", outcomeGone, "5xx"}
	for _, kind := range []webhook.Kind{
		webhook.KindTimeout, webhook.KindConnectionRefused, webhook.KindUnreachable, webhook.KindDNS, webhook.KindTLS,
		webhook.KindBlockedAddress, webhook.KindReset, webhook.KindBadResponse, webhook.KindOther,
	} {
		outcomes = append(outcomes, string(kind))
	}
	for _, outcome := range outcomes {
		w.attempts.WithLabelValues(outcome) // shown as 0 before the first
	}
	for _, outcome := range []string{mailSent, mailKept, mailPutOff} {
		w.mails.WithLabelValues(outcome)
	}
	for _, c := range []prometheus.Collector{
		w.attempts, w.answer, w.latency, w.mailboxes, w.inHand, w.inFlight, w.off, w.mails, w.swept, w.found, w.cleaned,
	} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// outcome classes an attempt.
func outcome(a service.Attempt) string {
	switch a.Status {
	case 0:
		return string(a.Problem)
	case http.StatusGone:
		return outcomeGone
	default:
		return strconv.Itoa(a.Status/100) + "xx"
	}
}

// send makes one attempt and lets it be seen. Its span is the child of the call
// that the event comes from, and linked to the activity that made it.
func (w *Instrumentation) send(
	ctx context.Context, sender Sender, signer *webhook.Signer, now func() time.Time, address service.Address, d service.RenderedDelivery,
) service.Attempt {
	if w == nil {
		return Send(ctx, sender, signer, now, address.URL, d)
	}
	ctx, span := w.startAttempt(ctx, address, d)
	defer span.End()
	w.inFlight.Inc()
	attempt := Send(ctx, sender, signer, now, address.URL, d)
	w.inFlight.Dec()
	if attempt.Status == 0 && ctx.Err() != nil {
		span.SetStatus(codes.Error, string(webhook.KindCanceled))
		return attempt // cut off by us; it counts as none
	}
	w.attempted(attempt, now)
	w.report(ctx, span, address, d, attempt)
	return attempt
}

func (w *Instrumentation) startAttempt(ctx context.Context, address service.Address, d service.RenderedDelivery) (context.Context, trace.Span) {
	if w.tracer == nil {
		return ctx, noop.Span{}
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
	if d.TraceParent != "" {
		options = append(options, trace.WithLinks(trace.LinkFromContext(ctx)))
		ctx = service.WithTraceParent(ctx, d.TraceParent)
	}
	ctx, span := w.tracer.Start(ctx, "deliver "+string(d.EventType), options...)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("millwright.event_id", d.EventID), attribute.String("millwright.delivery_id", d.DeliveryID),
			attribute.String("millwright.webhook_id", address.ID), attribute.String("millwright.record_id", d.RecordID),
			attribute.Int("millwright.attempt", d.Attempts+1))
	}
	return ctx, span
}

func (w *Instrumentation) attempted(a service.Attempt, now func() time.Time) {
	result := outcome(a)
	w.attempts.WithLabelValues(result).Inc()
	w.answer.Observe(a.Latency.Seconds())
	if result == outcomeSuccess {
		w.latency.Observe(now().Sub(a.EventAt).Seconds())
	}
}

// report ends the attempt's span and logs it. The URL is as secret as the
// integrator made it, so neither shows it.
func (w *Instrumentation) report(ctx context.Context, span trace.Span, address service.Address, d service.RenderedDelivery, a service.Attempt) {
	result := outcome(a)
	level := slog.LevelDebug
	if result != outcomeSuccess {
		level = slog.LevelInfo
		span.SetStatus(codes.Error, result)
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.String("millwright.outcome", result))
		if a.Status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", a.Status))
		}
	}
	if !w.log.Enabled(ctx, level) {
		return
	}
	w.log.LogAttrs(ctx, level, "delivery attempt",
		slog.String("event_id", d.EventID), slog.String("delivery_id", d.DeliveryID), slog.String("webhook_id", address.ID),
		slog.String("record_id", d.RecordID), slog.Int("attempt", a.Number), slog.String("outcome", result),
		slog.Float64("duration_ms", float64(a.Latency.Microseconds())/1000))
}

// enter shows the round's mailbox as awake until the returned function is called.
func (w *Instrumentation) enter(r *dispatchRun) (leave func()) {
	if w == nil {
		return func() {}
	}
	w.mailboxes.Inc()
	return func() {
		w.mailboxes.Dec()
		w.inHand.Sub(float64(r.shown))
	}
}

// holds shows how many deliveries the round has in hand now.
func (w *Instrumentation) holds(r *dispatchRun) {
	if w == nil {
		return
	}
	r.mu.Lock()
	now := len(r.window.inHand)
	r.mu.Unlock()
	w.inHand.Add(float64(now - r.shown))
	r.shown = now
}

// addressOff tells that an address was turned off.
func (w *Instrumentation) addressOff(ctx context.Context, webhookID string) {
	if w != nil {
		w.off.Inc()
		w.log.WarnContext(ctx, "a webhook address was turned off because it fails", "webhook_id", webhookID)
	}
}

// The outcomes of letters.
const (
	mailSent   = "sent"
	mailKept   = "kept"
	mailPutOff = "put_off"
)

func (w *Instrumentation) mailed(outcome string) {
	if w != nil {
		w.mails.WithLabelValues(outcome).Inc()
	}
}

func (w *Instrumentation) sweptAt(at time.Time, found int) {
	if w != nil {
		w.swept.Set(float64(at.Unix()))
		w.found.Add(float64(found))
	}
}

func (w *Instrumentation) cleanedAt(at time.Time) {
	if w != nil {
		w.cleaned.Set(float64(at.Unix()))
	}
}
