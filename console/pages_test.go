package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
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
