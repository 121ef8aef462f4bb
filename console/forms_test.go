package console_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/mail"
	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// A form that is sent twice, after each other or at a time, acts once; a secret is only in
// the first response.
func TestAFormActsOnce(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	form := v.Get("/console/people/new").Want(http.StatusOK).Form("email", "nia@acme.example.com")
	first := v.Post("/console/people", form).Want(http.StatusOK)
	link := linkOf(t, s, first.Body)
	second := v.Post("/console/people", form).Want(http.StatusOK, "This was shown once", "Make a new link")
	if strings.Contains(second.Body, link) {
		t.Error("the link is shown again")
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM sign_in_links`); n != 1 {
		t.Errorf("%d links", n)
	}
	form = v.Get("/console/people/new").Form("email", "max@acme.example.com")
	var group sync.WaitGroup
	statuses := make(chan int, 4)
	for range 4 {
		group.Go(func() { statuses <- v.Post("/console/people", form).Status })
	}
	group.Wait()
	close(statuses)
	for status := range statuses {
		if status != http.StatusOK {
			t.Errorf("a double click gets %d", status)
		}
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM log WHERE action = 'person.invited'`); n != 2 {
		t.Errorf("%d invitations", n)
	}
	// Another person with the same key is another form.
	grant(s, "bob", "people")
	s.SignedIn("bob").Post("/console/people", form).Want(http.StatusOK)
}

// The forms of a page share a key, and each acts: pressing another button of a page that was
// loaded before does not pass for done.
func TestAKeyIsOfOneForm(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	result, err := s.CreateWorkOrder(t.Context(), s.Actor("erp"), service.Call{}, service.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Replace the filter", Assignees: []string{s.ID("bob")},
	})
	if err != nil {
		t.Fatal(err)
	}
	v, path := s.SignedIn("bob"), "/console/work-orders/"+result.RecordID
	form := v.Get(path).Want(http.StatusOK).Form()
	v.Post(path+"/hold", form).Want(http.StatusSeeOther)
	if to := v.Post(path+"/hold", form).Want(http.StatusSeeOther).Location(); !strings.HasSuffix(to, "?done=before") {
		t.Errorf("sent twice, the form leads to %s", to)
	}
	v.Post(path+"/complete", form).Want(http.StatusConflict, "Nothing was done", "put the work order on hold")
	v.Post(path+"/resume", v.Get(path).Form()).Want(http.StatusSeeOther)

	ann, person := s.SignedIn("ann"), "/console/people/"+s.ID("eve")
	shared := ann.Get(person).Form("definition", s.ID("org_incoming"))
	ann.Post(person, shared).Want(http.StatusSeeOther)
	ann.Post(person+"/link", shared).Want(http.StatusOK, "Link for Eve Hill")
}

// Organizations that are read-only or have no API see what still works.
func TestPagesSayWhatStillWorks(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	const noAPI, readOnly = "Your plan does not include the API", "Answering, completing and reviewing still work"
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
	// Without the permission Integrations no one reads about it.
	wantNot(t, s.SignedIn("bob").Get("/console/integrations").Want(http.StatusForbidden), noAPI)
}

// A form that was filled from an older state says who changed what and keeps the input.
func TestAStaleFormSaysWhoChangedWhat(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	grant(s, "eve", "log_records")
	v := s.SignedIn("ann")
	path := "/console/people/" + s.ID("bob")
	form := v.Get(path).Want(http.StatusOK).Form("definition", s.ID("org_incoming"))
	other := s.ID("org_nothing")
	grant(s, "cat", "people")
	if _, err := s.ChangePersonAccess(t.Context(), s.Viewer("cat"), s.ID("bob"), false, &other); err != nil {
		t.Fatal(err)
	}
	page := v.Post(path, form).Want(http.StatusConflict, "<bdi>Cat Rivers</bdi> changed the person&#39;s permissions",
		`<option value="`+s.ID("org_incoming")+`" selected>`)
	definition := func() string {
		return servicetest.Value[string](s.Fixture, `SELECT organization_definition_id FROM people WHERE id = $1`, s.ID("bob"))
	}
	if definition() != other {
		t.Error("the change was overwritten")
	}
	// Sent once more, on purpose, it is saved.
	v.Post(path, page.Form("definition", s.ID("org_incoming"))).Want(http.StatusSeeOther)
	if definition() != s.ID("org_incoming") {
		t.Error("the form cannot be sent again")
	}
}

