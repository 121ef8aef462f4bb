package console_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// The forms of a page share a key, and each acts: pressing another button of a page that was
// loaded before does not pass for done.
func TestAKeyIsOfOneForm(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v, path := s.SignedIn("bob"), "/console/work-orders/"+newRecord(t, s, "bob")
	form := v.Get(path).Want(http.StatusOK).Form()
	v.Post(path+"/hold", form).Want(http.StatusSeeOther)
	servicetest.Expect(t, "sent twice, the form", v.Post(path+"/hold", form).Want(http.StatusSeeOther).Done(), "before")
	v.Post(path+"/complete", form).Want(http.StatusConflict, "Nothing was done", "put the work order on hold")
	v.Post(path+"/resume", v.Get(path).Form()).Want(http.StatusSeeOther)

	ann, person := s.SignedIn("ann"), "/console/people/"+s.ID("eve")
	shared := ann.Get(person).Form("definition", s.ID("org_incoming"), "confirmed", s.Email("eve"))
	ann.Post(person, shared).Want(http.StatusSeeOther)
	ann.Post(person+"/link", shared).Want(http.StatusOK, "Link for Eve Hill")
	// Another person with the same key is another form.
	invitation := ann.Get("/console/people/new").Form("email", "nia@acme.example.com")
	ann.Post("/console/people", invitation).Want(http.StatusOK)
	grant(s, "bob", "people")
	s.SignedIn("bob").Post("/console/people", invitation).Want(http.StatusOK, "Link for nia")
}

// Organizations that are read-only or have no API see what still works.
func TestPagesSayWhatStillWorks(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	const noAPI, readOnly = "Your plan does not include the API", "answering, completing and reviewing them still work"
	about := []string{"/console/integrations", "/console/integrations/" + s.ID("erp"), "/console/webhooks/" + s.ID("erp_hook"), "/console/deliveries"}
	others := []string{"/console", "/console/work-orders", "/console/inventory", "/console/people", "/console/log"}
	for _, path := range slices.Concat(about, others) {
		page := v.Get(path).Want(http.StatusOK)
		wantNot(t, page, noAPI)
		wantNot(t, page, readOnly)
	}
	s.Exec(`UPDATE organizations SET read_only = true`)
	s.Exec(`UPDATE plans SET api = false`)
	for _, path := range about {
		v.Get(path).Want(http.StatusOK, noAPI, readOnly)
	}
	for _, path := range others {
		wantNot(t, v.Get(path).Want(http.StatusOK, readOnly), noAPI)
	}
	v.Get("/console/integrations/new").Want(http.StatusOK, noAPI)
	// Without the Integrations permission no one reads about it.
	wantNot(t, s.SignedIn("bob").Get("/console/integrations").Want(http.StatusForbidden), noAPI)
}

var changedByAnn = regexp.MustCompile(`role="alert" tabindex="-1" autofocus>(?:<svg.*?</svg>)?<p>(?:<a [^>]*>)?<bdi>Ann Field</bdi>`)

