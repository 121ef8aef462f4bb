package servicetest

import "time"

// WaitForOpenTransactions waits until a page of changes reaches everything that is committed
// now. A page stops before the oldest transaction of the whole cluster that is
// still running, and tests of other packages run theirs beside this one.
func (f *Fixture) WaitForOpenTransactions() {
	f.t.Helper()
	mine := Value[uint64](f, `SELECT pg_current_xact_id()`)
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for Value[uint64](f, `SELECT pg_snapshot_xmin(pg_current_snapshot())`) <= mine {
		select {
		case <-again.C:
		case <-f.t.Context().Done():
			f.t.Fatal("a transaction beside this test does not end")
		}
	}
}
