package webhooks

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// DeliveryFigures are the attempts of a time at an organization's addresses, or at one.
type DeliveryFigures struct {
	At models.Time
	// Delivered, Retried and Failed are the attempts by what followed.
	Delivered, Retried, Failed int
	// Responses are the attempts with 2xx to 5xx, Kinds the attempts without a response by FailureKinds.
	Responses [4]int
	Kinds     []int
	// P50 and P95 are latencies, estimated from the buckets; 0 without an attempt.
	P50, P95 time.Duration
}

// Total is the number of attempts.
func (f DeliveryFigures) Total() int { return f.Delivered + f.Retried + f.Failed }

// hourRow is a sum of delivery_hours.
type hourRow struct {
	At     models.Time
	Counts []int64
}

// figuresQuery sums the hours since @since in steps of @step seconds.
var figuresQuery = func() string {
	sums := make([]string, len(hourColumns))
	for i, column := range hourColumns {
		sums[i] = "sum(d." + column + ")::bigint"
	}
	return `SELECT date_bin(make_interval(secs => @step), d.hour, @since) AS at, ARRAY[` + strings.Join(sums, ", ") + `] AS counts
	FROM webhooks h JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
	JOIN delivery_hours d ON d.webhook_id = h.id AND d.hour >= @since
	WHERE h.organization_id = @organization AND (@webhook = '' OR h.id = @webhook)
	GROUP BY 1 ORDER BY 1`
}()

// stepsOf are the times at which the steps of the span begin that ends with the current step, oldest first.
func stepsOf(now time.Time, span, step time.Duration) []models.Time {
	var times []models.Time
	for at := now.UTC().Truncate(step).Add(step - span); !at.After(now); at = at.Add(step) {
		times = append(times, models.TimeOf(at))
	}
	return times
}

// DeliveryFigures returns the attempts of the actor's organization, or at one of its
// addresses: a value for each step of the span that ends with the current one, the oldest
// first. Errors:
// permission_denied, not_found (no such address), unavailable.
func (s *Webhooks) DeliveryFigures(ctx context.Context, actor store.Actor, webhookID string, span, step time.Duration) ([]DeliveryFigures, error) {
	times := stepsOf(s.Now(), span, step)
	var known bool
	var rows []hourRow
	args := pgx.NamedArgs{
		"organization": actor.OrganizationID, "webhook": webhookID, "since": times[0], "step": step.Seconds(),
	}
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		access.QueueMayManage(pipeline, actor)
		pipeline.Queue(`SELECT @webhook = '' OR EXISTS (SELECT FROM webhooks h JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
			WHERE h.id = @webhook AND h.organization_id = @organization)`, args).
			QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
		return nil
	}, func(pipeline *pgx.Batch) error {
		if !known {
			return models.NotFound()
		}
		store.QueueAll(pipeline, &rows, figuresQuery, args)
		return nil
	}}, func() ([]DeliveryFigures, error) {
		byTime := map[int64]hourRow{}
		for _, row := range rows {
			byTime[row.At.Unix()] = row
		}
		var figures []DeliveryFigures
		for _, at := range times {
			row, found := byTime[at.Unix()]
			if !found {
				row.Counts = make([]int64, countsOfHour)
			}
			figures = append(figures, figuresOf(at, row.Counts))
		}
		return figures, nil
	})
}

func figuresOf(at models.Time, counts []int64) DeliveryFigures {
	f := DeliveryFigures{
		At: at, Delivered: int(counts[countDelivered]), Retried: int(counts[countRetried]), Failed: int(counts[countFailed]),
		P50: percentile(counts[countLatencies:], .5), P95: percentile(counts[countLatencies:], .95),
	}
	for i := range f.Responses {
		f.Responses[i] = int(counts[countResponses+i])
	}
	for _, n := range counts[countKinds:countLatencies] {
		f.Kinds = append(f.Kinds, int(n))
	}
	return f
}

// percentile estimates a percentile of latencies from the numbers in their buckets, as if
// the latencies of a bucket were spread evenly. The last bucket counts as its lower bound.
func percentile(buckets []int64, p float64) time.Duration {
	var total int64
	for _, n := range buckets {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank, below := p*float64(total), 0.0
	for i, n := range buckets {
		if below+float64(n) < rank || n == 0 {
			below += float64(n)
			continue
		}
		low := 0
		if i > 0 {
			low = latencyBounds[i-1]
		}
		if i == len(latencyBounds) {
			return time.Duration(low) * time.Millisecond
		}
		part := (rank - below) / float64(n)
		return time.Duration((float64(low) + part*float64(latencyBounds[i]-low)) * float64(time.Millisecond))
	}
	return time.Duration(latencyBounds[len(latencyBounds)-1]) * time.Millisecond
}
