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
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"millwright/models"
)

// The size of the hostile patterns.
const (
	hostilePairs    = 150
	hostileCreators = 512
	hostileCallers  = 64
	hostileReaders  = 8
	hostileParsers  = 32
	hostileBrowsers = 32
)

// The neighbors, by the keys of their organizations.
const (
	stranger = "" // has no token
	limited  = "limited"
	noisy    = "noisy"
)

// hostilePattern is what a neighbor does next to the quiet organization.
type hostilePattern struct {
	name, neighbor string
	load           hostileLoad
	// prepare, if any, runs before each round and returns the command to run next to the load.
	prepare func(*installation, *tenant) []string
}

// hostileLoad is what the neighbor's clients do until the context ends. It counts their calls.
type hostileLoad func(ctx context.Context, n *tenant, calls *atomic.Int64) error

// hostilePatterns are all patterns. The first sends no calls: its ratios show the noise.
func hostilePatterns(backlog int) []hostilePattern {
	costly := `{"question_id":"q","value":[` + strings.Repeat("1,", 99) + `1]}`
	patterns := []hostilePattern{
		{"no neighbor (noise)", stranger, nil, nil},
		{fmt.Sprintf("%d pairs of POST /issues with one external_id", hostilePairs), noisy, createPairs, nil},
		{fmt.Sprintf("%d concurrent creations", hostileCreators), noisy, calls(hostileCreators, createOne.call), nil},
		{fmt.Sprintf("the deletion of an address with %d deliveries", backlog), noisy, calls(hostileCallers, patchOne.call), (*installation).prepareDeletion},
		{fmt.Sprintf("the release of %d deliveries", backlog), noisy, calls(hostileCallers, patchOne.call), prepareRelease()},
		{"calls over the limit", limited, calls(hostileCallers, listOne), nil},
		{"calls without a token", stranger, calls(hostileCallers, readNothing, http.StatusUnauthorized, http.StatusNotFound), nil},
		{fmt.Sprintf("%d callers with slow reads", hostileReaders), noisy, calls(hostileReaders, slowRead), nil},
		{fmt.Sprintf("%d callers with 340,000 invalid answers each", hostileReaders), noisy, calls(hostileReaders, answersOf(`{}`, 340_000), http.StatusRequestEntityTooLarge), nil},
		{fmt.Sprintf("%d callers with bodies that take long to parse", hostileParsers), noisy, calls(hostileParsers, answersOf(costly, 1_000), http.StatusUnprocessableEntity), nil},
		{fmt.Sprintf("%d callers with forged cookies", hostileReaders), stranger, calls(hostileReaders, forgedCookie, http.StatusSeeOther), nil},
		{fmt.Sprintf("sign-ins from %d addresses", hostileBrowsers), stranger, signIns, nil},
		{fmt.Sprintf("%d idle sockets of 1 address", clientConnections+callers), stranger, idle(clientConnections+callers, fromOne), nil},
		{fmt.Sprintf("%d idle sockets of 2 addresses", neighborConnections), stranger, idle(neighborConnections, fromTwo), nil},
	}
	for i := range patterns {
		patterns[i].name = "next to " + patterns[i].name
	}
	return patterns
}

// neighbors imports the hostile organizations, and returns them and the stranger.
func (in *installation) neighbors() map[string]*tenant {
	return map[string]*tenant{
		stranger: {Address: in.erp.Address},
		limited:  in.tenantOf(organization{key: limited, integrations: 1, callsPerMinute: 60}, 0),
		noisy: in.tenantOf(organization{
			key: noisy, integrations: 1, events: []string{"work_order.updated"}, feedback: true, questions: 500,
		}, benchWorkOrders),
	}
}

// The local addresses of hostile connections are in other networks than the quiet
// organization's. One is enough for all patterns but sign-ins and idle sockets, which use up
// the connections of all addresses.
func fromOne(int) net.Addr        { return &net.TCPAddr{IP: net.IPv4(127, 66, 0, 1)} }
func fromTwo(client int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 66, 0, byte(1+client%2))} }
func fromMany(client int) net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("127.66.1.%d", 1+client))}
}

// calls returns a load of clients that make the call, which may get one of the statuses.
func calls(clients int, one func(*tenant, *caller) error, allowed ...int) hostileLoad {
	return func(ctx context.Context, n *tenant, calls *atomic.Int64) error {
		return n.loop(ctx, clients, fromOne, calls, func(c *caller) error { return one(n, c) }, allowed...)
	}
}

