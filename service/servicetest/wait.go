package servicetest

import "time"

// WaitForOpenTransactions waits until a page of changes includes everything that is
// committed now. A page ends before the oldest open transaction of the whole cluster,
// which may belong to a test of another package.
func (f *Fixture) WaitForOpenTransactions() {
	f.t.Helper()
	mine := Value[uint64](f, `SELECT pg_current_xact_id()`)
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for Value[uint64](f, `SELECT pg_snapshot_xmin(pg_current_snapshot())`) <= mine {
		select {
		case <-poll.C:
		case <-f.t.Context().Done():
			f.t.Fatal("a transaction outside this test does not end")
		}
	}
}
