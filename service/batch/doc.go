// Package batch is group commit: concurrent writes share a transaction, and
// concurrent lookups share a round trip. Most of what a small transaction costs, its
// commit and the parsing and planning of its statements, is the same for one row
// and for thirty.
//
// A write is a function that receives a *Tx, queues statements and calls Flush where
// it needs their rows. It runs in its caller's goroutine and cannot tell whether it
// is alone, except by Shared. Writer.Write gives it its own transaction,
// Writer.WriteTogether one that it shares:
//
//	                caller A        caller B        caller C      WriteTogether, while
//	                    └───────────────┼───────────────┘         another group runs
//	                                    ▼
//	batcher         oldest first, up to 64; two writes with a common conflict key
//	                never run in one group
//	                                    ▼
//	commitGroup     write A         write B         write C       one goroutine each
//	                queue 1 3       queue 1 2 3     queue 1 2
//	                Flush in A      Flush in B      Flush in C
//	                ────┴───────────────┴───────────────┴────     barrier: each waits in
//	                                    ▼                         Flush or has returned
//	one round trip  BEGIN · 1(A,B,C) · 2(B,C) · 3(A,B)
//	                                    ▼                         rows go back to the
//	                A decides       B decides       C fails       write they belong to
//	                queue 4 5       queue 4         and leaves
//	                A returns       B returns
//	                ────┴───────────────┴────
//	                                    ▼
//	one round trip  4(A,B) · 5(A) · COMMIT
//	                                    ▼
//	                A returns nil   B returns nil                 the next group starts
//
// A Statement takes arrays, so the rows that several writes queue for it are sent as
// one statement. Its Stage is its place in a write: of the statements that are next
// in some queue the lowest stage goes first, so that writes that skipped a statement
// do not split it for the others.
//
// A group never commits part of a write, and a write that fails does not fail the
// others:
//
//   - A write that fails before sending a change leaves the group. If it fails later,
//     the group rolls back and the others are retried alone.
//   - If Postgres rejects a statement or the commit, or the transaction's locks are
//     not available in time, the group rolls back and every write is retried alone:
//     the one at fault gets its own error, the others succeed.
//   - A write that finds its lock taken (QueueLock), or has too much to do, returns
//     ErrRunAlone and is retried alone, where it may wait.
//   - A write that waits longer than maxBatchWait for a group runs alone.
//   - If the connection is lost, every write of the group gets that error and none is
//     retried: COMMIT may have been executed.
//   - If a write panics, it counts as failed.
//
// A Lookup reads one row outside of transactions. The Reader batches lookups the same
// way, and retries each alone if Postgres rejects the batch.
//
// The package knows no table, no rule and no other package of the product. It depends
// on pgx alone.
package batch
