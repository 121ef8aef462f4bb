package store

import (
	"context"
	"time"
)

// outcomeTimeout bounds asking whether a transaction was committed.
const outcomeTimeout = 5 * time.Second

// transactionID identifies a transaction: its backend, its id, and the server that gave the id. Another server, promoted
// since, gives the same id to another transaction. It is empty before the first round trip.
type transactionID struct {
	pid         int32
	xid, server string
}

const (
	// endBackend ends the backend that still runs the transaction, since no client would
	// receive its response.
	endBackend = `SELECT count(pg_terminate_backend(pid, 2000)) FROM pg_stat_activity
		WHERE pid = $1::integer AND backend_xid = $2::text::xid8::xid`
	howEnded = `SELECT coalesce(pg_xact_status($1::text::xid8), '') WHERE pg_postmaster_start_time()::text = $2`
)

// committed reports whether the transaction was committed, and whether that is known.
func (t *Tx) committed(ctx context.Context) (committed, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	var status string
	_, err := t.Pool.Exec(ctx, endBackend, t.id.pid, t.id.xid)
	if err == nil {
		err = t.Pool.QueryRow(ctx, howEnded, t.id.xid, t.id.server).Scan(&status)
	}
	if err != nil {
		t.Store.Log.Warn("the outcome of a commit is unknown", "reason", reason(err))
	}
	return status == "committed", status == "committed" || status == "aborted"
}
