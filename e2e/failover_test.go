package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// acknowledgedWrite is a write that got its response before the primary's WAL reached
// the position.
type acknowledgedWrite struct {
	id, title string
	before    uint64
}

// promotion is a primary and a standby, with writers and readers.
type promotion struct {
	*harness
	primary, standby *postgres
	i                *integrator

	mu     sync.Mutex
	writes []acknowledgedWrite
	// states are what clients knew after each page.
	states []*syncState
}

// write creates a work order and gives it another title, and notes how far the WAL
// had come after each response.
func (g *promotion) write(title string) {
	id := g.i.create(title)
	g.acknowledge(id, title)
	title += ", changed"
	response, err := g.i.call(http.MethodPatch, "/work-orders/"+id, "", map[string]string{"title": title})
	if err != nil || response.status != http.StatusOK {
		g.t.Errorf("change %s: status %d, %v: %s", id, response.status, err, response.body)
		return
	}
	g.acknowledge(id, title)
}

func (g *promotion) acknowledge(id, title string) {
	var before uint64
	if err := g.db.QueryRow(g.t.Context(), `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint`).Scan(&before); err != nil {
		g.t.Errorf("read the position of the WAL: %v", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, acknowledgedWrite{id, title, before})
}

// storm writes in four goroutines while two clients follow the changes, and returns
// what the clients know at the end.
func (g *promotion) storm(name string, writes int) {
	g.t.Helper()
	ctx, stop := context.WithCancel(g.t.Context())
	var writers, readers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range writes / 4 {
				g.write(fmt.Sprintf("%s %d by %d", name, n, w))
			}
		})
	}
	for limit := 3; limit < 5; limit++ {
		readers.Go(func() {
			state := newSyncState("title")
			for {
				last := ctx.Err() != nil // one more round after the last write
				for more := true; more; {
					var status int
					if status, more = state.next(g.i, limit); status != http.StatusOK {
						g.t.Errorf("a page of changes: status %d", status)
						return
					}
					g.mu.Lock()
					g.states = append(g.states, state.clone())
					g.mu.Unlock()
				}
				if last {
					return
				}
			}
		})
	}
	writers.Wait()
	stop()
	readers.Wait()
}

// number returns a whole number that the server selects.
func (c *postgres) number(sql string) (n uint64) {
	c.t.Helper()
	c.query(func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(&n) })
	return n
}

// writable reports whether the server accepts writes.
func (c *postgres) writable() (yes bool) {
	conn, err := pgx.Connect(c.t.Context(), c.url)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(c.t.Context()) }()
	err = conn.QueryRow(c.t.Context(), `SELECT NOT pg_is_in_recovery()`).Scan(&yes)
	return err == nil && yes
}

// titles returns the title of every work order in the database.
func (g *promotion) titles() map[string]string {
	g.t.Helper()
	rows, err := g.db.Query(g.t.Context(), `SELECT id, title FROM work_orders`)
	if err != nil {
		g.t.Fatal(err)
	}
	titles := map[string]string{}
	var id, title string
	if _, err := pgx.ForEachRow(rows, []any{&id, &title}, func() error { titles[id] = title; return nil }); err != nil {
		g.t.Fatal(err)
	}
	return titles
}

// promote cuts off the primary, promotes the standby and moves the API server there.
func (g *promotion) promote(api *process) {
	g.t.Helper()
	g.primary.crash()
	api.kill()
	// A statement that waited for the promotion would conflict with the replay.
	g.standby.exec(`SELECT pg_promote(false)`)
	eventually(g.t, startLimit, "the standby is promoted", g.standby.writable)
	g.settings["DATABASE_URL"] = g.standby.url
	pool, err := pgxpool.New(g.t.Context(), g.standby.url)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(pool.Close)
	g.db = pool
}

// A streaming standby is promoted that lacks the primary's last writes. Every
// acknowledged write that it had received is there. A sync token returns the state of
// every record or gets 410: none skips a change, although the standby gives the numbers
// of the lost transactions to others.
func TestAFailoverToALaggingStandbySkipsNoChange(t *testing.T) {
	t.Parallel()
	primary := newPostgres(t)
	h := newHarness(t, settings{"DATABASE_URL": primary.url})
	api := h.startAPI(nil)
	g := &promotion{harness: h, primary: primary, standby: primary.newStandby(), i: h.integrator()}
	g.standby.exec(`SELECT pg_wal_replay_pause()`)
	g.storm("Received", 24)

	// The connection breaks when the standby has received more than it has replayed. It
	// does not connect again while the replay is paused.
	eventually(t, startLimit, "the replay is paused", func() bool {
		return g.standby.number(`SELECT (pg_get_wal_replay_pause_state() = 'paused')::int`) == 1
	})
	g.primary.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_replication`)
	eventually(t, startLimit, "the standby receives nothing", func() bool {
		return g.standby.number(`SELECT count(*) FROM pg_stat_wal_receiver`) == 0
	})
	received := g.standby.number(`SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint`)
	g.storm("Lost", 48)
	lastXid := g.primary.number(`SELECT pg_current_xact_id()::text::bigint`)
	g.promote(api)

	kept, expected := g.titles(), map[string]string{}
	for _, w := range g.writes {
		if w.before <= received {
			expected[w.id] = max(expected[w.id], w.title)
		}
	}
	for id, title := range expected {
		if kept[id] < title {
			t.Errorf("%s was acknowledged as %q and received by the standby, which has %q", id, title, kept[id])
		}
	}
	written := map[string]bool{}
	for _, w := range g.writes {
		written[w.id] = true
	}
	if len(expected) < 12 || len(kept) >= len(written) {
		t.Fatalf("of %d work orders the standby received %d and has %d, want some and not all", len(written), len(expected), len(kept))
	}

	// The numbers of the lost transactions are given to others.
	if next := g.standby.number(`SELECT pg_current_xact_id()::text::bigint`); next >= lastXid {
		t.Fatalf("the standby continues with transaction %d, the primary ended with %d", next, lastXid)
	}
	h.startAPI(nil)
	g.i = h.integrator()
	before := len(g.writes)
	for n := 0; g.standby.number(`SELECT pg_current_xact_id()::text::bigint`) <= lastXid; n++ {
		if n%20 == 0 {
			g.write(fmt.Sprintf("Afterwards %d", n))
		}
	}
	if len(g.writes) == before {
		t.Fatal("nothing was written with the numbers of lost transactions")
	}
	final := g.titles()
	var continued, gone int
	for _, state := range g.states {
		switch status := state.follow(g.i); {
		case status == http.StatusGone:
			gone++
		case status != http.StatusOK:
			t.Fatalf("a sync token from before the failover gets status %d", status)
		case !maps.Equal(state.records, final):
			t.Errorf("a client that continues knows %d work orders after the failover, of which there are %d: it missed a change", len(state.records), len(final))
			continued++
		default:
			continued++
		}
	}
	if continued == 0 || gone == 0 {
		t.Errorf("%d tokens continue, %d get 410, want some of both", continued, gone)
	}
	t.Logf("%d writes acknowledged, %d of the work orders received; %d tokens continue, %d get 410", before, len(expected), continued, gone)
}
