package service_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"millwright/models"
	"millwright/models/migrations"
	"millwright/service"
	"millwright/service/servicetest"
)

// previousSchema is the version before deliveries were divided into two tables.
const previousSchema = 25

// databaseAt returns the URL of a new database with the schema of a version.
func databaseAt(t *testing.T, version int64) string {
	t.Helper()
	url := servicetest.EmptyDatabase(t)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return url
}

// connection connects to the database without the program's pool and its settings. exec
// runs a statement that must succeed.
func connection(t *testing.T, url string) (conn *pgx.Conn, exec func(sql string, args ...any)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn, func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// previousDeliveries inserts a delivery of each status as the previous release's program
// does. Its ids and positions follow the given number.
const previousDeliveries = `
	WITH event AS (
		INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
		SELECT 'evt_' || $1 || n, $2, 'work_order.created', $4, $5, '{}', $6::timestamptz FROM generate_series(1, 6) n RETURNING id
	)
	INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, attempts, next_attempt_at, last_status, created_at)
	SELECT replace(id, 'evt', 'dlv'), id, $3, $4, s.status, s.attempts, CASE WHEN s.status = 'retrying' THEN $6::timestamptz END,
		CASE WHEN s.attempts > 0 THEN 500 END, $6
	FROM event JOIN (VALUES (1, 'pending', 0), (2, 'retrying', 1), (3, 'failed', 1), (4, 'held', 0), (5, 'delivered', 1), (6, 'skipped', 0))
		s (n, status, attempts) ON right(id, 1) = s.n::text
	ORDER BY id`

const previousAttempts = `
	INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status)
	SELECT id, 1, created_at, 12, 500 FROM deliveries WHERE attempts = 1 AND id LIKE 'dlv_' || $1 || '%'`

// A database of the previous release keeps every delivery through the expansion, while
// its program runs next to this one, and through the contraction.
func TestDeliveriesOfThePreviousReleaseAreKept(t *testing.T) {
	url := databaseAt(t, previousSchema)
	_, exec := connection(t, url)
	first := "01kj" // ids of the first hours of March 2026
	exec(previousDeliveries, first, "idn_x", "whk_x", "wo_x", "idn_x", servicetest.Start)
	exec(previousAttempts, first)
	if n, err := service.Migrate(t.Context(), url, ""); err != nil || n == 0 {
		t.Fatalf("%d migrations, %v", n, err)
	}
	f := servicetest.On(t, url)
	record := create(t, f)
	f.Exec(`UPDATE deliveries SET webhook_id = $1, record_id = $2`, f.ID("erp_hook"), record)
	f.Exec(`UPDATE events SET organization_id = $1, actor_id = $2, record_id = $3`, f.Acme.OrganizationID, f.ID("erp"), record)

	// The previous program goes on, after a change through this one.
	second := "01kk"
	exec(previousDeliveries, second, f.Acme.OrganizationID, f.ID("erp_hook"), record, f.ID("erp"), servicetest.Start)
	exec(previousAttempts, second)
	pending := []string{"dlv_" + first + "1", deliveryOf(f, "erp_hook", record), "dlv_" + second + "1"}
	f.Clock.Advance(time.Minute)

	views, err := f.Deliveries(t.Context(), service.DeliveryFilter{WebhookID: f.ID("erp_hook")})
	if err != nil || len(views) != 13 {
		t.Errorf("%d deliveries are listed, want 13: %v", len(views), err)
	}
	for _, status := range []models.DeliveryStatus{models.DeliveryPending, models.DeliveryRetrying, models.DeliveryFailed} {
		views, err := f.Deliveries(t.Context(), service.DeliveryFilter{WebhookID: f.ID("erp_hook"), Statuses: []models.DeliveryStatus{status}})
		if want := map[models.DeliveryStatus]int{models.DeliveryPending: 3}[status]; err != nil || len(views) != max(want, 2) {
			t.Errorf("%d %s ones are listed: %v", len(views), status, err)
		}
	}
	unclaimed, err := f.Unclaimed(t.Context(), time.Second)
	for _, want := range []service.WakeTarget{
		{Kind: service.TargetWebhook, ID: f.ID("erp_hook")}, {Kind: service.TargetDelivery, ID: "dlv_" + first + "2"}, {Kind: service.TargetDelivery, ID: "dlv_" + second + "2"},
	} {
		want.OrganizationID, want.Swept = f.Acme.OrganizationID, true
		if err != nil || !slices.Contains(unclaimed, want) {
			t.Errorf("the sweep does not find %v: %v", want, err)
		}
	}
	if arrived, err := f.AddressesWithPending(t.Context(), []string{f.ID("erp_hook")}, []int64{1 << 40}); err != nil || len(arrived) != 1 {
		t.Errorf("a poll does not find what the previous program inserted: %v, %v", arrived, err)
	}

	var order []string
	position := service.ClaimPosition{}
	for range 3 {
		claimed, err := f.ClaimPending(t.Context(), f.ID("erp_hook"), order, position, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range claimed.Deliveries {
			order = append(order, d.DeliveryID)
		}
		position = claimed.Position
	}
	if !slices.Equal(order, pending) {
		t.Errorf("they are sent in the order %v, want %v", order, pending)
	}
	for name, do := range map[string]func(id string) error{
		first: func(id string) error {
			if _, err := f.LoadDelivery(t.Context(), id); err != nil { // which adopts it
				return err
			}
			record := attempt(f, claimRetry(t, f, "erp_hook", id), 204)
			_, err = f.RecordAttempts(t.Context(), f.ID("erp_hook"), []service.Attempt{record})
			return err
		},
		second: func(id string) error { return f.StopDelivery(t.Context(), id) },
	} {
		if err := do("dlv_" + name + "2"); err != nil {
			t.Error(err)
		}
	}
	if n, err := f.RedeliverSince(t.Context(), service.Operator(), f.ID("erp_hook"), models.TimeOf(servicetest.Start.AddDate(0, 0, -14))); err != nil || n != 5 {
		t.Errorf("%d are redelivered, want two failed, two held and the stopped one: %v", n, err)
	}

	// The previous program redelivers what this one delivered, and delivers its own.
	delivered := claim(t, f, "erp_hook").Deliveries[0]
	if _, err := f.RecordAttempts(t.Context(), f.ID("erp_hook"), []service.Attempt{attempt(f, delivered, 204)}); err != nil {
		t.Fatal(err)
	}
	f.Exec(`UPDATE deliveries SET status = 'pending', next_attempt_at = NULL, finished_at = NULL, attempts_before = attempts
		WHERE id = $1 AND status <> 'pending'`, delivered.DeliveryID)
	claim(t, f, "erp_hook") // adopts it
	if found, err := f.DeliveryWithAttempts(t.Context(), "", delivered.DeliveryID); err != nil || found.Status != models.DeliveryPending || len(found.AttemptsMade) != 1 {
		t.Errorf("a delivery that the previous program redelivered is %s with %d attempts: %v", found.Status, len(found.AttemptsMade), err)
	}
	own := "01kn"
	exec(previousDeliveries, own, f.Acme.OrganizationID, f.ID("erp_hook"), record, f.ID("erp"), servicetest.Start)
	exec(previousAttempts, own)
	for id, number := range map[string]int{"dlv_" + own + "1": 1, "dlv_" + own + "2": 2} {
		exec(`WITH moved AS (
				UPDATE deliveries SET status = 'delivered', attempts = $2, last_status = 200, next_attempt_at = NULL, finished_at = now()
				WHERE id = $1 AND attempts < $2 RETURNING id)
			INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status) SELECT id, $2, now(), 5, 200 FROM moved`, id, number)
		if found, err := f.DeliveryWithAttempts(t.Context(), "", id); err != nil || found.Status != models.DeliveryDelivered || len(found.AttemptsMade) != number {
			t.Errorf("what the previous program delivered is %s with %d attempts: %v", found.Status, len(found.AttemptsMade), err)
		}
	}

	// The next release.
	third := "01km"
	exec(previousDeliveries, third, f.Acme.OrganizationID, f.ID("erp_hook"), record, f.ID("erp"), servicetest.Start)
	exec(previousAttempts, third)
	statuses := `SELECT string_agg(id || ' ' || status || ' ' || attempts, ', ' ORDER BY seq) FROM all_deliveries`
	before := servicetest.Value[string](f, statuses)
	contraction, err := os.ReadFile("../models/migrations/next_release/00000_open_deliveries_contraction.sql")
	if err != nil {
		t.Fatal(err)
	}
	exec(string(contraction))
	if after := servicetest.Value[string](f, statuses); after != before || strings.Count(after, ",") != 25 {
		t.Errorf("the contraction changed them:\n%s\n%s", before, after)
	}
	if n := servicetest.Value[int](f, `SELECT count(*) FROM deliveries WHERE status IN ('pending', 'retrying')`); n != 0 {
		t.Errorf("%d open ones are left", n)
	}
	if found, err := f.DeliveryWithAttempts(t.Context(), "", fmt.Sprintf("dlv_%s5", first)); err != nil || len(found.AttemptsMade) != 1 {
		t.Errorf("a delivered one has %d attempts: %v", len(found.AttemptsMade), err)
	}

	// Its retention removed events without their deliveries.
	f.Exec(`DELETE FROM events WHERE id LIKE 'evt_' || $1 || '%'`, first)
	f.Clock.Advance(10 * 365 * 24 * time.Hour)
	remove(t, f.Service, service.RemovalBatch, 0)
	if n := servicetest.Value[int](f, `SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM all_deliveries) + (SELECT count(*) FROM attempts)`); n != 0 {
		t.Errorf("retention leaves %d rows", n)
	}
}
