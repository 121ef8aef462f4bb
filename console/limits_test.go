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
	bob := credentials(s.Email("bob"), consoletest.Password)
	known, once := s.NewVisitor(), s.NewVisitor()
	known.Do(http.MethodPost, "/console/sign-in", bob, "X-Forwarded-For", other).Want(http.StatusSeeOther)
	once.Do(http.MethodPost, "/console/sign-in", bob, "X-Forwarded-For", other).Want(http.StatusSeeOther)
	once.Do(http.MethodPost, "/console/sign-out", url.Values{}, "X-Forwarded-For", other).Want(http.StatusSeeOther)
	person, ended := s.SignedIn("bob"), s.SignedIn("cat")
	s.Exec(`DELETE FROM sessions WHERE person_id = $1`, s.ID("cat"))
	forged := withSession(s, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA")
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
		from(person, flooding, http.MethodGet, stylesheet, nil).Want(http.StatusOK)
	}
	from(known, flooding, http.MethodPost, "/console/sign-out", url.Values{}).Want(http.StatusSeeOther)
	for range limit { // someone else had the password once: her browser is known as well
		from(once, flooding, http.MethodGet, "/console/sign-in", nil).Want(http.StatusOK)
	}
	over(known, http.MethodPost, "/console/sign-in", bob)
}

// A form over the limit is shown again, to be sent later, unless it has a password. The sessions of a person count
// together. TestWhatLimitsCount has the rest of these limits.
func TestFormsOfAPersonAreLimited(t *testing.T) {
	t.Parallel()
	const forms, comments = 6, 2
	s := limitedSite(t, 1000, forms, comments)
	ended := s.SignedIn("ann")
	s.Exec(`DELETE FROM sessions`)
	order := "/console/work-orders/" + newRecord(t, s)
	for name, c := range map[string]struct {
		path  string
		form  url.Values
		limit int
		kept  bool
		want  string
	}{
		"forms":    {"/console/account", url.Values{"name": {"Ann Renamed"}, "time_zone": {"UTC"}}, forms, true, "You have sent more than 6 forms within a minute."},
		"comments": {order + "/comments", url.Values{"text": {"Ladder needed"}}, comments, true, "You have sent more than 2 comments within a minute."},
		"forms with a password": {
			"/console/account/password", url.Values{"old_password": {"wrong"}, "password": {"another good password"}}, forms, false, "You have sent more than 6 forms",
		},
		"forms to no page":       {"/console/nowhere", url.Values{"name": {"x"}}, forms, true, "What you entered is kept."},
		"what pages send":        {order + "/seen", url.Values{}, forms, true, "Nothing was done yet."},
		"one form for many rows": {"/console/notices/read", url.Values{"last": {"9999"}}, forms, true, "What you entered is kept."},
	} {
		s.Clock.Advance(time.Minute)
		one, two := s.SignedIn("ann"), s.SignedIn("ann")
		for range 3 * forms {
			ended.Post(c.path, c.form) // someone found the token of a session that has ended
		}
		for i := range c.limit {
			if page := []*consoletest.Visitor{one, two}[i%2].Post(c.path, c.form); page.Status == http.StatusTooManyRequests {
				t.Fatalf("%s: number %d is rejected", name, i+1)
			}
		}
		page := one.Post(c.path, c.form).Want(http.StatusTooManyRequests, c.want, "Too many requests", "Try again in 30 seconds.")
		kept := keptForm(page)
		for field, values := range c.form {
			if c.kept != (kept.Get(field) == values[0]) {
				t.Errorf("%s: %s is %q", name, field, kept.Get(field))
			}
		}
		for range 2 * forms { // far over the limit, nothing is shown again
			page = one.Post(c.path, c.form).Want(http.StatusTooManyRequests)
		}
		if len(keptForm(page)) != 0 {
			t.Errorf("%s: far over the limit, the page has %v", name, keptForm(page))
		}
		if s.Clock.Advance(time.Minute); c.kept && two.Post(c.path, kept).Status == http.StatusTooManyRequests {
			t.Errorf("%s: a minute later what was kept is rejected", name)
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
	s := consoletest.NewSite(t)
	b := s.Browser(t)
	b.SignIn("ann", "/console/inventory/"+s.ID("roof")+"/several")
	lines := strings.Repeat("Supply fan; F-1\n", 20_000)
	b.Fill("lines", lines)
	b.Press("Add all")
	b.WantText("larger than 256 KiB", "Go back in your browser")
	b.Do(chromedp.NavigateBack())
	if entered := b.Entered("lines"); entered != lines {
		t.Errorf("one page back are %d bytes, want %d", len(entered), len(lines))
	}
}
