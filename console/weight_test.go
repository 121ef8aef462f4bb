package console_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

const (
	// maxFirstVisit and maxPage bound the compressed bytes of a first visit, with
	// maxRequests, and of a later page.
	maxFirstVisit, maxPage = 60 << 10, 20 << 10
	maxRequests            = 5
)

var (
	loaded = regexp.MustCompile(`(?:src|href)="(/console/assets/[^"]+)"`)
	// loadedLater is a part of a page that its script loads without being asked.
	loadedLater = regexp.MustCompile(`hx-get="([^"]+)" hx-trigger="load"`)
)

// scale weighs pages for a visitor.
type scale struct {
	*consoletest.Visitor
	t *testing.T
}

// weigh returns the compressed size of a page or a file, and what it contains.
func (s scale) weigh(path string, headers ...string) (size int, plain consoletest.Page) {
	s.t.Helper()
	page := s.Do(http.MethodGet, path, nil, append(headers, "Accept-Encoding", "gzip")...).Want(http.StatusOK)
	size = len(page.Body)
	if page.Header.Get("Content-Encoding") != "gzip" {
		if size > 1024 {
			s.t.Errorf("%s is not compressed", path)
		}
		return size, page
	}
	unpacked, err := gzip.NewReader(strings.NewReader(page.Body))
	if err != nil {
		s.t.Fatal(err)
	}
	content, err := io.ReadAll(unpacked)
	if err != nil {
		s.t.Fatal(err)
	}
	page.Body = string(content)
	return size, page
}

// visit returns the compressed sizes of a page with the parts that it loads later, and of the
// files that only a first visit loads, with the number of all these requests.
func (s scale) visit(path string) (page, files, requests int) {
	s.t.Helper()
	page, plain := s.weigh(path)
	requests = 1
	for _, part := range loadedLater.FindAllStringSubmatch(plain.Body, -1) {
		size, _ := s.weigh(strings.ReplaceAll(part[1], "&amp;", "&"), "HX-Request", "true")
		page += size
		requests++
	}
	seen := map[string]bool{}
	for _, found := range loaded.FindAllStringSubmatch(plain.Body, -1) {
		if seen[found[1]] {
			continue
		}
		seen[found[1]] = true
		size, file := s.weigh(found[1])
		if file.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || file.Header.Get("Content-Security-Policy") == "" {
			s.t.Errorf("%s: %v", found[1], file.Header)
		}
		files += size
		requests++
	}
	return page, files, requests
}

