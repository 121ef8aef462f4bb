package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// day is the time of a partition, which is removed as a whole.
const day = 24 * time.Hour

// plantKept creates the deliveries that are kept and those that have expired.
func (in *installation) plantKept() {
	now := time.Now()
	expiry := now.Add(-models.EventRetention)
	midnight := expiry.Truncate(day)
	in.makePartitions(midnight.Add(-day), now)
	in.timed("deliveries: created by SQL in", func() {
		in.bulkLoad([]string{"events", "deliveries"}, func() {
			// A few hours short of the retention: none of them expires during the measurement.
			in.add("kept deliveries", in.plantDeliveries(in.options.deliveries, expiry.Add(6*time.Hour), now), "")
			in.add("expired deliveries", in.plantDeliveries(in.options.expired, midnight.Add(-day), midnight.Add(-time.Minute)), "")
		})
	})
}

// plantDeliveries creates deliveries to every address, and returns how many.
func (in *installation) plantDeliveries(deliveries int, from, to time.Time) float64 {
	var organization, creator string
	var addresses int
	check(in.pool.QueryRow(in.ctx, `SELECT min(organization_id), min(integration_id), count(*) FROM webhooks`).Scan(&organization, &creator, &addresses))
	in.plant(deliveries/addresses, "deliveries.sql", arguments{
		"organization": organization, "creator": creator, "records": in.options.records, "from": from, "to": to,
	})
	return float64(deliveries / addresses * addresses)
}

// makePartitions makes the partitions of the days from one time to another.
func (in *installation) makePartitions(from, to time.Time) {
	in.exec(`SELECT partitions.make($1, $2)`, from.UTC(), int(to.Sub(from)/day)+1)
}

// benchSizes reports the size of each table with its indexes, and of the larger
// indexes. Partitions count as their table.
func (in *installation) benchSizes() {
	rows := must(in.pool.Query(in.ctx, string(must(sqlFiles.ReadFile("sql/sizes.sql")))))
	var table, part string
	var bytes float64
	must(pgx.ForEachRow(rows, []any{&table, &part, &bytes}, func() error {
		in.add("size: "+table+", "+part, bytes/1e6, "MB")
		return nil
	}))
	check(in.pool.QueryRow(in.ctx, `SELECT pg_database_size(current_database())::float8`).Scan(&bytes))
	in.add("size: everything", bytes/1e6, "MB")
}

// benchDump measures a dump of the database, which is not written to the disk.
func (in *installation) benchDump() {
	in.begin("dump")
	// The fastest compression; the default takes several times as long.
	cmd := exec.CommandContext(in.ctx, filepath.Join(os.Getenv("POSTGRES_BIN"), "pg_dump"), //nolint:gosec // as devstack sets it
		"--format=custom", "--compress=1", "--dbname="+in.settings["DATABASE_URL"])
	cmd.Stderr = os.Stderr
	dump := must(cmd.StdoutPipe())
	var size int64
	in.timed("pg_dump --compress=1", func() {
		check(cmd.Start())
		var err error
		size, err = io.Copy(io.Discard, dump)
		check(errors.Join(err, cmd.Wait()))
	})
	in.add("pg_dump --compress=1, size", float64(size)/1e6, "MB")
}

// removal is housekeeping's removal of the expired deliveries; began and ended are nil until it
// did.
type removal struct{ began, ended atomic.Pointer[time.Time] }

// watch follows the removal of the days that have expired, until their partitions are
// dropped. It begins when the first is detached.
func (m *removal) watch(ctx context.Context, in *installation) error {
	expiry := time.Now().Add(-models.EventRetention)
	before := 0
	return until(ctx, 20*time.Millisecond, func() (bool, error) {
		var attached, left int
		err := in.pool.QueryRow(ctx, `
			SELECT count(*) FILTER (WHERE attached), count(*) FROM partitions.days
			WHERE of IN ('events', 'deliveries', 'attempts') AND partitions.midnight(day + 1) <= $1`, expiry).Scan(&attached, &left)
		now := time.Now()
		if attached < before {
			m.began.CompareAndSwap(nil, &now)
		}
		before = attached
		if left == 0 {
			m.ended.Store(&now)
		}
		return left == 0, err
	})
}

// benchRemoval measures changes at the rate, in windows, while a worker delivers them
// and housekeeping removes what has expired, and in windows before and after that.
func (in *installation) benchRemoval(rate float64) {
	const windowsBefore, windowsAfter = 10, 10
	in.begin("removal")
	var m removal
	// Housekeeping removes no partitions until the release, which may be called again.
	tx := must(in.pool.Begin(in.ctx))
	release := func() { _ = tx.Rollback(context.WithoutCancel(in.ctx)) }
	defer release()
	must(tx.Exec(in.ctx, `SELECT pg_advisory_xact_lock(hashtextextended('partitions', 0))`))
	in.startWorker(nil)
	go func() {
		if err := m.watch(in.ctx, in); err != nil {
			in.fail(fmt.Errorf("watch the removal: %w", err))
		}
	}()
	busy := func(length time.Duration) waits { return must(in.erp.busy(in.ctx, patchOne, rate, length)) }
	busy(in.load) // wakes the addresses' workflows
	var without, during waits
	var used usage
	for n, after := 0, 0; after < windowsAfter; n++ {
		if n == windowsBefore {
			release()
		}
		before, started := in.usage(), time.Now()
		w := busy(max(in.load/10, time.Second))
		switch began, ended := m.began.Load(), m.ended.Load(); {
		case began == nil:
			without = append(without, w...)
		case ended == nil || ended.After(started):
			during = append(during, w...)
			used = used.plus(in.usage().since(before))
		default:
			without = append(without, w...)
			after++
		}
	}
	in.add("removal of the expired deliveries", m.ended.Load().Sub(*m.began.Load()).Seconds(), "s")
	name := fmt.Sprintf("change at %.0f/s with a worker", rate)
	without.report(in.report, name)
	for _, p := range []float64{50, 95, 99} {
		in.compare(fmt.Sprintf("%s, during the removal, p%.0f", name, p), milliseconds(during.percentile(p)), "ms", fmt.Sprintf("%s, p%.0f", name, p))
	}
	used.report(in.report, "change during the removal", len(during))
	in.stopWorker()
}
