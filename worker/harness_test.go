package worker

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var quiet = slog.New(slog.DiscardHandler)

// gather returns the collectors' values by name, or by name and label value.
func gather(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "millwright_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

func wantMetrics(t *testing.T, when string, got, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if n, shown := got[name]; !shown || n != value {
			t.Errorf("%s %s is %v, want %v", when, name, n, value)
		}
	}
}
