package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"millwright/models"
)

// The size of the hostile patterns.
const (
	hostilePairs     = 150
	hostileCreators  = 512
	hostileCallers   = 64
	hostileReaders   = 8
	hostileParsers   = 32
	hostileBrowsers  = 32
	hostileQuestions = 500
)

// hostileSources are the local addresses of hostile connections, in other networks than
// the quiet organization's. One address is enough for all patterns but that of idle
// sockets, which use up the connections of all addresses.
var hostileSources = []*net.TCPAddr{{IP: net.IPv4(127, 66, 0, 1)}, {IP: net.IPv4(127, 66, 0, 2)}}

// neighbor is a hostile organization, or a stranger without a token.
type neighbor struct {
	Address, Token string
	// Node is where it creates records, Integration its integration.
	Node, Integration string
	WorkOrders        []string
	Form              string
	calls             atomic.Int64
}

// hostileLoads are what hostile clients do until the context ends, by name. They count
// their calls.
var hostileLoads = map[string]func(n *neighbor, ctx context.Context, calls *atomic.Int64) error{
	"pairs":        (*neighbor).pairs,
	"create":       loadOf(hostileCreators, (*neighbor).create, http.StatusCreated),
	"change":       loadOf(hostileCallers, (*neighbor).change, http.StatusOK),
	"list":         loadOf(hostileCallers, (*neighbor).list, http.StatusOK),
	"nothing":      loadOf(hostileCallers, (*neighbor).readNothing, http.StatusUnauthorized, http.StatusNotFound),
	"slow":         loadOf(hostileReaders, (*neighbor).slowRead, http.StatusOK),
	"errors":       loadOf(hostileReaders, answersOf(`{}`, 340_000), http.StatusRequestEntityTooLarge),
	"costly":       loadOf(hostileParsers, answersOf(`{"question_id":"q","value":[`+strings.Repeat("1,", 99)+`1]}`, 1_000), http.StatusUnprocessableEntity),
	"cookies":      loadOf(hostileReaders, (*neighbor).forgedCookie, http.StatusSeeOther),
	"sign-ins":     (*neighbor).signIns,
	"idle":         (*neighbor).idleOfOne,
	"idle of many": (*neighbor).idleOfMany,
}

// loadOf returns a load of clients that make the call, which gets one of the statuses.
func loadOf(clients int, one func(*neighbor, *caller) error, want ...int) func(*neighbor, context.Context, *atomic.Int64) error {
	return func(n *neighbor, ctx context.Context, calls *atomic.Int64) error {
		return n.loop(ctx, clients, calls, func(c *caller) error { return one(n, c) }, want...)
	}
}

// hostilePatterns makes the neighbors and returns what they do. The first does
// nothing: its ratios show the noise.
func (in *installation) hostilePatterns(ctx context.Context) ([]hostilePattern, error) {
	noisy := organization{key: "noisy", integrations: 1, events: "work_order.updated", feedback: true, questions: hostileQuestions}
	n, err := in.neighborOf(ctx, noisy)
	if err != nil {
		return nil, err
	}
	limited, err := in.neighborOf(ctx, organization{key: "limited", integrations: 1, callsPerMinute: 60})
	if err != nil {
		return nil, err
	}
	stranger := &neighbor{Address: in.erp.address}
	none := func(context.Context) error { return nil }
	pattern := func(n *neighbor, load, format string, args ...any) hostilePattern {
		return hostilePattern{
			name:    nextTo(format, args...),
			prepare: none,
			disturb: func(ctx context.Context) (int, error) { return runHostileClient(ctx, hostileJob{load, n}) },
		}
	}
	return []hostilePattern{
		{nextTo("no neighbor (noise)"), none, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, nil }},
		pattern(n, "pairs", "%d pairs of POST /issues with one external_id", hostilePairs),
		pattern(n, "create", "%d concurrent creations", hostileCreators),
		in.deletion(n), in.release(n),
		pattern(limited, "list", "calls over the limit"),
		pattern(stranger, "nothing", "calls without a token"),
		pattern(n, "slow", "%d callers with slow reads", hostileReaders),
		pattern(n, "errors", "%d callers with 340,000 invalid answers each", hostileReaders),
		pattern(n, "costly", "%d callers with bodies that take long to parse", hostileParsers),
		pattern(stranger, "cookies", "%d callers with forged cookies", hostileReaders),
		pattern(stranger, "sign-ins", "sign-ins from %d addresses", hostileBrowsers),
		pattern(stranger, "idle", "%d idle sockets of 1 address", clientConnections+callers),
		pattern(stranger, "idle of many", "%d idle sockets of %d addresses", neighborConnections, len(hostileSources)),
	}, nil
}

