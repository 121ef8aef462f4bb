package telemetry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/telemetry"
)

// gathered returns a registry's values by name{label=value,…}. The value of a histogram
// is its number of observations.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			all[family.GetName()+"{"+strings.Join(labels, ",")+"}"] =
				m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestTemporalMetricsReachPrometheus(t *testing.T) {
	metrics := telemetry.NewTemporalMetrics()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	plain := metrics.Handler()
	queue := plain.WithTags(map[string]string{"namespace": "default", "task_queue": "a"})
	other := queue.WithTags(map[string]string{"task_queue": "b", "operation": "Poll"})

	plain.Counter("temporal_request").Inc(2)
	queue.Counter("temporal_request").Inc(3)
	queue.Counter("temporal_request").Inc(4)
	other.Counter("temporal_request").Inc(5)
	queue.Counter("temporal_local_activity_total").Inc(1)
	queue.Gauge("temporal_num_pollers").Update(8)
	queue.Gauge("temporal_num_pollers").Update(6)
	other.Timer("temporal_request_latency").Record(30 * time.Millisecond)
	other.Timer("temporal_request_latency").Record(time.Hour)

	got := gathered(t, registry)
	for name, want := range map[string]float64{
		"temporal_request_total{}":                                                        2,
		"temporal_request_total{namespace=default,task_queue=a}":                          7,
		"temporal_request_total{namespace=default,operation=Poll,task_queue=b}":           5,
		"temporal_local_activity_total{namespace=default,task_queue=a}":                   1,
		"temporal_num_pollers{namespace=default,task_queue=a}":                            6,
		"temporal_request_latency_seconds{namespace=default,operation=Poll,task_queue=b}": 2,
		"temporal_workflow_task_execution_failed_total{}":                                 0, // exported before the first failure
	} {
		if n, shown := got[name]; !shown || n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "temporal_request_latency_seconds" {
			if sum := family.GetMetric()[0].GetHistogram().GetSampleSum(); sum != 3600.03 {
				t.Errorf("the sum of latencies is %v s, want 3600.03", sum)
			}
		}
	}
}

func TestAMetricNameIsExportedForOneKindOnly(t *testing.T) {
	metrics := telemetry.NewTemporalMetrics()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	metrics.Handler().Counter("temporal_x").Inc(1)
	metrics.Handler().Gauge("temporal_x_total").Update(9)
	if got := gathered(t, registry)["temporal_x_total{}"]; got != 1 {
		t.Errorf("value %v, want 1, from the counter that came first", got)
	}
}
