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

// BeatAt writes a beat (service.Beat) as if the database's clock showed the time: a
// changed_since that is ten seconds later begins at what is committed from now on.
func (f *Fixture) BeatAt(at time.Time) {
	f.t.Helper()
	f.WaitForOpenTransactions()
	f.Exec(`INSERT INTO beats (at) VALUES ($1)`, at)
}
