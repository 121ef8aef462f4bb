package console_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// limited is a console behind a proxy that names the networks.
type limited struct {
	*guardedSite
	t        *testing.T
	browsers map[string][]*http.Cookie // what browsers keep of an earlier sign-in
	requests int
	end      []func() // end what is in progress
}

// request is what is sent, and its status while no limit rejects it.
type request struct {
	status int
	send   func(*limited) consoletest.Page
}

// limitCase is a limit. It counts requests of one kind and rejects others, which may be the same.
type limitCase struct {
	setup string // SQL
	// addressCalls is ADDRESS_CALLS_PER_MINUTE.
	addressCalls int
	// counted uses up one of the limit, uncounted do not. before is sent ten times in each window.
	limit             int
	before, uncounted []request
	counted, bounded  request
	// rows are the counters that requests within the limit leave, more the requests over the limit
	// that the database counts.
	rows, more int
	// reads are the only tables that a request over the limit reads or writes; "all" checks only
	// that it changes none.
	reads string
	// pay are rejected with bounded, others are not.
	pay, others map[string]request
	// ends is when the limit ends, 0 if it does with what is in progress. told is the time that
	// Retry-After names, if another limit ends before.
	ends, told time.Duration
}

// The console's limits of docs/security.md that requests reach one after the other. The API's are tested in api and
// service/access, and others where many are in progress: connections in cmd/millwright
// (TestANetworkHasItsShareOfTheConnections), calls in service/access (TestFewCallsOfAnOrganization), passwords to hash in
// service/people (TestPasswordHashingIsBounded), tests of an address in service/webhooks (TestTestsOfAnAddressAreLimited).
func limitCases() map[string]limitCase {
	const (
		// home and home2 are in one IPv6 network of a /64, home3 in another of the same /48.
		here, elsewhere, home, home2, home3 = "192.0.2.1", "192.0.2.2", "2001:db8:1:1::1", "2001:db8:1:1::2", "2001:db8:1:2::1"
		// minute, guessing and hour are the rest of these windows when a test begins.
		minute, guessing, hour = 30 * time.Second, 270 * time.Second, 2670 * time.Second
		get, post              = http.MethodGet, http.MethodPost
		ofPerson               = "sessions people identities organizations integrations organization_permission_definitions plans notices "
		ann, bob, cat          = "ann@acme.example.com", "bob@acme.example.com", "cat@acme.example.com"
	)

	large := url.Values{"name": {""}, "email": {"no.one@example.com"}, "time_zone": {strings.Repeat("x", 65<<10)}}
	comment := url.Values{"text": {"Ladder needed"}}
	nothing := url.Values{}
	return map[string]limitCase{
		"wrong passwords for an account from a network": {
			limit: 10, counted: signIn(401, home, ann), bounded: signIn(303, home, ann), uncounted: []request{signIn(303, home, ann)},
			rows: 3, reads: "rate_counters", ends: guessing,
			pay: map[string]request{"another network of the /48": signIn(303, home3, ann), "the address in capitals": signIn(303, home, " ANN@Acme.example.com")},
			others: map[string]request{
				"another network": signIn(303, here, ann), "another account": signIn(303, home, bob), "her browser": inBrowser(303, home, ann, "a"), "her session": signInAgain(303, "ann"),
			},
		},
		"wrong passwords from a network": {
			limit: 200, counted: signIn(401, here, "no.one{n}@example.com"), bounded: signIn(303, here, ann), uncounted: []request{signIn(303, here, ann)},
			rows: 2*200 + 1, reads: "rate_counters", ends: guessing,
			pay:    map[string]request{"another organization": signIn(303, here, "pia@polar.example.com")},
			others: map[string]request{"another network": signIn(303, elsewhere, ann), "a browser of hers": inBrowser(303, here, ann, "a"), "her session": signInAgain(303, "ann")},
		},
		"wrong passwords in someone's browsers, in a network over its limit": {
			limit: 30, before: []request{signIn(401, here, ann)},
			counted: inBrowser(429, here, ann, "a"), bounded: inBrowser(303, here, ann, "a"), uncounted: []request{inBrowser(303, here, ann, "a"), signIn(429, here, ann)},
			rows: 4, reads: "rate_counters", ends: hour, told: guessing,
			pay:    map[string]request{"another browser of hers": inBrowser(303, here, ann, "b")},
			others: map[string]request{"another network": inBrowser(303, elsewhere, ann, "a"), "another person": inBrowser(303, here, bob, "a"), "her session": signInAgain(303, "ann")},
		},
		"wrong passwords in someone's sessions": {
			limit: 10, counted: signInAgain(401, "ann"), bounded: signInAgain(303, "ann"), uncounted: []request{signInAgain(303, "ann"), signIn(401, here, ann)},
			rows: 4, reads: ofPerson + "rate_counters", ends: guessing,
			pay: map[string]request{
				"a change of the password": byPerson(422, "ann", "/console/account/password", url.Values{"old_password": {consoletest.Password}, "password": {"another good password"}}),
			},
			others: map[string]request{"another person": signInAgain(303, "bob"), "signing in": signIn(303, here, ann)},
		},
		"requests without a session from a network": {
			addressCalls: 5, limit: 5, counted: visit(200, home, get, "/console/sign-in", nil), uncounted: []request{byPerson(200, "ann", "/console/account", nil), visit(200, home3, get, "/console/sign-in", nil)},
			ends: minute,
			pay: map[string]request{
				"another address of the /64": visit(200, home2, get, "/console/sign-in", nil), "a page that is not there": visit(404, home, get, "/console/nowhere", nil), "the right password": signIn(303, home, ann),
			},
			others: map[string]request{
				"another network": visit(200, here, get, "/console/sign-in", nil), "a browser of hers": inBrowser(303, home, ann, "a"),
				"a session": byPerson(200, "ann", "/console/account", nil),
			},
		},
		"forms of a person": {
			limit: 60, counted: byPerson(422, "ann", "/console/account", url.Values{"name": {""}, "time_zone": {"UTC"}}),
			uncounted: []request{byPerson(200, "ann", "/console/account", nil), byPerson(403, "ann", "/console/account", nothing, "Sec-Fetch-Site", "cross-site"), byPerson(200, "ann", "/console/work-orders/{order}/seen", nothing)},
			reads:     ofPerson, ends: minute,
			pay: map[string]request{"a comment": byPerson(303, "ann", "/console/work-orders/{order}/comments", comment), "a form to no page": byPerson(404, "ann", "/console/nowhere", nothing)},
			others: map[string]request{
				"another person": byPerson(303, "bob", "/console/account", url.Values{"name": {"Bob"}}), "a page": byPerson(200, "ann", "/console/account", nil),
				"what a page sends": byPerson(200, "ann", "/console/work-orders/{order}/seen", nothing), "signing out": byPerson(303, "ann", "/console/sign-out", nothing),
			},
		},
		"comments of a person": {
			limit: 20, counted: byPerson(303, "ann", "/console/work-orders/{order}/comments", comment), uncounted: []request{byPerson(303, "ann", "/console/account", url.Values{"name": {"Ann"}})},
			reads: ofPerson, ends: minute,
			pay:    map[string]request{"another record": byPerson(404, "ann", "/console/feedback/none/comments", comment)},
			others: map[string]request{"another person": byPerson(303, "bob", "/console/work-orders/{order}/comments", comment), "another form": byPerson(303, "ann", "/console/account", url.Values{"name": {"Ann"}})},
		},
		"links for an e-mail address": {
			setup: `UPDATE people SET email = 'cat@acme.example.com' WHERE email LIKE 'pia@%'`,
			limit: 3, counted: byPerson(303, "ann", "/console/people/{cat}/link", nothing), uncounted: []request{operatorsLink("cat")},
			rows: 2, reads: "all", ends: hour,
			pay:    map[string]request{"one that is shown": byPerson(200, "ann", "/console/people/{cat}/link", url.Values{"show": {"yes"}})},
			others: map[string]request{"another address": byPerson(303, "ann", "/console/people/{bob}/link", nothing), "another organization": forgotten(here, cat, "pia"), "a forgotten password": forgotten(elsewhere, cat, "cat"), "an operator's": operatorsLink("cat")},
		},
		"links of an organization": {
			limit: 1, counted: lastLink("bob"), bounded: byPerson(303, "ann", "/console/people/{cat}/link", nothing), uncounted: []request{operatorsLink("cat")},
			rows: 3, reads: "all", ends: hour,
			pay:    map[string]request{"an invitation": byPerson(200, "ann", "/console/people", url.Values{"email": {"nia@acme.example.com"}})},
			others: map[string]request{"another organization": forgotten(here, "pia@polar.example.com", "pia"), "a forgotten password": forgotten(elsewhere, cat, "cat"), "an operator's": operatorsLink("cat")},
		},
		"forgotten passwords from a network": {
			limit: 30, counted: forgotten(here, "no.one{n}@example.com", ""), bounded: forgotten(here, cat, "cat"), uncounted: []request{visit(200, here, get, "/console/forgotten", nil)},
			rows: 1 + 30 + 2, more: 2, reads: "rate_counters sign_in_links", ends: hour,
			others: map[string]request{"another network": forgotten(elsewhere, cat, "cat"), "an administrator": byPerson(303, "ann", "/console/people/{cat}/link", nothing)},
		},
		"large forms of an organization": {
			limit: 1, counted: handleForm("{acme}"), bounded: byPerson(422, "ann", "/console/account", large), reads: "all",
			pay:    map[string]request{"another person": byPerson(422, "bob", "/console/account", large)},
			others: map[string]request{"another organization": byPerson(422, "pia", "/console/account", large), "a visitor": visit(401, here, post, "/console/sign-in", large), "a small form": byPerson(303, "ann", "/console/account", url.Values{"name": {"Ann"}})},
		},
		"large forms of a network": {
			limit: 1, counted: handleForm("network " + here), bounded: visit(401, here, post, "/console/sign-in", large), rows: 3, reads: "all",
			others: map[string]request{"another network": visit(401, elsewhere, post, "/console/sign-in", large), "a person": byPerson(422, "ann", "/console/account", large), "a small form": signIn(303, here, ann)},
		},
	}
}

