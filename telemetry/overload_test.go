package telemetry

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestOverloads(t *testing.T) {
	o := NewOverloads()
	o.Inc()
	if err := testutil.CollectAndCompare(o, strings.NewReader(`
# HELP millwright_overload_rejections_total Calls rejected because too many of their organization waited.
# TYPE millwright_overload_rejections_total counter
millwright_overload_rejections_total 1
`)); err != nil {
		t.Error(err)
	}
}
