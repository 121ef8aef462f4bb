package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

const unknownID = "00000000000000000000000000"

// Every route with ids of another organization is the same as with ids of nothing, byte
// for byte.
func TestTenantsAreIsolatedOnPages(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	for _, query := range []string{"INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail) VALUES ('" + s.Polar.OrganizationID + "', '" + s.ID("pia") + "', 'webhook.failing', '" + s.ID("dispatch_hook") + "', now(), 'inbox')"} {
		s.Exec(query)
	}
	before := snapshot(s)
	notice := servicetest.Value[string](s.Fixture, `SELECT id::text FROM notices WHERE person_id = $1`, s.ID("pia"))
	session := func() string {
		s.SignedIn("pia")
		return servicetest.Value[string](s.Fixture, `SELECT id FROM sessions WHERE person_id = $1 LIMIT 1`, s.ID("pia"))
	}()
	ids := []string{notice, session}
	for _, id := range s.Polar.IDs {
		ids = append(ids, id)
	}
	tried := 0
	for _, route := range s.Console.Routes() {
		if !strings.Contains(route.Path, ":id") {
			continue
		}
		for _, id := range ids {
			unknown := "9007199254740993"
			if prefix, _, found := strings.Cut(id, "_"); found {
				unknown = prefix + "_" + unknownID
			}
			get := func(id string) consoletest.Page {
				form := url.Values(nil)
				if route.Method == http.MethodPost {
					form = url.Values{"form_key": {"k" + id}, "password": {"a good long password"}}
				}
				return v.Do(route.Method, strings.Replace(route.Path, ":id", id, 1), form)
			}
			theirs, nothing := get(id), get(unknown)
			if theirs.Status != http.StatusNotFound || theirs.Body != nothing.Body || theirs.Status != nothing.Status {
				t.Errorf("%s %s with %s: %d, and %d for nothing\n%s", route.Method, route.Path, id, theirs.Status, nothing.Status, theirs.Body)
			}
			tried++
		}
	}
	if tried < 20 {
		t.Errorf("only %d pages were tried", tried)
	}
	if after := snapshot(s); after != before {
		t.Errorf("the other organization has changed:\n%s\n%s", before, after)
	}
}

// snapshot is everything of the other organization that the console could change.
func snapshot(s *consoletest.Site) string {
	return servicetest.Value[string](s.Fixture, `
		SELECT (SELECT jsonb_agg(to_jsonb(p) ORDER BY id)::text FROM people p WHERE organization_id = $1) ||
			(SELECT jsonb_agg(to_jsonb(i) ORDER BY id)::text FROM identities i WHERE organization_id = $1) ||
			(SELECT jsonb_agg(to_jsonb(i) ORDER BY id)::text FROM integrations i WHERE organization_id = $1) ||
			(SELECT jsonb_agg(to_jsonb(w) ORDER BY id)::text FROM webhooks w WHERE organization_id = $1) ||
			(SELECT coalesce(jsonb_agg(to_jsonb(n) ORDER BY id), '[]')::text FROM notices n WHERE organization_id = $1)`, s.Polar.OrganizationID)
}

// No other site can make a browser write, on any route.
func TestCrossSiteWritesAreRejected(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	tried := 0
	for _, route := range s.Console.Routes() {
		if route.Method != http.MethodPost {
			continue
		}
		path := strings.NewReplacer(":id", s.ID("bob"), ":token", "x").Replace(route.Path)
		for _, headers := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example.com"}, {"Sec-Fetch-Site", "", "Origin", "null"},
		} {
			v.Do(http.MethodPost, path, url.Values{"email": {"x@acme.example.com"}}, headers...).Want(http.StatusForbidden, "Another site made your browser send this request")
			tried++
		}
	}
	if tried < 40 {
		t.Errorf("only %d writes were tried", tried)
	}
	v.Get("/console").Want(http.StatusOK) // still signed in
}