// neighborOf imports an organization, with work orders to change.
func (in *installation) neighborOf(ctx context.Context, o organization) (*neighbor, error) {
	made, err := in.importOrganization(ctx, o)
	if err != nil {
		return nil, err
	}
	token, err := in.tokenOf(ctx, o.client(1))
	if err != nil {
		return nil, err
	}
	n := &neighbor{Address: in.erp.address, Token: token, Node: made.IDs["top"], Form: made.IDs["long"]}
	if err := in.pool.QueryRow(ctx, `SELECT id FROM identities WHERE id = $1`, made.IDs["i1"]).Scan(&n.Integration); err != nil {
		return nil, fmt.Errorf("find the integration: %w", err)
	}
	if o.callsPerMinute > 0 {
		return n, nil
	}
	t := &tenant{address: n.Address, token: token, node: n.Node}
	err = t.createWorkOrders(ctx, benchWorkOrders)
	n.WorkOrders = t.workOrders
	return n, err
}

// loop runs clients that make the call until the context ends. Calls that the API
// rejects as too many, or cannot serve, are part of the pattern, and so are broken
// connections; any other status than those wanted is a mistake of the bench.
func (n *neighbor) loop(ctx context.Context, clients int, calls *atomic.Int64, one func(*caller) error, want ...int) error {
	return n.loopFrom(ctx, hostileSources[0], clients, calls, one, want...)
}

// loopFrom is loop from the address.
func (n *neighbor) loopFrom(ctx context.Context, from net.Addr, clients int, calls *atomic.Int64, one func(*caller) error, want ...int) error {
	want = append(want, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			return n.connected(ctx, from, func(c *caller) error {
				err := one(c)
				calls.Add(1)
				if rejected, ok := errors.AsType[*statusError](err); ok && slices.Contains(want, rejected.status) {
					return nil
				}
				return err
			})
		})
	}
	return group.Wait()
}

// connected repeats what one does with a connection from the address, and connects again
// after it is broken, until the context ends.
func (n *neighbor) connected(ctx context.Context, from net.Addr, one func(*caller) error) error {
	const pause = 10 * time.Millisecond
	for ctx.Err() == nil {
		c, err := dialFrom(ctx, from, n.Address, n.Token)
		if err == nil {
			hangUp := context.AfterFunc(ctx, func() { c.conn.Close() })
			for err == nil && ctx.Err() == nil {
				err = one(c)
			}
			hangUp()
			c.conn.Close()
		}
		if _, mistake := errors.AsType[*statusError](err); mistake {
			return err
		}
		_ = after(ctx, time.Now().Add(pause)) // ends early with the context
	}
	return nil
}

func (n *neighbor) create(c *caller) error {
	_, err := c.write(http.MethodPost, "/work-orders", rand.Text(), `{"inventory_id":"`+n.Node+`","title":"Replace filter"}`, http.StatusCreated)
	return err
}

