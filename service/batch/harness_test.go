package batch

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// harness is a Writer and a Reader on a schema of the test, which has the table
// entries (name text PRIMARY KEY, size integer).
type harness struct {
	testing.TB
	pool   *pgxpool.Pool
	writer *Writer
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
	log := slog.New(slog.DiscardHandler)
	h := &harness{TB: t, pool: pool, writer: NewWriter(pool, pool, log), reader: NewReader(pool, log)}
	h.writer.LockTimeout, h.writer.StatementTimeout = time.Minute, time.Minute // however busy the machine is
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

// entries returns the names in the table, and how many transactions wrote them.
func (h *harness) entries() (names string, transactions int) {
	h.Helper()
	return value[string](h, `SELECT coalesce(string_agg(name, ' ' ORDER BY name), '') FROM entries`),
		value[int](h, `SELECT count(DISTINCT xmin::text)::integer FROM entries`)
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

// hold keeps a group open until release is called, so that writes wait for the next.
func (h *harness) hold() (release func()) {
	h.writer.MaxWait = time.Minute // however busy the machine is, writes wait until release
	running, until := make(chan struct{}), make(chan struct{})
	go func() {
		_ = h.writer.WriteTogether(h.Context(), "", nil, func(context.Context, *Tx) error {
			close(running)
			<-until
			return errors.New("held")
		})
	}()
	<-running
	return sync.OnceFunc(func() { close(until) })
}

// write is a write with its tenant and conflict keys.
type write struct {
	tenant string
	keys   []string
	do     func(context.Context, *Tx) error
	// runs counts how often do ran.
	runs int
}

// together runs the writes in one group, as far as their keys allow, and returns
// the error of each.
func (h *harness) together(writes ...*write) []error {
	h.Helper()
	release := h.hold()
	defer release()
	errs := make([]error, len(writes))
	var all sync.WaitGroup
	for i, w := range writes {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = errPanicked
				}
			}()
			errs[i] = h.writer.WriteTogether(h.Context(), w.tenant, w.keys, func(ctx context.Context, t *Tx) error {
				w.runs++
				return w.do(ctx, t)
			})
		})
		h.await("a write waits for its group", func() bool { return h.writer.Waiting() > i })
	}
	release()
	all.Wait()
	return errs
}

var (
	insertEntries = &Statement{Stage: 2, SQL: `INSERT INTO entries (name) SELECT name FROM unnest($1::text[]) WITH ORDINALITY u (name, nth)`}
	lockEntries   = &Statement{
		Stage: 1, ReadOnly: true,
		SQL:       lockEntry,
		SharedSQL: lockEntry + ` SKIP LOCKED`,
	}
	readEntries = &Statement{Stage: 3, ReadOnly: true, SQL: `SELECT u.nth, e.name, e.size FROM unnest($1::text[]) WITH ORDINALITY u (name, nth) JOIN entries e USING (name)`}
)

const lockEntry = `SELECT u.nth FROM unnest($1::text[]) WITH ORDINALITY u (name, nth) JOIN entries e USING (name) FOR NO KEY UPDATE OF e`

type entry struct {
	Name string
	Size int
}

// inserts is a write of one entry.
func inserts(name string) *write {
	return &write{do: func(_ context.Context, t *Tx) error {
		t.QueueBulk(insertEntries, []any{name})
		return nil
	}}
}