// What each limit counts, that nothing is done for what it rejects, who pays, and until when.
func TestWhatLimitsCount(t *testing.T) {
	t.Parallel()
	for name, c := range limitCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(newLimited(t, c))
		})
	}
}

func newLimited(t *testing.T, c limitCase) *limited {
	t.Helper()
	f := servicetest.New(t, servicetest.Mails, func(o *store.Options) {
		o.AddressCallsPerMinute, o.FormsPerMinute, o.CommentsPerMinute = c.addressCalls, 0, 0 // 0 is the default
	})
	proxies, timeout := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, 10*time.Second
	if c.ends == 0 { // those over the limit wait
		timeout = 2 * time.Second
	}
	s := consoletest.On(t, f, func(o *console.Options) { o.TrustedProxies, o.RequestTimeout = proxies, timeout })
	order := newRecord(t, s, "ann", "bob") // on which both may comment
	if c.setup != "" {
		s.Exec(c.setup)
	}
	things := map[string]string{"order": order, "bob": s.ID("bob"), "cat": s.ID("cat"), "pia": s.ID("pia"), "acme": s.Acme.OrganizationID}
	return &limited{guardedSite: &guardedSite{Site: s, things: things}, t: t, browsers: map[string][]*http.Cookie{}}
}

func (c limitCase) run(l *limited) {
	counters := `SELECT count(*) * 1000 + coalesce(sum(calls), 0)::integer FROM rate_counters`
	l.each(10, c.before...)
	l.each(1, c.uncounted...)
	l.each(c.limit-1, c.counted)
	bounded, over := c.bounded, []request{c.counted}
	if bounded.send == nil {
		bounded = c.counted
	} else {
		l.each(1, bounded)
		over = append(over, bounded)
	}
	l.each(1, c.counted)
	if rows := servicetest.Value[int](l.Fixture, `SELECT count(*) FROM rate_counters`); rows != c.rows {
		l.t.Errorf("%d counters are left, want %d", rows, c.rows)
	}
	l.wantRejected(c, "the first over the limit", bounded)           // the next may be known without counting
	l.Exec(`UPDATE people SET password_hash = '$' || password_hash`) // to compare a password with this is an error
	before, counted := l.contents(), servicetest.Value[int](l.Fixture, counters)
	unlock := l.lock(c.reads)
	for _, r := range over {
		l.wantRejected(c, "another over the limit", r)
	}
	unlock()
	l.wantUnchanged(l.t, before, "what is over the limit")
	if more := servicetest.Value[int](l.Fixture, counters) - counted; more != c.more {
		l.t.Errorf("what is over the limit adds %d to the counters, want %d", more, c.more)
	}
	l.Exec(`UPDATE people SET password_hash = substr(password_hash, 2)`)
	for name, r := range c.pay {
		l.wantRejected(c, name, r)
	}
	for name, r := range c.others {
		l.want(r.status, name, r)
	}
	if c.ends > 0 {
		l.Clock.Advance(c.ends - time.Second)
		l.each(10, c.before...)
		l.wantRejected(c, "a second before the limit ends", bounded)
		l.Clock.Advance(time.Second)
		l.each(10, c.before...)
	}
	for _, end := range l.end {
		end()
	}
	l.want(bounded.status, "after the limit has ended", bounded)
}

