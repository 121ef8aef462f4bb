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
//	batcher         tenants in turn, up to 64 writes; two with a common conflict key
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
//     the group rolls back and the others run again.
//   - If Postgres rejects a statement or the commit, a timeout ends one, or the
//     connection fails before COMMIT was sent, the group rolls back and every write runs
//     again: the one at fault gets its own error, the others succeed.
//   - To run again, each write runs alone.
//   - If COMMIT was sent and no response came, Postgres is asked how the transaction
//     ended (pg_xact_status). Only if it cannot tell do all writes get the error, and
//     none is retried.
//   - A write that finds its lock taken (QueueLock), or has too much to do, returns
//     ErrRunAlone and is retried alone, where it may wait for a limited time.
//   - If a write panics, or a function that receives its rows does, it counts as failed.
//
// Tenants share what they use. A batch takes one write of each tenant in turn; a write whose
// rows (Reserve) exceed the 250 of a group runs in the next one. Of the writes that run
// alone, two of a tenant and eight in all do so at a time (slots), and the caller's own
// transactions with them (RunAlone). A write that waits longer than maxBatchWait for a group
// runs alone if it gets such a slot first. If too many jobs of a tenant wait, the next gets
// slots.ErrOverloaded. The callers bound what a tenant has in progress at all (slots.ForCalls).
//
// A Lookup reads one row outside of transactions. The Reader batches lookups the same
// way, and retries each alone if the batch fails.
//
// The package knows no table and no rule. It depends on pgx and slots alone.
package batch
