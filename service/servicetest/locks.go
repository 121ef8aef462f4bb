package servicetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Await waits until the condition holds.
func Await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-limit.C:
			t.Fatalf("%s: still not so after 20 s", what)
		}
	}
}

// LockWaits returns how many statements wait for a lock.
func LockWaits(f *Fixture) int {
	return Value[int](f, `SELECT count(*)::integer FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// AwaitLocks waits until count transactions of the test wait for locks.
func AwaitLocks(t *testing.T, f *Fixture, count int) {
	t.Helper()
	Await(t, fmt.Sprintf("%d transactions wait for a lock", count), func() bool { return LockWaits(f) >= count })
}

// Hold makes removals wait in their transaction, where the trigger says, until release is
// called. The wait has no limit.
func Hold(t *testing.T, f *Fixture, when string) (release func()) {
	t.Helper()
	f.Exec(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN OLD; END $$`)
	f.Exec(`CREATE TRIGGER hold ` + when + ` EXECUTE FUNCTION hold()`)
	_, exec := Connection(t, f.Pool.Config().ConnString())
	exec(`SELECT pg_advisory_lock(4711)`)
	return func() { exec(`SELECT pg_advisory_unlock(4711)`) }
}

// Begin begins a transaction that ends with the test at the latest.
func Begin(t *testing.T, f *Fixture) pgx.Tx {
	t.Helper()
	tx, err := f.Pool.Begin(t.Context())
	Must(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

// ExecIn runs a statement in the transaction. If it writes work orders, their positions follow.
func ExecIn(t *testing.T, tx pgx.Tx, sql string, args ...any) {
	t.Helper()
	if err := Write(t.Context(), tx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
