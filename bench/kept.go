package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// day is the time of a partition, which is removed as a whole.
const day = 24 * time.Hour

// plantKept creates the deliveries that are kept and those that have expired.
func (in *installation) plantKept(ctx context.Context, r *report) error {
	o := in.options
	now := time.Now()
	expiry := now.Add(-models.EventRetention)
	midnight := expiry.Truncate(day)
	if err := in.makePartitions(ctx, midnight.Add(-day), now); err != nil {
		return err
	}
	return in.timed(r, "deliveries: created by SQL in", func() error {
		return in.bulkLoad(ctx, deliveryTables, func() error {
			// A few hours short of the retention: none of them expires during the measurement.
			kept, err := in.plantDeliveries(ctx, o.deliveries, o.records, expiry.Add(6*time.Hour), now)
			if err != nil {
				return err
			}
			expired, err := in.plantDeliveries(ctx, o.expired, o.records, midnight.Add(-day), midnight.Add(-time.Minute))
			r.add("kept deliveries", float64(kept), "")
			r.add("expired deliveries", float64(expired), "")
			return err
		})
	})
}

// makePartitions makes partitions of the days from one time to another, which are in the
// former partitions of a new installation. These become those of everything before.
func (in *installation) makePartitions(ctx context.Context, from, to time.Time) error {
	for _, table := range []string{"deliveries", "attempts", "events"} {
		var former, prefix string
		err := in.pool.QueryRow(ctx, `SELECT partition, prefix FROM partitions.days WHERE of = $1 AND day IS NULL`, table).Scan(&former, &prefix)
		if err != nil {
			return err
		}
		earlier := table + from.UTC().Format("_before_20060102")
		for _, sql := range []string{
			`ALTER TABLE ` + table + ` DETACH PARTITION partitions.` + former,
			`ALTER TABLE partitions.` + former + ` RENAME TO ` + earlier,
			`ALTER TABLE ` + table + ` ATTACH PARTITION partitions.` + earlier + ` FOR VALUES FROM (MINVALUE) TO (partitions.first_id('` +
				prefix + `', '` + from.UTC().Truncate(day).Format(time.RFC3339) + `'))`,
		} {
			if _, err := in.pool.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
	}
	_, err := in.pool.Exec(ctx, `SELECT partitions.make($1, $2)`, from.UTC(), int(to.Sub(from)/day)+1)
	return err
}

// benchSizes reports the size of each table with its indexes, and those of the larger
// indexes. Partitions count as their table.
func (in *installation) benchSizes(ctx context.Context, r *report) error {
	rows, err := in.pool.Query(ctx, `
		WITH tables AS (
			SELECT c.oid, coalesce(pg_partition_root(c.oid), c.oid::regclass)::text AS name
			FROM pg_class c WHERE c.relnamespace IN ('public'::regnamespace, 'partitions'::regnamespace) AND c.relkind = 'r'
		), parts AS (
			SELECT name AS table, 'rows' AS part, pg_table_size(oid) AS bytes FROM tables
			UNION ALL
			SELECT name, coalesce(pg_partition_root(i.indexrelid), i.indexrelid::regclass)::text, pg_relation_size(i.indexrelid)
			FROM tables JOIN pg_index i ON i.indrelid = oid
		), sizes AS (
			SELECT parts.table, part, sum(bytes) AS bytes FROM parts GROUP BY parts.table, part
		)
		SELECT sizes.table, CASE WHEN bytes >= total / 200 THEN part ELSE 'the rest' END AS part, sum(bytes)::float8
		FROM sizes, (SELECT sum(bytes) AS total FROM sizes) t
		GROUP BY 1, 2 HAVING sum(bytes) >= max(total) / 200 ORDER BY sum(sum(bytes)) OVER (PARTITION BY sizes.table) DESC, sum(bytes) DESC`)
	if err != nil {
		return err
	}
	var table, part string
	var bytes float64
	if _, err := pgx.ForEachRow(rows, []any{&table, &part, &bytes}, func() error {
		r.add("size: "+table+", "+part, bytes/1e6, "MB")
		return nil
	}); err != nil {
		return err
	}
	if err := in.pool.QueryRow(ctx, `SELECT pg_database_size(current_database())::float8`).Scan(&bytes); err != nil {
		return err
	}
	r.add("size: everything", bytes/1e6, "MB")
	return nil
}

// benchVacuum measures a vacuum of everything.
func (in *installation) benchVacuum(ctx context.Context, r *report, when string) error {
	return in.timed(r, "VACUUM ANALYZE "+when, func() error {
		_, err := in.pool.Exec(ctx, `VACUUM ANALYZE`)
		return err
	})
}

// timed reports how long the work takes, and the processor time of Postgres.
func (in *installation) timed(r *report, what string, work func() error) error {
	before, started := in.usage(), time.Now()
	if err := work(); err != nil {
		return err
	}
	r.add(what, time.Since(started).Seconds(), "s")
	r.add(what+", CPU of Postgres", in.usage().since(before)["postgres"].Seconds(), "s")
	return nil
}

// benchDump measures a dump of the database, which is not written to the disk.
func (in *installation) benchDump(ctx context.Context, r *report) error {
	// The fastest compression; the default takes several times as long.
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv("POSTGRES_BIN"), "pg_dump"), //nolint:gosec // as devstack sets it
		"--format=custom", "--compress=1", "--dbname="+in.settings["DATABASE_URL"])
	cmd.Stderr = os.Stderr
	dump, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var size int64
	err = in.timed(r, "pg_dump --compress=1", func() error {
		if err := cmd.Start(); err != nil {
			return err
		}
		size, err = io.Copy(io.Discard, dump)
		return errors.Join(err, cmd.Wait())
	})
	if err != nil {
		return fmt.Errorf("pg_dump: %w", err)
	}
	r.add("pg_dump --compress=1, size", float64(size)/1e6, "MB")
	return nil
}

