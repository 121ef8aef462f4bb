package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Batches exports the batches of a process's service, of which it is a
// store.BatchObserver.
type Batches struct {
	size, share *prometheus.HistogramVec
	rejected    prometheus.Counter
}

// NewBatches returns a Batches to register.
func NewBatches() *Batches {
	const namespace = "millwright"
	b := &Batches{
		size: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "batch_size",
			Help:    "Writes that share a transaction, or lookups that share a round trip.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128},
		}, []string{"kind"}),
		share: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "batch_largest_share",
			Help:    "The part of a batch of several that belongs to the organization, for lookups to the integration, with the most of it.",
			Buckets: []float64{.1, .25, .5, .75, .9, 1},
		}, []string{"kind"}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "batch_rejections_total",
			Help: "Calls rejected because too many of their organization waited.",
		}),
	}
	for _, kind := range []string{writes, lookups} { // exported as 0 until the first
		b.size.WithLabelValues(kind)
		b.share.WithLabelValues(kind)
	}
	return b
}

// The values of the label kind.
const (
	writes  = "writes"
	lookups = "lookups"
)

// Writes counts a transaction.
func (b *Batches) Writes(size, largest int) { b.observe(writes, size, largest) }

// Lookups counts a round trip.
func (b *Batches) Lookups(size, largest int) { b.observe(lookups, size, largest) }

// Rejected counts a call.
func (b *Batches) Rejected() { b.rejected.Inc() }

func (b *Batches) observe(kind string, size, largest int) {
	b.size.WithLabelValues(kind).Observe(float64(size))
	if size > 1 {
		b.share.WithLabelValues(kind).Observe(float64(largest) / float64(size))
	}
}

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
