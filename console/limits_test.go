package console_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

// limitedSite is a site with small limits, behind a proxy that names the networks.
func limitedSite(t *testing.T, visits, forms, comments int) *consoletest.Site {
	t.Helper()
	f := servicetest.New(t, func(o *store.Options) {
		o.AddressCallsPerMinute, o.FormsPerMinute, o.CommentsPerMinute = visits, forms, comments
	})
	return consoletest.On(t, f, func(o *console.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
}

// Whatever is requested without a session is counted by network before any work, and leaves no row
// beyond the limit. People with a session and those who know their browser are not counted with
// the strangers behind their address.
func TestStrangersAreCountedByNetwork(t *testing.T) {
	t.Parallel()
	const limit, flooding, other = 5, "192.0.2.1", "192.0.2.2"
	s := limitedSite(t, limit, 1000, 1000)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	bob := credentials(s.Email("bob"), consoletest.Password)
	known, once := s.NewVisitor(), s.NewVisitor()
	known.Do(http.MethodPost, "/console/sign-in", bob, "X-Forwarded-For", other).Want(http.StatusSeeOther)
	once.Do(http.MethodPost, "/console/sign-in", bob, "X-Forwarded-For", other).Want(http.StatusSeeOther)
	once.Do(http.MethodPost, "/console/sign-out", url.Values{}, "X-Forwarded-For", other).Want(http.StatusSeeOther)
	person, ended := s.SignedIn("bob"), s.SignedIn("cat")
	s.Exec(`DELETE FROM sessions WHERE person_id = $1`, s.ID("cat"))
	forged := s.NewVisitor()
	forged.Jar.SetCookies(at, []*http.Cookie{{Name: "session", Value: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA"}})
	stylesheet := regexp.MustCompile(`/console/assets/[^"]+`).FindString(person.Get("/console").Body)
	from := func(v *consoletest.Visitor, network, method, path string, form url.Values) consoletest.Page {
		return v.Do(method, path, form, "X-Forwarded-For", network)
	}
	s.Clock.Advance(time.Minute)
	for range limit {
		from(forged, flooding, http.MethodGet, "/console/sign-in", nil).Want(http.StatusOK)
	}
	rows := func() int { return servicetest.Value[int](s.Fixture, `SELECT count(*) FROM rate_counters`) }
	before, requests := rows(), 0
	over := func(v *consoletest.Visitor, method, path string, form url.Values) {
		t.Helper()
		requests++
		if page := from(v, flooding, method, path, form).Want(http.StatusTooManyRequests, "Too many requests"); page.Header.Get("Retry-After") != "30" {
			t.Errorf("%s %s: Retry-After is %q", method, path, page.Header.Get("Retry-After"))
		}
	}
	for _, c := range routeCases {
		var form url.Values
		if c.method == http.MethodPost {
			form = credentials(fmt.Sprintf("no.one%d@example.com", requests), "wrong")
		}
		over(s.NewVisitor(), c.method, strings.NewReplacer(":id", s.ID("bob"), ":token", "x").Replace(c.path), form)
	}
	for _, path := range []string{stylesheet, "/console/nowhere"} {
		over(s.NewVisitor(), http.MethodGet, path, nil)
	}
	over(s.NewVisitor(), http.MethodPut, "/console/people", nil)
	over(forged, http.MethodGet, "/console", nil)
	for range limit {
		from(ended, flooding, http.MethodGet, "/console", nil)
	}
	over(ended, http.MethodGet, "/console", nil)
	if n := rows() - before; n != 0 || requests < 100 {
		t.Errorf("%d requests over the limit left %d rows", requests, n)
	}

	for range 3 * limit {
		from(person, flooding, http.MethodGet, "/console", nil).Want(http.StatusOK)
		from(person, flooding, http.MethodGet, stylesheet, nil).Want(http.StatusOK)
	}
	from(known, flooding, http.MethodPost, "/console/sign-out", url.Values{}).Want(http.StatusSeeOther)
	for range limit { // someone else had the password once: her browser is known as well
		from(once, flooding, http.MethodGet, "/console/sign-in", nil).Want(http.StatusOK)
	}
	over(known, http.MethodPost, "/console/sign-in", bob)
	from(known, other, http.MethodPost, "/console/sign-in", bob).Want(http.StatusSeeOther)
	from(known, other, http.MethodPost, "/console/sign-out", url.Values{}).Want(http.StatusSeeOther)
	s.Clock.Advance(time.Minute)
	for range limit + 1 {
		from(s.NewVisitor(), flooding, http.MethodGet, "/console/sign-in", nil)
	}
	over(s.NewVisitor(), http.MethodGet, "/console/sign-in", nil)
	from(known, flooding, http.MethodPost, "/console/sign-in", bob).Want(http.StatusSeeOther)
	from(s.NewVisitor(), other, http.MethodPost, "/console/sign-in", bob).Want(http.StatusSeeOther)
	s.Clock.Advance(time.Minute)
	from(s.NewVisitor(), flooding, http.MethodPost, "/console/sign-in", bob).Want(http.StatusSeeOther)
}

// What a person sends in a minute is limited, in all sessions together, and each limit counts what it
// names. Over it nothing is done, and what was entered can be sent later.
func TestFormsOfAPersonAreLimited(t *testing.T) {
	t.Parallel()
	const forms, comments = 6, 2
	profile := func(name string) url.Values { return url.Values{"name": {name}, "time_zone": {"UTC"}} }
	post := http.MethodPost
	type sent struct {
		method, path string
		form         url.Values
	}
	s := &guardedSite{Site: limitedSite(t, 1000, forms, comments)}
	ended := s.SignedIn("ann")
	s.Exec(`DELETE FROM sessions`)
	order := newRecord(t, s.Site)
	comment := sent{post, "/console/work-orders/" + order + "/comments", url.Values{"text": {"Ladder needed"}}}
	change := sent{post, "/console/account", profile("Ann Renamed")}
	for name, c := range map[string]struct {
		what sent
		// free are not rejected, nor is what follows in then.
		free int
		then []sent
		want []string
		kept bool
	}{
		"forms": {
			what: change, free: forms, want: []string{"You have sent more than 6 forms within a minute.", "What you entered is kept."}, kept: true,
			then: []sent{{http.MethodGet, "/console/account", nil}, {post, "/console/work-orders/" + order + "/seen", url.Values{}}},
		},
		"forms that are rejected count too": {what: sent{post, "/console/account", profile("")}, free: forms, kept: true},
		"comments":                          {what: comment, free: comments, want: []string{"You have sent more than 2 comments within a minute."}, kept: true, then: []sent{change}},
		"forms with a password are not kept": {
			what: sent{post, "/console/account/password", url.Values{"old_password": {"wrong"}, "password": {"another good password"}}}, free: forms,
		},
		"forms to no page":       {what: sent{post, "/console/nowhere", profile("x")}, free: forms, kept: true},
		"what pages send":        {what: sent{post, "/console/work-orders/" + order + "/seen", url.Values{}}, free: forms, kept: true, then: []sent{change}},
		"one form for many rows": {what: sent{post, "/console/notices/read", url.Values{"last": {"9999"}}}, free: forms, kept: true},
	} {
		s.Clock.Advance(time.Minute)
		one, two := s.SignedIn("ann"), s.SignedIn("ann")
		for range 3 * forms { // which another site sends, or someone else
			two.Do(post, c.what.path, c.what.form, "Sec-Fetch-Site", "cross-site").Want(http.StatusForbidden)
			ended.Do(post, c.what.path, c.what.form) // someone found the token of a session that has ended
		}
		for i := range c.free {
			v := []*consoletest.Visitor{one, two}[i%2]
			if page := v.Do(c.what.method, c.what.path, c.what.form); page.Status == http.StatusTooManyRequests {
				t.Fatalf("%s: number %d is rejected", name, i+1)
			}
		}
		before := s.contents()
		page := one.Do(c.what.method, c.what.path, c.what.form).Want(http.StatusTooManyRequests, append(c.want, "Too many requests", "Try again in 30 seconds.")...)
		if wait := page.Header.Get("Retry-After"); wait != "30" {
			t.Errorf("%s: Retry-After is %q", name, wait)
		}
		s.wantUnchanged(t, before, name)
		kept := keptForm(page)
		for field, values := range c.what.form {
			if c.kept != (kept.Get(field) == values[0]) {
				t.Errorf("%s: %s is %q", name, field, kept.Get(field))
			}
		}
		for _, next := range c.then {
			if page := two.Do(next.method, next.path, next.form); page.Status == http.StatusTooManyRequests {
				t.Errorf("%s: %s %s is rejected too", name, next.method, next.path)
			}
		}
		if page := s.SignedIn("bob").Do(c.what.method, c.what.path, c.what.form); page.Status == http.StatusTooManyRequests {
			t.Errorf("%s: another person is limited", name)
		}
		for range 2 * forms { // far over the limit, nothing is shown again
			page = one.Do(c.what.method, c.what.path, c.what.form).Want(http.StatusTooManyRequests)
		}
		if len(keptForm(page)) != 0 {
			t.Errorf("%s: far over the limit, the page has %v", name, keptForm(page))
		}
		one.Do(post, "/console/sign-out", url.Values{}).Want(http.StatusSeeOther)
		if s.Clock.Advance(time.Minute); c.kept {
			if page := two.Do(c.what.method, c.what.path, kept); page.Status == http.StatusTooManyRequests {
				t.Errorf("%s: a minute later what was kept is rejected", name)
			}
		}
	}
}

// startForm sends a form with the session, but only as much of its body as is given.
func startForm(t *testing.T, s *consoletest.Site, v *consoletest.Visitor, length int, body string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "POST /console/account HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nCookie: session=%s\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", sessionOf(v), length, body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// response reads the status of the response, and the rest until the server closes the connection.
func response(t *testing.T, conn net.Conn) (status string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("the connection stays open: %v", err)
	}
	status, _, _ = strings.Cut(string(text), "\r\n")
	return status
}

// Forms that arrive slowly take no place of their organization, and end.
func TestSlowFormsTakeNoPlace(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	var senders []*consoletest.Visitor
	for range 40 { // more than the places of an organization
		senders = append(senders, s.SignedIn("bob"))
	}
	s.Clock.Advance(2 * time.Minute)
	for _, v := range senders {
		startForm(t, s, v, 100, "n")
	}
	servicetest.Await(t, "their sessions were read", func() bool {
		return servicetest.Value[int](s.Fixture, `SELECT count(*) FROM sessions WHERE seen_at = $1`, s.Clock.Now()) == 40
	})
	s.SignedIn("ann").Get("/console/account").Want(http.StatusOK)
	if n := storetest.CallsWaiting(s.Store); n != 0 {
		t.Errorf("%d requests wait for a place", n)
	}
	impatient := *s
	impatient.Console, impatient.URL = s.Serve(s.Service, func(o *console.Options) { o.BodyTimeout = 100 * time.Millisecond })
	if status := response(t, startForm(t, &impatient, s.SignedIn("bob"), 100, "n")); status != "HTTP/1.1 408 Request Timeout" {
		t.Errorf("a form that does not arrive: %s", status)
	}
	// One that names its size is not waited for.
	if status := response(t, startForm(t, s, s.SignedIn("bob"), 256<<10+1, "")); status != "HTTP/1.1 413 Request Entity Too Large" {
		t.Errorf("a form that is too large: %s", status)
	}
}

// Someone whose form is too large reads the limit, and finds the input where the page says: one page back.
func TestAFormThatIsTooLargeIsKeptByTheBrowser(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		b.SignIn("ann")
		b.Open("/console/inventory/" + s.ID("roof") + "/several")
		lines := strings.Repeat("Supply fan; F-1\n", 20_000)
		b.Fill("lines", lines)
		b.Press("Add all")
		b.WantText("larger than 256 KiB", "Go back in your browser")
		b.Do(chromedp.NavigateBack())
		if entered := b.Entered("lines"); entered != lines {
			t.Errorf("one page back are %d bytes, want %d", len(entered), len(lines))
		}
	})
}

// An organization, or the network of a visitor, has one large form handled at a time. Small forms
// and others' do not wait.
func TestLargeFormsTakeTurns(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t, func(o *console.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		o.RequestTimeout = time.Second
	})
	visitor := func() *consoletest.Visitor { return s.NewVisitor() }
	person := func(key string) func() *consoletest.Visitor {
		return func() *consoletest.Visitor { return s.SignedIn(key) }
	}
	const account, signIn = "/console/account", "/console/sign-in"
	for name, c := range map[string]struct {
		tenant  string // that has one
		sender  func() *consoletest.Visitor
		path    string
		network string
		size    int
		want    int
	}{
		"of a person":                {s.Acme.OrganizationID, person("ann"), account, "192.0.2.1", 65 << 10, http.StatusServiceUnavailable},
		"of a person, small":         {s.Acme.OrganizationID, person("ann"), account, "192.0.2.1", 60 << 10, http.StatusUnprocessableEntity},
		"of another organization":    {s.Acme.OrganizationID, person("pia"), account, "192.0.2.1", 65 << 10, http.StatusUnprocessableEntity},
		"of a visitor":               {"network 192.0.2.1", visitor, signIn, "192.0.2.1", 65 << 10, http.StatusServiceUnavailable},
		"of a visitor, small":        {"network 192.0.2.1", visitor, signIn, "192.0.2.1", 60 << 10, http.StatusUnauthorized},
		"of another visitor":         {"network 192.0.2.1", visitor, signIn, "192.0.2.2", 65 << 10, http.StatusUnauthorized},
		"of a person in the network": {"network 192.0.2.1", person("ann"), account, "192.0.2.1", 65 << 10, http.StatusUnprocessableEntity},
	} {
		leave, err := s.Access.EnterParsing(t.Context(), c.tenant)
		if err != nil {
			t.Fatal(err)
		}
		form := url.Values{"name": {"Ann"}, "email": {"no.one@example.com"}, "time_zone": {strings.Repeat("x", c.size)}}
		if page := c.sender().Do(http.MethodPost, c.path, form, "X-Forwarded-For", c.network); page.Status != c.want {
			t.Errorf("a large form %s: %d, want %d", name, page.Status, c.want)
		}
		leave()
	}
}
