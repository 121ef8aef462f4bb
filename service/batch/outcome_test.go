package batch

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var errLost = errors.New("the connection was lost")

// lossyNetwork loses a connection once it is armed, at the next message of the client.
type lossyNetwork struct {
	// delivers is true if the server still receives that message and executes it; away
	// that there are no connections afterwards.
	delivers, away bool
	armed, lost    atomic.Bool
}

func (l *lossyNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if l.lost.Load() && l.away {
		return nil, errLost
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &lossyConn{Conn: conn, network: l}, err
}

type lossyConn struct {
	net.Conn
	network *lossyNetwork
	lost    atomic.Bool
}

func (c *lossyConn) Write(p []byte) (int, error) {
	if c.lost.Load() {
		return 0, errLost
	}
	if !c.network.armed.CompareAndSwap(true, false) {
		return c.Conn.Write(p)
	}
	c.lost.Store(true)
	c.network.lost.Store(true)
	if !c.network.delivers {
		return len(p), nil
	}
	if _, err := c.Conn.Write(p); err != nil {
		return 0, err
	}
	var response []byte
	for buffer := make([]byte, 4096); !bytes.Contains(response, []byte("COMMIT\x00")); {
		n, err := c.Conn.Read(buffer)
		if err != nil {
			return 0, err
		}
		response = append(response, buffer[:n]...)
	}
	return len(p), nil
}

func (c *lossyConn) Read(p []byte) (int, error) {
	if c.lost.Load() {
		return 0, errLost
	}
	return c.Conn.Read(p)
}

// If no response comes to COMMIT, the writes end as the transaction did. Only if that
// cannot be found out do all of them fail.
func TestACommitGetsNoResponse(t *testing.T) {
	for name, test := range map[string]struct {
		network *lossyNetwork
		runs    int
		entries string
		ok      bool
	}{
		"the transaction was committed":        {&lossyNetwork{delivers: true}, 1, "a b", true},
		"it was not":                           {&lossyNetwork{}, 2, "a b", true},
		"it was, but the database is away":     {&lossyNetwork{delivers: true, away: true}, 1, "a b", false},
		"it was not, and the database is away": {&lossyNetwork{away: true}, 1, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			network := test.network
			config := h.pool.Config()
			config.MaxConns = 1
			config.ConnConfig.DialFunc = network.dial
			groups, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(groups.Close)
			h.writer.groups = groups
			insert := func(name string, last func()) *write {
				return &write{do: func(ctx context.Context, t *Tx) error {
					QueueBulkOne(t, always, new(struct{ Name string }), nil, name)
					if err := t.Flush(ctx); err != nil {
						return err
					}
					t.QueueBulk(insertEntries, []any{name})
					t.QueueBulkHints(always, func(pgx.CollectableRow) error { return nil }, []any{name}) // lost with the response
					last()
					return nil
				}}
			}
			// A first write, so that the statements are prepared.
			for _, err := range h.together(insert("first", func() {})) {
				if err != nil {
					t.Fatal(err)
				}
			}
			h.exec(`DELETE FROM entries`)
			a, b := insert("a", func() { network.armed.Store(!network.lost.Load()) }), insert("b", func() {})
			for i, err := range h.together(a, b) {
				if (err == nil) != test.ok {
					t.Errorf("write %d: %v, want ok %t", i, err, test.ok)
				}
			}
			if names, _ := h.entries(); names != test.entries || a.runs != test.runs || b.runs != test.runs {
				t.Errorf("the entries are %q after %d and %d runs, want %q after %d", names, a.runs, b.runs, test.entries, test.runs)
			}
		})
	}
}
