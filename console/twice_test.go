package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
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

// logged counts what forms did: each has a Log Record.
// logged counts the writes in the logs, once if a service company's log has them too.
func logged(s *consoletest.Site) int {
	return servicetest.Value[int](s.Fixture, `SELECT count(*) FROM log l
		WHERE NOT EXISTS (SELECT FROM work_orders w WHERE w.id = l.record_id AND w.organization_id <> l.organization_id)`)
}

// harmless are the routes whose form may act twice: the second time has no effect. A
// person who signs in twice has two sessions.
var harmless = []string{
	"/console/sign-in", "/console/sign-in/organization", "/console/sign-in/again", "/console/sign-out", "/console/people/openid", "/console/notices/read", "/console/notices/:id/open", "/console/work-orders/:id/seen", "/console/feedback/:id/seen",
	"/console/account/sessions/end-others", "/console/account/sessions/:id/end",
}

// A double click on the button of any form acts once. A route that is in no list fails the
// test.
func TestADoubleClickActsOnce(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	mailing, withMail := s.Serve(s.NewInstance(servicetest.Mails))
	record := newRecord(t, s)
	dispatch(t, s, "erp_hook", responding(http.StatusInternalServerError, ""))
	delivery := servicetest.Value[string](s.Fixture, `SELECT id FROM all_deliveries WHERE webhook_id = $1`, s.ID("erp_hook"))
	s.PlantDeliveries("erp_hook", record, models.EventWorkOrderUpdated, models.DeliveryFailed, http.StatusInternalServerError, 3, s.Clock.Now())
	erp, reader, hook := "/console/integrations/"+s.ID("erp"), "/console/integrations/"+s.ID("reader"), "/console/webhooks/"+s.ID("erp_hook")
	job, reviewed := "/console/work-orders/"+record, "/console/work-orders/"+inReview(t, s, "ann")
	customers := "/console/work-orders/" + incoming(t, s)
	shift, err := s.People.CreateTeam(t.Context(), s.Viewer("ann"), store.NoKey, s.Acme.OrganizationID, "Shift")
	if err != nil {
		t.Fatal(err)
	}
	bob, team, annex := "/console/people/"+s.ID("bob"), "/console/teams/"+shift.ID, "/console/inventory/"+s.ID("annex")
	mast := "/console/inventory/" + s.ID("mast")
	tried := map[string]bool{"/console/forgotten": true, "/console/invite/:token": true, "/console/reset/:token": true} // below
	for _, route := range harmless {
		tried[route] = true
	}
	answered := newRecord(t, s)
	s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ('https://login.example.com', 'ann', $1, now())`, s.ID("ann"))
	v := s.SignedIn("ann")
	feedback := "/console/feedback/" + newFeedback(t, s)
	for _, form := range []struct {
		route, from, to string
		fields          []string
		status          int
	}{
		{"/console/account", "/console/account", "", []string{"name", "Ann Moss", "time_zone", "UTC"}, http.StatusSeeOther},
		{"/console/people", "/console/people/new", "/console/people", []string{"email", "nia@acme.example.com"}, http.StatusOK},
		{"/console/people/:id", bob, "", []string{"definition", s.ID("org_incoming"), "confirmed", s.Email("bob")}, http.StatusSeeOther},
		{"/console/people/:id/email", bob, bob + "/email", []string{"email", "bob.two@acme.example.com"}, http.StatusSeeOther},
		{"/console/people/:id/ways-in", bob + "/ways-in", "", nil, http.StatusSeeOther},
		{"/console/account/openid/unlink", "/console/account", "/console/account/openid/unlink", []string{"issuer", "https://login.example.com", "subject", "ann"}, http.StatusSeeOther},
		{"/console/people/:id/link", bob, bob + "/link", nil, http.StatusOK},
		{"/console/people/:id/deactivate", bob + "/deactivate", "", nil, http.StatusSeeOther},
		{"/console/people/:id/activate", bob, bob + "/activate", nil, http.StatusSeeOther},
		{"/console/work-orders", "/console/work-orders/new?node=" + s.ID("ahu1"), "/console/work-orders", []string{"title", "Twice", "assignees", s.ID("cat")}, http.StatusSeeOther},
		{"/console/feedback", "/console/feedback/new?node=AHU-1", "/console/feedback", []string{"subject", "It leaks"}, http.StatusSeeOther},
		{"/console/feedback/:id/resolve", feedback, feedback + "/resolve", nil, http.StatusSeeOther},
		{"/console/people/definitions/edit", "/console/people/definitions/edit?on=places", "", []string{"name", "Twice"}, http.StatusSeeOther},
		{"/console/forms", "/console/forms/new", "/console/forms", []string{"name", "Twice"}, http.StatusSeeOther},
		{"/console/forms/:id/edit", "/console/forms/" + s.ID("inspection") + "/edit", "", []string{"name", "Twice"}, http.StatusSeeOther},
		{"/console/forms/:id/question", "/console/forms/" + s.ID("inspection") + "/question", "", []string{"label", "Twice", "type", "text"}, http.StatusSeeOther},
		{"/console/teams", "/console/teams/new", "/console/teams", []string{"name", "Twice"}, http.StatusSeeOther},
		{"/console/teams/:id", team, "", []string{"name", "Day shift"}, http.StatusSeeOther},
		{"/console/teams/:id/members", team + "/members", "", []string{"person", s.ID("eve")}, http.StatusSeeOther},
		{"/console/teams/:id/remove", team + "/remove?member=" + s.ID("eve"), "", nil, http.StatusSeeOther},
		{"/console/teams/:id/delete", team + "/delete", "", nil, http.StatusSeeOther},
		{"/console/service-companies/:id/end", "/console/service-companies/" + s.ID("polar") + "/end", "", nil, http.StatusSeeOther},
		{"/console/work-orders/:id/edit", "/console/work-orders/" + answered + "/edit", "", []string{"title", "Twice"}, http.StatusSeeOther},
		{"/console/work-orders/:id/answers", "/console/work-orders/" + answered + "/answers", "", []string{"complete", "yes", "confirmed", "yes"}, http.StatusSeeOther},
		{"/console/integrations", "/console/integrations/new", "/console/integrations", []string{"name", "Twice", "scopes", "people:read"}, http.StatusOK},
		{"/console/integrations/:id", reader, "", []string{"name", "Other name", "scopes", "work_orders:read"}, http.StatusSeeOther},
		{"/console/integrations/:id/owners", erp, erp + "/owners", []string{"owners", s.ID("ann")}, http.StatusSeeOther},
		{"/console/integrations/:id/secret", erp + "/secret", "", []string{"overlap", "24"}, http.StatusOK},
		{"/console/integrations/:id/end-old-secret", erp, erp + "/end-old-secret", nil, http.StatusSeeOther},
		{"/console/integrations/:id/webhooks", erp + "/webhooks/new", erp + "/webhooks", []string{"url", "http://127.0.0.1:9/x", "events", "issue.created"}, http.StatusOK},
		{"/console/inventory/:id/assign", annex + "/assign", "", []string{"identity_id", "dan@acme.example.com", "definition_id", s.ID("reading")}, http.StatusSeeOther},
		{"/console/inventory/:id/unassign", annex + "/unassign?identity=" + s.ID("dan"), "", nil, http.StatusSeeOther},
		{"/console/integrations/:id/assign", reader + "/assign", "", []string{"node", s.ID("roof"), "definition_id", s.ID("reading")}, http.StatusSeeOther},
		{"/console/integrations/:id/unassign", reader + "/unassign?node=" + s.ID("hvac"), "", nil, http.StatusSeeOther},
		{"/console/inventory", "/console/inventory/new?node=" + s.ID("roof"), "/console/inventory", []string{"name", "Twice", "kind", "system"}, http.StatusSeeOther},
		{"/console/inventory/:id/several", annex + "/several", "", []string{"kind", "location", "lines", "Twice"}, http.StatusSeeOther},
		{"/console/inventory/:id/edit", mast + "/edit", "", []string{"name", "Twice"}, http.StatusSeeOther},
		{"/console/inventory/:id/move", mast + "/move", "", []string{"node", s.ID("annex")}, http.StatusSeeOther},
		{"/console/inventory/:id/retire", mast + "/retire", "", nil, http.StatusSeeOther},
		{"/console/inventory/:id/bring-back", mast, mast + "/bring-back", nil, http.StatusSeeOther},
		{"/console/integrations/:id/off", reader + "/off", "", nil, http.StatusSeeOther},
		{"/console/integrations/:id/on", reader, reader + "/on", nil, http.StatusSeeOther},
		{"/console/integrations/:id/delete", reader + "/delete", "", nil, http.StatusSeeOther},
		{"/console/webhooks/:id", hook, "", []string{"url", "http://127.0.0.1:9/other", "events", "work_order.created"}, http.StatusSeeOther},
		{"/console/webhooks/:id/secret", hook + "/secret", "", nil, http.StatusOK},
		{"/console/webhooks/:id/test", hook, hook + "/test", nil, 0}, // there is no worker
		{"/console/deliveries/:id/redeliver", "/console/deliveries/" + delivery, "/console/deliveries/" + delivery + "/redeliver", nil, http.StatusSeeOther},
		{"/console/deliveries/redeliver", "/console/deliveries", "/console/deliveries/redeliver", []string{"delivery", delivery}, http.StatusSeeOther},
		{"/console/deliveries/redeliver-matching", "/console/deliveries/redeliver-matching?status=retrying&webhook=" + s.ID("erp_hook"), "", nil, http.StatusSeeOther},
		{"/console/webhooks/:id/off", hook + "/off", "", []string{"reason", "Moving"}, http.StatusSeeOther},
		{"/console/webhooks/:id/on", hook + "/missed", hook + "/on", []string{"since", "2026-03-01T08:00"}, http.StatusSeeOther},
		{"/console/webhooks/:id/missed", hook + "/missed", "", []string{"since", "2026-03-01T08:00"}, http.StatusSeeOther},
		{"/console/webhooks/:id/delete", hook + "/delete", "", nil, http.StatusSeeOther},
		{"/console/work-orders/:id/assign", job + "/assign", "", []string{"identity", s.ID("dan"), "role", "worker"}, http.StatusSeeOther},
		{"/console/work-orders/assign", "/console/work-orders/assign?id=" + record, "", []string{"identity", s.ID("crew"), "role", "worker"}, http.StatusSeeOther},
		{"/console/work-orders/priority", "/console/work-orders/priority?id=" + record, "", []string{"priority", "high"}, http.StatusSeeOther},
		{"/console/work-orders/due", "/console/work-orders/due?id=" + record, "", []string{"target_date", "2026-08-03T10:00"}, http.StatusSeeOther},
		{"/console/work-orders/:id/unassign", job, job + "/unassign", []string{"identity", s.ID("dan")}, http.StatusSeeOther},
		{"/console/work-orders/:id/comments", job, job + "/comments", []string{"text", "Twice"}, http.StatusSeeOther},
		{"/console/feedback/:id/comments", feedback, feedback + "/comments", []string{"text", "Twice"}, http.StatusSeeOther},
		{"/console/work-orders/:id/remove-comment", job + "/remove-comment?comment=" + commentOn(t, s, "ann", record, "Once"), "", nil, http.StatusSeeOther},
		{"/console/feedback/:id/remove-comment", feedback + "/remove-comment?comment=" + commentOn(t, s, "ann", strings.TrimPrefix(feedback, "/console/feedback/"), "Once"), "", nil, http.StatusSeeOther},
		{"/console/work-orders/:id/start", job, job + "/start", nil, http.StatusSeeOther},
		{"/console/work-orders/:id/hold", job, job + "/hold", nil, http.StatusSeeOther},
		{"/console/work-orders/:id/resume", job, job + "/resume", nil, http.StatusSeeOther},
		{"/console/work-orders/:id/complete", job + "/complete", "", nil, http.StatusSeeOther},
		{"/console/work-orders/:id/review", reviewed, reviewed + "/review", []string{"decision", "send_back", "comment", "Loose"}, http.StatusSeeOther},
		{"/console/work-orders/:id/cancel", reviewed + "/cancel", "", []string{"reason", "Twice"}, http.StatusSeeOther},
		{"/console/work-orders/:id/return", customers + "/return", "", []string{"reason", "Twice"}, http.StatusSeeOther},
		{"/console/account/password", "/console/account", "/console/account/password", []string{"old_password", consoletest.Password, "password", "a good long password"}, http.StatusSeeOther},
	} {
		tried[form.route] = true
		values, before := v.Get(form.from).Want(http.StatusOK).Form(), logged(s)
		for i := 0; i < len(form.fields); i += 2 {
			values[form.fields[i]] = []string{form.fields[i+1]}
		}
		if form.to == "" {
			form.to = form.from
		} else {
			values.Del("etag") // of another form of the page
		}
		click := func() consoletest.Page { return v.Post(form.to, values) }
		for _, page := range atOnce(click, click) {
			if form.status != 0 && page.Status != form.status {
				t.Errorf("%s: the status is %d, want %d\n%s", form.route, page.Status, form.status, page.Body)
			}
		}
		if n := logged(s) - before; n != 1 {
			t.Errorf("%s acted %d times", form.route, n)
		}
		if strings.Contains(form.route, "redeliver") {
			dispatch(t, s, "erp_hook", responding(http.StatusInternalServerError, ""))
		}
	}
	for _, route := range s.Console.Routes() {
		if route.Method == http.MethodPost && !tried[route.Path] {
			t.Errorf("a double click on %s is not tried: list it", route.Path)
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

func wantStatuses(t *testing.T, pages []consoletest.Page, want ...int) {
	t.Helper()
	var got []int
	for _, page := range pages {
		got = append(got, page.Status)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the statuses are %v, want %v", got, want)
	}
}

// A double click in a browser makes one integration; with scripts its secret stays in view.
func TestADoubleClickInABrowser(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		b.SignIn("ann")
		b.Open("/console/integrations/new")
		b.Fill("name", "Twice")
		b.Choose("scopes", "people:read")
		b.Do(chromedp.DoubleClick(chromedp.CSS(`main button[type="submit"]`)))
		b.WantText("Client id and secret")
		s.WantRows(1, `identities WHERE name = 'Twice'`)
	})
}

// Two people who save the same record at once: the first one's change is saved, the other
// one is told who changed it, keeps what was entered, and saves it on purpose.
func TestTwoPeopleAtOnce(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	managers(t, s)
	grant(s, "cat", "integrations", "people", "incoming_work_orders")
	s.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, s.ID("manager"), s.ID("cat"))
	s.Exec(`UPDATE integrations SET owners = ARRAY[$1]`, s.ID("cat"))
	names, visitors := []string{"Ann Field", "Cat Rivers"}, []*consoletest.Visitor{s.SignedIn("ann"), s.SignedIn("cat")}
	for _, form := range []struct {
		path, field string
		// values are what ann and cat enter. On the page, chosen follows them.
		values []string
		chosen string
		others []string
	}{
		{"/console/integrations/" + s.ID("reader"), "name", []string{"Of Ann", "Of Cat"}, "", []string{"scopes", "people:read"}},
		{"/console/webhooks/" + s.ID("reader_hook"), "url", []string{"http://127.0.0.1:9/ann", "http://127.0.0.1:9/cat"}, "", []string{"events", "issue.created"}},
		{"/console/people/" + s.ID("bob"), "definition", []string{s.ID("org_incoming"), s.ID("org_nothing")}, " selected>", []string{"confirmed", s.Email("bob")}},
		{"/console/teams/" + s.ID("crew"), "name", []string{"Of Ann", "Of Cat"}, "", nil},
		{"/console/inventory/" + s.ID("hq") + "/assign?identity=" + s.ID("bob"), "definition_id", []string{s.ID("reading"), s.ID("creating")}, " selected>", nil},
	} {
		filled := func(page consoletest.Page, who int) url.Values {
			values := page.Form(form.others...)
			values.Set(form.field, form.values[who])
			return values
		}
		save := func(who int) func() consoletest.Page {
			values := filled(visitors[who].Get(form.path), who)
			return func() consoletest.Page { return visitors[who].Post(form.path, values) }
		}
		pages := atOnce(save(0), save(1))
		wantStatuses(t, pages, http.StatusSeeOther, http.StatusConflict)
		first, second := 0, 1
		if pages[0].Status == http.StatusConflict {
			first, second = 1, 0
		}
		stale := pages[second].Want(http.StatusConflict, names[first], "since you opened this page", `value="`+form.values[second]+`"`+form.chosen)
		visitors[second].Post(form.path, filled(stale, second)).Want(http.StatusSeeOther)
	}
}

// Two people who do the same thing at once: it is done once, and neither gets an error.
func TestTwoPeopleDoTheSameAtOnce(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	managers(t, s)
	s.Exec(`UPDATE integrations SET owners = ARRAY[$1, $2, $3]`, s.ID("ann"), s.ID("cat"), s.ID("bob"))
	reader, hook, bob := "/console/integrations/"+s.ID("reader"), "/console/webhooks/"+s.ID("reader_hook"), "/console/people/"+s.ID("bob")
	crew := "/console/teams/" + s.ID("crew")
	ann := s.SignedIn("ann")
	grant(s, "cat", "integrations", "people")
	cat := s.SignedIn("cat")
	for _, action := range []struct {
		from, to string
		statuses []int
	}{
		{hook + "/off", hook + "/off", []int{http.StatusSeeOther, http.StatusSeeOther}},
		{hook + "/missed", hook + "/on", []int{http.StatusSeeOther, http.StatusSeeOther}},
		{hook + "/delete", hook + "/delete", []int{http.StatusSeeOther, http.StatusNotFound}},
		{reader + "/off", reader + "/off", []int{http.StatusSeeOther, http.StatusSeeOther}},
		{reader, reader + "/on", []int{http.StatusSeeOther, http.StatusSeeOther}},
		{reader + "/delete", reader + "/delete", []int{http.StatusSeeOther, http.StatusNotFound}},
		{bob + "/deactivate", bob + "/deactivate", []int{http.StatusSeeOther, http.StatusConflict}},
		{crew + "/members", crew + "/members", []int{http.StatusSeeOther, http.StatusSeeOther}},
		{crew + "/remove?member=" + s.ID("eve"), crew + "/remove?member=" + s.ID("eve"), []int{http.StatusSeeOther, http.StatusNotFound}},
		{crew + "/delete", crew + "/delete", []int{http.StatusSeeOther, http.StatusNotFound}},
	} {
		before := logged(s)
		do := func(v *consoletest.Visitor) func() consoletest.Page {
			values := v.Get(action.from).Want(http.StatusOK).Form()
			values.Set("since", "2026-03-01T08:00")
			values.Set("person", s.ID("eve"))
			if !strings.HasSuffix(action.to, "/deactivate") {
				values.Del("etag") // of another form of the page
			}
			return func() consoletest.Page { return v.Post(action.to, values) }
		}
		t.Log(action.to)
		wantStatuses(t, atOnce(do(ann), do(cat)), action.statuses...)
		if n := logged(s) - before; n != 1 {
			t.Errorf("%s is logged %d times", action.to, n)
		}
	}
}
