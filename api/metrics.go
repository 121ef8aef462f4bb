package api

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"millwright/models"
)

// metrics are the API's Prometheus metrics. Labels are methods, route templates,
// statuses and problem codes, so the number of series is bounded.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	problems *prometheus.CounterVec
	inFlight prometheus.Gauge
}

// newMetrics makes the metrics and registers them unless the registerer is nil. It panics if they are registered.
func newMetrics(registerer prometheus.Registerer) *metrics {
	const namespace, subsystem = "millwright", "http"
	with := promauto.With(registerer)
	m := &metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total",
			Help: "HTTP calls, by method, route template and status.",
		}, []string{"method", "route", "status"}),
		duration: with.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "request_duration_seconds",
			Help:    "Time from a call's request headers to the end of its response, by method and route template.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method", "route"}),
		problems: with.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "rejections_total",
			Help: "Calls that ended with a problem, by its code; rate_limited ones exceeded their call limit.",
		}, []string{"code"}),
		inFlight: with.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_in_flight",
			Help: "Calls in progress.",
		}),
	}
	for code := range statuses {
		m.problems.WithLabelValues(string(code)) // exported as 0 until the first
	}
	return m
}

// methods are the values of the method label; all others are "other".
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodPut, http.MethodOptions}

// knownMethod returns the method for metrics, spans and the log: a client may send
// any text as its method.
func knownMethod(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

// count counts a call that has ended.
func (m *metrics) count(method, route string, status int, code models.Code, took time.Duration) {
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
	if code != "" {
		m.problems.WithLabelValues(string(code)).Inc()
	}
}
