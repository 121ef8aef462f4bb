package upkeep_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
)

// days are the days of the attached partitions of a table, without the present ones.
func days(f *servicetest.Fixture, table string) string {
	return servicetest.Value[string](f, `SELECT coalesce(string_agg(to_char(day, 'MM-DD'), ' ' ORDER BY day), '')
		FROM partitions.days WHERE of = $1 AND attached AND day >= '2040-01-01'`, table)
}

// newPartitioned returns a fixture at noon of January 2, 2040, with partitions.
func newPartitioned(t *testing.T) *servicetest.Fixture {
	t.Helper()
	f := servicetest.New(t)
	f.Clock.Advance(time.Date(2040, time.January, 2, 12, 0, 0, 0, time.UTC).Sub(servicetest.Start))
	servicetest.Must(t, f.Store.MakePartitions(t.Context()))
	for n := 1; n > 0; { // partitions of the fixture and of the days in which the test runs
		n = servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0).Partitions
	}
	return f
}

func TestPartitionsAreMadeAhead(t *testing.T) {
	f := newPartitioned(t)
	const made = "01-01 01-02 01-03 01-04 01-05 01-06 01-07 01-08 01-09"
	for _, table := range []string{"events", "deliveries", "attempts"} {
		servicetest.Expect(t, table+" has partitions of", days(f, table), made)
	}
	// Any moment until the end of the last day is covered.
	f.Clock.Advance(7*24*time.Hour + 12*time.Hour - time.Millisecond)
	servicetest.Create(t, f)
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 500))
	servicetest.Expect(t, "the event's partition",
		left(f, "tableoid::regclass::text", "events"), "partitions.events_20400109")
	// Several workers start together, while a transaction writes.
	servicetest.ExecIn(t, servicetest.Begin(t, f), `INSERT INTO attempts SELECT delivery_id, number + 1, started_at, latency_ms, status FROM attempts`)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			if err := f.Store.MakePartitions(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	servicetest.Expect(t, "afterwards", days(f, "attempts"), made+" 01-10 01-11 01-12 01-13 01-14 01-15 01-16")
	if got := servicetest.Value[string](f, `SELECT string_agg(DISTINCT array_to_string(reloptions, ' '), '') FROM pg_class WHERE relname ~ '^(events|deliveries|attempts)_2040....$'`); !strings.Contains(got, "autovacuum_vacuum_insert_threshold=-1") {
		t.Errorf("their storage parameters are %q", got)
	}
}

// Without housekeeping for a week, calls that publish an event are errors. The checks of
// readiness and of a start make the partitions, a day before that.
func TestMissingPartitionsAreMadeByTheChecks(t *testing.T) {
	f := newPartitioned(t)
	check := func(after time.Duration, want string) {
		t.Helper()
		f.Clock.Advance(after)
		if err := f.Store.CheckSchema(t.Context()); err != nil {
			t.Error(err)
		}
		if got := days(f, "events"); !strings.HasSuffix(got, want) {
			t.Errorf("there are partitions of %s", got)
		}
	}
	check(6*24*time.Hour, "01-09") // 01-08: tomorrow's is there
	check(24*time.Hour, "01-16")
	f.Clock.Advance(8 * 24 * time.Hour)
	_, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
	if err == nil || !strings.Contains(err.Error(), `no partition of relation "events"`) {
		t.Errorf("without a partition: %v", err)
	}
	if backlog, err := f.Upkeep.Backlog(t.Context(), time.Minute); err != nil || backlog.PartitionDaysAhead != 0 {
		t.Errorf("the metric says %d days, %v", backlog.PartitionDaysAhead, err)
	}
	check(0, "01-24")
	servicetest.Create(t, f)
}

