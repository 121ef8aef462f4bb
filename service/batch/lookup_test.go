package batch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestLookups(t *testing.T) {
	h := newHarness(t)
	h.exec(`INSERT INTO entries SELECT 'e' || n, n FROM generate_series(1, 300) n`)
	errMissing := errors.New("it is missing")
	const n = 302 // three batches; the first and the last entry are missing
	found := make([]entry, n)
	var lookups []*Lookup
	for i := range n {
		lookups = append(lookups, NewLookup(t.Context(), readEntries, &found[i], errMissing, fmt.Sprint("e", i)))
	}
	h.reader.Start("", lookups...)
	for i, l := range lookups {
		err := l.Await(t.Context())
		if i == 0 || i == n-1 {
			if !errors.Is(err, errMissing) {
				t.Errorf("lookup %d: %v, want that it is missing", i, err)
			}
		} else if err != nil || found[i].Size != i {
			t.Errorf("lookup %d found %d, error %v", i, found[i].Size, err)
		}
	}
}

// One lookup that Postgres rejects fails alone.
func TestALookupThatPostgresRejects(t *testing.T) {
	h := newHarness(t)
	inverse := &Statement{SQL: `SELECT u.nth, 'inverse' AS name, 100 / u.n AS size FROM unnest($1::integer[]) WITH ORDINALITY u (n, nth)`}
	found := make([]entry, 3)
	lookups := []*Lookup{
		NewLookup(t.Context(), inverse, &found[0], nil, 2),
		NewLookup(t.Context(), inverse, &found[1], nil, 0),
		NewLookup(t.Context(), inverse, &found[2], nil, 5),
	}
	h.reader.Start("", lookups...)
	if err := lookups[1].Await(t.Context()); !isCode("22012")(err) {
		t.Errorf("the division by zero: %v", err)
	}
	for i, want := range map[int]int{0: 50, 2: 20} {
		if err := lookups[i].Await(t.Context()); err != nil || found[i].Size != want {
			t.Errorf("lookup %d found %d, error %v; want %d", i, found[i].Size, err, want)
		}
	}
}