// each sends each of the requests n times, which are not rejected.
func (l *limited) each(n int, requests ...request) {
	l.t.Helper()
	for _, r := range requests {
		for i := range n {
			l.want(r.status, fmt.Sprintf("within the limit, number %d", i+1), r)
		}
	}
}

func (l *limited) want(status int, what string, r request) consoletest.Page {
	l.t.Helper()
	l.requests++
	l.things["n"] = strconv.Itoa(l.requests)
	page := r.send(l)
	if page.Status != status {
		l.t.Fatalf("%s: the status is %d, want %d\n%s", what, page.Status, status, page.Body)
	}
	return page
}

// wantRejected sends what is over the limit, until the time that Retry-After names.
func (l *limited) wantRejected(c limitCase, what string, r request) {
	l.t.Helper()
	if c.ends == 0 {
		l.want(http.StatusServiceUnavailable, what, r)
		return
	}
	left := servicetest.Start.Add(cmp.Or(c.told, c.ends)).Sub(l.Clock.Now())
	page := l.want(http.StatusTooManyRequests, what, r)
	if wait := page.Header.Get("Retry-After"); wait != "" && left > 0 && wait != strconv.Itoa(int(left.Seconds())) {
		l.t.Errorf("%s: Retry-After is %s, want %s", what, wait, left)
	}
}

// lock locks all tables except some, so that a request that reads or writes another waits until its
// time has passed.
func (l *limited) lock(except string) (unlock func()) {
	if except == "all" {
		return func() {}
	}
	tables := servicetest.Value[string](l.Fixture, `SELECT string_agg(format('%I', relname), ', ') FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE nspname = 'public' AND relkind IN ('r', 'p') AND relname <> ALL ($1)`, strings.Fields(except))
	tx, err := l.Pool.Begin(l.t.Context())
	if err == nil {
		unlock = func() { _ = tx.Rollback(context.WithoutCancel(l.t.Context())) }
		l.t.Cleanup(unlock)
		_, err = tx.Exec(l.t.Context(), `LOCK TABLE `+tables+` IN ACCESS EXCLUSIVE MODE`)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return unlock
}
