package batch

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/service/slots"
)

func TestConcurrentWritesShareATransaction(t *testing.T) {
	h := newHarness(t)
	var writes []*write
	read := make([]entry, 8)
	for i := range read {
		writes = append(writes, &write{do: func(ctx context.Context, t *Tx) error {
			name := fmt.Sprint("entry", i)
			if !t.Shared() {
				return errors.New("the write is alone")
			}
			t.QueueBulk(insertEntries, []any{name})
			if i%2 == 0 { // the others write with COMMIT
				if err := t.Flush(ctx); err != nil {
					return err
				}
			}
			QueueBulkOne(t, readEntries, &read[i], nil, name)
			return t.Flush(ctx)
		}})
	}
	for i, err := range h.together(writes...) {
		if want := fmt.Sprint("entry", i); err != nil || read[i].Name != want {
			t.Errorf("write %d read %q, error %v; want %q", i, read[i].Name, err, want)
		}
	}
	if _, transactions := h.entries(); transactions != 1 {
		t.Errorf("the writes took %d transactions, want 1", transactions)
	}
}

func TestConflictingWritesDoNotShareATransaction(t *testing.T) {
	h := newHarness(t)
	a, b, c := inserts("a"), inserts("b"), inserts("c")
	a.keys, b.keys, c.keys = []string{"x", "y"}, []string{"y", "z"}, []string{"z"}
	for i, err := range h.together(a, b, c) {
		if err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if names, transactions := h.entries(); names != "a b c" || transactions != 3 {
		t.Errorf("%q were written in %d transactions, want a b c in 3: c must not overtake b", names, transactions)
	}
}

// A group that fails leaves no part of a write, and every write ends as if it had
// been alone.
func TestOneOfAGroupFails(t *testing.T) {
	errRule := errors.New("a rule rejects it")
	insertThen := func(fail func() error) func(context.Context, *Tx) error {
		return func(ctx context.Context, t *Tx) error {
			t.QueueBulk(insertEntries, []any{"failing"})
			if err := t.Flush(ctx); err != nil {
				return err
			}
			return fail()
		}
	}
	for name, test := range map[string]struct {
		do func(context.Context, *Tx) error
		// want is true if the error is the failing write's own.
		want func(error) bool
		// runs counts the runs of the failing write, others the runs of the others.
		runs, others int
	}{
		"before it sends anything": {
			do:   func(context.Context, *Tx) error { return errRule },
			want: isError(errRule), runs: 1, others: 1,
		},
		"after a change was queued but not sent": {
			do: func(_ context.Context, t *Tx) error {
				t.QueueBulk(insertEntries, []any{"failing"})
				return errRule
			},
			want: isError(errRule), runs: 1, others: 1,
		},
		"after it has read": {
			do: func(ctx context.Context, t *Tx) error {
				var found entry
				QueueBulkOne(t, readEntries, &found, errRule, "unknown")
				return t.Flush(ctx)
			},
			want: isError(errRule), runs: 1, others: 1,
		},
		"after it has written": {
			do:   insertThen(func() error { return errRule }),
			want: isError(errRule), runs: 1, others: 2,
		},
		"by a statement that Postgres rejects": {
			do: func(ctx context.Context, t *Tx) error {
				t.QueueBulk(insertEntries, []any{"failing"}, []any{"failing"})
				return t.Flush(ctx)
			},
			want: isCode("23505"), runs: 2, others: 2,
		},
		"by standalone SQL that goes with the commit": {
			do: func(_ context.Context, t *Tx) error {
				t.Queue(`INSERT INTO entries (name) VALUES (NULL)`)
				return nil
			},
			want: isCode("23502"), runs: 2, others: 2,
		},
		"by a constraint that is checked at the commit": {
			do: func(_ context.Context, t *Tx) error {
				t.Queue(`INSERT INTO pairs VALUES ('failing'), ('failing')`)
				return nil
			},
			want: isCode("23505"), runs: 2, others: 2,
		},
		"by a panic before it has written": {
			do:   func(context.Context, *Tx) error { panic("a bug") },
			want: isError(errPanicked), runs: 1, others: 1,
		},
		"by a panic while it reads rows": {
			do: func(ctx context.Context, t *Tx) error {
				t.QueueRows(func(pgx.Rows) error { panic("a bug") }, `SELECT name FROM entries`)
				return t.Flush(ctx)
			},
			want: isError(errPanicked), runs: 1, others: 1,
		},
		"by a panic while it reads a row of a shared statement": {
			do: func(ctx context.Context, t *Tx) error {
				t.QueueBulkRows(always, func(pgx.CollectableRow) error { panic("a bug") }, "x")
				return t.Flush(ctx)
			},
			want: isError(errPanicked), runs: 1, others: 1,
		},
		"by a panic while its values are encoded": {
			do: func(ctx context.Context, t *Tx) error {
				t.Queue(`SELECT $1::text`, panickingValue{})
				return t.Flush(ctx)
			},
			want: isError(errPanicked), runs: 2, others: 2,
		},
		"by a statement that takes too long": {
			do: func(ctx context.Context, t *Tx) error {
				t.Queue(`SET LOCAL statement_timeout = '10ms'`)
				t.Queue(`SELECT pg_sleep(60)`)
				return t.Flush(ctx)
			},
			want: isCode("57014"), runs: 2, others: 2,
		},
		"by a lost connection": {
			do: func(ctx context.Context, t *Tx) error {
				t.Queue(`SELECT pg_terminate_backend(pg_backend_pid())`)
				return t.Flush(ctx)
			},
			want: func(err error) bool { return err != nil && !errors.Is(err, errGroupFailed) }, runs: 2, others: 2,
		},
		"by a panic after it has written": {
			do:   insertThen(func() error { panic("a bug") }),
			want: isError(errPanicked), runs: 1, others: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.exec(`CREATE TABLE pairs (name text UNIQUE DEFERRABLE INITIALLY DEFERRED)`)
			first, failing, last := inserts("first"), &write{do: test.do}, inserts("last")
			errs := h.together(first, failing, last)
			if errs[0] != nil || errs[2] != nil || !test.want(errs[1]) {
				t.Errorf("the errors are %v, want only the second write to fail, with its own", errs)
			}
			if names, _ := h.entries(); names != "first last" {
				t.Errorf("the entries are %q, want first and last", names)
			}
			if failing.runs != test.runs || first.runs != test.others || last.runs != test.others {
				t.Errorf("the failing write ran %d times, the others %d and %d; want %d and %d",
					failing.runs, first.runs, last.runs, test.runs, test.others)
			}
		})
	}
}

