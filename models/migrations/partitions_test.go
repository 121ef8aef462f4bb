package migrations_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// beforePartitions is the version of the schema without partitions.
const beforePartitions = 30

// digitsOf are the digits that hold the time in an id.
func digitsOf(at time.Time) string { return models.FirstID("", at)[1:11] }

const (
	insertEvent = `INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
		VALUES ('evt_' || $1, '` + organization + `', 'ping', 'wo_1', '` + person + `', '{}', now())`
	insertDelivery = `INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, attempts, created_at, next_attempt_at)
		VALUES ('dlv_' || $1, 'evt_' || $1, 'whk_1', 'wo_1', $2, 1, now(), CASE WHEN $2 = 'retrying' THEN now() END)`
	insertAttempt = `INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status) VALUES ('dlv_' || $1, 1, now(), 12, 500)`
)

// publishAsEarlier inserts an event with a delivery and its attempt as programs of the
// earlier version do.
func (h *harness) publishAsEarlier(ctx context.Context, id, status string) error {
	pipeline := &pgx.Batch{}
	pipeline.Queue(insertEvent, id)
	pipeline.Queue(insertDelivery, id, status)
	pipeline.Queue(insertAttempt, id)
	return h.SendBatch(ctx, pipeline).Close()
}

func (h *harness) mustPublishAsEarlier(id, status string) {
	h.t.Helper()
	if err := h.publishAsEarlier(h.t.Context(), id, status); err != nil {
		h.t.Fatal(err)
	}
}

// everything is a digest of events, deliveries and attempts.
func (h *harness) everything() string {
	h.t.Helper()
	var all []string
	for _, table := range []string{"events", "deliveries", "attempts"} {
		all = append(all, value[string](h, fmt.Sprintf(`SELECT count(*) || ' ' || md5(string_agg(to_jsonb(r)::text, '' ORDER BY to_jsonb(r)::text)) FROM %s r`, table)))
	}
	return strings.Join(all, ", ")
}

// Tables with rows become the former partitions as they are, while programs of the
// earlier version insert, and these go on afterwards.
func TestTablesWithRowsBecomeTheFormerPartitions(t *testing.T) {
	h := newHarness(t, beforePartitions)
	now := time.Now().UTC()
	for i, status := range []string{"pending", "retrying", "failed", "held", "delivered", "skipped"} {
		for age := range 40 {
			h.mustPublishAsEarlier(fmt.Sprintf("%s%d", digitsOf(now.AddDate(0, 0, -age)), i), status)
		}
	}
	const files = `SELECT string_agg(oid::text || ' ' || relfilenode, ', ' ORDER BY oid) FROM pg_class
		WHERE relkind IN ('r', 'i') AND relname ~ '^(events|deliveries|attempts)_?(before_.*|pkey|kept|of_address|pending|retrying.*|)$' AND pg_relation_size(oid) > 0`
	before, stored := value[string](h, files), h.everything()
	h.upTo(beforePartitions + 1)
	if after := value[string](h, files); after != before || strings.Count(after, ",") != 10 {
		t.Errorf("files were written again:\n%s\n%s", before, after)
	}
	if after := h.everything(); after != stored {
		t.Errorf("rows differ:\n%s\n%s", stored, after)
	}
	h.again(beforePartitions + 1)
	if after := h.everything(); after != stored {
		t.Errorf("after another run rows differ:\n%s\n%s", stored, after)
	}
	if columns := value[string](h, `SELECT (SELECT string_agg(id, ' ') FROM all_deliveries WHERE id = 'dlv_' || $1) || (SELECT string_agg(status::text, ' ') FROM all_attempts WHERE delivery_id = 'dlv_' || $1)`,
		digitsOf(now)+"4"); columns != "dlv_"+digitsOf(now)+"4500" {
		t.Errorf("the views read %q", columns)
	}

	// The earlier program inserts today, tomorrow and the day after that into them.
	for ahead := range 3 {
		h.mustPublishAsEarlier(fmt.Sprintf("%s%d", digitsOf(now.AddDate(0, 0, ahead)), 7), "pending")
	}
	if n := value[int](h, `SELECT count(*) FROM former_deliveries WHERE id LIKE '%7' AND status = 'pending'`); n != 3 {
		t.Errorf("%d of 3 deliveries are found by this version", n)
	}
	// Later its open deliveries and its removal of events by their place are errors: this
	// version would not find the former, and the latter would remove other events.
	later := now.AddDate(0, 0, 4)
	if err := h.publishAsEarlier(t.Context(), digitsOf(later)+"8", "pending"); err == nil || !strings.Contains(err.Error(), "deliveries_status_check") {
		t.Errorf("a pending delivery in the partition of a day: %v", err)
	}
	h.mustPublishAsEarlier(digitsOf(later)+"9", "held")
	_, err := h.Exec(t.Context(), `DELETE FROM events WHERE ctid = ANY (ARRAY(SELECT ctid FROM events WHERE created_at <= now() ORDER BY created_at LIMIT 1000))`)
	if err == nil || !strings.Contains(err.Error(), "with their partition") {
		t.Errorf("removing events by their place: %v", err)
	}
}

