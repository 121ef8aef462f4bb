package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"millwright/service/store"
)

// The calls in a minute of the plans that are sold.
const (
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
	crowded    = "crowded"    // has 20,000 people
	busy       = "busy"
)

// hostilePattern is what neighbors do next to the quiet organization.
type hostilePattern struct {
	name string
	// neighbors are the keys of those that make the load.
	neighbors []string
	load      hostileLoad
	// alongside, if any, is done next to the load until the context ends.
	alongside func(ctx context.Context, in *installation, n *tenant)
}

// hostileLoad is what a neighbor's clients do until their process is stopped.
type hostileLoad func(n *tenant)

// hostilePatterns are all patterns. The first sends no calls: its ratios show the noise.
func hostilePatterns() []hostilePattern {
	costly := `{"question_id":"q","value":[` + strings.Repeat("1,", 99) + `1]}`
	none, few, one := []string{stranger}, []string{small}, []string{large}
	var allBusy []string
	for n := range 10 {
		allBusy = append(allBusy, fmt.Sprint(busy, n))
	}
	patterns := []hostilePattern{
		{"no neighbor (noise)", none, nil, nil},
		{"600 creations of 512 callers at once", few, burst(512, createOne.call), nil},
		{"6000 creations of 512 callers at once", one, burst(512, createOne.call), nil},
		{"6000 reads of 512 callers at once", one, burst(512, readOne.call), nil},
		{"10 organizations with 6000 creations of 32 callers each at once", allBusy, burst(32, createOne.call), nil},
		{"6000 changes at once that go to 100 addresses each", []string{subscribed}, burst(64, patchOne.call), nil},
		{"6000 creations that each wait for a locked node", one, burst(64, createOne.call), lockNode},
		{"6000 POST /issues in pairs with one external_id", one, createPairs, nil},
		{"8 callers with slow reads", one, burst(8, slowRead), nil},
		{"8 callers with 340,000 invalid answers each", one, burst(8, answersOf(`{}`, 340_000), http.StatusRequestEntityTooLarge), nil},
		{"32 callers with bodies that take long to parse", one, burst(32, answersOf(costly, 1_000), http.StatusUnprocessableEntity), nil},
		{"64 sessions of the console", one, calls(64, openPage), nil},
		{"64 people at the sign-in with wrong passwords", none, calls(64, guessPassword, http.StatusUnauthorized), nil},
		{"64 tabs of a person who comments", one, calls(64, comment), nil},
		{"64 tabs of a person with forms of 255 KiB", one, calls(64, sendLarge("/account"), http.StatusUnprocessableEntity), nil},
		{"64 people at the sign-in with forms of 255 KiB", none, calls(64, sendLarge("/sign-in"), http.StatusUnauthorized), nil},
		{"64 tabs that search 20000 people", []string{crowded}, calls(64, searchPeople), nil},
		{"40 forms of which a byte comes each three seconds", one, calls(40, sendSlowly), nil},
		{"imports", none, nil, importAgain},
		{"calls over the limit", []string{limited}, calls(64, reading("/work-orders?limit=1")), nil},
		{"calls without a token", none, calls(64, reading("/nothing"), http.StatusUnauthorized, http.StatusNotFound), nil},
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
			o := organization{Key: key, Integrations: 1, CallsPerMinute: largePlan, Events: "work_order.updated", Questions: 500}
			switch key {
			case limited:
				o.CallsPerMinute = 60
			case small:
				o.CallsPerMinute = smallPlan
			case subscribed:
				o.Integrations, o.Addresses = 20, 5
			}
			workOrders := o.CallsPerMinute / 10
			if strings.HasPrefix(key, busy) {
				workOrders = 0 // they only create
			}
			ids := in.importFile(o)
			all[key] = &tenant{
				Address: in.erp.Address, Token: in.tokenOf(o.client(1)), Session: in.newSession(key, o.Email()), Node: ids["top"], Form: ids["long"],
			}
			all[key].createWorkOrders(workOrders)
			if key == crowded {
				in.execFile("crowd.sql", arguments{"email": o.Email()}, "")
				check(store.FoldTables(in.ctx, in.pool, "identities", "people"))
			}
		}
	}
	return all
}