func TestDaysAreDroppedOnceAllOfThemHasExpired(t *testing.T) {
	f := newPartitioned(t)
	deliver := func() {
		t.Helper()
		servicetest.Create(t, f)
		servicetest.Create(t, f)
		claimed := servicetest.Claim(t, f, "erp_hook").Deliveries
		servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, claimed[0], 200))
		last := servicetest.MadeBefore(f, claimed[1], models.DeliveryAttempts-1)
		servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, last, 500)) // fails for good
		f.Exec(`UPDATE webhook_health SET failed_at = 'infinity' WHERE webhook_id = $1`, f.ID("erp_hook"))
		if off, err := f.Webhooks.TurnOffIfUnsuccessful(t.Context(), f.ID("erp_hook")); !off || err != nil {
			t.Fatalf("the address is off: %t, %v", off, err)
		}
		servicetest.Create(t, f) // held
		f.Clock.Advance(time.Millisecond)
		f.Exec(`UPDATE webhooks SET enabled = true, off_reason = NULL, off_at = NULL, held_before = $1`, f.Clock.Now())
		f.Exec(`DELETE FROM open_deliveries WHERE webhook_id <> $1`, f.ID("erp_hook"))
	}
	deliver()
	f.Clock.Advance(24 * time.Hour)
	deliver()
	stored := func() string {
		return servicetest.Value[string](f, `SELECT concat_ws(' ', (SELECT count(*) FROM events), (SELECT count(*) FROM deliveries), (SELECT count(*) FROM attempts))`)
	}
	before := stored()
	for _, step := range []struct {
		at                time.Time
		days, rows        string
		partitions, later int
	}{
		{time.Date(2040, time.February, 1, 23, 59, 59, 999e6, time.UTC), "01-02 01-03", before, 0, 0},
		{time.Date(2040, time.February, 2, 0, 0, 0, 0, time.UTC), "01-03", "3 2 1", 3, 0},
		{time.Date(2040, time.February, 2, 23, 59, 59, 0, time.UTC), "01-03", "3 2 1", 0, 0},
		{time.Date(2040, time.February, 3, 0, 0, 0, 0, time.UTC), "01-04", "0 0 0", 3, 0},
	} {
		f.Clock.Advance(step.at.Sub(f.Clock.Now()))
		got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
		if got.Partitions < step.partitions {
			t.Errorf("at %s it removed %+v, want %d partitions", step.at, got, step.partitions)
		}
		if got := days(f, "deliveries"); !strings.HasPrefix(got, step.days) || days(f, "events") != got || days(f, "attempts") != got {
			t.Errorf("at %s there are %s", step.at, got)
		}
		servicetest.Expect(t, "events, deliveries and attempts at "+step.at.String(), stored(), step.rows)
		servicetest.Expect(t, "partitions are detached and not dropped",
			servicetest.Value[int](f, `SELECT count(*) FROM partitions.days WHERE NOT attached`), 0)
	}
}

// An event past its retention is stored until its day ends, but not sent again.
func TestNothingIsSentAgainAfterItsRetention(t *testing.T) {
	f := newPartitioned(t)
	servicetest.Create(t, f)
	id := servicetest.Claim(t, f, "erp_hook").Deliveries[0].DeliveryID
	f.SetDeliveries(models.DeliveryFailed, `id = $1`, id)
	f.Clock.Advance(models.EventRetention)
	since := models.TimeOf(servicetest.Start)
	if n, err := f.Webhooks.RedeliverSince(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), since); err != nil || n != (webhooks.Released{Due: 1}) {
		t.Errorf("at the end of its retention %+v are sent again, %v", n, err)
	}
	f.SetDeliveries(models.DeliveryFailed, `id = $1`, id)
	f.Clock.Advance(time.Millisecond)
	if n, err := f.Webhooks.RedeliverSince(t.Context(), store.Operator(), store.NoKey, f.ID("erp_hook"), since); err != nil || n != (webhooks.Released{Expired: 1}) {
		t.Errorf("after its retention %+v are sent again, %v", n, err)
	}
	const expired = "The event is older than 30 days, so it is not sent again."
	if _, err := f.Webhooks.RedeliverDelivery(t.Context(), store.Operator(), store.NoKey, id); models.CodeOf(err) != models.CodeValidationFailed || err.Error() != expired {
		t.Errorf("it is sent again itself: %v", err)
	}
	if err := f.Webhooks.RetryNow(t.Context(), id); models.CodeOf(err) != models.CodeValidationFailed || err.Error() != expired {
		t.Errorf("its workflow sends it again: %v", err)
	}
	// In a selection it is left out, whether it is still stored or not.
	servicetest.Must(t, f.Store.MakePartitions(t.Context()))
	kept := servicetest.DeliveryOf(f, "erp_hook", servicetest.Create(t, f))
	f.SetDeliveries(models.DeliveryFailed, `id = $1`, kept)
	ids := []string{kept, id, "dlv_01kj0000000000000000000000"}
	if n, err := f.Webhooks.RedeliverSelected(t.Context(), store.Operator(), store.NoKey, ids); err != nil || n != (webhooks.Released{Due: 1, Expired: 2}) {
		t.Errorf("of a selection %+v are sent again, %v", n, err)
	}
	if n, err := f.Webhooks.RedeliverSelected(t.Context(), store.Operator(), store.NoKey, ids[1:]); err != nil || n != (webhooks.Released{Expired: 2}) {
		t.Errorf("of expired ones %+v are sent again, %v", n, err)
	}
}

