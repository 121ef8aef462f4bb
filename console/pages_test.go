package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

// Every page is accessible, fits every width, and breaks no policy, in light and dark.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.Browser(t)
	notify(s, "ann", "work_order.assigned", "webhook.turned_off")
	s.Exec(`UPDATE webhooks SET enabled = false, off_reason = 'The receiver responded 410 Gone.', off_at = now() WHERE id = $1`, s.ID("reader_hook"))
	for path, name := range map[string]string{"/console/sign-in": "sign-in", "/console/forgotten": "forgotten", "/console/invite/nothing": "link-gone"} {
		b.Open(path)
		b.Check(name)
	}
	b.SignIn("ann")
	for path, name := range map[string]string{
		"/console": "start", "/console/account": "account", "/console/people": "people", "/console/people/new": "people-new",
		"/console/people/" + s.ID("bob"): "person", "/console/people/" + s.ID("bob") + "/deactivate": "deactivate",
		"/console/log": "log", "/console/log?what=person": "log-empty", "/console/notices": "notices", "/console/nowhere": "not-found",
	} {
		b.Open(path)
		b.Check(name)
	}
}

// notify puts notices of the kinds into the inbox of a person of the fixture.
func notify(s *consoletest.Site, key string, kinds ...string) {
	for _, kind := range kinds {
		record := s.ID("reader_hook")
		s.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail) VALUES ($1, $2, $3, $4, now(), 'inbox')`,
			s.Acme.OrganizationID, s.ID(key), kind, record)
	}
}

func TestTheFrontPageLeadsToTheConsole(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.NewVisitor()
	if to := v.Get("/").Want(http.StatusFound).Location(); to != "/console" {
		t.Errorf("/ leads to %s", to)
	}
	if to := v.Get("/console").Want(http.StatusSeeOther).Location(); to != "/console/sign-in" {
		t.Errorf("/console leads to %s", to)
	}
	if to := v.Get("/console/people?q=a").Want(http.StatusSeeOther).Location(); to != "/console/sign-in?next=%2Fconsole%2Fpeople%3Fq%3Da" {
		t.Errorf("a page leads to %s", to)
	}
}

var currentEntry = regexp.MustCompile(`<a href="(/console[^"]*)" aria-current="(page|true)">`)

// The sidebar shows on each page, and on those below it, in which part of the console it is.
func TestTheSidebarShowsThePart(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusOK, "ok"))
	v := s.SignedIn("ann")
	ids := map[string]string{
		"integrations": s.ID("erp"), "webhooks": s.ID("erp_hook"), "people": s.ID("bob"),
		"deliveries": servicetest.Value[string](s.Fixture, `SELECT min(id) FROM all_deliveries`),
	}
	forVisitors := map[string]bool{"invite": true, "reset": true, "forgotten": true, "sign-in": true}
	parts := map[string]string{"webhooks": "integrations", "charts": "deliveries", "log.csv": ""}
	tried := 0
	for _, route := range s.Console.Routes() {
		inside, found := strings.CutPrefix(route.Path, "/console")
		topic, _, below := strings.Cut(strings.TrimPrefix(inside, "/"), "/")
		path := strings.Replace(route.Path, ":id", ids[topic], 1)
		page := consoletest.Page{}
		if found && route.Method == http.MethodGet && !forVisitors[topic] {
			page = v.Get(path)
		}
		if !strings.Contains(page.Body, `<div class="sidebar">`) {
			continue // a file or a redirect
		}
		part, other := parts[topic]
		if !other {
			part = topic
		}
		want := [2]string{strings.TrimSuffix("/console/"+part, "/"), "true"}
		if !below && part == topic {
			want[1] = "page"
		}
		marks := currentEntry.FindAllStringSubmatch(page.Body, -1) // the sidebar's and the menu's
		if len(marks) != 2 || [2]string(marks[0][1:]) != want || [2]string(marks[1][1:]) != want {
			t.Errorf("%s: the current entries are %v, want %v", path, marks, want)
		}
		tried++
	}
	if tried < 20 {
		t.Errorf("only %d pages were tried", tried)
	}
}