func isError(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

func isCode(want string) func(error) bool {
	return func(err error) bool {
		pg, ok := errors.AsType[*pgconn.PgError](err)
		return ok && pg.Code == want
	}
}

// The write waits for the lock alone; its group does not.
func TestAWriteLeavesItsGroupToWaitForALock(t *testing.T) {
	h := newHarness(t)
	h.exec(`INSERT INTO entries VALUES ('held', 1)`)
	other, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := other.Exec(t.Context(), `UPDATE entries SET size = 2`); err != nil {
		t.Fatal(err)
	}
	read := make(chan int, 1)
	waiting := make(chan error, 1)
	locks := &write{do: func(ctx context.Context, t *Tx) error {
		var found entry
		t.QueueLock(lockEntries, "held")
		QueueOne(t, &found, nil, `SELECT name, size FROM entries WHERE name = 'held'`)
		if err := t.Flush(ctx); err != nil {
			return err
		}
		read <- found.Size
		return nil
	}}
	release := h.hold()
	defer release()
	free := make(chan error, 1)
	go func() { waiting <- h.writer.WriteTogether(h.Context(), "", nil, locks.do) }()
	go func() { free <- h.writer.WriteTogether(h.Context(), "", nil, inserts("free").do) }()
	h.await("both writes wait for a group", func() bool { return h.writer.Waiting() == 2 })
	release()
	if err := <-free; err != nil {
		t.Fatalf("the write that locks nothing: %v", err)
	}
	h.await("the other waits for the lock", func() bool {
		return value[bool](h, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND $1::integer = ANY (pg_blocking_pids(pid)))`, other.Conn().PgConn().PID())
	})
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Fatalf("the write that locks: %v", err)
	}
	if size := <-read; size != 2 {
		t.Errorf("it read size %d, want 2: what the transaction it waited for has committed", size)
	}
}

// A write that runs alone holds its connection for a limited time.
func TestAWriteAloneWaitsForALockOnlySoLong(t *testing.T) {
	for code, limit := range map[string]func(*Writer){
		"55P03": func(w *Writer) { w.LockTimeout = 10 * time.Millisecond },
		"57014": func(w *Writer) { w.StatementTimeout = 10 * time.Millisecond },
	} {
		t.Run(code, func(t *testing.T) {
			h := newHarness(t)
			h.exec(`INSERT INTO entries VALUES ('held', 1)`)
			other, err := h.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Rollback(context.WithoutCancel(t.Context())) }()
			if _, err := other.Exec(t.Context(), `UPDATE entries SET size = 2`); err != nil {
				t.Fatal(err)
			}
			limit(h.writer)
			if err := h.writer.WriteTogether(t.Context(), "", nil, func(ctx context.Context, t *Tx) error {
				t.QueueLock(lockEntries, "held")
				return t.Flush(ctx)
			}); !isCode(code)(err) {
				t.Errorf("the error is %v, want SQLSTATE %s", err, code)
			}
		})
	}
}

// Locking a record that does not exist does not fail.
func TestLockOfNothing(t *testing.T) {
	h := newHarness(t)
	var found []entry
	err := h.writer.WriteTogether(t.Context(), "", nil, func(ctx context.Context, t *Tx) error {
		t.QueueLock(lockEntries, "unknown")
		QueueAll(t, &found, `SELECT name, size FROM entries`)
		return t.Flush(ctx)
	})
	if err != nil || len(found) != 0 {
		t.Errorf("%v, error %v", found, err)
	}
}

var always = &Statement{ReadOnly: true, SQL: `SELECT u.nth, u.name FROM unnest($1::text[]) WITH ORDINALITY u (name, nth)`}

type panickingValue struct{}

func (panickingValue) Value() (driver.Value, error) { panic("a bug") }

// A group without a connection has sent nothing, so its writes run alone.
func TestAGroupGetsNoConnection(t *testing.T) {
	h := newHarness(t)
	closed := h.pool.Config()
	closed.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
	groups, err := pgxpool.NewWithConfig(t.Context(), closed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(groups.Close)
	h.writer.groups = groups
	for i, err := range h.together(inserts("a"), inserts("b")) {
		if err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if names, _ := h.entries(); names != "a b" {
		t.Errorf("the entries are %q, want a b", names)
	}
}

func TestAWriteThatWaitsTooLongRunsAlone(t *testing.T) {
	h := newHarness(t)
	release := h.hold()
	defer release()
	h.writer.MaxWait = 10 * time.Millisecond
	shared := true
	if err := h.writer.WriteTogether(t.Context(), "", nil, func(_ context.Context, t *Tx) error {
		shared = t.Shared()
		t.QueueBulk(insertEntries, []any{"impatient"})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if names, _ := h.entries(); names != "impatient" || shared || h.writer.Waiting() != 0 {
		t.Errorf("the entries are %q, shared %t, %d writes still wait", names, shared, h.writer.Waiting())
	}
}

// Any number of a tenant's writes may have to run alone, or have waited too long: two do
// at a time, and that does not delay another tenant's write.
func TestWritesThatRunAloneAreBounded(t *testing.T) {
	for name, stalled := range map[string]bool{"they have to": false, "after a stall": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			if stalled {
				release := h.hold()
				defer release()
				h.writer.MaxWait = time.Millisecond
			}
			entered, leave := make(chan bool, 20), make(chan bool)
			blocks := func(_ context.Context, t *Tx) error {
				if t.Shared() {
					return ErrRunAlone
				}
				entered <- true
				<-leave
				return nil
			}
			errs := make(chan error, 20)
			for range cap(errs) {
				go func() { errs <- h.writer.WriteTogether(h.Context(), "noisy", nil, blocks) }()
			}
			h.await("the others wait to run alone", func() bool {
				return len(entered) == slots.MaxRunningPerTenant && h.writer.alone.Waiting() == cap(errs)-slots.MaxRunningPerTenant
			})
			if err := h.writer.WriteTogether(t.Context(), "quiet", nil, func(_ context.Context, t *Tx) error {
				if t.Shared() {
					return ErrRunAlone
				}
				t.QueueBulk(insertEntries, []any{"quiet"})
				return nil
			}); err != nil {
				t.Errorf("another tenant's write: %v", err)
			}
			if n := len(entered); n != slots.MaxRunningPerTenant {
				t.Errorf("%d writes of the tenant run alone at a time, want %d", n, slots.MaxRunningPerTenant)
			}
			close(leave)
			for range cap(errs) {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// After a group failed, its writes run alone, a bounded number of a tenant and in all at a
// time. Only the one at fault fails.
func TestTheWritesOfAFailedGroupRunAlone(t *testing.T) {
	for name, tenants := range map[string]int{"a tenant alone": 1, "two tenants": 2, "many tenants": 15} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			var mu sync.Mutex
			alone := map[string]int{}
			writes := []*write{{tenant: "tenant0", do: func(ctx context.Context, t *Tx) error {
				t.QueueBulk(insertEntries, []any{"failing"}, []any{"failing"})
				return t.Flush(ctx)
			}}}
			for i := range maxGroupSize - 1 {
				w := inserts(fmt.Sprintf("e%02d", i))
				insert := w.do
				w.tenant = fmt.Sprint("tenant", i%tenants)
				w.do = func(ctx context.Context, t *Tx) error {
					if t.Shared() {
						return insert(ctx, t)
					}
					count := func(by int) {
						mu.Lock()
						defer mu.Unlock()
						alone[w.tenant] += by
						alone[""] += by
						if alone[w.tenant] > slots.MaxRunningPerTenant || alone[""] > slots.MaxRunning {
							h.Errorf("%d writes of %s and %d in all run alone at a time", alone[w.tenant], w.tenant, alone[""])
						}
					}
					count(1)
					defer count(-1)
					return insert(ctx, t)
				}
				writes = append(writes, w)
			}
			for i, err := range h.together(writes...) {
				if i == 0 && !isCode("23505")(err) || i > 0 && err != nil {
					t.Errorf("write %d: %v; want an error of the first alone", i, err)
				}
			}
			if n := value[int](h, `SELECT count(*)::integer FROM entries`); n != len(writes)-1 {
				t.Errorf("%d entries were written, want %d", n, len(writes)-1)
			}
		})
	}
}

// Writes whose rows do not fit into a group run in the next one.
func TestRowsOfAGroupAreBounded(t *testing.T) {
	h := newHarness(t)
	var writes []*write
	for i := range 12 {
		writes = append(writes, &write{tenant: "costly", do: func(_ context.Context, t *Tx) error {
			if err := t.Reserve(100); err != nil {
				return err
			}
			if !t.Shared() {
				return errors.New("the write is alone")
			}
			t.QueueBulk(insertEntries, []any{fmt.Sprintf("e%02d", i)})
			return nil
		}})
	}
	for i, err := range h.together(writes...) {
		if err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if n := value[int](h, `SELECT max(n)::integer FROM (SELECT count(*) AS n FROM entries GROUP BY xmin::text) x`); n != maxGroupRows/100 {
		t.Errorf("a transaction holds %d writes of 100 rows, want %d", n, maxGroupRows/100)
	}
	if names, _ := h.entries(); len(names) != 12*4-1 {
		t.Errorf("the entries are %s, want twelve", names)
	}
}

func TestACallEndsWhileItsWriteWaits(t *testing.T) {
	h := newHarness(t)
	release := h.hold()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- h.writer.WriteTogether(ctx, "", nil, inserts("never").do) }()
	h.await("the write waits for its group", func() bool { return h.writer.Waiting() > 0 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
	if n := h.writer.Waiting(); n != 0 {
		t.Errorf("%d writes still wait", n)
	}
}

func TestATransactionThatLosesADeadlockIsRetried(t *testing.T) {
	for name, test := range map[string]struct {
		code  string
		loses int
		runs  int
		ok    bool
	}{
		"once":                  {code: "40P01", loses: 1, runs: 2, ok: true},
		"always":                {code: "40P01", loses: maxAttempts, runs: maxAttempts},
		"serialization failure": {code: "40001", loses: 2, runs: 3, ok: true},
		"another error":         {code: "23514", loses: 1, runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			runs := 0
			err := h.writer.Write(t.Context(), func(_ context.Context, t *Tx) error {
				runs++
				t.QueueBulk(insertEntries, []any{"a"})
				if runs <= test.loses {
					t.Queue(`DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '` + test.code + `'; END $$`)
				}
				return nil
			})
			if runs != test.runs || (err == nil) != test.ok || err != nil && !isCode(test.code)(err) {
				t.Errorf("it ran %d times, error %v; want %d", runs, err, test.runs)
			}
		})
	}
}

func TestRowsOfAQuery(t *testing.T) {
	errMissing := errors.New("it is missing")
	for name, test := range map[string]struct {
		queue func(t *Tx, into *entry)
		want  string
		err   error
	}{
		"one row": {
			queue: func(t *Tx, into *entry) {
				QueueOne(t, into, nil, `SELECT name, size FROM entries WHERE name = $1`, "a")
			}, want: "a 1",
		},
		"one row of a statement": {
			queue: func(t *Tx, into *entry) { QueueBulkOne(t, readEntries, into, nil, "b") }, want: "b 2",
		},
		"no row": {
			queue: func(t *Tx, into *entry) { QueueOne(t, into, nil, `SELECT name, size FROM entries WHERE false`) }, err: pgx.ErrNoRows,
		},
		"no row of a statement": {
			queue: func(t *Tx, into *entry) { QueueBulkOne(t, readEntries, into, nil, "c") }, err: pgx.ErrNoRows,
		},
		"no row, with an error for it": {
			queue: func(t *Tx, into *entry) { QueueOne(t, into, errMissing, `SELECT name, size FROM entries WHERE false`) }, err: errMissing,
		},
		"no row of a statement, with an error for it": {
			queue: func(t *Tx, into *entry) { QueueBulkOne(t, readEntries, into, errMissing, "c") }, err: errMissing,
		},
		"two rows": {
			queue: func(t *Tx, into *entry) { QueueOne(t, into, nil, `SELECT name, size FROM entries`) }, err: pgx.ErrTooManyRows,
		},
		"two rows of a statement": {
			queue: func(t *Tx, into *entry) {
				QueueBulkOne(t, &Statement{SQL: `SELECT 1, name, size FROM entries WHERE name <> ALL ($1::text[])`}, into, nil, "c")
			}, err: pgx.ErrTooManyRows,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.exec(`INSERT INTO entries VALUES ('a', 1), ('b', 2)`)
			var into entry
			err := h.writer.Write(t.Context(), func(ctx context.Context, t *Tx) error {
				test.queue(t, &into)
				return t.Flush(ctx)
			})
			if got := fmt.Sprint(into.Name, " ", into.Size); !errors.Is(err, test.err) || err == nil && got != test.want {
				t.Errorf("%q, error %v; want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

// Each write receives the rows that belong to its own, however they are ordered.
func TestRowsReturnToTheirWrite(t *testing.T) {
	h := newHarness(t)
	h.exec(`INSERT INTO entries VALUES ('a', 1), ('b', 2), ('c', 3)`)
	below := &Statement{ReadOnly: true, SQL: `SELECT u.nth, e.name FROM unnest($1::integer[]) WITH ORDINALITY u (size, nth) JOIN entries e ON e.size < u.size ORDER BY e.name DESC, u.nth`}
	names := make([][]string, 5)
	var writes []*write
	for i := range names {
		writes = append(writes, &write{do: func(ctx context.Context, t *Tx) error {
			t.QueueBulkRows(below, func(row pgx.CollectableRow) error {
				name, err := pgx.RowTo[string](row)
				names[i] = append(names[i], name)
				return err
			}, i)
			return t.Flush(ctx)
		}})
	}
	for i, err := range h.together(writes...) {
		want := []string{"c", "b", "a"}[3-max(0, i-1):]
		if err != nil || !slices.Equal(names[i], want) {
			t.Errorf("write %d received %s, error %v; want %s", i, strings.Join(names[i], " "), err, strings.Join(want, " "))
		}
	}
}
