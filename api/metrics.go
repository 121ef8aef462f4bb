package api

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/models"
)

// metrics are what the API counts. Labels are route templates, methods of HTTP,
// statuses and codes, so their number is bounded.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	refusals *prometheus.CounterVec
	inFlight prometheus.Gauge
}

// newMetrics makes the metrics and registers them where there is a registerer.
func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	const namespace, subsystem = "millwright", "http"
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_total",
			Help: "Calls answered, by method, route template and status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "request_duration_seconds",
			Help:    "Time from a call's headers to the end of its answer, by method and route template.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method", "route"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "refusals_total",
			Help: "Calls refused, by the code of the refusal; rate_limited ones were over their limit of calls.",
		}, []string{"code"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "requests_in_flight",
			Help: "Calls being answered.",
		}),
	}
	for code := range statuses {
		m.refusals.WithLabelValues(string(code)) // shown as 0 before the first
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.refusals, m.inFlight} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// methods are those that are told apart.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodPut, http.MethodOptions}

// knownMethod is the method as metrics, spans and the log name it: a client may
// invent others, and write anything there.
func knownMethod(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

// answered counts a call.
func (m *metrics) answered(method, route string, status int, code models.Code, took time.Duration) {
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
	if code != "" {
		m.refusals.WithLabelValues(string(code)).Inc()
	}
}
