package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/service/servicetest"
)

// await waits until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
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

// lockWaits returns how many statements wait for a lock.
func lockWaits(f *servicetest.Fixture) int {
	return servicetest.Value[int](f, `SELECT count(*)::integer FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// awaitLocks waits until count transactions of the test wait for locks.
func awaitLocks(t *testing.T, f *servicetest.Fixture, count int) {
	t.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for servicetest.Value[int](f, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`) < count {
		select {
		case <-again.C:
		case <-limit.C:
			t.Fatalf("fewer than %d transactions wait for a lock", count)
		}
	}
}

// held is a lock that the test holds.
type held struct {
	f    *servicetest.Fixture
	conn *pgx.Conn
}

func (h held) release(t *testing.T) { h.exec(t, `SELECT pg_advisory_unlock(4711)`) }

func (h held) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := h.conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// waiting waits until n transactions of the database wait for a lock.
func (h held) waiting(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for servicetest.Value[int](h.f, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) < n {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("%d transactions never waited", n)
		}
	}
}

// hold makes removals wait in their transaction, where the trigger says, until the
// lock is released. The wait has no limit.
func hold(t *testing.T, f *servicetest.Fixture, when string) held {
	t.Helper()
	f.Exec(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN OLD; END $$`)
	f.Exec(`CREATE TRIGGER hold ` + when + ` EXECUTE FUNCTION hold()`)
	conn, err := pgx.ConnectConfig(t.Context(), f.Pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	h := held{f, conn}
	h.exec(t, `SELECT pg_advisory_lock(4711)`)
	return h
}

// begin begins a transaction that ends with the test at the latest.
func begin(t *testing.T, f *servicetest.Fixture) pgx.Tx {
	t.Helper()
	tx, err := f.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

func execIn(t *testing.T, tx pgx.Tx, sql string, args ...any) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