// A new installation has partitions of days at once, and so do its past events.
func TestTablesWithoutRowsAreDividedAtOnce(t *testing.T) {
	h := newHarness(t, beforePartitions)
	h.upTo(beforePartitions + 1)
	now := time.Now().UTC()
	for ahead := -40; ahead <= 7; ahead++ {
		h.mustPublishAsEarlier(digitsOf(now.AddDate(0, 0, ahead))+"1", "held")
	}
	if n := value[int](h, `SELECT count(*) FROM former_events`); n != 40 {
		t.Errorf("%d events are in the former partition, want those of the 40 days before today", n)
	}
	if err := h.publishAsEarlier(t.Context(), digitsOf(now.AddDate(0, 0, 9))+"1", "held"); err == nil {
		t.Error("an event without a partition is stored")
	}
}

// Programs of the earlier version insert all the time, and a transaction that uses the
// tables for longer makes the migration wait, not them.
func TestTheEarlierProgramInsertsWhileItsTablesAreDivided(t *testing.T) {
	h := newHarness(t, beforePartitions)
	now := time.Now().UTC()
	h.mustPublishAsEarlier(digitsOf(now)+"0", "pending")
	reader, err := h.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `SELECT FROM events, deliveries, attempts`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var mu sync.Mutex
	inserted, longest := 1, time.Duration(0)
	for writer := range 2 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				if err := h.publishAsEarlier(context.WithoutCancel(ctx), fmt.Sprintf("%s%d%d", digitsOf(now), writer+1, n), "pending"); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inserted, longest = inserted+1, max(longest, time.Since(began))
				if inserted == 300 {
					_ = reader.Rollback(context.WithoutCancel(ctx))
				}
				mu.Unlock()
			}
		})
	}
	h.upTo(beforePartitions + 1)
	cancel()
	writers.Wait()
	if n := value[int](h, `SELECT count(*) FROM events JOIN deliveries d ON event_id = events.id JOIN attempts ON delivery_id = d.id`); n != inserted {
		t.Errorf("%d of %d events are stored", n, inserted)
	}
	t.Logf("%d events, the slowest in %s", inserted, longest)
}

// A run that was interrupted after it bounded the tables, and is repeated after that
// bound has passed.
func TestAnInterruptedDivisionIsRepeated(t *testing.T) {
	h := newHarness(t, beforePartitions)
	now := time.Now().UTC()
	h.mustPublishAsEarlier(digitsOf(now)+"0", "pending")
	for table, id := range map[string]string{"events": "id", "deliveries": "id", "attempts": "delivery_id"} {
		h.exec(fmt.Sprintf(`ALTER TABLE %[1]s ADD CONSTRAINT %[1]s_before_%[2]s CHECK (%[3]s < 'evt_0') NOT VALID`, table, now.Format("20060102"), id))
	}
	h.upTo(beforePartitions + 1)
	h.mustPublishAsEarlier(digitsOf(now.AddDate(0, 0, 2))+"1", "pending")
	if former := value[string](h, `SELECT string_agg(ends::text, ' ') FROM partitions.days WHERE day IS NULL`); former != strings.Repeat(now.AddDate(0, 0, 3).Format(" 2006-01-02"), 3)[1:] {
		t.Errorf("the former partitions end at %s", former)
	}
	if n := value[int](h, `SELECT count(*) FROM pg_constraint WHERE conname LIKE '%\_before\_%' AND contype = 'c'`); n != 0 {
		t.Errorf("%d bounds are left", n)
	}
}
