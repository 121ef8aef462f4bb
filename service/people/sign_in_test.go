package people_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

const password = "correct horse battery"

func signIn(t *testing.T, f *servicetest.Fixture, email, password string) (people.SignedIn, error) {
	return f.People.SignIn(t.Context(), people.SignInAttempt{Email: email, Password: password, Client: people.Client{Network: "192.0.2.1"}})
}

// Every failure does the same work.
func TestFailedSignInsDoTheSameWork(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "ann")
	setPassword(t, f, "bob")
	for _, email := range []string{"ann@acme.example.com", "bob@acme.example.com", "cat@acme.example.com", "no.one@acme.example.com", "", "\xff"} {
		before := f.People.HashesComputed()
		if _, err := signIn(t, f, email, "wrong password"); !errors.Is(err, people.ErrSignInFailed) {
			t.Errorf("%q: %v", email, err)
		}
		servicetest.Expect(t, "hashes of "+email, f.People.HashesComputed()-before, 2)
	}
}

// Who knows the password of someone in a suspended organization learns that it is suspended,
// others nothing.
func TestSuspendedOrganizationsAreNamedToTheirPeople(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "ann")
	setPassword(t, f, "bob")
	f.Exec(`UPDATE organizations SET suspended = true`)
	f.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, f.ID("bob"))
	for _, test := range []struct {
		email, password string
		want            error
	}{
		{"ann@acme.example.com", password, people.ErrSuspended}, {"ann@acme.example.com", "wrong password", people.ErrSignInFailed},
		{"bob@acme.example.com", password, people.ErrSignInFailed}, {"no.one@acme.example.com", password, people.ErrSignInFailed},
	} {
		before := f.People.HashesComputed()
		if _, err := signIn(t, f, test.email, test.password); !errors.Is(err, test.want) {
			t.Errorf("%s, %q: %v, want %v", test.email, test.password, err, test.want)
		}
		servicetest.Expect(t, "hashes of "+test.email, f.People.HashesComputed()-before, 2)
	}
}

// setPassword gives a person of the fixture the password.
func setPassword(t *testing.T, f *servicetest.Fixture, key string) {
	t.Helper()
	servicetest.Must(t, f.People.SetPassword(t.Context(), store.Operator(), f.ID(key), password))
}

func TestPasswordsAreHashedAgainWithNewParameters(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "bob")
	f.Service = f.NewInstance(func(o *store.Options) { o.PasswordMemory = 32 })
	first, err := signIn(t, f, "Bob@acme.example.com ", password)
	servicetest.Must(t, err)
	if hash := servicetest.Value[string](f, `SELECT password_hash FROM people WHERE id = $1`, f.ID("bob")); !strings.HasPrefix(hash, "$argon2id$v=19$m=32,t=2,p=1$") {
		t.Errorf("the hash is %s", hash)
	}
	if _, err := signIn(t, f, "bob@acme.example.com", password); err != nil {
		t.Error(err)
	}
	servicetest.WantCode(t, "the first session", servicetest.ErrorOf(f.People.Session(t.Context(), first.Token)), "")
	f.Exec(`UPDATE people SET password_hash = 'damaged' WHERE id = $1`, f.ID("bob"))
	if _, err := signIn(t, f, "bob@acme.example.com", password); err == nil || errors.Is(err, people.ErrSignInFailed) || strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged hash: %v", err)
	}
}

// A password that was changed while a sign-in ran does not start a session.
func TestAnOldPasswordStartsNoSession(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "ann")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { _, _ = signIn(t, f, "ann@acme.example.com", password) })
	}
	if err := f.People.SetPassword(t.Context(), store.Operator(), f.ID("ann"), "another password"); err != nil {
		t.Error(err)
	}
	group.Wait()
	servicetest.Expect(t, "sessions began with the old password",
		servicetest.Value[int](f, `SELECT count(*) FROM sessions WHERE person_id = $1`, f.ID("ann")), 0)
}