// People who are not signed in see nothing, on any route.
func TestVisitorsSeeNothing(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	open := map[string]bool{
		"/": true, "/console/sign-in": true, "/console/sign-in/organization": true, "/console/sign-out": true, "/console/forgotten": true,
		"/console/invite/:token": true, "/console/reset/:token": true,
	}
	for _, route := range s.Console.Routes() {
		if open[route.Path] {
			continue
		}
		form := url.Values(nil)
		if route.Method == http.MethodPost {
			form = url.Values{"form_key": {"k"}}
		}
		page := s.NewVisitor().Do(route.Method, strings.Replace(route.Path, ":id", s.ID("bob"), 1), form)
		if page.Status != http.StatusSeeOther || !strings.HasPrefix(page.Location(), "/console/sign-in") {
			t.Errorf("%s %s: %d %s", route.Method, route.Path, page.Status, page.Body)
		}
	}
}

// Each permission that is taken away takes its pages away.
func TestPagesRequirePermissions(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	all := []string{"integrations", "incoming_work_orders", "log_records", "people"}
	v := s.SignedIn("bob")
	for _, test := range []struct {
		grant, method, path string
		link                string
	}{
		{"log_records", http.MethodGet, "/console/log", ""},
		{"log_records", http.MethodGet, "/console/log.csv", ""},
		{"people", http.MethodGet, "/console/people/new", ""},
		{"people", http.MethodPost, "/console/people", ""},
		{"people", http.MethodPost, "/console/people/" + s.ID("eve"), ""},
		{"people", http.MethodPost, "/console/people/" + s.ID("eve") + "/link", ""},
		{"people", http.MethodGet, "/console/people/" + s.ID("eve") + "/deactivate", ""},
		{"people", http.MethodPost, "/console/people/" + s.ID("eve") + "/deactivate", ""},
		{"people", http.MethodPost, "/console/people/" + s.ID("eve") + "/activate", ""},
	} {
		form := url.Values(nil)
		if test.method == http.MethodPost {
			form = url.Values{"email": {"x@acme.example.com"}}
		}
		var others []string
		for _, g := range all {
			if g != test.grant {
				others = append(others, g)
			}
		}
		grant(s, "bob", others...)
		v.Do(test.method, test.path, form).Want(http.StatusForbidden, "requires the permission")
		grant(s, "bob", all...)
		if status := v.Do(test.method, test.path, form).Status; status >= http.StatusBadRequest {
			t.Errorf("%s %s with every permission: %d", test.method, test.path, status)
		}
	}
	grant(s, "bob")
	start := v.Get("/console").Want(http.StatusOK)
	if strings.Contains(start.Body, "/console/log") || strings.Contains(start.Body, "Deliveries of the last day") {
		t.Errorf("the start page offers what is not allowed:\n%s", start.Body)
	}
	person := v.Get("/console/people/" + s.ID("eve")).Want(http.StatusOK)
	if strings.Contains(person.Body, "Deactivate") || strings.Contains(person.Body, "Make a link") {
		t.Error("the page of a person offers what is not allowed")
	}
}

// Every page has the headers that protect it.
func TestPagesHaveHeaders(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	for path, status := range map[string]int{"/console": 200, "/console/nowhere": 404, "/console/people/" + s.ID("bob"): 200, "/console/log.csv": 200} {
		h := v.Get(path).Want(status).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
	}
	if page := v.Do(http.MethodPut, "/console/people", url.Values{}); page.Status != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", page.Status)
	}
}

// Texts that others wrote are shown as they are, on every page, and break nothing.
func TestHostileTextsAreOnlyText(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	long := strings.Repeat("<b>wide</b>", 18)
	rightToLeft := "\u202emoc.elpmaxe\u202c <img src=x onerror=alert(1)>"
	s.Exec(`UPDATE identities SET name = $2 WHERE id = $1`, s.ID("bob"), long)
	s.Exec(`UPDATE identities SET name = $2 WHERE id = $1`, s.ID("ann"), rightToLeft)
	s.Exec(`UPDATE identities SET name = $2 WHERE id = $1`, s.Acme.OrganizationID, `"><script>alert(1)</script>`)
	s.Exec(`UPDATE webhooks SET url = $2, enabled = false, off_at = now(), off_reason = $3 WHERE id = $1`, s.ID("reader_hook"),
		"https://example.com/"+strings.Repeat("a", 300), strings.Repeat("<i>x</i> ", 100)+"\u202e")
	notify(s, "ann", "webhook.turned_off", "unknown.<b>kind</b>")
	s.Exec(`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, created_at) VALUES ($1, $2, $2, $3, 'odd.<script>', now())`,
		s.Acme.OrganizationID, s.ID("bob"), strings.Repeat("x", 10_000))
	b := s.Browser(t)
	b.SignIn("ann")
	for _, path := range []string{"/console", "/console/people", "/console/people/" + s.ID("bob"), "/console/people/" + s.ID("bob") + "/deactivate", "/console/log", "/console/notices", "/console/account",
		"/console/integrations", "/console/integrations/" + s.ID("reader"), "/console/integrations/" + s.ID("reader") + "?see=" + url.QueryEscape(rightToLeft), "/console/webhooks/" + s.ID("reader_hook"),
		"/console/log?record=" + url.QueryEscape(long), "/console/people?q=" + url.QueryEscape(rightToLeft)} {
		b.Open(path)
		b.Check("hostile")
	}
	csv := s.SignedIn("ann")
	s.Exec(`UPDATE log SET actor_name = '=HYPERLINK("x")'`)
	csv.Get("/console/log.csv").Want(http.StatusOK, `"'=HYPERLINK(""x"")"`)
}