// calls returns a load of clients that make the call without end. Calls that the API rejects as too
// many, or cannot serve, are part of the pattern, and so are broken connections; any other status than
// those allowed is a mistake of the bench.
func calls(clients int, one func(*tenant, *caller) error, allowed ...int) hostileLoad {
	allowed = append(allowed, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	return func(n *tenant) {
		n.call(clients, func() bool { return true }, func(c *caller) {
			err := one(n, c)
			if rejected, ok := errors.AsType[*statusError](err); ok && !slices.Contains(allowed, rejected.status) {
				check(err)
			} else if err != nil && !ok {
				sleep(10 * time.Millisecond)
			}
		})
	}
}

// burst is calls of clients that wait for the next minute once the plan's calls of this one are
// made.
func burst(clients int, one func(*tenant, *caller) error, allowed ...int) hostileLoad {
	return calls(clients, func(n *tenant, c *caller) error {
		err := one(n, c)
		if rejected, ok := errors.AsType[*statusError](err); ok && rejected.status == http.StatusTooManyRequests {
			sleepToMinute()
		}
		return err
	}, allowed...)
}

// sleepToMinute sleeps until plans have new calls.
func sleepToMinute() { sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))) }

// slowRead reads a large form and a long page in turn.
func slowRead(n *tenant, c *caller) error {
	if n.calls.Add(1)%2 == 0 {
		return c.get("/work-orders?limit=200&changed_since=2020-01-01T00:00:00Z")
	}
	return c.get("/forms/" + n.Form)
}

// answersOf returns a call with an answer many times.
func answersOf(answer string, times int) func(*tenant, *caller) error {
	body := `{"answers":[` + strings.Repeat(answer+",", times-1) + answer + `]}`
	return func(n *tenant, c *caller) error {
		return c.write(http.MethodPost, "/work-orders/"+n.WorkOrders[0]+"/answers", body, http.StatusOK)
	}
}

// openPage opens a page of the console.
func openPage(n *tenant, c *caller) error {
	return c.page("/work-orders", n.Session)
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
	return c.page("/people?q=nowhere+"+rand.Text(), n.Session)
}

// sendSlowly sends a form of which a byte goes out every three seconds, until the server answers or
// hangs up.
func sendSlowly(n *tenant, c *caller) error {
	err := c.connect()
	if err != nil {
		return err
	}
	defer c.close()
	_, err = fmt.Fprintf(c.conn, "POST /console/account HTTP/1.1\r\nHost: %s\r\n%s%sContent-Length: 1000\r\n\r\n", c.address, cookie(n.Session), formHeaders)
	for err == nil {
		_, unsent := c.conn.Write([]byte{'x'})
		if err = errors.Join(unsent, c.conn.SetReadDeadline(time.Now().Add(3*time.Second))); err == nil {
			_, err = c.conn.Read(make([]byte, 4096))
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
	}
	return err
}

// sendLarge returns a call with a form, of a tenant's person or of a stranger, that is barely accepted.
func sendLarge(path string) func(*tenant, *caller) error {
	form := "name=Ann&time_zone=" + strings.Repeat("x", 255<<10)
	return func(n *tenant, c *caller) error { return c.form(path, n.Session, form) }
}

// createPairs creates feedback in pairs of concurrent calls with one external_id, of which
// one is rejected.
func createPairs(n *tenant) {
	references := make(chan string) // from one of a pair to the other
	burst(300, func(n *tenant, c *caller) error {
		reference := rand.Text()
		select {
		case references <- reference:
		case reference = <-references:
		}
		return c.write(http.MethodPost, "/issues", `{"inventory_id":"`+n.Node+`","subject":"Leak","external_id":"`+reference+`"}`, http.StatusCreated)
	}, http.StatusConflict)(n)
}

// lockNode holds the row of the neighbor's node as a long transaction would: each of its
// creations waits for the row until its lock_timeout.
func lockNode(ctx context.Context, in *installation, n *tenant) {
	tx := must(in.pool.Begin(in.ctx))
	must(tx.Exec(in.ctx, `SELECT FROM inventory_nodes WHERE id = $1 FOR UPDATE`, n.Node))
	<-ctx.Done()
	check(tx.Rollback(in.ctx))
}

// importAgain imports one organization after the other, each with a long form and 100 addresses.
func importAgain(ctx context.Context, in *installation, _ *tenant) {
	for n := 0; ctx.Err() == nil; n++ {
		in.importFile(organization{
			Key: fmt.Sprint("imported", n), Integrations: 20, Addresses: 5, Events: "work_order.updated", CallsPerMinute: largePlan, Questions: 500,
		})
	}
}