func TestLinksWorkOnce(t *testing.T) {
	f := servicetest.New(t)
	ann := servicetest.Person(t, f, "ann")
	_, link, err := f.People.InvitePerson(t.Context(), ann, store.NoKey, f.Acme.OrganizationID, people.Invitation{Email: "nia@acme.example.com"})
	servicetest.Must(t, err)
	if view, err := f.People.Link(t.Context(), "192.0.2.1", link.Token); err != nil || view.Kind != models.LinkInvitation || view.Organization != "Acme Facilities" || view.Name != "nia" {
		t.Errorf("the link is %+v, %v", view, err)
	}
	use := people.LinkUse{Token: link.Token, Name: "Nia Moor", Password: "short", Client: people.Client{Network: "192.0.2.1"}}
	_, err = f.People.UseLink(t.Context(), use)
	servicetest.WantCode(t, "a short password", err, models.CodeValidationFailed)
	use.Password = password
	var group sync.WaitGroup
	results := make(chan error, 4)
	for range 4 {
		group.Go(func() {
			_, err := f.People.UseLink(t.Context(), use)
			results <- err
		})
	}
	group.Wait()
	close(results)
	used := 0
	for err := range results {
		if err == nil {
			used++
		} else if !errors.Is(err, people.ErrLinkInvalid) {
			t.Error(err)
		}
	}
	servicetest.Expect(t, "times that the link was used", used, 1)
	if signedIn, err := signIn(t, f, "nia@acme.example.com", password); err != nil || signedIn.Token == "" {
		t.Error(err)
	}
	servicetest.Expect(t, "the name",
		servicetest.Value[string](f, `SELECT i.name FROM identities i JOIN people p ON p.id = i.id WHERE p.email = 'nia@acme.example.com'`), "Nia Moor")
	// Links expire, and a used one voids the others.
	mailing := f.NewInstance(servicetest.Mails)
	forgot := func(email string) []people.LinkEmail {
		t.Helper()
		servicetest.Must(t, mailing.People.ForgotPassword(t.Context(), rand.Text(), email, people.Client{Network: "192.0.2.1"}))
		return f.MailedLinks()
	}
	links := forgot("NIA@acme.example.com")
	if len(links) != 1 || links[0].Email != "nia@acme.example.com" {
		t.Fatalf("%v", links)
	}
	f.Clock.Advance(models.ResetLifetime + time.Second)
	if _, err := f.People.Link(t.Context(), "192.0.2.1", links[0].Token); !errors.Is(err, people.ErrLinkInvalid) {
		t.Errorf("an expired link: %v", err)
	}
	if links := forgot("no.one@acme.example.com"); len(links) != 0 {
		t.Errorf("for no one: %v", links)
	}
	sent := 0
	for range 8 {
		sent += len(forgot("ann@acme.example.com"))
	}
	servicetest.Expect(t, "links in an hour", sent, 3)
}

// The state of a sign-in at an OpenID provider is good once and for ten minutes, and only as it
// was sealed.
func TestOpenIDStatesAreRedeemedOnce(t *testing.T) {
	f := servicetest.New(t)
	begin := func(state string) string {
		t.Helper()
		sealed, err := f.People.BeginOpenID(t.Context(), state, people.Client{Network: "192.0.2.1"})
		servicetest.Must(t, err)
		return sealed
	}
	redeem := func(what, sealed string, want error) {
		t.Helper()
		var state string
		if err := f.People.RedeemOpenID(t.Context(), sealed, &state); !errors.Is(err, want) || err == nil && state != "of "+what {
			t.Errorf("%s: %q, %v; want %v", what, state, err, want)
		}
	}
	once, late, tooLate := begin("of one"), begin("of one at the end"), begin("of one after the end")
	redeem("another", once[:len(once)-1], people.ErrSignInFailed)
	redeem("none", "", people.ErrSignInFailed)
	redeem("one", once, nil)
	redeem("one again", once, people.ErrSignInFailed)
	f.Clock.Advance(people.OpenIDLifetime)
	redeem("one at the end", late, nil)
	f.Clock.Advance(time.Second)
	redeem("one after the end", tooLate, people.ErrSignInFailed)
}

// What a browser calls itself is kept without control characters, and not at any length.
func TestSessionsNameTheirBrowser(t *testing.T) {
	f := servicetest.New(t)
	setPassword(t, f, "bob")
	for sent, kept := range map[string]string{
		"Browser\x1b[2J\n/1.0\x7f": "Browser[2J/1.0",
		"Br\xffowser\x00":          "Browser",
		strings.Repeat("é", 1000):  strings.Repeat("é", 200),
	} {
		signedIn, err := f.People.SignIn(t.Context(), people.SignInAttempt{Email: "bob@acme.example.com", Password: password, Client: people.Client{Network: "192.0.2.1", UserAgent: sent}})
		servicetest.Must(t, err)
		if name := servicetest.Value[string](f, `DELETE FROM sessions RETURNING user_agent`); name != kept || signedIn.Token == "" {
			t.Errorf("%q is kept as %q, want %q", sent, name, kept)
		}
	}
}

// A link that no key opens any more is not mailed, and can be made again.
func TestLinksWhoseKeyIsLost(t *testing.T) {
	f := servicetest.New(t)
	mailing := f.NewInstance(servicetest.Mails)
	ann := servicetest.Person(t, f, "ann")
	servicetest.Must(t, servicetest.ErrorOf(mailing.People.NewPersonLink(t.Context(), ann, store.NoKey, f.ID("bob"), false)))
	f.Service = f.NewInstance(servicetest.Mails, servicetest.SealedWith(t, servicetest.NewerKey))
	if links := f.MailedLinks(); len(links) != 0 {
		t.Errorf("mailed: %d", len(links))
	}
	servicetest.Expect(t, "links wait", servicetest.Value[int](f, `SELECT count(*) FROM sign_in_links`), 0)
	if _, err := f.People.NewPersonLink(t.Context(), ann, store.NoKey, f.ID("bob"), false); err != nil || len(f.MailedLinks()) != 1 {
		t.Errorf("another link: %v", err)
	}
}
