package servicetest

import "time"

// WaitForOpenTransactions waits until a page of changes includes everything that is
// committed now. A page ends before the oldest open transaction of the whole cluster,
// which may belong to a test of another package.
func (f *Fixture) WaitForOpenTransactions() {
	f.t.Helper()
	mine := Value[uint64](f, `SELECT pg_current_xact_id()`)
	f.await("a transaction outside this test ends", `SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1`, mine)
}

// vacuum removes the dead rows of the table. An ANALYZE by autovacuum, of any table, would keep them.
func (f *Fixture) vacuum(table string) {
	f.t.Helper()
	f.await("autovacuum ends", `SELECT count(*) = 0 FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'autovacuum worker' AND backend_xmin IS NOT NULL`)
	f.Plant(`VACUUM ` + table)
}

// await waits until the condition's query returns true.
func (f *Fixture) await(what, condition string, args ...any) {
	f.t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for !Value[bool](f, condition, args...) {
		select {
		case <-poll.C:
		case <-f.t.Context().Done():
			f.t.Fatalf("not before the end of the test: %s", what)
		}
	}
}

// FlushStatistics has Postgres count what the idle connections have read so far: each keeps
// its own counts for a while.
func (f *Fixture) FlushStatistics() {
	f.t.Helper()
	for _, conn := range f.Pool.AcquireAllIdle(f.t.Context()) {
		if _, err := conn.Exec(f.t.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
			f.t.Error(err)
		}
		conn.Release()
	}
}

// looked counts the rows of the tables, by patterns, and the entries of their indexes that were read so far, and the pages of
// these indexes: one that is walked from end to end for a condition on its second column counts few entries and many pages.
func (f *Fixture) looked(tables []string) (rows, pages int) {
	f.t.Helper()
	f.FlushStatistics()
	counts := Value[[]int](f, `SELECT ARRAY[
		(SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname LIKE ANY ($1)) + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname LIKE ANY ($1)),
		(SELECT sum(idx_blks_hit + idx_blks_read) FROM pg_statio_user_indexes WHERE relname LIKE ANY ($1))]::bigint[]`, tables)
	return counts[0], counts[1]
}

// AnalyzeOnce analyzes all tables, and has autovacuum not do so again with these.
func (f *Fixture) AnalyzeOnce(tables []string) {
	f.t.Helper()
	for _, table := range tables {
		f.Exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = off)`)
	}
	f.Exec(`VACUUM ANALYZE`)
}

// WatermarkAt writes a watermark (lists.WriteWatermark) as if the database's clock showed the time: a
// changed_since that is ten seconds later begins at what is committed from now on.
func (f *Fixture) WatermarkAt(at time.Time) {
	f.t.Helper()
	f.WaitForOpenTransactions()
	f.Exec(`INSERT INTO watermarks (at) VALUES ($1)`, at)
}
