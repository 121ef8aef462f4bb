package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

// atOnce sends forms at the same time and returns the responses in order.
func atOnce(send ...func() consoletest.Page) []consoletest.Page {
	pages := make([]consoletest.Page, len(send))
	var group sync.WaitGroup
	for i, s := range send {
		group.Go(func() { pages[i] = s() })
	}
	group.Wait()
	return pages
}

// logged counts the writes in the logs, once if a service company's log has them too.
func logged(s *consoletest.Site) int {
	return servicetest.Value[int](s.Fixture, `SELECT count(*) FROM log l
		WHERE NOT EXISTS (SELECT FROM work_orders w WHERE w.id = l.record_id AND w.organization_id <> l.organization_id)`)
}

// harmless are the routes whose form may act twice: the second time has no effect. A
// person who signs in twice has two sessions.
var harmless = []string{
	"/console/sign-in/again", "/console/people/openid", "/console/notices/read", "/console/notices/:id/open", "/console/work-orders/:id/seen", "/console/feedback/:id/seen",
	"/console/account/sessions/end-others", "/console/account/sessions/:id/end", "/console/sign-out",
}

// wantKeys fails the test if a form of the page has no key, without which a double click acts twice.
func wantKeys(t *testing.T, path string, page consoletest.Page) {
	t.Helper()
	for _, form := range formInPage.FindAllString(page.Body, -1) {
		if !strings.Contains(form, `method="post"`) || strings.Contains(form, `name="form_key"`) {
			continue
		}
		if actions := actionsIn(form); len(actions) == 0 || !slices.Contains(harmless, caseOf(t, http.MethodPost, actions[0]).path) {
			t.Errorf("the page %s has a form without a key: %s", path, form)
		}
	}
}

// A double click on the button of any form acts once: every form has a key, and every route takes it.
func TestADoubleClickActsOnce(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	mailing, withMail := s.Serve(s.NewInstance(servicetest.Mails))
	dispatch(t, s.Site, "erp_hook", responding(http.StatusInternalServerError, ""))
	s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ('https://login.example.com', 'ann', $1, now())`, s.ID("ann"))
	job := newRecord(t, s.Site) // of ann
	// In place of what routeCases have, so that the form changes something. "" is the id.
	changes := map[string]map[string]string{
		"/console/account/password":         {"old_password": consoletest.Password},
		"/console/account/openid/unlink":    {"issuer": "https://login.example.com", "subject": "ann"},
		"/console/people":                   {"team": ""},
		"/console/people/:id/deactivate":    {"replacement": ""},
		"/console/people/definitions/edit":  {"name": "Twice"},
		"/console/forms/:id/edit":           {"name": "Twice"},
		"/console/forms/:id/question":       {"label": "Twice"},
		"/console/work-orders/:id/answers":  {"": newRecord(t, s.Site), "complete": "yes", "confirmed": "yes"},
		"/console/work-orders/:id/assign":   {"identity": s.ID("cat")},
		"/console/work-orders/:id/start":    {"": job},
		"/console/work-orders/:id/complete": {"": job},
		"/console/work-orders/:id/review":   {"": inReview(t, s.Site, "ann")},
		"/console/work-orders/:id/return":   {"": incoming(t, s.Site)},
		"/console/integrations/:id":         {"": s.ID("reader")}, // whose scopes these are
		"/console/integrations/:id/owners":  {"owners": s.ID("ann")},
		"/console/webhooks/:id/on":          {"send": ""},
	}
	v := s.SignedIn("ann")
	for _, c := range routeCases {
		if c.method == http.MethodGet {
			page := v.Get(s.pathOf(c, nil))
			if page.Status != http.StatusOK && !c.anyone && !notPages.MatchString(c.path) {
				t.Errorf("%s has the status %d", c.path, page.Status)
			}
			wantKeys(t, c.path, page)
		}
	}
	for i, c := range routeCases {
		if c.method != http.MethodPost || c.anyone || slices.Contains(harmless, c.path) {
			continue
		}
		path, form := s.request(c, func(id *string, _, form url.Values) {
			for name, value := range changes[c.path] {
				if name == "" {
					*id = value
				} else {
					form.Set(name, value)
				}
			}
			form.Set("form_key", strconv.Itoa(i))
		})
		before := logged(s.Site)
		click := func() consoletest.Page { return v.Post(path, form) }
		for _, page := range atOnce(click, click) {
			if page.Status >= http.StatusBadRequest {
				t.Errorf("%s: the status is %d\n%s", c, page.Status, page.Body)
			}
		}
		if n := logged(s.Site) - before; n != 1 {
			t.Errorf("%s acted %d times", c, n)
		}
		if strings.Contains(c.path, "redeliver") || strings.HasSuffix(c.path, "/missed") {
			dispatch(t, s.Site, "erp_hook", responding(http.StatusInternalServerError, ""))
		}
	}

	visitor := s.NewVisitor().At(withMail)
	values := visitor.Get("/console/forgotten").Want(http.StatusOK).Form("email", s.Email("bob"))
	click := func() consoletest.Page { return visitor.Post("/console/forgotten", values) }
	atOnce(click, click)
	mailing.Wait()
	if n := len(s.MailedLinks()); n != 1 {
		t.Errorf("%d e-mails are sent to someone who forgot the password", n)
	}
}

// A double click in a browser makes one integration, whose secret stays in view.
func TestADoubleClickInABrowser(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.Browser(t)
	b.SignIn("ann", "/console/integrations/new")
	b.Fill("name", "Twice")
	b.Choose("scopes", "people:read")
	b.Do(chromedp.DoubleClick(chromedp.CSS(`main button[type="submit"]`)))
	b.WantText("Client id and secret")
	s.WantRows(1, `identities WHERE name = 'Twice'`)
}
