package telemetry_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"millwright/telemetry"
)

func TestBatches(t *testing.T) {
	b := telemetry.NewBatches()
	b.Lookups(100, 20)
	b.Rejected()
	const want = `
# HELP millwright_batch_largest_share The part of a batch of several that belongs to the integration with the most of it.
# TYPE millwright_batch_largest_share histogram
millwright_batch_largest_share_bucket{le="0.1"} 0
millwright_batch_largest_share_bucket{le="0.25"} 1
millwright_batch_largest_share_bucket{le="0.5"} 1
millwright_batch_largest_share_bucket{le="0.75"} 1
millwright_batch_largest_share_bucket{le="0.9"} 1
millwright_batch_largest_share_bucket{le="1"} 1
millwright_batch_largest_share_bucket{le="+Inf"} 1
millwright_batch_largest_share_sum 0.2
millwright_batch_largest_share_count 1
# HELP millwright_batch_rejections_total Calls rejected because too many of their organization waited.
# TYPE millwright_batch_rejections_total counter
millwright_batch_rejections_total 1
`
	if err := testutil.CollectAndCompare(b, strings.NewReader(want), "millwright_batch_largest_share", "millwright_batch_rejections_total"); err != nil {
		t.Error(err)
	}
	if err := testutil.CollectAndCompare(b, strings.NewReader(`
# HELP millwright_batch_size Lookups that share a round trip.
# TYPE millwright_batch_size histogram
millwright_batch_size_bucket{le="1"} 0
millwright_batch_size_bucket{le="2"} 0
millwright_batch_size_bucket{le="4"} 0
millwright_batch_size_bucket{le="8"} 0
millwright_batch_size_bucket{le="16"} 0
millwright_batch_size_bucket{le="32"} 0
millwright_batch_size_bucket{le="64"} 0
millwright_batch_size_bucket{le="128"} 1
millwright_batch_size_bucket{le="+Inf"} 1
millwright_batch_size_sum 100
millwright_batch_size_count 1
`), "millwright_batch_size"); err != nil {
		t.Error(err)
	}
}
