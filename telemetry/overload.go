package telemetry

import "github.com/prometheus/client_golang/prometheus"

// NewOverloads returns the counter of a process's calls that are rejected because too many of their
// organization wait, to register.
func NewOverloads() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "millwright", Name: "overload_rejections_total",
		Help: "Calls rejected because too many of their organization waited.",
	})
}
