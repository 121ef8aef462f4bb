package activities

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"millwright/service/people"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// Instrumentation exports what activities do as metrics, spans and log lines. All
// of its methods do nothing on nil.
type Instrumentation struct {
	tracer trace.Tracer
	log    *slog.Logger

	attempts         *prometheus.CounterVec
	duration         prometheus.Histogram
	latency          prometheus.Histogram
	dispatchers      prometheus.Gauge
	claimed          prometheus.Gauge
	inFlight         prometheus.Gauge
	turnedOff        prometheus.Counter
	failedForGood    prometheus.Counter
	mails            *prometheus.CounterVec
	lastSweep        prometheus.Gauge
	sweepFound       prometheus.Counter
	lastHousekeeping prometheus.Gauge
}

// outcomeSuccess is the outcome of attempts that the receiver accepted.
const outcomeSuccess = "2xx"

// NewInstrumentation registers the metrics and returns the Instrumentation. With a
// nil tracer there are no spans. It panics if the metrics are registered.
func NewInstrumentation(registerer prometheus.Registerer, tracer trace.Tracer, log *slog.Logger) *Instrumentation {
	const namespace = "millwright"
	with := promauto.With(registerer)
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
	}
	gauge := func(name, help string) prometheus.Gauge {
		return with.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help})
	}
	i := &Instrumentation{
		tracer: tracer, log: log,
		attempts: with.NewCounterVec(counter("delivery_attempts_total",
			"Requests made to receivers, by outcome: the class of the response's status, or why there was none."), []string{"outcome"}),
		duration: with.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "delivery_attempt_duration_seconds",
			Help:    "Time until the receiver responded or the attempt failed.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		latency: with.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "delivery_latency_seconds",
			Help:    "Time from an event until the receiver accepted it, including retries.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 120, 600, 3600, 6 * 3600, 24 * 3600, 72 * 3600},
		}),
		dispatchers:   gauge("dispatchers_active", "Addresses this worker is dispatching to."),
		claimed:       gauge("deliveries_claimed", "Deliveries this worker has claimed."),
		inFlight:      gauge("delivery_requests_in_flight", "Requests to receivers in flight."),
		turnedOff:     with.NewCounter(counter("addresses_turned_off_total", "Webhook addresses turned off because they failed.")),
		failedForGood: with.NewCounter(counter("deliveries_failed_total", "Deliveries whose last attempt failed.")),
		mails: with.NewCounterVec(counter("mails_total",
			"E-mails to people, by outcome: sent, kept (rejected permanently; the notice stays in the inbox, a sign-in link ends), or put_off until the mail server accepts them."), []string{"outcome"}),
		lastSweep:        gauge("sweep_last_success_timestamp_seconds", "When this worker last finished a sweep; 0 for never."),
		sweepFound:       with.NewCounter(counter("sweep_found_total", "Workflows with unclaimed work that sweeps found and woke.")),
		lastHousekeeping: gauge("housekeeping_last_success_timestamp_seconds", "When this worker last finished a housekeeping activity; 0 for never."),
	}
	outcomes := []string{outcomeSuccess, "3xx", "4xx", "5xx"}
	for _, outcome := range append(outcomes, store.TextsOf(webhooks.FailureKinds)...) {
		i.attempts.WithLabelValues(outcome) // exported as 0 before the first
	}
	for _, outcome := range mailOutcomes {
		i.mails.WithLabelValues(outcome)
	}
	return i
}

// outcome classifies an attempt.
func outcome(a webhooks.Attempt) string {
	if a.Status == 0 {
		return string(a.Problem)
	}
	return strconv.Itoa(a.Status/100) + "xx"
}

// send makes one attempt and instruments it. The span is a child of the call that
// the event comes from, and linked to the activity.
func (i *Instrumentation) send(
	ctx context.Context, sender Sender, signer *webhook.Signer, now func() time.Time, address webhooks.Address, d webhooks.RenderedDelivery,
) webhooks.Attempt {
	if i == nil {
		return Send(ctx, sender, signer, now, address.URL, d)
	}
	ctx, span := i.startAttempt(ctx, address, d)
	defer span.End()
	i.inFlight.Inc()
	attempt := Send(ctx, sender, signer, now, address.URL, d)
	i.inFlight.Dec()
	i.attempted(attempt, now)
	i.report(ctx, span, address, d, attempt)
	return attempt
}

