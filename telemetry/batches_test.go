package telemetry_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"millwright/telemetry"
)

func TestBatches(t *testing.T) {
	b := telemetry.NewBatches()
	b.Writes(1, 1) // has no share
	b.Writes(4, 3)
	b.Lookups(100, 20)
	b.Rejected()
	const want = `
# HELP millwright_batch_largest_share The part of a batch of several that belongs to the organization, for lookups to the integration, with the most of it.
# TYPE millwright_batch_largest_share histogram
millwright_batch_largest_share_bucket{kind="lookups",le="0.1"} 0
millwright_batch_largest_share_bucket{kind="lookups",le="0.25"} 1
millwright_batch_largest_share_bucket{kind="lookups",le="0.5"} 1
millwright_batch_largest_share_bucket{kind="lookups",le="0.75"} 1
millwright_batch_largest_share_bucket{kind="lookups",le="0.9"} 1
millwright_batch_largest_share_bucket{kind="lookups",le="1"} 1
millwright_batch_largest_share_bucket{kind="lookups",le="+Inf"} 1
millwright_batch_largest_share_sum{kind="lookups"} 0.2
millwright_batch_largest_share_count{kind="lookups"} 1
millwright_batch_largest_share_bucket{kind="writes",le="0.1"} 0
millwright_batch_largest_share_bucket{kind="writes",le="0.25"} 0
millwright_batch_largest_share_bucket{kind="writes",le="0.5"} 0
millwright_batch_largest_share_bucket{kind="writes",le="0.75"} 1
millwright_batch_largest_share_bucket{kind="writes",le="0.9"} 1
millwright_batch_largest_share_bucket{kind="writes",le="1"} 1
millwright_batch_largest_share_bucket{kind="writes",le="+Inf"} 1
millwright_batch_largest_share_sum{kind="writes"} 0.75
millwright_batch_largest_share_count{kind="writes"} 1
# HELP millwright_batch_rejections_total Calls rejected because too many of their organization waited.
# TYPE millwright_batch_rejections_total counter
millwright_batch_rejections_total 1
`
	if err := testutil.CollectAndCompare(b, strings.NewReader(want), "millwright_batch_largest_share", "millwright_batch_rejections_total"); err != nil {
		t.Error(err)
	}
	if err := testutil.CollectAndCompare(b, strings.NewReader(`
# HELP millwright_batch_size Writes that share a transaction, or lookups that share a round trip.
# TYPE millwright_batch_size histogram
millwright_batch_size_bucket{kind="lookups",le="1"} 0
millwright_batch_size_bucket{kind="lookups",le="2"} 0
millwright_batch_size_bucket{kind="lookups",le="4"} 0
millwright_batch_size_bucket{kind="lookups",le="8"} 0
millwright_batch_size_bucket{kind="lookups",le="16"} 0
millwright_batch_size_bucket{kind="lookups",le="32"} 0
millwright_batch_size_bucket{kind="lookups",le="64"} 0
millwright_batch_size_bucket{kind="lookups",le="128"} 1
millwright_batch_size_bucket{kind="lookups",le="+Inf"} 1
millwright_batch_size_sum{kind="lookups"} 100
millwright_batch_size_count{kind="lookups"} 1
millwright_batch_size_bucket{kind="writes",le="1"} 1
millwright_batch_size_bucket{kind="writes",le="2"} 1
millwright_batch_size_bucket{kind="writes",le="4"} 2
millwright_batch_size_bucket{kind="writes",le="8"} 2
millwright_batch_size_bucket{kind="writes",le="16"} 2
millwright_batch_size_bucket{kind="writes",le="32"} 2
millwright_batch_size_bucket{kind="writes",le="64"} 2
millwright_batch_size_bucket{kind="writes",le="128"} 2
millwright_batch_size_bucket{kind="writes",le="+Inf"} 2
millwright_batch_size_sum{kind="writes"} 5
millwright_batch_size_count{kind="writes"} 2
`), "millwright_batch_size"); err != nil {
		t.Error(err)
	}
}
