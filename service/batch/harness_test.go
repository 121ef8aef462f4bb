package batch

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// harness is a Reader on a schema of the test, which has the table
// entries (name text PRIMARY KEY, size integer).
type harness struct {
	testing.TB
	pool   *pgxpool.Pool
	reader *Reader
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		t.Fatal("DATABASE_URL is not set: run the tests with `make test`, or under `bin/devstack exec --`")
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	schema := "batch_" + strings.ToLower(rand.Text()[:16])
	config.ConnConfig.RuntimeParams["search_path"] = schema
	config.MaxConns = 10
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{TB: t, pool: pool, reader: NewReader(pool, slog.New(slog.DiscardHandler))}
	h.exec(`CREATE SCHEMA ` + schema)
	t.Cleanup(func() {
		if _, err := pool.Exec(context.WithoutCancel(t.Context()), `DROP SCHEMA `+schema+` CASCADE`); err != nil {
			t.Errorf("drop the schema: %v", err)
		}
		pool.Close()
	})
	h.exec(`CREATE TABLE entries (name text PRIMARY KEY, size integer NOT NULL DEFAULT 0)`)
	return h
}

func (h *harness) exec(sql string, args ...any) {
	h.Helper()
	if _, err := h.pool.Exec(h.Context(), sql, args...); err != nil {
		h.Fatalf("%s: %v", sql, err)
	}
}

// value returns the value that a query of one row returns.
func value[T any](h *harness, sql string, args ...any) T {
	h.Helper()
	rows, _ := h.pool.Query(h.Context(), sql, args...)
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		h.Fatalf("%s: %v", sql, err)
	}
	return got
}

// await waits until the condition holds.
func (h *harness) await(what string, holds func() bool) {
	h.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-limit.C:
			h.Fatalf("%s: still not so after 20 s", what)
		}
	}
}

var readEntries = &Statement{SQL: `SELECT u.nth, e.name, e.size FROM unnest($1::text[]) WITH ORDINALITY u (name, nth) JOIN entries e USING (name)`}

type entry struct {
	Name string
	Size int
}

func isError(want error) func(error) bool {
	return func(got error) bool { return errors.Is(got, want) }
}

func isCode(want string) func(error) bool {
	return func(got error) bool {
		postgres, ok := errors.AsType[*pgconn.PgError](got)
		return ok && postgres.Code == want
	}
}

// panickingValue is a parameter that cannot be encoded.
type panickingValue struct{}

func (panickingValue) Value() (driver.Value, error) { panic("a bug") }
