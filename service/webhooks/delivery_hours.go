package webhooks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/webhook"
)

// latencyBounds are the upper bounds of the buckets of latencies in delivery_hours, in
// milliseconds. The last bucket has none.
var latencyBounds = []int{5, 10, 20, 35, 50, 75, 100, 150, 250, 400, 600, 1000, 2000, 4000, 7000, 10_000}

// FailureKinds are the classes of failed attempts that are counted.
var FailureKinds = []webhook.Kind{
	webhook.KindTimeout, webhook.KindConnectionRefused, webhook.KindUnreachable, webhook.KindDNS, webhook.KindTLS,
	webhook.KindBlockedAddress, webhook.KindReset, webhook.KindBadResponse, webhook.KindOther,
}

// The columns of delivery_hours: outcomes, responses by their class from 2xx, failures
// without a response, latencies.
const (
	countDelivered = iota
	countRetried
	countFailed
	countResponses // of 2xx; 3xx to 5xx follow
	countKinds     = countResponses + 4
)

var (
	countLatencies = countKinds + len(FailureKinds)
	countsOfHour   = countLatencies + len(latencyBounds) + 1
)

// hourColumns are the names of the counts in delivery_hours.
var hourColumns = func() []string {
	columns := []string{"delivered", "retried", "failed", "responses_2xx", "responses_3xx", "responses_4xx", "responses_5xx"}
	for _, kind := range FailureKinds {
		columns = append(columns, string(kind))
	}
	for _, bound := range latencyBounds {
		columns = append(columns, "latency_"+strconv.Itoa(bound))
	}
	return append(columns, "latency_more")
}()

// countHourQuery adds the counts $3 to the hour $2 of the address $1, if there is such an
// address.
var countHourQuery = func() string {
	var values, sums []string
	for i, column := range hourColumns {
		values = append(values, fmt.Sprintf("($3::integer[])[%d]", i+1))
		sums = append(sums, fmt.Sprintf("%s = h.%[1]s + excluded.%[1]s", column))
	}
	return `INSERT INTO delivery_hours AS h (webhook_id, hour, ` + strings.Join(hourColumns, ", ") + `)
	SELECT id, $2::timestamptz, ` + strings.Join(values, ", ") + ` FROM webhooks WHERE id = $1
	ON CONFLICT (webhook_id, hour) DO UPDATE SET ` + strings.Join(sums, ", ")
}()

// countsOf returns the counts of attempts for delivery_hours.
func (s *Webhooks) countsOf(attempts []Attempt, now models.Time) []int32 {
	counts := make([]int32, countsOfHour)
	for _, a := range attempts {
		switch a.NextStatus(s.RetrySchedule, now).Status {
		case models.DeliveryDelivered:
			counts[countDelivered]++
		case models.DeliveryRetrying:
			counts[countRetried]++
		default:
			counts[countFailed]++
		}
		if class := a.Status / 100; class >= 2 && class <= 5 {
			counts[countResponses+class-2]++
		} else {
			kind := slices.Index(FailureKinds, a.Problem)
			if kind < 0 {
				kind = len(FailureKinds) - 1 // other
			}
			counts[countKinds+kind]++
		}
		bucket, _ := slices.BinarySearch(latencyBounds, int(a.Latency.Milliseconds()))
		counts[countLatencies+bucket]++
	}
	return counts
}

// queueHours adds the statements that store counts of the address.
func queueHours(pipeline *pgx.Batch, webhookID string, hours []hourCounts) {
	for _, h := range hours {
		pipeline.Queue(countHourQuery, webhookID, h.hour, h.counts)
	}
}