// A delivery that is open keeps its day: finishing it stores it there. Housekeeping
// removes it, too, unless it is in use.
func TestAnOpenDeliveryKeepsItsDay(t *testing.T) {
	f := newPartitioned(t)
	servicetest.Create(t, f)
	f.Exec(`DELETE FROM open_deliveries WHERE webhook_id <> $1`, f.ID("erp_hook"))
	open := servicetest.Claim(t, f, "erp_hook").Deliveries[0]
	f.Clock.Advance(31 * 24 * time.Hour)
	writer := servicetest.Begin(t, f)
	servicetest.ExecIn(t, writer, `SELECT FROM open_deliveries FOR UPDATE`)
	if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); got.Partitions != 3 || days(f, "events")[:5] != "01-02" {
		t.Errorf("it removed %+v, want the partitions of the day before", got)
	}
	servicetest.Must(t, writer.Rollback(t.Context()))
	servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, open, 200))
	servicetest.Expect(t, "its status", servicetest.Status(t, f, open.DeliveryID), models.DeliveryDelivered)
	if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); got.Partitions != 3 || days(f, "events")[:5] != "01-03" {
		t.Errorf("then it removed %+v", got)
	}
}

// A transaction that uses a table keeps its expired days, without an error, and no write
// waits for it. A partition that was detached before a crash is dropped afterwards.
func TestATableInUseKeepsItsDays(t *testing.T) {
	f := newPartitioned(t)
	f.Clock.Advance(31 * 24 * time.Hour)
	servicetest.Must(t, f.Store.MakePartitions(t.Context()))
	dump := servicetest.Begin(t, f)
	servicetest.ExecIn(t, dump, `SELECT FROM attempts`)
	if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); got.Partitions != 2 {
		t.Errorf("while attempts are read it removed %+v, want two days of deliveries", got)
	}
	servicetest.Create(t, f)
	servicetest.Expect(t, "partitions are detached",
		servicetest.Value[int](f, `SELECT count(*) FROM partitions.days WHERE NOT attached`), 0)
	f.Clock.Advance(25 * time.Hour)
	if backlog, err := f.Upkeep.Backlog(t.Context(), time.Minute); err != nil || backlog.PartitionsOverdue != 4 {
		t.Errorf("the metric counts %d overdue partitions, %v", backlog.PartitionsOverdue, err)
	}
	servicetest.Must(t, dump.Rollback(t.Context()))
	f.Exec(`SELECT partitions.remove_next($1)`, f.Clock.Now().Add(-models.EventRetention))
	servicetest.Expect(t, "partitions are detached",
		servicetest.Value[int](f, `SELECT count(*) FROM partitions.days WHERE NOT attached`), 1)
	if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); got.Partitions != 7 {
		t.Errorf("afterwards it removed %+v, want the rest of three days", got)
	}
}

// Only the owner of the functions may run them, unless it grants that.
func TestPartitionFunctionsAreTheOwners(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Expect(t, "what everyone may run",
		left(f, "p.proname::text", `pg_proc p, aclexplode(p.proacl) a WHERE p.pronamespace = 'partitions'::regnamespace AND p.prosecdef AND a.grantee = 0`), "")
	servicetest.Expect(t, "what runs with the owner's rights",
		left(f, "proname::text", `pg_proc WHERE pronamespace = 'partitions'::regnamespace AND prosecdef AND proacl IS NOT NULL`), "empty_slot make remove_next")
}