// A round trip that hangs delays the lookups after it by maxBatchWait at most, and no
// lookup beyond its context.
func TestALookupThatHangs(t *testing.T) {
	t.Parallel() // it waits for maxBatchWait
	h := newHarness(t)
	h.exec(`INSERT INTO entries VALUES ('a', 1)`)
	gate, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gate.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := gate.Exec(t.Context(), `UPDATE entries SET size = 2`); err != nil {
		t.Fatal(err)
	}
	hangs := &Statement{SQL: `SELECT u.nth, e.name, e.size FROM unnest($1::text[]) WITH ORDINALITY u (name, nth) JOIN entries e USING (name) FOR UPDATE OF e`}
	var first, second, third entry
	hanging := NewLookup(t.Context(), hangs, &first, nil, "a")
	h.reader.Start("", hanging)
	h.await("the lookup hangs", func() bool {
		return value[bool](h, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND $1::integer = ANY (pg_blocking_pids(pid)))`, gate.Conn().PgConn().PID())
	})

	ending, cancel := context.WithCancel(t.Context())
	cancelled := NewLookup(ending, readEntries, &second, nil, "a")
	following := NewLookup(t.Context(), readEntries, &third, nil, "a")
	h.reader.Start("", cancelled, following)
	cancel()
	if err := cancelled.Await(ending); !errors.Is(err, context.Canceled) {
		t.Errorf("a lookup whose call has ended: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lookupTimeout-time.Second)
	defer cancel()
	if err := following.Await(ctx); err != nil || third.Size != 1 {
		t.Errorf("the lookup after it found %d, error %v", third.Size, err)
	}
	if err := gate.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := hanging.Await(t.Context()); err != nil || first.Size != 1 {
		t.Errorf("the lookup that hung found %d, error %v", first.Size, err)
	}
}

// One lookup that panics, or is too slow for a batch, fails alone or takes its time
// alone; the others of its batch succeed.
func TestOneOfABatchOfLookupsFails(t *testing.T) {
	t.Parallel()
	slow := &Statement{SQL: `SELECT u.nth, 'slow' AS name, 1 AS size FROM unnest($1::integer[]) WITH ORDINALITY u (n, nth), pg_sleep(u.n) s`}
	for name, test := range map[string]struct {
		lookup func(h *harness) *Lookup
		want   func(error) bool
	}{
		"its row panics": {
			lookup: func(h *harness) *Lookup {
				l := NewLookup(h.Context(), readEntries, new(entry), nil, "a")
				newRow := l.newRow
				l.newRow = func() queuedRow {
					row := newRow()
					row.each = func(pgx.CollectableRow) error { panic("a bug") }
					return row
				}
				return l
			},
			want: isError(errPanicked),
		},
		"its value panics": {
			lookup: func(h *harness) *Lookup {
				return NewLookup(h.Context(), readEntries, new(entry), nil, panickingValue{})
			},
			want: isError(errPanicked),
		},
		"it takes longer than a batch may": {
			lookup: func(h *harness) *Lookup { return NewLookup(h.Context(), slow, new(entry), nil, 60) },
			want:   isCode("57014"),
		},
		"it loses the connection": {
			lookup: func(h *harness) *Lookup {
				return NewLookup(h.Context(), &Statement{SQL: `SELECT u.nth, 'x' AS name, 1 AS size FROM unnest($1::text[]) WITH ORDINALITY u (n, nth)
					WHERE pg_terminate_backend(pg_backend_pid())`}, new(entry), nil, "x")
			},
			want: func(err error) bool { return err != nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // one waits for a statement timeout
			h := newHarness(t)
			h.exec(`INSERT INTO entries SELECT 'e' || n, n FROM generate_series(1, 127) n`)
			h.exec(`INSERT INTO entries VALUES ('a', 0)`)
			found := make([]entry, 127)
			failing := test.lookup(h)
			lookups := []*Lookup{failing}
			for i := range found {
				lookups = append(lookups, NewLookup(t.Context(), readEntries, &found[i], nil, fmt.Sprint("e", i+1)))
			}
			h.reader.Start("", lookups...)
			for i, l := range lookups[1:] {
				if err := l.Await(t.Context()); err != nil || found[i].Size != i+1 {
					t.Errorf("lookup %d found %d, error %v", i, found[i].Size, err)
				}
			}
			if err := failing.Await(t.Context()); !test.want(err) {
				t.Errorf("the failing lookup: %v", err)
			}
		})
	}
}

// Each lookup receives the row that belongs to it, however they are ordered.
func TestRowsReturnToTheirLookups(t *testing.T) {
	h := newHarness(t)
	h.exec(`INSERT INTO entries SELECT 'e' || n, n FROM generate_series(0, 4) n`)
	backwards := &Statement{SQL: readEntries.SQL + ` ORDER BY u.nth DESC`}
	found := make([]entry, 5)
	var lookups []*Lookup
	for i := range found {
		lookups = append(lookups, NewLookup(t.Context(), backwards, &found[i], nil, fmt.Sprint("e", i)))
	}
	h.reader.Start("", lookups...)
	for i, l := range lookups {
		if err := l.Await(t.Context()); err != nil || found[i].Size != i {
			t.Errorf("lookup %d found %d, error %v", i, found[i].Size, err)
		}
	}
}

// A lookup finds exactly one row, and so does a query of one row.
func TestOneRow(t *testing.T) {
	h := newHarness(t)
	h.exec(`INSERT INTO entries VALUES ('a', 1), ('b', 2)`)
	above := &Statement{SQL: `SELECT u.nth, e.name, e.size FROM unnest($1::integer[]) WITH ORDINALITY u (size, nth) JOIN entries e ON e.size > u.size`}
	errMissing := errors.New("it is missing")
	for name, test := range map[string]struct {
		above         int
		missing, want error
	}{
		"one row":                      {above: 1},
		"no row":                       {above: 2, want: pgx.ErrNoRows},
		"no row, with an error for it": {above: 2, missing: errMissing, want: errMissing},
		"two rows":                     {above: 0, missing: errMissing, want: pgx.ErrTooManyRows},
	} {
		t.Run(name, func(t *testing.T) {
			var found, queried entry
			l := NewLookup(t.Context(), above, &found, test.missing, test.above)
			h.reader.Start("", l)
			if err := l.Await(t.Context()); !errors.Is(err, test.want) || err == nil && found != (entry{"b", 2}) {
				t.Errorf("the lookup found %v, error %v; want the error %v", found, err, test.want)
			}
			rows, _ := h.pool.Query(t.Context(), `SELECT name, size FROM entries WHERE size > $1`, test.above)
			if err := ReadOne(&queried, test.missing)(rows); !errors.Is(err, test.want) || err == nil && queried != (entry{"b", 2}) {
				t.Errorf("the query found %v, error %v; want the error %v", queried, err, test.want)
			}
		})
	}
}
