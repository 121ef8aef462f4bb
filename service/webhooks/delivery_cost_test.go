package webhooks_test

import (
	"context"
	"crypto/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// backend is a connection whose server process's CPU time and WAL are measured.
type backend struct {
	*pgx.Conn
	b   *testing.B
	pid string
}

func (c backend) cpu() time.Duration {
	c.b.Helper()
	stat, err := os.ReadFile("/proc/" + c.pid + "/schedstat")
	if err != nil {
		c.b.Skip("the time of Postgres's processes is not visible here: ", err)
	}
	ns, err := strconv.ParseInt(strings.Fields(string(stat))[0], 10, 64)
	if err != nil {
		c.b.Fatal(err)
	}
	return time.Duration(ns)
}

func (c backend) wal() (at int64) {
	c.b.Helper()
	if err := c.QueryRow(c.b.Context(), `SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn`).Scan(&at); err != nil {
		c.b.Fatal(err)
	}
	return at
}

// BenchmarkStatementsOfDeliveries measures what a delivery that succeeds at once costs
// Postgres, statement by statement, if 32 events wait for their address: CPU time of the connection's process
// and bytes of WAL.
//
//	bin/devstack exec --no-temporal -- go test ./service/webhooks -run - -bench StatementsOfDeliveries -benchtime 10000x
func BenchmarkStatementsOfDeliveries(b *testing.B) {
	const size = 32
	f := servicetest.New(b)
	order, err := f.Records.CreateWorkOrder(b.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
	if err != nil {
		b.Fatal(err)
	}
	f.Exec(`DELETE FROM webhooks WHERE id <> $1`, f.ID("erp_hook"))
	// As many days as there are in an installation, the clock in one of them.
	month := time.Date(2040, time.January, 1, 12, 0, 0, 0, time.UTC)
	f.Exec(`SELECT partitions.make($1, 38)`, month)
	f.Clock.Advance(month.AddDate(0, 0, 30).Sub(f.Clock.Now()))
	f.Exec(`TRUNCATE open_deliveries, deliveries, attempts, events`)
	f.Exec(`VACUUM ANALYZE`)
	plain, err := pgx.ConnectConfig(b.Context(), f.Pool.Config().ConnConfig)
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close(context.WithoutCancel(b.Context()))
	conn := backend{plain, b, ""}
	if err := conn.QueryRow(b.Context(), `SELECT pg_backend_pid()::text`).Scan(&conn.pid); err != nil {
		b.Fatal(err)
	}
	spent := map[string]time.Duration{}
	written := map[string]int64{}
	run := func(name, sql string, args ...any) {
		b.Helper()
		pipeline := &pgx.Batch{}
		pipeline.Queue(store.IndexPlans)
		pipeline.Queue(sql, args...)
		cpu, wal := conn.cpu(), conn.wal()
		if err := conn.SendBatch(b.Context(), pipeline).Close(); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		spent[name] += conn.cpu() - cpu
		written[name] += conn.wal() - wal
	}
	groups := max(b.N/size, 1)
	for group := range groups + 10 {
		if group == 10 { // plans and caches are warm
			clear(spent)
			clear(written)
		}
		f.Clock.Advance(time.Millisecond)
		now := f.Clock.Now()
		events := make([]string, size)
		for i := range events {
			if events[i], err = models.NewID(models.PrefixEvent, now, rand.Reader); err != nil {
				b.Fatal(err)
			}
		}
		for _, event := range events {
			run("publish", webhooks.PublishStatement, event, models.EventWorkOrderUpdated, order.RecordID, now, f.Acme.OrganizationID, f.ID("erp"), `{"fields": ["title"]}`, nil)
		}
		var ids []string
		if err := conn.QueryRow(b.Context(), `SELECT array_agg(id::text ORDER BY id) FROM open_deliveries`).Scan(&ids); err != nil || len(ids) != size {
			b.Fatalf("%d deliveries are published: %v", len(ids), err)
		}
		run("claim", webhooks.DeliveryStatements["claim"], f.ID("erp_hook"), []string{}, []string{}, size)
		run("events", webhooks.DeliveryStatements["events"], events, slices.Min(events), slices.Max(events))
		attempts := make([]webhooks.Attempt, size)
		for i, id := range ids {
			attempts[i] = webhooks.Attempt{DeliveryID: id, Number: 1, StartedAt: models.TimeOf(now), Latency: 7 * time.Millisecond, Status: 200, RemoteIP: "192.0.2.1"}
		}
		if _, err := f.Webhooks.RecordAttempts(b.Context(), f.AddressOf("erp_hook"), attempts); err != nil {
			b.Fatal(err)
		}
		counts := make([]int32, webhooks.CountsOfHour)
		for i := range counts {
			counts[i] = int32(i % 2 * size)
		}
		run("hour", webhooks.DeliveryStatements["hour"], f.ID("erp_hook"), now.Truncate(time.Hour), counts)
		if group%100 == 0 { // as autovacuum does
			f.Exec(`VACUUM open_deliveries`)
		}
	}
	for name := range spent {
		b.ReportMetric(float64(spent[name].Nanoseconds())/1000/float64(groups*size), "cpu-µs-"+name)
		b.ReportMetric(float64(written[name])/float64(groups*size), "wal-B-"+name)
	}
}
