package effects_test

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// crockford is the alphabet of ids.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

func TestDeliveryIDsDrawnByPostgresAreThoseOfNewID(t *testing.T) {
	const rows = 10_000
	f := servicetest.New(t)
	events := make([]string, rows)
	at := time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
	for i := range events {
		var err error
		if events[i], err = models.NewID(models.PrefixEvent, at.Add(time.Duration(i)*time.Microsecond), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	found, err := f.Pool.Query(t.Context(), `
		SELECT `+effects.DeliveryID("x.event", "x.random")+`
		FROM (SELECT event, nth, uuid_send(gen_random_uuid()) AS random FROM unnest($1::text[]) WITH ORDINALITY u (event, nth)) x
		ORDER BY x.nth`, events)
	servicetest.Must(t, err)
	ids, err := pgx.CollectRows(found, pgx.RowTo[string])
	servicetest.Must(t, err)

	var digits [26][len(crockford)]int
	for i, id := range ids {
		if !models.IsID(id, models.PrefixDelivery) {
			t.Fatalf("%q is no id of a delivery", id)
		}
		if first := models.FirstID(models.PrefixDelivery, at.Add(time.Duration(i)*time.Microsecond)); id < first {
			t.Fatalf("%s is below %s, the first id of its time", id, first)
		}
		for n, digit := range id[len(models.PrefixDelivery)+1:] {
			digits[n][strings.IndexRune(crockford, digit)]++
		}
	}
	if len(ids) != rows {
		t.Fatalf("%d ids of %d rows", len(ids), rows)
	}
	if !slices.IsSorted(ids) {
		t.Error("ids of later events do not sort after earlier ones")
	}
	servicetest.Expect(t, "different ids", len(slices.Compact(slices.Sorted(slices.Values(ids)))), rows)
	// UUIDv7 (RFC 9562): the version is in the digits 11, the variant in the digits 14.
	allowed := map[int]string{10: "ef", 13: "89abrstv"}
	for n := 10; n < 26; n++ {
		if n == 11 || n == 12 { // time
			continue
		}
		expected := allowed[n]
		if expected == "" {
			expected = crockford
		}
		for digit, count := range digits[n] {
			if !strings.ContainsRune(expected, rune(crockford[digit])) && count > 0 {
				t.Errorf("digit %d is %c in %d ids", n+1, crockford[digit], count)
			}
			// Binomial: 312 of 10,000 with a standard deviation of 17; the limits are more than seven of them away.
			if n > 13 && (count < 190 || count > 440) {
				t.Errorf("digit %d is %c in %d ids of %d, want about %d", n+1, crockford[digit], count, rows, rows/len(crockford))
			}
		}
	}
}

// The ids order the deliveries of a record, so the ids of a change's events ascend. They stay in the change's
// millisecond, by which they are found.
func TestIDsOfTheEventsOfAChangeAscend(t *testing.T) {
	f := servicetest.NewHarness(t)
	id := f.NewWorkOrder([]string{"erp"}, nil)
	f.ClearEffects(id)
	const events = 50 // by chance they would not be in order
	change := effects.Change{
		Actor: f.Actor("erp"), OrganizationID: f.Acme.OrganizationID, RecordID: id, Action: string(models.EventWorkOrderUpdated), Changes: models.JSON{},
	}
	var want []int
	for n := range events {
		change.Events = append(change.Events, effects.Event{Type: models.EventWorkOrderUpdated, Data: models.JSON{"nth": n}})
		want = append(want, n)
	}
	var at models.Time
	err := f.Effects.Transaction(t.Context(), f.Acme.OrganizationID, store.NoKey, func(t *store.Tx) error {
		at = t.At
		return effects.Queue(t, change)
	})
	servicetest.Must(t, err)
	for kind, query := range map[string]string{
		"events":     `SELECT array_agg((data ->> 'nth')::int ORDER BY id) FROM events WHERE record_id = $1 AND $2 <> '' AND id >= $3 AND id < $4`,
		"deliveries": `SELECT array_agg((e.data ->> 'nth')::int ORDER BY d.id) FROM all_deliveries d JOIN events e ON e.id = d.event_id WHERE d.record_id = $1 AND d.webhook_id = $2 AND d.id >= $3 AND d.id < $4`,
	} {
		prefix := map[string]models.IDPrefix{"events": models.PrefixEvent, "deliveries": models.PrefixDelivery}[kind]
		got := servicetest.Value[[]int](f.Fixture, query, id, f.ID("erp_hook"), models.FirstID(prefix, at.Time), models.FirstID(prefix, at.Add(time.Millisecond)))
		if !slices.Equal(got, want) {
			t.Errorf("by their ids the %s of one change are %v", kind, got)
		}
	}
}

// The write is held between its rules, which count the addresses, and its events.
func TestAnAddressCreatedWhileAWriteRunsGetsItsEvent(t *testing.T) {
	f := servicetest.NewHarness(t)
	id := f.NewWorkOrder([]string{"erp"}, nil)
	f.ClearEffects(id)
	const late = "whk_01kjq7k69re00b2a00av14smbj"
	other := servicetest.Begin(t, f.Fixture)
	servicetest.ExecIn(t, other, `LOCK TABLE log IN SHARE MODE`)
	changed := make(chan error)
	go func() {
		_, err := f.Records.UpdateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, id, records.WorkOrderPatch{Title: records.Sent[string]{Value: "Replace both filters", Set: true}})
		changed <- err
	}()
	servicetest.AwaitLocks(t, f.Fixture, 1)
	servicetest.ExecIn(t, other, `
		INSERT INTO webhooks SELECT (jsonb_populate_record(h, jsonb_build_object('id', $2::text, 'slot', h.slot + 1))).*
		FROM webhooks h WHERE id = $1`, f.ID("erp_hook"), late)
	servicetest.Must(t, other.Commit(t.Context()))
	if err := <-changed; err != nil {
		t.Fatalf("the update fails: %v", err)
	}
	for _, address := range []string{f.ID("erp_hook"), late} {
		servicetest.Expect(t, "deliveries for "+address,
			servicetest.Value[int](f.Fixture, `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1 AND record_id = $2`, address, id), 1)
	}
}
