package webhooks_test

import (
	"fmt"
	"testing"
	"time"

	"millwright/service/servicetest"
	"millwright/service/webhooks"
)

// maxBlocks bounds the pages that a statement on a few deliveries touches; true is for
// those that look through an address's deliveries of all days. Reading a whole index or
// table of the test takes hundreds.
var maxBlocks = map[bool]int{false: 40, true: 300}

// A statement planned while its tables were empty and analyzed still reads along the right
// index when they are large: connections keep their plans, and a table that was drained
// counts as empty until the next ANALYZE.
func TestStatementsOfDeliveriesKeepRightPlans(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	conn, exec := servicetest.Connection(t, f.Pool.Config().ConnString())
	exec(`SET statement_timeout = 0`) // planting takes longer than a call may
	// A month of partitions, as there is when the oldest are dropped.
	first := time.Date(2040, time.January, 1, 0, 0, 0, 0, time.UTC)
	const days, many = 38, 20_000
	exec(`SELECT partitions.make($1, $2)`, first, days)
	exec(`VACUUM ANALYZE`)
	exec(`SET plan_cache_mode = 'force_generic_plan'; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off`) // as the service does
	address := "'" + f.ID("erp_hook") + "'"
	// idOf is the SQL of the nth id of a kind. They are spread over the days.
	idOf := func(prefix, kind, n string) string {
		return `partitions.first_id('` + prefix + `', '` + first.Format(time.DateOnly) + `'::timestamptz + (` + n + `) / ` + fmt.Sprint(many/days+1) + ` * interval '1 day') || '` + kind + `' || lpad((` + n + `)::text, 7, '0')`
	}
	id := func(kind string) string {
		t.Helper()
		return "'" + servicetest.Value[string](f, `SELECT `+idOf("dlv", kind, "10000")) + "'"
	}
	open, late, failed := id("open"), id("late"), id("failed")
	event := "'" + servicetest.Value[string](f, `SELECT `+idOf("evt", "", "10000")) + "'"
	arguments := map[string]string{
		"claim":    address + `, ARRAY[` + open + `], ARRAY['x'], 20, now()`,
		"events":   `ARRAY[` + event + `], ` + event + `, ` + event,
		"retry":    late + `, now(), ARRAY[60]`,
		"overdue":  `now(), 5, 100, 20, now()`,
		"places":   address + `, 20`,
		"given_up": address + `, 5, now()`,
		"address":  address + `, now(), 20, 259200`,
		"skip":     `ARRAY[` + open + `]`,
		"poll":     `ARRAY[` + address + `], now()`,
		"state":    failed + `, 1`,
		"release":  address + `, '', '', 'dlv_~', 20, '', true, '', 0, false, ''`,
		"hour":     address + `, date_trunc('hour', now()), array_fill(1, ARRAY[` + fmt.Sprint(webhooks.CountsOfHour) + `])`,

		"redeliver": `ARRAY[` + failed + `], ` + failed + `, ` + failed,
		"open":      `ARRAY[` + late + `]`,
		"finished":  `ARRAY[` + failed + `], ` + failed + `, ` + failed,
		"missed":    address + `, 'dlv_', now() - interval '1 day', 20`,
	}
	run := func(name, text string) (plan string, blocks int) {
		t.Helper()
		exec(`BEGIN`)
		defer exec(`ROLLBACK`)
		return servicetest.Explain(t, conn, name, text)
	}
	for name, sql := range webhooks.DeliveryStatements {
		if _, err := conn.Prepare(t.Context(), name, sql); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		run(name, arguments[name]) // makes the plan
	}

	exec(`INSERT INTO events SELECT `+idOf("evt", "", "n")+`, 'o', 'ping', 'r', 'a', '{}', now() FROM generate_series(1, $1) n`, many)
	for _, kind := range []struct{ name, table, status string }{
		{"open", "open_deliveries", "pending"}, {"late", "open_deliveries", "retrying"}, {"failed", "deliveries", "failed"},
	} {
		column, next := "", ""
		switch kind.status {
		case "pending":
			column, next = ", queued_at", ", now()"
		case "retrying":
			column, next = ", queued_at, next_attempt_at", ", now(), now()"
		}
		exec(`INSERT INTO `+kind.table+` (id, event_id, webhook_id, record_id, status, created_at`+column+`)
			SELECT `+idOf("dlv", kind.name, "n")+`, `+idOf("evt", "", "n")+`, CASE WHEN n % 1000 < 50 THEN `+address+` ELSE 'whk_' || n % 7 END, 'r', $2, now()`+next+`
			FROM generate_series(1, $1) n`, many, kind.status)
		if kind.name == "open" { // the plans are made again, while there are no retries
			exec(`ANALYZE open_deliveries`)
			for name := range webhooks.DeliveryStatements {
				run(name, arguments[name])
			}
		}
	}
	wide := map[string]bool{"release": true, "address": true, "missed": true, "places": true, "given_up": true, "overdue": true}
	for name := range webhooks.DeliveryStatements {
		if text, blocks := run(name, arguments[name]); blocks > maxBlocks[wide[name]] {
			t.Errorf("%s touches %d pages, want at most %d:\n%s", name, blocks, maxBlocks[wide[name]], text)
		} else {
			t.Logf("%s touches %d pages", name, blocks)
		}
	}
}