// Every page with full tables weighs at most 20 KiB with the parts that it loads later, and at
// most 60 KiB with its files on the first visit, in at most five requests. A new page is
// weighed here too.
func TestPagesAreLight(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	full := fillTables(t, s)
	planned := plannedWorkOrder(t, s)
	s.Must(s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, planned, []string{s.ID("ann")}, nil))
	many := url.Values{"id": servicetest.Value[[]string](s.Fixture, `SELECT array_agg(id) FROM work_orders`)}.Encode()
	tested := map[string][]string{ // by route; paths of visitors begin with "-"
		"/console": {""}, "/console/account": {""}, "/console/log": {"", "?what=work_order"}, "/console/notices": {""},
		"/console/work-orders": {"", "?q=filter&node=HQ"},
		"/console/people":      {"", "?q=a"}, "/console/people/new": {""}, "/console/people/openid": {""}, "/console/sign-in/again": {""}, "/console/people/:id": {s.ID("bob")}, "/console/people/:id/deactivate": {s.ID("bob"), s.ID("bob") + "?q=a"}, "/console/people/:id/ways-in": {s.ID("bob")},
		"/console/feedback": {"", "?state=open"}, "/console/feedback/new": {"", "?node=AHU-1"}, "/console/feedback/:id": {full.feedback},
		"/console/people/definitions": {""}, "/console/teams": {"", "?q=a"}, "/console/teams/new": {""}, "/console/teams/:id": {s.ID("crew"), s.ID("crew") + "?q=b"},
		"/console/teams/:id/members": {s.ID("crew")}, "/console/teams/:id/remove": {s.ID("crew") + "?member=" + s.ID("bob")}, "/console/teams/:id/delete": {s.ID("crew")}, "/console/service-companies/:id/end": {s.ID("polar")},
		"/console/search": {"?q=a"}, "/console/forms": {""}, "/console/forms/:id": {s.ID("inspection")}, "/console/forms/new": {""},
		"/console/forms/:id/edit": {s.ID("inspection")}, "/console/forms/:id/question": {s.ID("inspection"), s.ID("inspection") + "?question=" + s.ID("q_state")}, "/console/people/definitions/edit": {"", "?on=places"},
		"/console/integrations": {""}, "/console/integrations/new": {""}, "/console/integrations/:id/webhooks/new": {s.ID("reader")},
		"/console/integrations/:id":        {s.ID("erp"), s.ID("erp") + "?see=" + full.record},
		"/console/integrations/:id/secret": {s.ID("erp")}, "/console/integrations/:id/off": {s.ID("erp")}, "/console/integrations/:id/delete": {s.ID("erp")},
		"/console/integrations/:id/assign": {s.ID("erp")}, "/console/integrations/:id/unassign": {s.ID("reader") + "?node=" + s.ID("hvac")},
		"/console/work-orders/:id": {full.record, full.job}, "/console/work-orders/:id/assign": {full.job}, "/console/work-orders/:id/integrations": {full.record, full.job}, "/console/work-orders/:id/cancel": {full.job}, "/console/work-orders/:id/complete": {newRecord(t, s)}, "/console/work-orders/:id/return": {incoming(t, s)},
		"/console/work-orders/:id/remove-comment": {full.job + "?comment=" + commentOn(t, s, "ann", full.job, "Since when?")},
		"/console/feedback/:id/remove-comment":    {full.feedback + "?comment=" + commentOn(t, s, "ann", full.feedback, "Since when?")},
		"/console/inventory":                      {"", "?q=a", "?open=" + s.ID("hvac")}, "/console/inventory/:id/label": {s.ID("ahu1")},
		"/console/inventory/:id": {s.ID("hvac"), s.ID("ahu1") + "?tab=work-orders", s.ID("ahu1") + "?tab=feedback", s.ID("hq") + "?tab=assignees"},
		"/console/inventory/new": {"", "?node=" + s.ID("hvac")}, "/console/inventory/:id/several": {s.ID("hvac")}, "/console/inventory/:id/edit": {s.ID("hvac")}, "/console/inventory/:id/move": {s.ID("hvac")}, "/console/inventory/:id/retire": {s.ID("hvac")},
		"/console/inventory/:id/assign": {s.ID("hq")}, "/console/inventory/:id/unassign": {s.ID("hq") + "?identity=" + s.ID("bob")},
		"/console/webhooks/:id": {s.ID("erp_hook")}, "/console/webhooks/:id/secret": {s.ID("erp_hook")}, "/console/webhooks/:id/off": {s.ID("erp_hook")},
		"/console/webhooks/:id/missed": {s.ID("erp_hook")}, "/console/webhooks/:id/delete": {s.ID("erp_hook")},
		"/console/webhooks/:id/deliveries": {s.ID("erp_hook"), s.ID("erp_hook") + "?status=failed"}, "/console/webhooks/:id/charts": {s.ID("erp_hook"), s.ID("erp_hook") + "?time=30d"},
		"/console/deliveries": {"", "?response=none", "?integration=" + s.ID("erp")}, "/console/deliveries/:id": full.deliveries, "/console/deliveries/redeliver-matching": {"?status=failed"},
		"/console/charts/deliveries": {"?time=24h", "?time=30d"}, "/console/work-orders/assign": {"?" + many}, "/console/work-orders/due": {"?" + many}, "/console/work-orders/priority": {"?" + many},
		"/console/work-orders/count": {""}, "/console/work-orders/load": {""}, "/console/stuck": {""}, "/console/work-orders/new": {"", "?q=a", "?below=" + s.ID("hvac"), "?node=" + s.ID("ahu1")},
		"/console/work-orders/:id/edit": {full.record}, "/console/work-orders/:id/answers": {planned},
		"/console/sign-in": {"-"}, "/console/forgotten": {"-"}, "/console/invite/:token": {"-" + full.invitation}, "/console/reset/:token": {"-" + full.reset},
	}
	noPages := map[string]string{"/": "redirects to /console", "/console/log.csv": "a download", "/console/work-orders.csv": "a download", "/console/notices/count": "a part of a page"}
	ann, visitor := scale{s.SignedIn("ann"), t}, scale{s.NewVisitor(), t}
	for _, route := range s.Console.Routes() {
		if route.Method != http.MethodGet || noPages[route.Path] != "" {
			continue
		}
		if tested[route.Path] == nil {
			t.Errorf("%s is not weighed", route.Path)
		}
		for _, at := range tested[route.Path] {
			who := ann
			at, public := strings.CutPrefix(at, "-")
			if public {
				who = visitor
			}
			id, query, _ := strings.Cut(at, "?")
			path := strings.NewReplacer(":id", id, ":token", id).Replace(route.Path)
			if query != "" {
				path += "?" + query
			}
			page, files, requests := who.visit(path)
			t.Logf("%-70s %6d bytes, first visit %6d in %d requests", path, page, page+files, requests)
			if page > maxPage || page+files > maxFirstVisit || requests > maxRequests {
				t.Errorf("%s weighs %d bytes, %d on the first visit in %d requests", path, page, page+files, requests)
			}
		}
	}
}

