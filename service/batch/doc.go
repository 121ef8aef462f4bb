// Package batch lets concurrent lookups share a round trip: most of what a small query costs is the same
// for one row and for thirty.
//
// A Lookup reads one row, outside of transactions. The Reader runs those that wait together, tenants in turn
// and one batch at a time: a Statement takes arrays, so the rows of several lookups are sent as one. If a batch
// fails, each of its lookups is retried alone, and so is one that waits longer than maxBatchWait. If too many of a
// tenant wait, the next gets slots.ErrOverloaded.
//
// The package knows no table and no rule. It depends on pgx and slots alone.
package batch
