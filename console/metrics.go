package console

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the console's Prometheus metrics. Labels are methods, route patterns,
// statuses and results, so the number of series is bounded.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	signIns  *prometheus.CounterVec
}

// The results of sign-ins.
const (
	signInSucceeded = "succeeded"
	signInFailed    = "failed"
	signInLimited   = "limited"
)

// newMetrics makes the metrics and registers them unless the registerer is nil. It panics if they are registered.
func newMetrics(registerer prometheus.Registerer) *metrics {
	const namespace, subsystem = "millwright", "console"
	with := promauto.With(registerer)
	m := &metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total",
			Help: "Requests for pages of the console, by method, route pattern and status.",
		}, []string{"method", "route", "status"}),
		duration: with.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "request_duration_seconds",
			Help:    "Time from a request's headers to the end of its page, by method and route pattern.",
			Buckets: []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method", "route"}),
		signIns: with.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "sign_ins_total",
			Help: "Attempts to sign in to the console, by result.",
		}, []string{"result"}),
	}
	for _, result := range []string{signInSucceeded, signInFailed, signInLimited} {
		m.signIns.WithLabelValues(result) // exported as 0 until the first
	}
	return m
}

// knownMethod returns the method for metrics and the log: a client may send any text.
func knownMethod(method string) string {
	if slices.Contains([]string{http.MethodGet, http.MethodPost}, method) {
		return method
	}
	return "other"
}

func (m *metrics) count(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(knownMethod(method), route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(knownMethod(method), route).Observe(took.Seconds())
}
