package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// The size of the hostile patterns.
const (
	hostilePairs    = 150
	hostileCreators = 512
	hostileCallers  = 64
	hostileReaders  = 8
	hostileParsers  = 32
	hostileSockets  = 40
	// smallPlan and largePlan are the calls in a minute of the plans that are sold.
	smallPlan = 600
	largePlan = 6000
)

// The neighbors, by the keys of their organizations. There are ten busy ones.
const (
	stranger   = "" // has no token
	limited    = "limited"
	small      = "small"
	large      = "large"
	subscribed = "subscribed" // its changes go to a hundred addresses
	crowded    = "crowded"    // has many people
	busy       = "busy"
	busyOnes   = 10
)

// crowd is the number of people of the crowded organization.
const crowd = 20_000

// hostilePattern is what neighbors do next to the quiet organization.
type hostilePattern struct {
	name string
	// neighbors are the keys of those that make the load.
	neighbors []string
	load      hostileLoad
	// prepare, if any, runs before the window and returns what runs next to the load.
	prepare func(*installation, *tenant) func(context.Context) error
}

// hostileLoad is what a neighbor's clients do until the context ends. It counts their calls.
type hostileLoad func(ctx context.Context, n *tenant, calls *atomic.Int64) error

// hostilePatterns are all patterns. The first sends no calls: its ratios show the noise.
func hostilePatterns() []hostilePattern {
	costly := `{"question_id":"q","value":[` + strings.Repeat("1,", 99) + `1]}`
	allBusy := make([]string, busyOnes)
	for n := range allBusy {
		allBusy[n] = fmt.Sprint(busy, n)
	}
	none, one, few := []string{stranger}, []string{large}, []string{small}
	patterns := []hostilePattern{
		{"no neighbor (noise)", none, nil, nil},
		{fmt.Sprintf("%d creations of %d callers at once", smallPlan, hostileCreators), few, burst(hostileCreators, createOne.call), nil},
		{fmt.Sprintf("%d creations of %d callers at once", largePlan, hostileCreators), one, burst(hostileCreators, createOne.call), nil},
		{fmt.Sprintf("%d reads of %d callers at once", largePlan, hostileCreators), one, burst(hostileCreators, readOne.call), nil},
		{fmt.Sprintf("%d organizations with %d creations of %d callers each at once", busyOnes, largePlan, callers), allBusy, burst(callers, createOne.call), nil},
		{fmt.Sprintf("%d changes at once that go to 100 addresses each", largePlan), []string{subscribed}, burst(hostileCallers, patchOne.call), nil},
		{fmt.Sprintf("%d creations that each wait for a locked node", largePlan), one, burst(hostileCallers, createOne.call), (*installation).lockNode},
		{fmt.Sprintf("%d POST /issues in pairs with one external_id", largePlan), one, createPairs, nil},
		{fmt.Sprintf("%d callers with slow reads", hostileReaders), one, burst(hostileReaders, slowRead), nil},
		{fmt.Sprintf("%d callers with 340,000 invalid answers each", hostileReaders), one, burst(hostileReaders, answersOf(`{}`, 340_000), http.StatusRequestEntityTooLarge), nil},
		{fmt.Sprintf("%d callers with bodies that take long to parse", hostileParsers), one, burst(hostileParsers, answersOf(costly, 1_000), http.StatusUnprocessableEntity), nil},
		{fmt.Sprintf("%d sessions of the console", hostileCallers), one, calls(hostileCallers, openPage), nil},
		{fmt.Sprintf("%d people at the sign-in with wrong passwords", hostileCallers), none, calls(hostileCallers, guessPassword, http.StatusUnauthorized), nil},
		{fmt.Sprintf("%d tabs of a person who comments", hostileCallers), one, calls(hostileCallers, comment), nil},
		{fmt.Sprintf("%d tabs of a person with forms of %d KiB", hostileCallers, largeForm>>10), one, calls(hostileCallers, sendLarge("/account"), http.StatusUnprocessableEntity), nil},
		{fmt.Sprintf("%d people at the sign-in with forms of %d KiB", hostileCallers, largeForm>>10), none, calls(hostileCallers, sendLarge("/sign-in"), http.StatusUnauthorized), nil},
		{fmt.Sprintf("%d tabs that search %d people", hostileCallers, crowd), []string{crowded}, calls(hostileCallers, searchPeople), nil},
		{fmt.Sprintf("%d forms of which a byte comes each three seconds", hostileSockets), one, calls(hostileSockets, sendSlowly), nil},
		{"imports", none, nil, (*installation).importAgain},
		{"calls over the limit", []string{limited}, calls(hostileCallers, reading("/work-orders?limit=1")), nil},
		{"calls without a token", none, calls(hostileCallers, reading("/nothing"), http.StatusUnauthorized, http.StatusNotFound), nil},
	}
	for i := range patterns {
		patterns[i].name = "next to " + patterns[i].name
	}
	return patterns
}

