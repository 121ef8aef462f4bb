package store

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// outcomeTimeout bounds asking whether a transaction was committed.
const outcomeTimeout = 5 * time.Second

// outcome finds out how a transaction ended, if no response to COMMIT came.
type outcome struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	// pid is the transaction's backend. xid and server identify the transaction, "" until read.
	pid         uint32
	xid, server string
}

// newOutcome returns the outcome of a transaction on the connection of the pool.
func newOutcome(pool *pgxpool.Pool, conn *sql.Conn, log *slog.Logger) (*outcome, error) {
	o := &outcome{pool: pool, log: log}
	return o, conn.Raw(func(driver any) error {
		o.pid = pgxOf(driver).PgConn().PID()
		return nil
	})
}

// read receives the row of limits.
func (o *outcome) read(rows pgx.Rows) error {
	targets := make([]any, len(rows.FieldDescriptions()))
	targets[0], targets[1] = &o.xid, &o.server
	_, err := pgx.ForEachRow(rows, targets, func() error { return nil })
	return err
}

const (
	// endBackend ends the backend that still runs the transaction, since no client would
	// receive its response.
	endBackend = `SELECT count(pg_terminate_backend(pid, 2000)) FROM pg_stat_activity
		WHERE pid = $1::integer AND backend_xid = $2::text::xid8::xid`
	howEnded = `SELECT coalesce(pg_xact_status($1::text::xid8), '') WHERE pg_postmaster_start_time()::text = $2`
)

// ask reports whether the transaction was committed, and whether that is known.
func (o *outcome) ask(ctx context.Context) (committed, known bool) {
	if o.xid == "" {
		return false, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	var status string
	_, err := o.pool.Exec(ctx, endBackend, o.pid, o.xid)
	if err == nil {
		err = o.pool.QueryRow(ctx, howEnded, o.xid, o.server).Scan(&status)
	}
	if err != nil {
		o.log.Warn("the outcome of a commit is unknown", "reason", reason(err))
	}
	return status == "committed", status == "committed" || status == "aborted"
}
