package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// fewRecords is the smallest number of records that is measured.
const fewRecords = 10_000

// benchNodes is the number of nodes that have work orders: 100 buildings with 200
// rooms each.
const benchNodes = 20_000

// middleOfChanges is a time after the watermark that divides the changes of the work orders.
const middleOfChanges = "2025-07-01T00:00:00Z"

// visibilities of Integration 1, 2 and 3: they see everything, fifty nodes, or one.
var visibilities = []string{"all", "fifty", "one"}

// benchGrowth measures calls and lists with few and with many work orders, and the cost of
// many deliveries that are kept.
func benchGrowth(b *bench) {
	for _, size := range []int{fewRecords, b.options.records} {
		in := b.install(fmt.Sprintf("growth_%d", size))
		grown := changeSubscription(1)
		grown.Integrations = len(visibilities)
		in.subscribe(grown)
		in.plantWorkOrders(size)
		kept := b.options.deliveries > 0 && size == b.options.records
		if kept {
			in.plantKept()
		}
		in.timed(atSize("VACUUM ANALYZE", size), func() { in.exec(`VACUUM ANALYZE`) })
		if kept {
			in.benchSizes()
		}
		in.startAPI()
		changes := in.benchGrownCalls(size)
		in.benchLists(size)
		if kept {
			in.benchDump()
			in.benchRemoval(changes / 5)
		}
		in.close()
	}
}

// atSize names a figure at a number of work orders.
func atSize(name string, size int) string { return fmt.Sprintf("%s, at %d work orders", name, size) }

// benchGrownCalls measures calls and returns the changes per second.
func (in *installation) benchGrownCalls(size int) (changes float64) {
	for _, op := range []operation{readOne, listPage, patchOne, createOne} {
		in.flood(in.erp, callers, op, in.load/10)
		rate := in.flood(in.erp, callers, op, in.load/3).rate()
		in.compare(atSize(op.name, size), rate, "/s", atSize(op.name, fewRecords))
		if op.name == patchOne.name {
			changes = rate
		}
		// Otherwise starting the workflows would slow the next measurements down.
		if op.name == createOne.name {
			in.awaitIdle(time.Hour, "temporal")
		}
		in.grownAlone(in.erp, op, op.name+", alone", size)
	}
	return changes
}

// grownAlone adds how long calls of one caller take.
func (in *installation) grownAlone(t *tenant, op operation, name string, size int) {
	alone := t.alone(op, max(20, int(20*in.load.Seconds())))
	in.addWaits(atSize(name, size), alone, atSize(name, fewRecords))
}

// benchLists measures pages of 50 for integrations that see everything, fifty nodes
// and one.
func (in *installation) benchLists(size int) {
	for i, sees := range visibilities {
		t := &tenant{Address: in.erp.Address, Token: in.tokenOf(changeSubscription(1).client(i + 1))}
		c := newCaller(t)
		check(c.get("/work-orders?limit=1&changed_since=" + middleOfChanges))
		c.close()
		for _, list := range []struct{ name, path string }{
			{"newest 50", "/work-orders?limit=50"},
			{"50 open ones", "/work-orders?limit=50&status=open"},
			{"50 changes", "/work-orders?limit=50&changed_since=" + textAfter(c.body.Bytes(), `"sync_token":"`)},
		} {
			name := "list: " + list.name + ", sees " + sees
			in.grownAlone(t, operation{name, reading(list.path)}, name, size)
		}
	}
}

// timed reports the duration of the work.
func (in *installation) timed(what string, work func()) {
	started := time.Now()
	work()
	in.add(what, time.Since(started).Seconds(), "s")
}

// day is the time of a partition, which is removed as a whole.
const day = 24 * time.Hour

// plantKept creates the deliveries that are kept and those that have expired: each event has one to
// each integration's address.
func (in *installation) plantKept() {
	plant := func(deliveries int, from, to time.Time) {
		in.plant(deliveries/len(visibilities), "deliveries.sql", arguments{
			"organization": in.organization, "creator": in.integration, "records": in.options.records, "from": from, "to": to,
		})
	}
	now := time.Now()
	expiry := now.Add(-models.EventRetention)
	midnight := expiry.Truncate(day)
	in.makePartitions(midnight.Add(-day), now)
	in.bulkLoad([]string{"events", "deliveries"}, func() {
		// A few hours short of the retention: none of them expires during the measurement.
		plant(in.options.deliveries, expiry.Add(6*time.Hour), now)
		plant(in.options.expired, midnight.Add(-day), midnight.Add(-time.Minute))
	})
}

// makePartitions makes the partitions of the days from one time to another.
func (in *installation) makePartitions(from, to time.Time) {
	in.exec(`SELECT partitions.make($1, $2)`, from.UTC(), int(to.Sub(from)/day)+1)
}

// benchSizes reports the size of the tables with their indexes. Partitions count as their table.
func (in *installation) benchSizes() {
	rows := must(in.pool.Query(in.ctx, string(must(sqlFiles.ReadFile("sql/sizes.sql")))))
	var table string
	var bytes float64
	must(pgx.ForEachRow(rows, []any{&table, &bytes}, func() error {
		in.add("size: "+table, bytes/1e6, "MB")
		return nil
	}))
}

// benchDump measures a dump of the database, which is not written to the disk.
func (in *installation) benchDump() {
	// The fastest compression; the default takes several times as long.
	cmd := exec.CommandContext(in.ctx, filepath.Join(os.Getenv("POSTGRES_BIN"), "pg_dump"), //nolint:gosec // as devstack sets it
		"--format=custom", "--compress=1", "--dbname="+in.database)
	cmd.Stderr = os.Stderr
	in.timed("pg_dump --compress=1", func() { check(cmd.Run()) })
}

// benchRemoval measures changes at the rate while a worker delivers them, and housekeeping
// removes what has expired: those during the removal compared with those before.
func (in *installation) benchRemoval(rate float64) {
	change := func(length time.Duration) waits { return in.erp.busy(patchOne, rate, length, 0) }
	// Housekeeping removes no partitions while another transaction has the lock.
	tx := must(in.pool.Begin(in.ctx))
	must(tx.Exec(in.ctx, `SELECT pg_advisory_xact_lock(hashtextextended('partitions', 0))`))
	in.startWorker()
	change(in.load) // wakes the addresses' workflows
	before := change(in.load)
	expired := in.expiredPartitions(true)
	check(tx.Rollback(in.ctx))
	var begun, removed atomic.Bool
	var during waits
	var load sync.WaitGroup
	load.Go(func() {
		for !removed.Load() {
			if w := change(time.Second); begun.Load() {
				during = append(during, w...)
			}
		}
	})
	await(20*time.Millisecond, func() bool { return in.expiredPartitions(true) < expired })
	begun.Store(true)
	in.timed("removal of the expired deliveries", func() {
		await(20*time.Millisecond, func() bool { return in.expiredPartitions(false) == 0 })
	})
	removed.Store(true)
	load.Wait()
	name := fmt.Sprintf("change at %.0f/s with a worker", rate)
	in.addWaits(name, before, "")
	in.addWaits(name+", during the removal", during, name)
	in.stop("worker")
}

// expiredPartitions counts the partitions that have expired and are not dropped: all, or those that are
// not even detached.
func (in *installation) expiredPartitions(attached bool) (days int) {
	check(in.pool.QueryRow(in.ctx, `
		SELECT count(*) FROM partitions.days WHERE of IN ('events', 'deliveries', 'attempts') AND attached >= $1 AND partitions.midnight(day + 1) <= $2`,
		attached, time.Now().Add(-models.EventRetention)).Scan(&days))
	return days
}