func (n *neighbor) change(c *caller) error {
	at := n.calls.Add(1)
	_, err := c.write(http.MethodPatch, "/work-orders/"+n.WorkOrders[at%int64(len(n.WorkOrders))], rand.Text(),
		fmt.Sprintf(`{"title":"Replace filter %d"}`, at), http.StatusOK)
	return err
}

func (n *neighbor) list(c *caller) error {
	_, err := c.get("/work-orders?limit=1")
	return err
}

func (n *neighbor) readNothing(c *caller) error {
	_, err := c.get("/nothing")
	return err
}

func (n *neighbor) forgedCookie(c *caller) error {
	_, err := c.page(http.MethodGet, "/work-orders", rand.Text()+"."+rand.Text(), "")
	return err
}

// signIns tries passwords, each browser from its own network.
func (n *neighbor) signIns(ctx context.Context, calls *atomic.Int64) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range hostileBrowsers {
		from := &net.TCPAddr{IP: net.IPv4(127, 66, 1, byte(1+i))}
		group.Go(func() error {
			return n.loopFrom(ctx, from, 1, calls, func(c *caller) error {
				_, err := c.page(http.MethodPost, "/sign-in", "", "email="+rand.Text()+"%40acme.example.com&password="+rand.Text())
				return err
			}, http.StatusUnauthorized)
		})
	}
	return group.Wait()
}

// slowRead reads a large form and a long page in turn.
func (n *neighbor) slowRead(c *caller) error {
	path := "/forms/" + n.Form
	if n.calls.Add(1)%2 == 0 {
		path = "/work-orders?limit=200&changed_since=2020-01-01T00:00:00Z"
	}
	_, err := c.get(path)
	return err
}

// answersOf returns a call with an answer many times.
func answersOf(answer string, times int) func(*neighbor, *caller) error {
	body := `{"answers":[` + strings.Repeat(answer+",", times-1) + answer + `]}`
	return func(n *neighbor, c *caller) error {
		_, err := c.write(http.MethodPost, "/work-orders/"+n.WorkOrders[0]+"/answers", rand.Text(), body, http.StatusOK)
		return err
	}
}

// pairs creates feedback in pairs of concurrent calls with one external_id, of which
// one is rejected.
func (n *neighbor) pairs(ctx context.Context, calls *atomic.Int64) error {
	group, ctx := errgroup.WithContext(ctx)
	for range hostilePairs {
		// Each reference goes to two callers, so that both send it at once.
		references := make(chan string)
		group.Go(func() error {
			for {
				reference := rand.Text()
				for range 2 {
					select {
					case references <- reference:
					case <-ctx.Done():
						return nil
					}
				}
			}
		})
		group.Go(func() error {
			return n.loop(ctx, 2, calls, func(c *caller) error {
				select {
				case reference := <-references:
					_, err := c.write(http.MethodPost, "/issues", rand.Text(),
						`{"inventory_id":"`+n.Node+`","subject":"Leak","external_id":"`+reference+`"}`, http.StatusCreated)
					return err
				case <-ctx.Done():
					return ctx.Err()
				}
			}, http.StatusConflict)
		})
	}
	return group.Wait()
}

func (n *neighbor) idleOfOne(ctx context.Context, _ *atomic.Int64) error {
	return n.idleSockets(ctx, clientConnections+callers, hostileSources[:1])
}

func (n *neighbor) idleOfMany(ctx context.Context, _ *atomic.Int64) error {
	return n.idleSockets(ctx, neighborConnections, hostileSources)
}

// idleSockets keeps connections from the addresses open without sending anything. The
// few that the api has no room for replace others, which connect again.
func (n *neighbor) idleSockets(ctx context.Context, connections int, from []*net.TCPAddr) error {
	var sockets sync.WaitGroup
	for i := range connections {
		sockets.Go(func() {
			// It sends nothing, so no response can be a mistake of the bench.
			_ = n.connected(ctx, from[i%len(from)], func(c *caller) error {
				_, err := c.reader.ReadByte()
				return err
			})
		})
	}
	sockets.Wait()
	return nil
}