// neighbors imports the hostile organizations that the patterns need, and returns them and
// the stranger.
func (in *installation) neighbors(patterns []hostilePattern) map[string]*tenant {
	all := map[string]*tenant{stranger: {Address: in.erp.Address}}
	for _, p := range patterns {
		for _, key := range p.neighbors {
			if all[key] != nil {
				continue
			}
			o := organization{key: key, integrations: 1, callsPerMinute: largePlan, events: []string{"work_order.updated"}, feedback: true, questions: 500, person: true}
			switch key {
			case limited:
				o.callsPerMinute = 60
			case small:
				o.callsPerMinute = smallPlan
			case subscribed:
				o.integrations, o.addresses = 20, 5
			}
			workOrders := o.callsPerMinute / 10
			if strings.HasPrefix(key, busy) {
				workOrders = 0 // they only create
			}
			all[key] = in.tenantOf(o, workOrders)
			all[key].Session = benchSession(key)
			in.addSession(all[key].Session, o.email())
			if key == crowded {
				in.addPeople(o.email(), crowd)
			}
		}
	}
	return all
}

// hostileAddress is the local address of hostile connections, in another network than the quiet
// organization's.
var hostileAddress = &net.TCPAddr{IP: net.IPv4(127, 66, 0, 1)}

// calls returns a load of clients that make the call, which may get one of the statuses.
func calls(clients int, one func(*tenant, *caller) error, allowed ...int) hostileLoad {
	return func(ctx context.Context, n *tenant, calls *atomic.Int64) error {
		return n.loop(ctx, clients, calls, func(c *caller) error { return one(n, c) }, allowed...)
	}
}

// burst is calls of clients that wait for the next minute once the plan's calls of this one are
// made.
func burst(clients int, one func(*tenant, *caller) error, allowed ...int) hostileLoad {
	return func(ctx context.Context, n *tenant, made *atomic.Int64) error {
		return calls(clients, func(n *tenant, c *caller) error {
			err := one(n, c)
			if rejected, ok := errors.AsType[*statusError](err); ok && rejected.status == http.StatusTooManyRequests {
				return after(ctx, time.Now().Truncate(time.Minute).Add(time.Minute))
			}
			return err
		}, allowed...)(ctx, n, made)
	}
}

// loop runs clients that make the call until the context ends. Calls that the API rejects as
// too many, or cannot serve, are part of the pattern, and so are broken connections; any other
// status than those allowed is a mistake of the bench.
func (t *tenant) loop(ctx context.Context, clients int, calls *atomic.Int64, one func(*caller) error, allowed ...int) error {
	allowed = append(allowed, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	group, ctx := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			return t.connected(ctx, func(c *caller) error {
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

// connected repeats what one does with a connection, and connects again after it is broken,
// until the context ends.
func (t *tenant) connected(ctx context.Context, one func(*caller) error) error {
	const pause = 10 * time.Millisecond
	for ctx.Err() == nil {
		c, err := dialFrom(ctx, hostileAddress, t.Address, t.Token)
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

// openPage opens a page of the console.
func openPage(n *tenant, c *caller) error {
	_, err := c.page("/work-orders", n.Session)
	return err
}

// guessPassword tries to sign in to an account that does not exist.
func guessPassword(_ *tenant, c *caller) error {
	return c.form("/sign-in", "", "password=a+good+long+password&email=no.one."+rand.Text()+"@example.com")
}

// comment comments on a work order.
func comment(n *tenant, c *caller) error {
	id, _ := n.next()
	return c.form("/work-orders/"+id+"/comments", n.Session, "text=Ladder+needed&form_key="+rand.Text())
}

// searchPeople searches by a name that no one has, so that all names are compared.
func searchPeople(n *tenant, c *caller) error {
	_, err := c.page("/people?q=nowhere+"+rand.Text(), n.Session)
	return err
}

// sendSlowly sends a form whose bytes come slowly.
func sendSlowly(n *tenant, c *caller) error {
	return c.sendSlowly("/account", n.Session, 1000, 3*time.Second)
}

// largeForm is the size of a form that is barely accepted.
const largeForm = 255 << 10

// sendLarge returns a call with a large form of a tenant's person, or of a stranger.
func sendLarge(path string) func(*tenant, *caller) error {
	form := "name=Ann&time_zone=" + strings.Repeat("x", largeForm)
	return func(n *tenant, c *caller) error { return c.form(path, n.Session, form) }
}

// createPairs creates feedback in pairs of concurrent calls with one external_id, of which
// one is rejected.
func createPairs(ctx context.Context, n *tenant, calls *atomic.Int64) error {
	references := make(chan string) // from one of a pair to the other
	return burst(2*hostilePairs, func(n *tenant, c *caller) error {
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
	}, http.StatusConflict)(ctx, n, calls)
}

// lockNode holds the row of the neighbor's node as a long transaction would: each of its
// creations waits for the row until its lock_timeout.
func (in *installation) lockNode(n *tenant) func(context.Context) error {
	return func(ctx context.Context) error {
		return pgx.BeginFunc(in.ctx, in.pool, func(t pgx.Tx) error {
			if _, err := t.Exec(in.ctx, `SELECT FROM inventory_nodes WHERE id = $1 FOR UPDATE`, n.Node); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
	}
}

// importAgain imports one organization after the other, each with a long form and 100 addresses.
func (in *installation) importAgain(*tenant) func(context.Context) error {
	return func(ctx context.Context) error {
		for n := 0; ctx.Err() == nil; n++ {
			o := organization{key: fmt.Sprint("imported", n), integrations: 20, addresses: 5, events: []string{"work_order.updated"}, questions: 500}
			file := filepath.Join(in.dir, "imported.yaml")
			if err := os.WriteFile(file, o.file(in.receiver, in.secret), 0o600); err != nil {
				return err
			}
			if _, err := in.run(nil, "import", file); err != nil {
				return err
			}
		}
		return nil
	}
}