// Names, ids and addresses without a place to break them make no page wider than the window,
// nor squeeze the columns next to them.
func TestLongWordsFit(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	word := strings.Repeat("w", 200)
	s.Exec(`UPDATE permission_definitions SET name = $1`, word)
	s.Exec(`UPDATE organization_permission_definitions SET name = $1`, word)
	s.Exec(`UPDATE inventory_nodes SET name = $1`, word)
	s.Exec(`UPDATE webhooks SET url = 'https://example.com/' || $1`, word)
	newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusInternalServerError, word))
	s.Exec(`UPDATE identities SET name = $1`, word)
	s.Exec(`UPDATE people SET email = $2 || '@example.com' WHERE id = $1`, s.ID("bob"), word)
	erp, hook, bob := "/console/integrations/"+s.ID("erp"), "/console/webhooks/"+s.ID("erp_hook"), "/console/people/"+s.ID("bob")
	b := s.Browser(t)
	b.SignIn("ann")
	for _, path := range []string{
		"/console", "/console/integrations", "/console/integrations/new", erp, erp + "?see=" + s.ID("ahu1"), erp + "/off", erp + "/delete", erp + "/webhooks/new",
		hook, hook + "/off", hook + "/missed", hook + "/deliveries", "/console/deliveries", "/console/deliveries/" + servicetest.Value[string](s.Fixture, `SELECT min(id) FROM all_deliveries`),
		"/console/people", "/console/people/new", bob, bob + "/deactivate", "/console/log", "/console/account",
	} {
		b.Open(path)
		b.CheckWidth(path)
	}
}

// Requests that are not what a browser sends get a page that says so.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	for path, status := range map[string]int{
		"/console/people?q=%ff%00": 400, "/console/people?after=x&after_name=%00": 400, "/console?%zz": 400, "/console/log?what=%00": 400, "/console/log?from=nonsense": 400,
		"/console/log?before=nonsense": 200, "/console/notices?unread_before=-1": 200, "/console/people/x": 404, "/console/people/" + strings.Repeat("x", 5000): 404,
		"/console/": 404, "/console/%00": 404, "/console/assets/console.css": 404,
	} {
		if page := v.Get(path); page.Status != status {
			t.Errorf("%s: %d, want %d", path, page.Status, status)
		}
	}
	v.Post("/console/notices/x/open", url.Values{}).Want(http.StatusNotFound)
	v.Post("/console/notices/read", url.Values{"last": {"x"}}).Want(http.StatusNotFound)
	v.Post("/console/people", url.Values{"email": {"a\x00b"}}).Want(http.StatusBadRequest)
	v.Post("/console/people", url.Values{"email": {strings.Repeat("x", 300<<10)}}).Want(http.StatusRequestEntityTooLarge)
	v.Post("/console/people", url.Values{"email": {strings.Repeat("x", 300) + "@example.com"}}).Want(http.StatusUnprocessableEntity)
	v.Post("/console/account", url.Values{"name": {"Ann"}, "time_zone": {"../../etc/passwd"}, "theme": {"x"}}).Want(http.StatusUnprocessableEntity, "There is no such time zone.", "There is no such theme.")
	v.Post("/console/account", url.Values{"name": {" \t\n"}, "time_zone": {"UTC"}}).Want(http.StatusUnprocessableEntity)
}
