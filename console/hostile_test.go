package console_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
)

// Texts that are meant to break pages: markup, characters that change the direction of text
// and control terminals, and 10,000 characters.
const (
	markup      = `"><script>alert(1)</script><img src=x onerror=alert(1)>'&{{.}}`
	rightToLeft = "\u202emoc.elpmaxe\u2069\u2067 \u05e9\u05dc\u05d5\u05dd <b>x</b>"
)

var longText = strings.Repeat("<b>w</b>x", 1112)

// newHostileSite is newGuardedSite with hostile strings wherever others may write.
func newHostileSite(t *testing.T) *guardedSite {
	t.Helper()
	s := newGuardedSite(t)
	// Long words have no place to break them.
	name := func(text string) string { return text + "<b>" + strings.Repeat("w", 197-len([]rune(text))) }
	for key, text := range map[string]string{"bob": name(markup), "eve": name(rightToLeft), "erp": name(rightToLeft), "reader": name(markup), "crew": name("\u2066")} {
		s.Exec(`UPDATE identities SET name = $2 WHERE id = $1`, s.ID(key), text)
	}
	s.Exec(`UPDATE identities SET name = $2 WHERE id = $1`, s.Acme.OrganizationID, name(rightToLeft))
	s.Exec(`UPDATE people SET phone = $2, email = $3 WHERE id = $1`, s.ID("eve"), rightToLeft, `"`+rightToLeft+strings.Repeat("x", 150)+`"@acme.example.com`)
	s.Exec(`UPDATE inventory_nodes SET name = $1, external_id = repeat('W', 200)`, name(rightToLeft))
	s.Exec(`UPDATE permission_definitions SET name = $1 || id`, markup+rightToLeft)
	s.Exec(`UPDATE organization_permission_definitions SET name = $1 || id`, markup+rightToLeft)
	s.Exec(`UPDATE forms SET name = $1`, name(markup))
	s.Exec(`UPDATE questions SET label = $1`, markup+rightToLeft)
	s.Exec(`UPDATE question_options SET label = $1`, markup+rightToLeft)
	s.Exec(`UPDATE webhooks SET url = 'https://example.com/' || $1 || slot`, strings.Repeat("a", 300)+rightToLeft)
	s.Exec(`UPDATE webhooks SET off_reason = $1, off_at = now(), enabled = false WHERE id = $2`, longText+rightToLeft, s.ID("reader_hook"))
	s.Exec(`INSERT INTO webhook_health (webhook_id, failing_since, last_at, last_error) SELECT id, now(), now(), $1 FROM webhooks
		ON CONFLICT (webhook_id) DO UPDATE SET failing_since = now(), last_at = now(), last_status = NULL, last_error = $1`, longText+rightToLeft)
	for hook, body := range map[string][]byte{"erp_hook": []byte(strings.Repeat("a", 3000) + rightToLeft + "\x00\x1b[31m\r" + markup), "reader_hook": {0xff, 0xfe, 0, 'x', 0x80}} {
		s.Exec(`INSERT INTO webhook_tests (event_id, webhook_id, begun_at, started_at, latency_ms, status, response_body) VALUES ($1, $2, $3, $3, 5, 200, $4)`,
			"evt_00000000000000000000000"+hook[:3], s.ID(hook), s.Clock.Now(), body)
	}
	s.Exec(`UPDATE feedback SET subject = $1, description = left($2, 10000), external_id = left($3, 200)`, name(rightToLeft), markup+longText, rightToLeft+longText)
	s.Exec(`UPDATE deliveries SET last_status = NULL, last_error = $1`, longText+rightToLeft)
	s.Exec(`UPDATE attempts SET status = NULL, error = $1`, longText+rightToLeft)
	s.Exec(`UPDATE attempts SET status = 200, error = NULL, response_body = $2 WHERE delivery_id = $1`, s.things["delivery"], []byte(markup+rightToLeft+strings.Repeat("b", 3000)+"\x1b\x00"))
	s.Exec(`UPDATE work_orders SET title = $1, external_id = $2, description = $3, form_id = $4 WHERE organization_id = $5`,
		name(markup), name(rightToLeft), longText[:9_000]+rightToLeft, s.ID("inspection"), s.Acme.OrganizationID)
	s.Exec(`INSERT INTO answers (work_order_id, question_id, value, answered_at, answered_by) VALUES ($1, $2, to_jsonb($3::text), now(), $4)`,
		s.things["work_order"], s.ID("q_note"), longText+rightToLeft, s.ID("bob"))
	s.Exec(`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, created_at, changes)
		SELECT organization_id, id, $2, $3, action, now(), changes FROM work_orders, (VALUES ('work_order.sent_back', jsonb_build_object('comment', jsonb_build_object('to', $4::text))),
			('work_order.updated', jsonb_build_object('title', jsonb_build_object('from', $5::text, 'to', $4::text), 'external_id', jsonb_build_object('from', $5::text, 'to', $5::text))),
			('work_order.answered', jsonb_build_object('answers.' || $6::text, jsonb_build_object('to', 1)))) c (action, changes) WHERE id = $1`,
		s.things["work_order"], s.ID("bob"), rightToLeft, longText, markup, s.ID("q_note"))
	s.Exec(`UPDATE comments SET text = $1`, markup+rightToLeft+longText[:9_000])
	s.Exec(`UPDATE sessions SET user_agent = $1, network = '192.0.2.1'`, markup+rightToLeft)
	notify(s.Site, "ann", "webhook.turned_off", "unknown.<b>kind</b>")
	for _, text := range []string{longText, rightToLeft, markup} {
		s.Exec(`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, created_at) VALUES ($1, $2, $2, $3, 'odd.<script>', now())`,
			s.Acme.OrganizationID, s.ID("bob"), text)
	}
	return s
}