// A form that was filled from an older state names the person who changed the record, and shows the present value next to
// each field that differs.
func TestAStaleFormShowsTheValuesOfNow(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	s.Exec(`UPDATE integrations SET owners = ARRAY[$1]`, s.ID("ann"))
	s.Exec(`UPDATE people SET organization_definition_id = $1 WHERE id = $2`, s.ID("org_nothing"), s.ID("dan"))
	// stale sends a form twice, filled from the same state.
	stale := func(page, path string, theirs, mine []string, now ...string) consoletest.Page {
		t.Helper()
		sent := v.Get(page).Want(http.StatusOK).Form(mine...)
		s.Clock.Advance(time.Second)
		v.Post(path, v.Get(page).Form(theirs...)).Want(http.StatusSeeOther)
		rejected := v.Post(path, sent).Want(http.StatusConflict, "since you opened this page")
		wantNow(t, rejected, now...)
		return rejected
	}
	order := "/work-orders/" + plannedWorkOrder(t, s) + "/edit"
	kept := []string{"title", "Theirs", "description", "First\r\nsecond", "priority", "none", "external_id", "", "target_date"}
	for path, form := range map[string]struct{ theirs, mine, now []string }{
		order: {
			append(kept, "2026-07-01T06:30"), []string{"title", "Mine", "description", "Mine too", "priority", "low", "external_id", "", "target_date", ""},
			[]string{"Theirs", "First\r\nsecond", "None", "2026-07-01T06:30"},
		},
		"/inventory/" + s.ID("roof") + "/edit": {
			[]string{"name", "Theirs", "description", "First\r\n<b>second"}, []string{"name", "Mine", "external_id", "R-2", "description", ""},
			[]string{"Theirs", "nothing", "First\n&lt;b&gt;second"},
		},
		"/people/definitions/edit?on=places&role=" + s.ID("reading"): {
			[]string{"name", "Theirs", "grants", "work_orders.read", "grants", "inventory.read", "below", "yes"}, []string{"name", "Theirs ", "grants", "inventory.read", "retired", "yes", "below", "yes"},
			[]string{"See the place and Read work orders", "nothing chosen"},
		},
		"/people/definitions/edit?role=" + s.ID("org_nothing"): {
			[]string{"name", "Theirs", "grants", "people", "retired", "yes"}, []string{"name", "Mine", "grants", "people"},
			[]string{"Theirs", "Who has it keeps it, and no one else gets it."},
		},
		"/forms/" + s.ID("inspection") + "/edit": {[]string{"name", "Theirs"}, []string{"name", "Mine"}, []string{"Theirs"}},
		"/forms/" + s.ID("inspection") + "/question?question=" + s.ID("q_state"): {
			[]string{"label", "State", "type", "multiple_choice", "options", "OK\r\nDirty"}, []string{"label", "State", "type", "single_choice", "options", "OK\r\nDirty\r\nTorn", "after", ""},
			[]string{"Any of", "OK\nDirty"},
		},
		"/people/" + s.ID("dan"): {nil, []string{"definition", s.ID("org_incoming")}, []string{"No organization permissions"}},
		"/webhooks/" + s.ID("reader_hook"): {
			[]string{"url", "http://127.0.0.1:9/theirs", "events", "issue.created"}, []string{"url", "http://127.0.0.1:9/mine", "events", "issue.created"}, []string{"http://127.0.0.1:9/theirs"},
		},
		"/teams/" + s.ID("crew"):          {[]string{"name", "Theirs"}, []string{"name", "Mine"}, []string{"Theirs"}},
		"/integrations/" + s.ID("reader"): {[]string{"name", "Theirs", "scopes", "people:read"}, []string{"name", "Theirs", "scopes", "issues:read", "organization_definition_id", ""}, []string{"people:read"}},
	} {
		path = "/console" + path
		if page := stale(path, path, form.theirs, form.mine, form.now...); !changedByAnn.MatchString(page.Body) {
			t.Errorf("%s does not name the person who changed it", path)
		}
	}
	reader := "/console/integrations/" + s.ID("reader")
	person, question := "/console/people/"+s.ID("dan"), "/console/forms/"+s.ID("inspection")+"/question"
	order, assigned := "/console"+order, "/console/inventory/"+s.ID("hq")+"/assign?identity="+s.ID("bob")
	stale(order, order, append(kept, ""), append(kept, "2026-07-01T06:30"), "nothing")
	stale(assigned, assigned, []string{"definition_id", s.ID("reading")}, []string{"definition_id", s.ID("creating")}, "Theirs (inventory: read; work orders: read)")
	stale(reader, reader+"/owners", nil, []string{"owners", s.ID("ann")}, "nothing chosen")
	stale(person, person+"/email", []string{"email", "theirs@example.com"}, []string{"email", "mine@example.com"}, "theirs@example.com")
	s.Exec(`UPDATE people SET admin = true WHERE id = $1`, s.ID("dan"))
	stale(person, person, []string{"definition", ""}, []string{"definition", "", "admin", "yes"}, "nothing chosen")
	stale(question, question, []string{"label", "Theirs", "type", "text", "options", ""}, []string{"label", "Mine", "type", "text", "options", "", "after", ""})
	// Sent again, a form is saved over the other change, on purpose.
	team := "/console/teams/" + s.ID("crew")
	mine := v.Get(team).Form("name", "Mine")
	s.Clock.Advance(time.Second)
	v.Post(team, v.Get(team).Form("name", "Hers")).Want(http.StatusSeeOther)
	v.Post(team, v.Post(team, mine).Want(http.StatusConflict).Form("name", "Mine")).Want(http.StatusSeeOther)
	v.Get(team).Want(http.StatusOK, `value="Mine"`)
}