// fullTables are the records of fillTables.
type fullTables struct {
	record, job       string
	feedback          string
	deliveries        []string
	invitation, reset string
}

// fillTables fills the tables of every page as a busy customer would: a full page of each
// list, with content that differs from row to row.
func fillTables(t *testing.T, s *consoletest.Site) fullTables {
	t.Helper()
	acme := s.Acme.OrganizationID
	s.Exec(`UPDATE plans SET integrations = 1000`)
	// Ids as random as real ones.
	s.Exec(`CREATE FUNCTION random_id(prefix text, n integer) RETURNS text LANGUAGE sql IMMUTABLE AS
		$$ SELECT prefix || '_01' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + (get_byte(sha256((prefix || n)::bytea), i) & 31), 1), '') FROM generate_series(1, 24) i $$`)
	s.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
		SELECT random_id('idn', n), $1, CASE WHEN n <= 100 THEN 'person' ELSE 'integration' END, initcap(substr(md5(n::text), 1, 7)) || ' ' || initcap(substr(md5(n || 'x'), 1, 9)), now(), now()
		FROM generate_series(1, 150) n`, acme)
	s.Exec(`INSERT INTO people (id, organization_id, email, folded_email) SELECT random_id('idn', n), $1, e, e FROM (SELECT n, substr(md5(n::text), 1, 7) || '.' || substr(md5(n || 'x'), 1, 9) || '@acme.example.com' AS e FROM generate_series(1, 100) n) people`, acme)
	s.Exec(`INSERT INTO integrations (id, organization_id, client_id, secret_hash, scopes)
		SELECT random_id('idn', n), $1, 'cli_' || n, secret_hash, scopes FROM generate_series(101, 150) n, (SELECT secret_hash, scopes FROM integrations WHERE id = $2) i`, acme, s.ID("erp"))
	s.Exec(`INSERT INTO rate_counters (subject, window_start, calls) SELECT random_id('idn', n), '2026-03-02T11:00:00Z'::timestamptz - n * interval '1 hour', n FROM generate_series(101, 150) n`)
	s.Exec(`INSERT INTO webhooks (id, organization_id, integration_id, slot, url, events, secret_sealed, created_at, enabled_since, enabled, off_at, off_reason)
		SELECT random_id('whk', n * 5 + p), $1, CASE WHEN n = 100 THEN $2 ELSE random_id('idn', n) END, p, 'https://events-' || md5(n::text) || '.example.com/receive/' || p, events, secret_sealed, now(), now(),
			n % 2 = 0, CASE WHEN n % 2 = 1 THEN now() END, CASE WHEN n % 2 = 1 THEN 'A delivery failed for good and none succeeded for 3 days.' END
		FROM generate_series(100, 130) n, generate_series(2, 5) p, (SELECT events, secret_sealed FROM webhooks WHERE id = $3) w`, acme, s.ID("erp"), s.ID("erp_hook"))
	s.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT random_id('eqp', n), $1, 'equipment', $2, 'Air handling unit ' || upper(substr(md5(n::text), 1, 6)), now(), now() FROM generate_series(1, 300) n`, acme, s.ID("hvac"))
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		SELECT random_id('eqp', n), $1, definition_id, organization_id FROM generate_series(1, 300) n, (SELECT definition_id, organization_id FROM assignments WHERE identity_id = $1 LIMIT 1) a`, s.ID("erp"))
	s.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) SELECT $2, random_id('idn', n), $1 FROM generate_series(1, 60) n`, acme, s.ID("crew"))
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) SELECT random_id('eqp', n), $2, $3, $1 FROM generate_series(1, 300) n`, acme, s.ID("crew"), s.ID("reading"))
	s.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at) SELECT random_id('idn', n), $1, 'team', 'Team ' || md5(n::text), now(), now() FROM generate_series(200, 260) n`, acme)
	s.Exec(`INSERT INTO forms (id, organization_id, name, created_at, changed_at) SELECT random_id('frm', n), $1, 'Form ' || md5(n::text), now(), now() FROM generate_series(1, 60) n`, acme)
	s.Exec(`INSERT INTO questions (id, form_id, position, label, type, required) SELECT random_id('qst', n), $1, n, 'Is part ' || md5(n::text) || ' in order?', 'text', n % 2 = 0 FROM generate_series(100, 160) n`, s.ID("inspection"))
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) SELECT $1, random_id('idn', n), $2, $3 FROM generate_series(1, 150) n`, s.ID("hq"), s.ID("full"), acme)
	var shown []string
	for i := range 10 {
		shown = append(shown, s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: fmt.Sprintf("Replace the filter %d of unit %x", i, i*7919), Assignees: []string{s.ID("bob")},
			FormID: new(s.ID("inspection")),
		})))
	}
	s.Exec(`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, created_at)
		SELECT $1, CASE WHEN n % 3 = 0 THEN random_id('idn', n % 150 + 1) ELSE random_id('wo', n) END, id, name, 'work_order.updated', '2026-03-02T12:00:00Z'::timestamptz - n * interval '97 seconds'
		FROM generate_series(0, 299) n JOIN identities ON id = random_id('idn', n % 150 + 1) ORDER BY n`, acme)
	s.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail, read_at)
		SELECT $1, $2, 'work_order.assigned', ($3::text[])[1 + n % 10], '2026-03-02T12:00:00Z'::timestamptz - n * interval '89 seconds', 'inbox', CASE WHEN n % 2 = 0 THEN now() END
		FROM generate_series(0, 299) n`, acme, s.ID("ann"), shown)
	s.Exec(`INSERT INTO sessions (token_hash, id, person_id, method, created_at, seen_at, network, user_agent)
		SELECT sha256(n::text::bytea), random_id('ses', n), $1, 'password', at, at, '198.51.100.' || n, 'Mozilla/5.0 (X11; Linux x86_64; rv:' || 100 + n || '.0) Gecko/20100101 Firefox/' || 100 + n || '.0'
		FROM generate_series(0, 29) n, LATERAL (SELECT '2026-03-02T12:00:00Z'::timestamptz - n * interval '67 seconds' AS at) x`, s.ID("ann"))
	plant := func(status models.DeliveryStatus, response, n int) {
		for i := range n {
			s.PlantDeliveries("erp_hook", shown[i%len(shown)], models.AllEventTypes[i%6], status, response, 1, servicetest.Start.Add(-time.Duration(i*211)*time.Second))
		}
	}
	plant(models.DeliveryDelivered, 204, 60)
	plant(models.DeliveryFailed, 503, 60)
	plant(models.DeliveryFailed, 0, 60)
	s.Exec(`INSERT INTO feedback (id, organization_id, inventory_id, subject, description, external_id, status, created_by, created_at, changed_at)
		SELECT random_id('iss', n), $1, random_id('eqp', n), 'Something is wrong with ' || md5(n::text), repeat(md5(n::text) || ' ', 100), 'DESK-' || n, 'open', random_id('idn', n), at, at
		FROM (SELECT n, '2026-03-02T12:00:00Z'::timestamptz - n * interval '83 seconds' AS at FROM generate_series(1, 100) n) x`, acme)
	full := fullTables{record: shown[0], job: busyWorkOrder(t, s), feedback: servicetest.Value[string](s.Fixture, `SELECT max(id) FROM feedback`)}
	failed := servicetest.Value[string](s.Fixture, `SELECT id FROM deliveries WHERE status = 'failed' AND last_status = 503 ORDER BY id DESC LIMIT 1`)
	s.Exec(`DELETE FROM attempts WHERE delivery_id = $1`, failed)
	s.Exec(`INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, remote_ip, response_body)
		SELECT $1, n, '2026-03-02T11:00:00Z'::timestamptz + n * interval '1237 seconds', n * 31, 503, '203.0.113.7', convert_to(repeat('<p>The service is not available. Try again later, or ask for help.</p>' || chr(10), 40) || md5(n::text), 'UTF8')
		FROM generate_series(1, 8) n`, failed)
	s.Exec(`UPDATE deliveries SET attempts = 8 WHERE id = $1`, failed)
	full.deliveries = []string{failed, servicetest.Value[string](s.Fixture, `SELECT id FROM deliveries WHERE status = 'delivered' ORDER BY id DESC LIMIT 1`)}
	s.Exec(`INSERT INTO delivery_hours SELECT (jsonb_populate_record(NULL::delivery_hours, jsonb_object_agg(a.attname, (n * 7919 + a.attnum * 104729) % 500)
			|| jsonb_build_object('webhook_id', $1::text, 'hour', '2026-03-02T12:00:00Z'::timestamptz - n * interval '1 hour'))).*
		FROM generate_series(0, 719) n, pg_attribute a WHERE a.attrelid = 'delivery_hours'::regclass AND a.attnum > 2 AND NOT a.attisdropped GROUP BY n`, s.ID("erp_hook"))
	v := s.SignedIn("ann")
	link := func(path string, form url.Values) string {
		found := linkOf(t, s, v.Post(path, v.Get("/console/people/new").Form("email", form.Get("email"))).Want(http.StatusOK).Body)
		return found[strings.LastIndex(found, "/")+1:]
	}
	full.invitation = link("/console/people", url.Values{"email": {"new@acme.example.com"}})
	full.reset = link("/console/people/"+s.ID("bob")+"/link", nil)
	return full
}

// busyWorkOrder returns a work order with a form, a hundred people and a full page of history,
// at a node with more people than one page offers.
func busyWorkOrder(t *testing.T, s *consoletest.Site) string {
	t.Helper()
	id, _ := planned(t, s)
	answer(t, s, id)
	s.Exec(`UPDATE work_orders SET description = (SELECT string_agg(md5(n::text), ' ') FROM generate_series(1, 100) n) WHERE id = $1`, id)
	s.Exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position) SELECT $1, random_id('idn', n), 'worker', 10 + n FROM generate_series(1, 40) n`, id)
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		SELECT $1, random_id('idn', n), definition_id, organization_id FROM generate_series(1, 150) n, (SELECT definition_id, organization_id FROM assignments WHERE identity_id = $2 LIMIT 1) a`, s.ID("hvac"), s.ID("bob"))
	for i := range 40 {
		s.Must(s.Records.UpdateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, records.WorkOrderPatch{
			Title:    records.Sent[string]{Value: fmt.Sprintf("Replace the belt %x of unit %x", i*7919, i*104729), Set: true},
			Priority: records.Sent[models.Priority]{Value: models.Priorities[i%4], Set: true},
		}))
	}
	return id
}
