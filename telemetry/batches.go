package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Batches exports the batches of a process's service, of which it is a
// store.BatchObserver.
type Batches struct {
	size, share prometheus.Histogram
	rejected    prometheus.Counter
}

// NewBatches returns a Batches to register.
func NewBatches() *Batches {
	const namespace = "millwright"
	return &Batches{
		size: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "batch_size",
			Help:    "Lookups that share a round trip.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128},
		}),
		share: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "batch_largest_share",
			Help:    "The part of a batch of several that belongs to the integration with the most of it.",
			Buckets: []float64{.1, .25, .5, .75, .9, 1},
		}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "batch_rejections_total",
			Help: "Calls rejected because too many of their organization waited.",
		}),
	}
}

// Lookups counts a round trip.
func (b *Batches) Lookups(size, largest int) {
	b.size.Observe(float64(size))
	if size > 1 {
		b.share.Observe(float64(largest) / float64(size))
	}
}

// Rejected counts a call.
func (b *Batches) Rejected() { b.rejected.Inc() }

// Describe implements prometheus.Collector.
func (b *Batches) Describe(descs chan<- *prometheus.Desc) {
	b.size.Describe(descs)
	b.share.Describe(descs)
	b.rejected.Describe(descs)
}

// Collect implements prometheus.Collector.
func (b *Batches) Collect(metrics chan<- prometheus.Metric) {
	b.size.Collect(metrics)
	b.share.Collect(metrics)
	b.rejected.Collect(metrics)
}