func (i *Instrumentation) startAttempt(ctx context.Context, address webhooks.Address, d webhooks.RenderedDelivery) (context.Context, trace.Span) {
	if i.tracer == nil {
		return ctx, noop.Span{}
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
	if d.TraceParent != "" {
		options = append(options, trace.WithLinks(trace.LinkFromContext(ctx)))
		ctx = store.WithTraceParent(ctx, d.TraceParent)
	}
	ctx, span := i.tracer.Start(ctx, "deliver "+string(d.EventType), options...)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("millwright.event_id", d.EventID), attribute.String("millwright.delivery_id", d.DeliveryID),
			attribute.String("millwright.webhook_id", address.ID), attribute.String("millwright.record_id", d.RecordID),
			attribute.Int("millwright.attempt", d.Attempts+1))
	}
	return ctx, span
}

func (i *Instrumentation) attempted(a webhooks.Attempt, now func() time.Time) {
	result := outcome(a)
	i.attempts.WithLabelValues(result).Inc()
	i.duration.Observe(a.Latency.Seconds())
	if result == outcomeSuccess {
		i.latency.Observe(now().Sub(a.EventAt).Seconds())
	}
}

// report completes the attempt's span and logs the attempt. Neither shows the URL,
// which may contain a secret.
func (i *Instrumentation) report(ctx context.Context, span trace.Span, address webhooks.Address, d webhooks.RenderedDelivery, a webhooks.Attempt) {
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
	if !i.log.Enabled(ctx, level) {
		return
	}
	i.log.LogAttrs(ctx, level, "delivery attempt",
		slog.String("event_id", d.EventID), slog.String("delivery_id", d.DeliveryID), slog.String("webhook_id", address.ID),
		slog.String("record_id", d.RecordID), slog.Int("attempt", a.Number), slog.String("outcome", result),
		slog.Float64("duration_ms", float64(a.Latency.Microseconds())/1000))
}

// dispatchStarted counts the run as active until finished is called.
func (i *Instrumentation) dispatchStarted(r *dispatchRun) (finished func()) {
	if i == nil {
		return func() {}
	}
	i.dispatchers.Inc()
	return func() {
		i.dispatchers.Dec()
		i.claimed.Sub(float64(r.shownClaimed))
	}
}

// showClaimed updates the gauge with the number of deliveries the run has claimed.
func (i *Instrumentation) showClaimed(r *dispatchRun) {
	if i == nil {
		return
	}
	now := len(r.inFlight)
	i.claimed.Add(float64(now - r.shownClaimed))
	r.shownClaimed = now
}

// addressTurnedOff counts and logs it.
func (i *Instrumentation) addressTurnedOff(ctx context.Context, webhookID string) {
	if i != nil {
		i.turnedOff.Inc()
		i.log.WarnContext(ctx, "a webhook address was turned off because it fails", "webhook_id", webhookID)
	}
}

// failed counts deliveries that are not retried.
func (i *Instrumentation) failed(deliveries int) {
	if i != nil {
		i.failedForGood.Add(float64(deliveries))
	}
}

// mailOutcomes are the statuses of e-mails as the metric's label has them.
var mailOutcomes = map[people.MailStatus]string{
	people.MailSent: "sent", people.MailInbox: "kept", people.MailWaiting: "put_off",
}

func (i *Instrumentation) countMail(status people.MailStatus) {
	if i != nil {
		i.mails.WithLabelValues(mailOutcomes[status]).Inc()
	}
}

// mailFailed logs that an e-mail was not sent. The error has no name or address.
func (i *Instrumentation) mailFailed(ctx context.Context, err error) {
	if i != nil {
		i.log.WarnContext(ctx, "an e-mail was not sent", "error", err.Error())
	}
}

func (i *Instrumentation) sweepFinished(at time.Time, found int) {
	if i != nil {
		i.lastSweep.Set(float64(at.Unix()))
		i.sweepFound.Add(float64(found))
	}
}

func (i *Instrumentation) housekeepingFinished(at time.Time) {
	if i != nil {
		i.lastHousekeeping.Set(float64(at.Unix()))
	}
}