// loop runs clients that make the call until the context ends. Calls that the API rejects as
// too many, or cannot serve, are part of the pattern, and so are broken connections; any other
// status than those allowed is a mistake of the bench.
func (t *tenant) loop(ctx context.Context, clients int, from func(client int) net.Addr, calls *atomic.Int64, one func(*caller) error, allowed ...int) error {
	allowed = append(allowed, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	group, ctx := errgroup.WithContext(ctx)
	for client := range clients {
		group.Go(func() error {
			return t.connected(ctx, from(client), func(c *caller) error {
				err := one(c)
				calls.Add(1)
				if rejected, ok := errors.AsType[*statusError](err); ok && slices.Contains(allowed, rejected.status) {
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
func (t *tenant) connected(ctx context.Context, from net.Addr, one func(*caller) error) error {
	const pause = 10 * time.Millisecond
	for ctx.Err() == nil {
		c, err := dialFrom(ctx, from, t.Address, t.Token)
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

func listOne(_ *tenant, c *caller) error {
	_, err := c.get("/work-orders?limit=1")
	return err
}

func readNothing(_ *tenant, c *caller) error {
	_, err := c.get("/nothing")
	return err
}

// slowRead reads a large form and a long page in turn.
func slowRead(n *tenant, c *caller) error {
	path := "/forms/" + n.Form
	if n.calls.Add(1)%2 == 0 {
		path = "/work-orders?limit=200&changed_since=2020-01-01T00:00:00Z"
	}
	_, err := c.get(path)
	return err
}

// answersOf returns a call with an answer many times.
func answersOf(answer string, times int) func(*tenant, *caller) error {
	body := `{"answers":[` + strings.Repeat(answer+",", times-1) + answer + `]}`
	return func(n *tenant, c *caller) error {
		_, err := c.write(http.MethodPost, "/work-orders/"+n.WorkOrders[0]+"/answers", rand.Text(), body, http.StatusOK)
		return err
	}
}

func forgedCookie(_ *tenant, c *caller) error {
	_, err := c.page(http.MethodGet, "/work-orders", rand.Text()+"."+rand.Text(), "")
	return err
}

// signIns tries passwords, each browser from its own network.
func signIns(ctx context.Context, n *tenant, calls *atomic.Int64) error {
	return n.loop(ctx, hostileBrowsers, fromMany, calls, func(c *caller) error {
		_, err := c.page(http.MethodPost, "/sign-in", "", "email="+rand.Text()+"%40acme.example.com&password="+rand.Text())
		return err
	}, http.StatusUnauthorized)
}

// createPairs creates feedback in pairs of concurrent calls with one external_id, of which
// one is rejected.
func createPairs(ctx context.Context, n *tenant, calls *atomic.Int64) error {
	references := make(chan string) // from one of a pair to the other
	return n.loop(ctx, 2*hostilePairs, fromOne, calls, func(c *caller) error {
		reference := rand.Text()
		select {
		case references <- reference:
		case reference = <-references:
		case <-ctx.Done():
			return ctx.Err()
		}
		_, err := c.write(http.MethodPost, "/issues", rand.Text(),
			`{"inventory_id":"`+n.Node+`","subject":"Leak","external_id":"`+reference+`"}`, http.StatusCreated)
		return err
	}, http.StatusConflict)
}

// idle keeps connections open without sending anything. The few that the API server has no room
// for replace others, which connect again.
func idle(connections int, from func(client int) net.Addr) hostileLoad {
	return func(ctx context.Context, n *tenant, _ *atomic.Int64) error {
		return n.loop(ctx, connections, from, new(atomic.Int64), func(c *caller) error {
			_, err := c.reader.ReadByte()
			return err
		})
	}
}

// prepareDeletion makes an address with many deliveries, to be deleted while its organization
// makes changes that go to it.
func (in *installation) prepareDeletion(n *tenant) []string {
	return []string{"webhooks", "delete", in.addressWithDeliveries(n)}
}

// prepareRelease turns an address off, to be turned on with many deliveries to release while
// its organization makes changes that go to it.
func prepareRelease() func(*installation, *tenant) []string {
	address := ""
	return func(in *installation, n *tenant) []string {
		if address == "" {
			address = in.addressWithDeliveries(n)
		}
		must(in.run(in.ctx, nil, "webhooks", "disable", address))
		return []string{"webhooks", "enable", address, "--since", "720h"}
	}
}

// addressWithDeliveries creates an address with failed deliveries, each with an
// attempt, and returns its id.
func (in *installation) addressWithDeliveries(n *tenant) string {
	var created struct {
		ID string `json:"id"`
	}
	check(json.Unmarshal(must(in.run(in.ctx, nil, "webhooks", "create", "--json", "--integration", n.Integration,
		"--url", in.receiver.url("/noisy"), "--event", "work_order.updated")), &created))
	prefix := strings.NewReplacer("i", "0", "l", "1", "o", "8", "u", "9").Replace(strings.ToLower(rand.Text())[:6])
	check(in.execFile(in.ctx, "failed_deliveries.sql", arguments{
		"prefix": models.FirstID("", time.Now())[1:11] + prefix, "first": 1, "last": in.options.backlog,
		"webhook": created.ID, "record": n.WorkOrders[0],
	}, ""))
	in.exec(`VACUUM ANALYZE events, deliveries, attempts`)
	return created.ID
}