// removal is housekeeping's removal of the expired deliveries.
type removal struct {
	mu sync.Mutex
	// began and ended are zero until the removal did.
	began, ended time.Time
}

func (m *removal) times() (began, ended time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.began, m.ended
}

// watch follows the removal of the days that have expired, until their partitions are
// dropped. It begins when the first is detached.
func (m *removal) watch(ctx context.Context, in *installation) error {
	expiry := time.Now().Add(-models.EventRetention)
	before := 0
	return until(ctx, 20*time.Millisecond, func() (bool, error) {
		var attached, left int
		err := in.pool.QueryRow(ctx, `
			SELECT count(*) FILTER (WHERE attached), count(*) FROM partitions.days
			WHERE of IN ('events', 'deliveries', 'attempts') AND day IS NOT NULL AND partitions.midnight(ends) <= $1`, expiry).Scan(&attached, &left)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.began.IsZero() && attached < before {
			m.began = time.Now()
		}
		before = attached
		if left == 0 {
			m.ended = time.Now()
		}
		return left == 0, err
	})
}

// holdRemoval keeps housekeeping from removing partitions until the release, which may be
// called again.
func (in *installation) holdRemoval(ctx context.Context) (release func(), err error) {
	tx, err := in.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	// If the connection is lost, so is the lock.
	release = func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('partitions', 0))`); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// benchRemoval measures changes at the rate, in windows, while a worker delivers them
// and housekeeping removes what has expired, and in windows before and after that.
func (in *installation) benchRemoval(ctx context.Context, r *report, rate float64, load time.Duration) error {
	const windowsBefore, windowsAfter = 10, 10
	window := max(load/10, time.Second)
	var m removal
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	release, err := in.holdRemoval(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := in.startWorker(ctx, nil); err != nil {
		return err
	}
	go func() {
		if err := m.watch(ctx, in); err != nil {
			cancel(fmt.Errorf("watch the removal: %w", err))
		}
	}()
	if _, err := in.erp.busy(ctx, patchOne, rate, load); err != nil { // wakes the addresses' workflows
		return err
	}
	var without, during waits
	var used usage
	for n, after := 0, 0; after < windowsAfter; n++ {
		if n == windowsBefore {
			release()
		}
		before, started := in.usage(), time.Now()
		w, err := in.erp.busy(ctx, patchOne, rate, window)
		if err != nil {
			return err
		}
		switch began, ended := m.times(); {
		case began.IsZero():
			without = append(without, w...)
		case ended.IsZero() || ended.After(started):
			during = append(during, w...)
			used = used.plus(in.usage().since(before))
		default:
			without = append(without, w...)
			after++
		}
	}
	began, ended := m.times()
	r.add("removal of the expired deliveries", ended.Sub(began).Seconds(), "s")
	name := fmt.Sprintf("change at %.0f/s with a worker", rate)
	without.report(r, name)
	for _, p := range []float64{50, 95, 99} {
		r.compare(fmt.Sprintf("%s, during the removal, p%.0f", name, p), milliseconds(during.percentile(p)), "ms", fmt.Sprintf("%s, p%.0f", name, p))
	}
	used.report(r, "change during the removal", len(during))
	return in.stopWorker()
}