var (
	hostileMarkup = []string{"<script>", "<img src=x", "<b>", "onerror=alert(1)>"}
	// plain are paths of a part of a page, of what a browser saves, and of forms with nothing that others wrote.
	plain = regexp.MustCompile(`\.csv$|/count$|/new$`)
)

// wantOnlyText fails the test if the page has markup of others, or characters that hide what it says.
func wantOnlyText(t *testing.T, path string, page consoletest.Page) {
	t.Helper()
	if page.Status != http.StatusOK {
		t.Errorf("%s: %d", path, page.Status)
	}
	for _, markup := range hostileMarkup {
		if before, _, found := strings.Cut(page.Body, markup); found && !strings.HasPrefix(page.Header.Get("Content-Type"), "text/csv") {
			t.Errorf("%s has markup of others: %q%s", path, before[max(0, len(before)-100):], markup)
		}
	}
	if strings.HasPrefix(page.Header.Get("Content-Type"), "text/csv") {
		page.Body = strings.ReplaceAll(page.Body, "\r\n", "\n")
	}
	if at := strings.IndexAny(page.Body, "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\x00\x07\x1b\x7f\r"); at >= 0 {
		t.Errorf("%s has a character that hides text: %q", path, page.Body[max(0, at-100):min(len(page.Body), at+4)])
	}
}

// Texts that others wrote are shown as they are, on every page and in every download, and
// break nothing: no markup, no other direction, no scrolling sideways, no narrow columns, no broken policy.
func TestHostileTextsAreOnlyText(t *testing.T) {
	t.Parallel()
	s := newHostileSite(t)
	v := s.SignedIn("ann")
	customers, completable := incoming(t, s.Site), newRecord(t, s.Site)
	s.Exec(`UPDATE work_orders SET title = (SELECT title FROM work_orders WHERE id = $2) WHERE id = $1`, completable, s.things["work_order"])
	isFilter := func(name string, _ []string) bool {
		return !slices.Contains([]string{"node", "member", "comment", "identity", "id"}, name)
	}
	b := s.Browser(t)
	b.SignIn("ann", "/console")
	for _, c := range routeCases {
		if c.method != http.MethodGet || c.anyone || c.path == "/console/openid/again" {
			continue
		}
		for _, change := range []func(*string, url.Values, url.Values){
			nil,
			func(id *string, query, _ url.Values) { // an address that is off, no filters
				if *id == s.ID("erp_hook") {
					*id = s.ID("reader_hook")
				}
				maps.DeleteFunc(query, isFilter)
			},
			func(id *string, query, _ url.Values) { // hostile parameters
				maps.DeleteFunc(query, isFilter)
				for _, name := range []string{"q", "see", "who", "since", "done", "time"} {
					query.Set(name, markup+rightToLeft)
				}
			},
		} {
			path := s.pathOf(c, change)
			if strings.HasSuffix(c.path, "/complete") {
				path = strings.Replace(path, s.things["work_order"], completable, 1)
			}
			if strings.HasSuffix(c.path, "/return") { // only a customer's is returned
				path = strings.Replace(path, s.things["work_order"], customers, 1)
			}
			wantOnlyText(t, path, v.Get(path))
			if change == nil && (!plain.MatchString(c.path) || c.path == "/console/work-orders/new") {
				b.Open(path)
				b.CheckWidth(path)
			}
		}
	}
	b.Open("/console/webhooks/" + s.ID("reader_hook"))
	b.CheckWidth("hostile strings")
	delivery := "/console/deliveries/" + s.things["delivery"]
	v.Get(delivery).Want(http.StatusOK, "‹U&#43;202E›moc.", "bbb‹U&#43;001B›‹U&#43;0000›")
	b.Open(delivery)
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach(d => d.open = true)`))
	b.Check("delivery-response")
	s.WantRows(3, `log WHERE action LIKE 'odd%'`)
}