// mails keeps the e-mails that are sent.
type mails struct {
	mu   sync.Mutex
	sent []mail.Message
	fail error
}

func (m *mails) Send(_ context.Context, message mail.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil {
		m.sent = append(m.sent, message)
	}
	return m.fail
}

func TestLinksGoByMail(t *testing.T) {
	t.Parallel()
	sent := &mails{}
	s := consoletest.NewSite(t, func(o *console.Options) { o.Mailer = sent })
	v := s.SignedIn("ann")
	page := v.Post("/console/people", v.Get("/console/people/new").Form("email", "nia@acme.example.com")).Want(http.StatusSeeOther)
	if !strings.HasSuffix(page.Location(), "?done=link-sent") || len(sent.sent) != 1 {
		t.Fatalf("%s, %v", page.Location(), sent.sent)
	}
	for _, email := range []string{"NIA@acme.example.com", "no.one@acme.example.com", s.Email("bob")} {
		anonymous := s.NewVisitor()
		anonymous.Post("/console/forgotten", anonymous.Get("/console/forgotten").Form("email", email)).Want(http.StatusOK, "If someone can sign in with this e-mail address")
		s.Console.Wait()
	}
	if len(sent.sent) != 3 {
		t.Fatalf("%d e-mails", len(sent.sent))
	}
	for _, message := range sent.sent {
		if message.To.Email == "" || !strings.Contains(message.Text, s.URL+"/console/") || strings.Contains(message.Subject, "/") {
			t.Errorf("an e-mail is %+v", message)
		}
	}
	_, path, _ := strings.Cut(sent.sent[0].Text, s.URL)
	path, _, _ = strings.Cut(path, "\n")
	nia := s.NewVisitor()
	nia.Post(path, nia.Get(path).Want(http.StatusOK, "You were invited as <bdi>nia@acme.example.com</bdi>").Form("name", "Nia", "password", "a good long password")).Want(http.StatusSeeOther)
	nia.Get("/console").Want(http.StatusOK, "Nia")

	sent.fail = &mail.Error{Detail: "The mail server does not respond."}
	page = v.Post("/console/people", v.Get("/console/people/new").Form("email", "max@acme.example.com")).Want(http.StatusOK, "The mail server did not take the e-mail.")
	linkOf(t, s, page.Body)
}

func TestTheLogIsFiltered(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	erp, ann := s.Viewer("ann"), s.ID("ann")
	for range 3 {
		if _, err := s.RenewIntegrationSecret(t.Context(), erp, s.ID("erp")); err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(24 * 60 * 60 * 1e9)
	}
	grant(s, "bob", "integrations")
	if _, err := s.TurnIntegrationOff(t.Context(), s.Viewer("bob"), s.ID("reader")); err != nil {
		t.Fatal(err)
	}
	v = s.SignedIn("ann")
	count := func(path string) int {
		return strings.Count(v.Get(path).Want(http.StatusOK).Body, `<td data-label="Who">`)
	}
	for path, want := range map[string]int{
		"/console/log": 4, "/console/log?what=integration": 4, "/console/log?what=integration.secret_renewed": 3, "/console/log?what=person": 0, "/console/log?what=integ": 0,
		"/console/log?who=" + ann: 3, "/console/log?who=" + s.ID("bob"): 1, "/console/log?record=" + s.ID("reader"): 1, "/console/log?record=nothing": 0,
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

// Every action that the product logs has words, and every notice a sentence.
func TestActionsHaveWords(t *testing.T) {
	for _, kind := range models.AllNoticeKinds {
		if console.NoticeTexts[kind] == "" {
			t.Errorf("the notice %s has no sentence", kind)
		}
	}
}
