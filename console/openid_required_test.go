package console_test

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// While an organization requires OpenID Connect, neither a password nor a link that sets one
// lets anyone in, and a stranger sees no difference.
func TestRequiredOpenIDLetsNoPasswordIn(t *testing.T) {
	t.Parallel()
	s, p := newOpenIDSite(t)
	s.Exec(`UPDATE people SET admin = true WHERE id = $1`, s.ID("cat"))
	s.Exec(`UPDATE people SET email = 'BOB@acme.example.com' WHERE id = $1`, s.ID("pia")) // in two organizations
	invitation, reset := invite(t, s, "ann", people.Invitation{Email: "nia@acme.example.com"}), linkBy(t, s, "ann", "cat")
	servicetest.Expect(t, "the link of someone with a password", string(reset.Kind), string(models.LinkReset))
	ann, bob, linked := s.SignedIn("ann"), s.SignedIn("bob"), s.NewVisitor()
	through(t, linked, "/console/openid/start", nil).Want(http.StatusSeeOther)
	ann.Get("/console/people").Want(http.StatusOK, `href="/console/people/openid"`)
	chosen := s.NewVisitor().Post("/console/sign-in", credentials("bob@acme.example.com", consoletest.Password)).Want(http.StatusOK, "Acme Facilities", "Polar Lifts").Form()
	form := ann.Get("/console/people/openid").Want(http.StatusOK, "Require Acme Login for the people of Acme Facilities?", "2 sessions", "cannot sign in. An invitation").Form()
	ann.Post("/console/people/openid?required=yes", form).Want(http.StatusSeeOther)

	ann.Get("/console").Want(http.StatusSeeOther)
	bob.Get("/console").Want(http.StatusSeeOther)
	linked.Get("/console").Want(http.StatusOK)
	linked.Get("/console/account").Want(http.StatusOK, "you sign in without a password")
	linked.Post("/console/account/password", url.Values{"password": {"a good long password"}}).Want(http.StatusUnauthorized) // not even after a recent sign-in:
	if _, err := s.People.ChangePassword(t.Context(), s.Viewer("ann"), store.NoKey, people.PasswordChange{New: "a good long password", Client: people.Client{Network: "192.0.2.1"}}); models.CodeOf(err) != models.CodeRuleViolation {
		t.Errorf("choosing a password: %v", err)
	}
	s.NewVisitor().Get("/console/reset/" + reset.Token).Want(http.StatusGone)
	if err := s.NewInstance(servicetest.Mails).People.ForgotPassword(t.Context(), "form", s.Email("cat"), people.Client{Network: "192.0.2.1"}); err != nil || len(s.MailedLinks()) > 0 {
		t.Errorf("there are links for a forgotten password, %v", err)
	}
	if err := s.People.SetPassword(t.Context(), store.Operator(), s.ID("dan"), "a good long password"); err != nil {
		t.Fatal(err)
	}
	attempt := func(email, password string) string {
		page := s.NewVisitor().Post("/console/sign-in", credentials(email, password)).Want(http.StatusUnauthorized)
		if len(page.Header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s gets a cookie", email)
		}
		return strings.ReplaceAll(formKey.ReplaceAllString(page.Body, ""), email, "")
	}
	wrong := attempt("no.one@acme.example.com", "wrong")
	for email, password := range map[string]string{s.Email("cat"): consoletest.Password, s.Email("dan"): "a good long password"} {
		if attempt(email, password) != wrong {
			t.Errorf("the right password of %s gets another page than a wrong one", email)
		}
	}
	// The password still works in another organization. A choice from before is not offered any longer.
	chosen.Set("person", s.ID("bob"))
	s.NewVisitor().Post("/console/sign-in/organization", chosen).Want(http.StatusUnauthorized)
	v := s.NewVisitor()
	v.Post("/console/sign-in", credentials("bob@acme.example.com", consoletest.Password)).Want(http.StatusSeeOther)
	v.Get("/console").Want(http.StatusOK, "Polar Lifts")

	// An invitation lets the person link an account, and choose no password.
	path := "/console/invite/" + invitation.Token
	wantNot(t, s.NewVisitor().Get(path).Want(http.StatusOK, "Join with Acme Login", "requires OpenID Connect"), `name="password"`)
	s.NewVisitor().Post(path, url.Values{"name": {"Nia"}, "password": {"a good long password"}}).Want(http.StatusUnprocessableEntity, "you sign in without a password")
	p.claims = map[string]any{"sub": "subject-2"}
	through(t, s.NewVisitor(), "/console/openid/start?invite="+invitation.Token, nil).Want(http.StatusSeeOther)

	// A session that is signed in again is so at the provider, even by someone with a password.
	s.Exec(`UPDATE people SET password_hash = (SELECT password_hash FROM people WHERE id = $2) WHERE id = $1`, s.ID("ann"), s.ID("cat"))
	linked.Get("/console/sign-in/again").Want(http.StatusOK, "Sign in again with Acme Login")
	if err := s.People.SignInAgain(t.Context(), viewerOf(t, s, linked), consoletest.Password); !errors.Is(err, people.ErrSignInFailed) {
		t.Errorf("signing in again with a password: %v", err)
	}

	for _, kind := range []models.NoticeKind{models.NoticeOpenIDRequired, models.NoticeOpenIDLifted} {
		if kind == models.NoticeOpenIDLifted {
			if err := s.People.LiftOpenID(t.Context(), store.Operator(), store.NoKey, s.Acme.OrganizationID); err != nil {
				t.Fatal(err)
			}
		}
		told := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(person_id ORDER BY person_id) FROM notices WHERE kind = $1 AND record_id = $2`, string(kind), s.Acme.OrganizationID)
		want := []string{s.ID("cat")}
		if kind == models.NoticeOpenIDLifted {
			want = append(want, s.ID("ann"))
		}
		if slices.Sort(want); !slices.Equal(told, want) {
			t.Errorf("%s: a notice for %v, want %v", kind, told, want)
		}
		s.WantRows(1, `log WHERE action = $1 AND record_id = $2`, string(kind), s.Acme.OrganizationID)
	}
	s.NewVisitor().Post("/console/sign-in", credentials(s.Email("cat"), consoletest.Password)).Want(http.StatusSeeOther)
	bob.Get("/console").Want(http.StatusSeeOther) // its session has ended for good
}

// viewerOf returns the viewer of a visitor's session.
func viewerOf(t *testing.T, s *consoletest.Site, v *consoletest.Visitor) people.Viewer {
	t.Helper()
	viewer, err := s.People.Session(t.Context(), sessionOf(v))
	if err != nil {
		t.Fatal(err)
	}
	return viewer
}

// Only an administrator with a linked account requires OpenID Connect, so that no one is
// locked out; every administrator lifts it.
func TestWhoRequiresOpenID(t *testing.T) {
	t.Parallel()
	s, p := newOpenIDSite(t)
	grant(s, "bob", allBut("")...)
	require := url.Values{"form_key": {"a"}}
	required := func() bool {
		return servicetest.Value[bool](s.Fixture, `SELECT openid_required FROM organizations WHERE id = $1`, s.Acme.OrganizationID)
	}
	bob := s.SignedIn("bob")
	bob.Get("/console/people/openid").Want(http.StatusForbidden, "Only administrators")
	bob.Post("/console/people/openid?required=yes", require).Want(http.StatusForbidden, "Only administrators")
	bob.Post("/console/people/openid?required=no", require).Want(http.StatusForbidden, "Only administrators")

	s.Exec(`UPDATE openid_accounts SET issuer = 'https://former.example.com'`)
	ann := s.SignedIn("ann")
	wantNot(t, ann.Get("/console/people/openid").Want(http.StatusOK, "You have no linked account of Acme Login yourself"), "required=yes")
	ann.Post("/console/people/openid?required=yes", require).Want(http.StatusUnprocessableEntity)
	if err := s.People.RequireOpenID(t.Context(), store.Operator(), store.NoKey, s.Acme.OrganizationID, p.URL); models.CodeOf(err) != models.CodeRuleViolation {
		t.Errorf("an operator, without a linked administrator: %v", err)
	}
	s.Exec(`UPDATE openid_accounts SET issuer = $1`, p.URL)
	if err := s.People.RequireOpenID(t.Context(), store.Operator(), store.NoKey, s.Acme.OrganizationID, ""); models.CodeOf(err) != models.CodeRuleViolation {
		t.Errorf("without a provider: %v", err)
	}
	if err := s.People.RequireOpenID(t.Context(), s.Viewer("pia"), store.NoKey, s.Acme.OrganizationID, p.URL); models.CodeOf(err) != models.CodeNotFound {
		t.Errorf("another organization's administrator: %v", err)
	}
	ann.Post("/console/people/openid", require).Want(http.StatusBadRequest)
	if required() {
		t.Fatal("OpenID Connect is required")
	}
	_, without := s.Serve(s.Service)
	ann.At(without).Get("/console/people/openid").Want(http.StatusOK, "has no OpenID Connect provider")

	if err := s.People.RequireOpenID(t.Context(), store.Operator(), store.NoKey, s.Acme.OrganizationID, p.URL); err != nil || !required() {
		t.Fatal(err)
	}
	v := s.NewVisitor()
	p.claims = map[string]any{"auth_time": s.Clock.Now().Unix()}
	through(t, v, "/console/openid/start", nil).Want(http.StatusSeeOther)
	form := v.Get("/console/people/openid").Want(http.StatusOK, "sign in with passwords again?").Form()
	v.Post("/console/people/openid?required=no", form).Want(http.StatusSeeOther)
	if required() {
		t.Error("it is not lifted")
	}
}
