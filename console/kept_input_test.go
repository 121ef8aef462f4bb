package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
)

// again signs in on the page that a form got, because its session had ended.
func again(v *consoletest.Visitor, page consoletest.Page, key string) consoletest.Page {
	form := page.Form("email", key+"@acme.example.com", "password", consoletest.Password)
	return v.Post("/console/sign-in", form)
}

// A session that ends while someone fills in a form does not lose anything: the sign-in page keeps what
// was entered, sealed, and shows the form with it. Nothing is sent by itself.
func TestAnEndedSessionKeepsTheInput(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := plannedWorkOrder(t, s)
	path := "/console/work-orders/" + id
	bob := s.SignedIn("bob")
	for _, test := range []struct {
		from, to string
		fields   []string
		shown    string
	}{
		{path + "/answers", path + "/answers", []string{s.ID("q_note"), "The belt <is> worn"}, "The belt &lt;is&gt; worn</textarea>"},
		{path, path + "/comments", []string{"text", "Since when?"}, "Since when?</textarea>"},
		{"/console/feedback/new?node=AHU-1", "/console/feedback", []string{"subject", "It leaks", "node", s.ID("ahu1")}, `value="It leaks"`},
		{path, path + "/hold", nil, "Send what you entered?"},
	} {
		form := bob.Get(test.from).Want(http.StatusOK).Form(test.fields...)
		if test.to == "/console/feedback" {
			allowFeedback(s)
		}
		s.Clock.Advance(models.SessionIdle)
		before := logged(s)
		asked := bob.Post(test.to, form).Want(http.StatusUnauthorized, "Your session has ended.", "Nothing was done yet", `name="kept"`)
		if test.fields != nil {
			wantNot(t, asked, test.fields[1])
		}
		wrong := bob.Post("/console/sign-in", asked.Form("email", "bob@acme.example.com", "password", "wrong")).Want(http.StatusUnauthorized, "is kept")
		shown := again(bob, wrong, "bob").Want(http.StatusOK, "signed in again", test.shown, `action="`+test.to+`"`)
		if logged(s) != before {
			t.Errorf("%s was sent by itself", test.to)
		}
		bob.Post(test.to, shown.Form(test.fields...)).Want(http.StatusSeeOther)
		if logged(s) == before {
			t.Errorf("%s cannot be sent afterwards", test.to)
		}
	}
	s.Clock.Advance(models.SessionIdle)
	bob.Get(path).Want(http.StatusSeeOther)
	bob.Get("/console/sign-in").Want(http.StatusOK, "Your session has ended. Sign in to go on.")
	bob.Post("/console/sign-out", url.Values{}).Want(http.StatusSeeOther)
	wantNot(t, bob.Get("/console/sign-in").Want(http.StatusOK, "You are signed out."), "has ended")
}

// Kept input is for the person who entered it.
func TestKeptInputIsForItsPerson(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	path := "/console/work-orders/" + plannedWorkOrder(t, s) + "/answers"
	bob := s.SignedIn("bob")
	form := bob.Get(path).Want(http.StatusOK).Form(s.ID("q_note"), "Private note")
	s.Exec(`DELETE FROM sessions`) // it was ended elsewhere
	asked := bob.Post(path, form).Want(http.StatusUnauthorized, "is kept")
	kept := asked.Form().Get("kept")
	ann := s.NewVisitor()
	next := again(ann, asked, "ann").Want(http.StatusSeeOther)
	wantNot(t, ann.Get(next.Location()).Want(http.StatusOK, "Someone else had entered what was kept"), "Private note")
	broken := strings.ToLower(kept)
	dan := s.SignedIn("dan")
	for _, sealed := range []string{kept, broken, "x", strings.Repeat("A", 100)} {
		if page := dan.Post("/console/sign-in", url.Values{"kept": {sealed}}).Want(http.StatusSeeOther); page.Done() != "input-lost" {
			t.Errorf("%.10s is %q", sealed, page.Done())
		}
	}
	// In another tab one has signed in already.
	s.SignedIn("bob").Post("/console/sign-in", url.Values{"kept": {kept}}).Want(http.StatusOK, "Private note")
	// A record that is gone by now is not found.
	s.Exec(`DELETE FROM work_order_assignees`)
	s.Exec(`DELETE FROM assignments WHERE identity_id = $1`, s.ID("bob"))
	s.SignedIn("bob").Post("/console/sign-in", url.Values{"kept": {kept}}).Want(http.StatusNotFound)
	// Visitors who were not signed in have nothing to keep.
	s.NewVisitor().Post(path, form).Want(http.StatusSeeOther)
}

// If the record was changed while its form waited for the sign-in, the form is rejected.
func TestKeptInputIsComparedWithTheRecord(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	creating(s)
	id := plannedWorkOrder(t, s)
	path := "/console/work-orders/" + id + "/edit"
	bob := s.SignedIn("bob")
	form := bob.Get(path).Want(http.StatusOK).Form("title", "Mine", "priority", "high")
	s.Clock.Advance(models.SessionIdle)
	asked := bob.Post(path, form).Want(http.StatusUnauthorized)
	s.Exec(`UPDATE work_orders SET title = 'Theirs', changed_at = changed_at + interval '1 second' WHERE id = $1`, id)
	shown := again(bob, asked, "bob").Want(http.StatusOK, `value="Mine"`)
	bob.Post(path, shown.Form("title", "Mine", "priority", "high")).Want(http.StatusConflict, "since you opened this page", "Theirs")
}

// A form with a password or a secret is not kept.
func TestKeptInputHasNoPasswords(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	bob := s.SignedIn("bob")
	for _, secret := range []string{"old_password", "client_secret"} {
		form := bob.Get("/console/account").Form(secret, "hush", "name", "Bob")
		s.Exec(`UPDATE sessions SET seen_at = seen_at - interval '1 day'`)
		bob.Post("/console/account/password", form).WantRedirect("/console/sign-in")
		bob = s.SignedIn("bob")
	}
	// More than a form may have is not kept, which the page says.
	form := bob.Get("/console/account").Form("name", strings.Repeat("x", 200<<10))
	s.Exec(`DELETE FROM sessions`)
	bob.Post("/console/account", form).Want(http.StatusUnauthorized, "too much for it to be kept")
	s.WantRows(0, `identities WHERE name LIKE 'xx%'`)
}