// deletion deletes an address with many deliveries while its organization makes
// changes that go to it.
func (in *installation) deletion(n *neighbor) hostilePattern {
	var address string
	return hostilePattern{
		name: nextTo("the deletion of an address with %d deliveries", in.options.backlog),
		prepare: func(ctx context.Context) (err error) {
			address, err = in.addressWithDeliveries(ctx, n)
			return err
		},
		disturb: func(ctx context.Context) (int, error) {
			return in.commandDuringChanges(ctx, n, "webhooks", "delete", address)
		},
	}
}

// release turns an address on that has many deliveries to release, while its
// organization makes changes that go to it.
func (in *installation) release(n *neighbor) hostilePattern {
	var address string
	return hostilePattern{
		name: nextTo("the release of %d deliveries", in.options.backlog),
		prepare: func(ctx context.Context) (err error) {
			if address == "" {
				if address, err = in.addressWithDeliveries(ctx, n); err != nil {
					return err
				}
			}
			_, err = in.run(ctx, nil, "webhooks", "disable", address)
			return err
		},
		disturb: func(ctx context.Context) (int, error) {
			return in.commandDuringChanges(ctx, n, "webhooks", "enable", address, "--since", "720h")
		},
	}
}

// commandDuringChanges runs the command to its end, and makes changes until the
// context ends. It returns the number of changes.
func (in *installation) commandDuringChanges(ctx context.Context, n *neighbor, args ...string) (changes int, err error) {
	var group errgroup.Group
	group.Go(func() error {
		_, err := in.run(context.WithoutCancel(ctx), nil, args...)
		return err
	})
	group.Go(func() (err error) {
		changes, err = runHostileClient(ctx, hostileJob{"change", n})
		return err
	})
	err = group.Wait()
	return changes, err
}

// addressWithDeliveries creates an address with failed deliveries, each with an
// attempt, and returns its id.
func (in *installation) addressWithDeliveries(ctx context.Context, n *neighbor) (string, error) {
	printed, err := in.run(ctx, nil, "webhooks", "create", "--json", "--integration", n.Integration,
		"--url", in.receiver.url("/noisy"), "--event", "work_order.updated")
	if err != nil {
		return "", err
	}
	var created struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(printed, &created); err != nil {
		return "", err
	}
	// Ids have 26 digits: ten of the time, six that are new each time, and a number.
	prefix := strings.ToLower(rand.Text())[:6]
	prefix = models.FirstID("", time.Now())[1:11] + strings.NewReplacer("i", "0", "l", "1", "o", "8", "u", "9").Replace(prefix)
	for _, sql := range []string{
		`INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
			SELECT 'evt_' || $1::text || lpad(to_hex(n), 10, '0'), w.organization_id, 'work_order.updated', $4::text, w.integration_id, '{}', now()
			FROM generate_series(1, $2::int) n, webhooks w WHERE w.id = $3`,
		`INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, created_at)
			SELECT 'dlv_' || $1::text || lpad(to_hex(n), 10, '0'), 'evt_' || $1 || lpad(to_hex(n), 10, '0'), w.id, $4::text, 'failed', 1, 500, now()
			FROM generate_series(1, $2::int) n, webhooks w WHERE w.id = $3`,
		`INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status)
			SELECT 'dlv_' || $1::text || lpad(to_hex(n), 10, '0'), 1, now(), 5, 500
			FROM generate_series(1, $2::int) n, webhooks w WHERE w.id = $3 AND $4::text <> ''`,
	} {
		if _, err := in.pool.Exec(ctx, sql, prefix, in.options.backlog, created.ID, n.WorkOrders[0]); err != nil {
			return "", fmt.Errorf("make deliveries: %w", err)
		}
	}
	_, err = in.pool.Exec(ctx, `VACUUM ANALYZE events, deliveries, attempts`)
	return created.ID, err
}