// wantNow fails the test unless the page shows, next to its fields and in order, only these values of now.
func wantNow(t *testing.T, page consoletest.Page, want ...string) {
	t.Helper()
	var got []string
	for _, found := range regexp.MustCompile(`<p class="hint lines">Now: <bdi>([^<]*)</bdi></p>`).FindAllStringSubmatch(page.Body, -1) {
		got = append(got, found[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the values of now are %q, want %q", got, want)
	}
}

// A question that becomes one without choices does not lose them: the page rejects them next to their field, and keeps the input.
func TestChoicesAreNotDropped(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v, path := s.SignedIn("ann"), "/console/forms/"+s.ID("inspection")+"/question?question="+s.ID("q_state")
	for _, kind := range []models.QuestionType{models.QuestionText, models.QuestionInteger, models.QuestionDecimal} {
		v.Post(path, v.Get(path).Want(http.StatusOK, ">OK\nDirty</textarea>").Form("label", "Filter state", "type", string(kind), "options", "OK\r\nDirty")).
			Want(http.StatusUnprocessableEntity, `id="options-about"><p class="problem">Such an answer has no choices`, ">OK\nDirty</textarea>", `value="`+string(kind)+`" selected`)
	}
	v.Post(path, v.Get(path).Form("label", "Filter state", "type", "text")).Want(http.StatusSeeOther)
	s.WantRows(0, `question_options WHERE question_id = $1`, s.ID("q_state"))
}

func TestLinksGoByMail(t *testing.T) {
	t.Parallel()
	s := consoletest.On(t, servicetest.New(t, servicetest.Mails))
	v := s.SignedIn("ann")
	page := v.Post("/console/people", v.Get("/console/people/new").Form("email", "nia@acme.example.com")).Want(http.StatusSeeOther)
	if page.Done() != "link-sent" {
		t.Fatal(page.Location(), page.Done())
	}
	for _, email := range []string{"NIA@acme.example.com", "no.one@acme.example.com", s.Email("bob")} {
		anonymous := s.NewVisitor()
		anonymous.Post("/console/forgotten", anonymous.Get("/console/forgotten").Form("email", email)).Want(http.StatusOK, "If someone can sign in with this e-mail address")
		s.Console.Wait()
	}
	links := s.MailedLinks()
	if len(links) != 3 {
		t.Fatalf("%d e-mails", len(links))
	}
	path := links[0].URL("")
	nia := s.NewVisitor()
	nia.Post(path, nia.Get(path).Want(http.StatusOK, "You were invited as <bdi>nia@acme.example.com</bdi>").Form("name", "Nia", "password", "a good long password")).Want(http.StatusSeeOther)
	nia.Get("/console").Want(http.StatusOK, "Nia")
}

// Where links are mailed, someone who manages people never sees one. An administrator may.
func TestOnlyAdministratorsSeeLinksThatAreMailed(t *testing.T) {
	t.Parallel()
	s := consoletest.On(t, servicetest.New(t, servicetest.Mails))
	grant(s, "bob", "people")
	v, cat := s.SignedIn("bob"), "/console/people/"+s.ID("cat")
	shown := v.Get(cat).Want(http.StatusOK, "Send a link")
	wantNot(t, shown, "Show a link")
	for _, page := range []consoletest.Page{
		v.Post(cat+"/link", shown.Form()).Want(http.StatusSeeOther),
		v.Post(cat+"/link", v.Get(cat).Form("show", "yes")).Want(http.StatusForbidden, "Only administrators see links"),
		v.Post("/console/people", v.Get("/console/people/new").Form("email", "nia@acme.example.com", "show", "yes")),
	} {
		if strings.Contains(page.Body+page.Location(), "/console/reset/") || strings.Contains(page.Body+page.Location(), "/console/invite/") {
			t.Errorf("someone below administrator sees a link: %s%s", page.Location(), page.Body)
		}
	}
	before := len(s.MailedLinks())
	ann := s.SignedIn("ann")
	linkOf(t, s, ann.Post(cat+"/link", ann.Get(cat).Want(http.StatusOK, "Send a link", "Show a link").Form("show", "yes")).Want(http.StatusOK, "Pass this link on").Body)
	if after := len(s.MailedLinks()); before != 2 || after != 0 {
		t.Errorf("%d links are mailed and then %d, want 2 and none", before, after)
	}
}

// Managers are told why no link is made, and keep what they entered. TestWhatLimitsCount has the rest of these limits.
func TestLinksAreLimited(t *testing.T) {
	t.Parallel()
	s := consoletest.On(t, servicetest.New(t, servicetest.Mails))
	v, cat := s.SignedIn("ann"), "/console/people/"+s.ID("cat")
	for range 3 {
		v.Post(cat+"/link", v.Get(cat).Form()).Want(http.StatusSeeOther)
	}
	v.Post(cat+"/link", v.Get(cat).Form()).Want(http.StatusTooManyRequests, "At most 3 links an hour are made for Cat")
	s.Exec(`UPDATE rate_counters SET calls = 500 WHERE calls = 3 AND subject LIKE 'sign-in %'`) // Cat's and the organization's
	v.Post("/console/people", v.Get("/console/people/new").Form("email", "nia@acme.example.com")).
		Want(http.StatusTooManyRequests, "At most 500 links an hour are made for Acme Facilities", `value="nia@acme.example.com"`)
}

func TestTheLogIsFiltered(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	erp, ann := s.Viewer("ann"), s.ID("ann")
	for range 3 {
		if _, err := s.Integrations.RenewIntegrationSecret(t.Context(), erp, store.NoKey, s.ID("erp"), 0); err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(24 * 60 * 60 * 1e9)
	}
	grant(s, "bob", "integrations")
	if _, err := s.Integrations.TurnIntegrationOff(t.Context(), s.Viewer("bob"), store.NoKey, s.ID("reader")); err != nil {
		t.Fatal(err)
	}
	v = s.SignedIn("ann")
	count := func(path string) int {
		return strings.Count(v.Get(path).Want(http.StatusOK).Body, `<td data-label="Who">`)
	}
	for path, want := range map[string]int{
		"/console/log": 4, "/console/log?what=integration": 4, "/console/log?what=integration.secret_renewed": 3, "/console/log?what=person": 0, "/console/log?what=integ": 0,
		"/console/log?who=" + ann: 3, "/console/log?who=ANN+f": 3, "/console/log?who=no+one+like+this": 0, "/console/log?who=" + s.ID("bob"): 1, "/console/log?record=" + s.ID("reader"): 1, "/console/log?record=nothing": 0,
		"/console/log?from=2026-03-03T00:00": 3, "/console/log?to=2026-03-03T00:00": 1, "/console/log?from=2026-03-03T00:00&to=2026-03-04T00:00": 1,
	} {
		if n := count(path); n != want {
			t.Errorf("%s shows %d entries, want %d", path, n, want)
		}
	}
	csv := v.Get("/console/log.csv?what=integration.turned_off").Want(http.StatusOK)
	if csv.Header.Get("Content-Type") != "text/csv; charset=utf-8" || strings.Count(csv.Body, "\r\n") != 2 || !strings.Contains(csv.Body, "Bob Stone,turned the integration off,integration.turned_off,"+s.ID("reader")+",Reader") {
		t.Errorf("the CSV is %s", csv.Body)
	}
}

func TestNoticesHaveWords(t *testing.T) {
	for _, kind := range models.AllNoticeKinds {
		if console.NoticeTexts[kind] == "" {
			t.Errorf("the notice %s has no sentence", kind)
		}
	}
}
