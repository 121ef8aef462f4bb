package telemetry

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
)

// TemporalMetrics collects the metrics of Temporal's SDK for Prometheus. Counters end in
// _total; timers are histograms that end in _seconds. The SDK's tags name namespaces,
// task queues, workflows, activities and requests, so there are few series.
type TemporalMetrics struct {
	mu     sync.RWMutex
	series map[string]prometheus.Metric
}

// temporalBuckets cover requests of a millisecond and activities of minutes.
var temporalBuckets = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10, 60, 300}

// failures are counters that start at 0 instead of with their first failure: an alert on
// the increase of a counter misses its first value.
var failures = []string{
	"temporal_workflow_task_execution_failed", "temporal_workflow_failed", "temporal_activity_execution_failed",
	"temporal_local_activity_execution_failed", "temporal_request_failure",
}

// NewTemporalMetrics returns a collector to register, whose Handler is for clients.
func NewTemporalMetrics() *TemporalMetrics {
	t := &TemporalMetrics{series: map[string]prometheus.Metric{}}
	for _, name := range failures {
		t.Handler().Counter(name).Inc(0)
	}
	return t
}

// Handler returns the handler that a client's options take.
func (t *TemporalMetrics) Handler() client.MetricsHandler { return temporalHandler{t, nil} }

// Describe describes nothing: the SDK's metrics are not known in advance.
func (*TemporalMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (t *TemporalMetrics) Collect(metrics chan<- prometheus.Metric) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, m := range t.series {
		metrics <- m
	}
}

// temporalHandler records metrics with the tags.
type temporalHandler struct {
	all  *TemporalMetrics
	tags prometheus.Labels
}

// WithTags returns a handler that adds the tags.
func (h temporalHandler) WithTags(tags map[string]string) client.MetricsHandler {
	both := prometheus.Labels{}
	maps.Copy(both, h.tags)
	maps.Copy(both, tags)
	return temporalHandler{h.all, both}
}

// Counter returns the counter with the name.
func (h temporalHandler) Counter(name string) client.MetricsCounter {
	if !strings.HasSuffix(name, "_total") {
		name += "_total"
	}
	return temporalCounter{series(h, name, func() prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: temporalHelp, ConstLabels: h.tags})
	})}
}

// Gauge returns the gauge with the name.
func (h temporalHandler) Gauge(name string) client.MetricsGauge {
	return temporalGauge{series(h, name, func() prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: temporalHelp, ConstLabels: h.tags})
	})}
}

// Timer returns the histogram with the name.
func (h temporalHandler) Timer(name string) client.MetricsTimer {
	name += "_seconds"
	return temporalTimer{series(h, name, func() prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: name, Help: temporalHelp, ConstLabels: h.tags, Buckets: temporalBuckets,
		})
	})}
}

const temporalHelp = "From Temporal's SDK; see docs.temporal.io/references/sdk-metrics."

// series returns the metric with the name and the handler's tags, creating it on first use.
func series[M prometheus.Metric](h temporalHandler, name string, fresh func() M) M {
	key := keyOf(name, h.tags)
	h.all.mu.RLock()
	known, ok := h.all.series[key].(M)
	h.all.mu.RUnlock()
	if ok {
		return known
	}
	h.all.mu.Lock()
	defer h.all.mu.Unlock()
	if known, ok = h.all.series[key].(M); ok {
		return known
	}
	created := fresh()
	if _, taken := h.all.series[key]; !taken { // by a metric of another kind; this one is not exported
		h.all.series[key] = created
	}
	return created
}

func keyOf(name string, tags prometheus.Labels) string {
	var key strings.Builder
	key.WriteString(name)
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		key.WriteString("\x00" + tag + "\x00" + tags[tag])
	}
	return key.String()
}

type temporalCounter struct{ prometheus.Counter }

// Inc adds to the counter.
func (c temporalCounter) Inc(by int64) { c.Add(float64(by)) }

type temporalGauge struct{ prometheus.Gauge }

// Update sets the gauge.
func (g temporalGauge) Update(to float64) { g.Set(to) }

type temporalTimer struct{ prometheus.Histogram }

// Record observes a duration.
func (t temporalTimer) Record(took time.Duration) { t.Observe(took.Seconds()) }
