package worker

import "github.com/prometheus/client_golang/prometheus"

// The outcomes of wakes, as the metric's label has them.
const (
	wakeSent    = "sent"
	wakeFailed  = "failed"
	wakeMerged  = "merged"
	wakeDropped = "dropped"
	wakeExpired = "expired"
)

// wakerMetrics counts wakes by outcome.
type wakerMetrics struct{ wakes *prometheus.CounterVec }

func newWakerMetrics() *wakerMetrics {
	m := &wakerMetrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "millwright", Name: "wakes_total",
		Help: "Wakes of workflows, by outcome: sent, failed, merged with a queued one, dropped because the queue was full, or expired after a minute in it.",
	}, []string{"outcome"})}
	for _, outcome := range []string{wakeSent, wakeFailed, wakeMerged, wakeDropped, wakeExpired} {
		m.wakes.WithLabelValues(outcome) // exported as 0 before the first
	}
	return m
}

func (m *wakerMetrics) count(outcome string) { m.wakes.WithLabelValues(outcome).Inc() }

var wakesQueued = prometheus.NewDesc("millwright_wakes_queued",
	"Queued wakes; at most 20,000.", nil, nil)

// Describe implements prometheus.Collector.
func (w *Waker) Describe(descs chan<- *prometheus.Desc) {
	w.metrics.wakes.Describe(descs)
	descs <- wakesQueued
}

// Collect implements prometheus.Collector.
func (w *Waker) Collect(metrics chan<- prometheus.Metric) {
	w.metrics.wakes.Collect(metrics)
	w.mu.Lock()
	queued := w.queue.len()
	w.mu.Unlock()
	metrics <- prometheus.MustNewConstMetric(wakesQueued, prometheus.GaugeValue, float64(queued))
}
