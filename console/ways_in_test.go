package console_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// linkBy is a link that someone makes for a person.
func linkBy(t *testing.T, s *consoletest.Site, maker, key string) people.LinkEmail {
	t.Helper()
	link, err := s.People.NewPersonLink(t.Context(), s.Viewer(maker), store.NoKey, s.ID(key), false)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// invite returns the invitation by someone of the same organization.
func invite(t *testing.T, s *consoletest.Site, by string, in people.Invitation) people.LinkEmail {
	t.Helper()
	viewer := s.Viewer(by)
	_, link, err := s.People.InvitePerson(t.Context(), viewer, store.NoKey, viewer.OrganizationID, in)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

func useLink(s *consoletest.Site, path string) *consoletest.Visitor {
	v := s.NewVisitor()
	v.Post(path, url.Values{"name": {"Eve"}, "password": {"chosen by the clerk"}}).Want(http.StatusSeeOther)
	return v
}

// promote makes a person an administrator on the page and returns the response.
func promote(t *testing.T, s *consoletest.Site, key string) consoletest.Page {
	t.Helper()
	ann, path := s.SignedIn("ann"), "/console/people/"+s.ID(key)
	asked := ann.Post(path, url.Values{"admin": {"yes"}}).Want(http.StatusOK, "The e-mail address is "+s.Email(key))
	page := ann.Post(path, asked.Form())
	s.WantRows(1, `people WHERE id = $1 AND admin`, s.ID(key))
	return page
}

const organizationOfFixture = "organization: {key: acme}\n"

// What only the person and administrators could see stays, and no one is promoted without a
// look at the e-mail address.
func TestAPromotionKeepsPrivateWaysIn(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	useLink(s, linkBy(t, s, "ann", "eve").URL(""))
	promote(t, s, "eve").Want(http.StatusSeeOther)
	s.NewVisitor().Post("/console/sign-in", credentials(s.Email("eve"), "chosen by the clerk")).Want(http.StatusSeeOther)

	// Without a way in, the promoter gets a link.
	grant(s, "bob", "people")
	useLink(s, linkBy(t, s, "bob", "dan").URL(""))
	page := promote(t, s, "dan").Want(http.StatusOK, "Pass this link on to", "/console/invite/")
	_, token, _ := strings.Cut(page.Body, "/console/invite/")
	useLink(s, "/console/invite/"+token[:strings.IndexAny(token, `"<& `)])

	// A password that its person changes stays one that the clerk may know.
	useLink(s, linkBy(t, s, "bob", "cat").URL(""))
	v := s.NewVisitor()
	v.Post("/console/sign-in", credentials(s.Email("cat"), "chosen by the clerk")).Want(http.StatusSeeOther)
	v.Post("/console/account/password", url.Values{"old_password": {"chosen by the clerk"}, "password": {"changed by the clerk"}}).Want(http.StatusSeeOther)
	promote(t, s, "cat")
	s.NewVisitor().Post("/console/sign-in", credentials(s.Email("cat"), "changed by the clerk")).Want(http.StatusUnauthorized)
}

// Where links are mailed, a manager sees none, and the promoter's goes to the person too.
func TestAMailedLinkIsPrivate(t *testing.T) {
	t.Parallel()
	s := consoletest.On(t, servicetest.New(t, servicetest.Mails))
	grant(s, "bob", "people")
	linkBy(t, s, "bob", "eve")
	useLink(s, s.MailedLinks()[0].URL(""))
	promote(t, s, "eve").Want(http.StatusSeeOther)
	s.NewVisitor().Post("/console/sign-in", credentials(s.Email("eve"), "chosen by the clerk")).Want(http.StatusSeeOther)

	s.Exec(`UPDATE people SET password_hash = NULL WHERE id = $1`, s.ID("dan"))
	promote(t, s, "dan").Want(http.StatusSeeOther)
	if mailed := s.MailedLinks(); len(mailed) != 1 || mailed[0].Email != s.Email("dan") {
		t.Errorf("after the promotion there are the links %v", mailed)
	}
}

// An import that changes roles, secrets, owners or the members of a team with permissions tells the administrators and
// the people concerned, each once.
func TestAnImportOfSecretsTellsAdministrators(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	for _, c := range []struct {
		file string
		told string
	}{
		{"people: [{key: eve, admin: true}, {key: bob, organization_definition: org_nothing}, {key: cat, phone: '+12025550199'}]", "Ann Bob Eve"},
		{"integrations: [{key: reader, client_secret: another-secret-of-the-reader-integration}]", "Ann"},
		{"integrations: [{key: reader, webhooks: [{key: reader_hook, secret: whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTM=}]}]", "Ann"},
		{"integrations: [{key: reader, owners: [ann]}]", "Ann"},
		{"integrations: [{key: reader, organization_definition: org_incoming}]", "Ann"},
		{"teams: [{key: crew, members: [bob, dan, cat]}]", "Ann Cat"},
		{"integrations: [{key: reader, name: Other}]", ""},
	} {
		s.Exec(`UPDATE people SET admin = id = $1`, s.ID("ann"))
		s.Exec(`DELETE FROM notices`)
		if _, err := s.Imports.Overwrite(t.Context(), []byte(organizationOfFixture+c.file)); err != nil {
			t.Fatal(err)
		}
		told := servicetest.Value[string](s.Fixture, `SELECT coalesce(string_agg(split_part(i.name, ' ', 1), ' ' ORDER BY i.name), '') FROM notices n
			JOIN identities i ON i.id = n.person_id WHERE n.kind = $1`, string(models.NoticeAccessChanged))
		servicetest.Expect(t, "told of "+c.file, told, c.told)
	}
}

// An invitation of someone who gets permissions tells the administrators; of others it does not.
func TestAnInvitationWithPermissionsIsTold(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE people SET admin = true WHERE id = $1`, s.ID("bob"))
	definition := s.ID("org_incoming")
	for email, in := range map[string]people.Invitation{
		"nia@acme.example.com": {Admin: true}, "kim@acme.example.com": {DefinitionID: &definition}, "lee@acme.example.com": {},
	} {
		in.Email = email
		person, _, err := s.People.InvitePerson(t.Context(), s.Viewer("ann"), store.NoKey, s.Acme.OrganizationID, in)
		if err != nil {
			t.Fatal(err)
		}
		told := servicetest.Value[bool](s.Fixture, `SELECT EXISTS (SELECT FROM notices WHERE record_id = $1 AND kind = $2 AND person_id = $3)`,
			person.ID, string(models.NoticeRoleChanged), s.ID("bob"))
		if want := email != "lee@acme.example.com"; told != want {
			t.Errorf("%s: told: %v, want %v", email, told, want)
		}
	}
}

// Someone with the People permission cannot link her own account to a person who signs in
// with another one; an administrator removes all ways in and invites again.
func TestNoInvitationForSomeoneWhoCanSignIn(t *testing.T) {
	t.Parallel()
	s, p := newProviderSite(t)
	grant(s, "bob", "people")
	s.Exec(`UPDATE people SET password_hash = NULL WHERE id = $1`, s.ID("eve"))
	s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at, private) VALUES ($1, 'eve', $2, now(), true)`, p.URL, s.ID("eve"))

	if _, _, err := s.People.InvitePerson(t.Context(), s.Viewer("bob"), store.NoKey, s.Acme.OrganizationID, people.Invitation{Email: s.Email("eve")}); models.CodeOf(err) != models.CodeValidationFailed {
		t.Errorf("inviting someone with an account: %v", err)
	}
	link := linkBy(t, s, "bob", "eve")
	through(t, s.NewVisitor(), "/console/openid/start?invite="+link.Token, nil).Want(http.StatusGone)
	if subjects := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(subject) FROM openid_accounts`); !slices.Equal(subjects, []string{"eve"}) {
		t.Fatalf("the accounts are %v", subjects)
	}

	// Using the link replaces the account, and tells the person.
	s.NewVisitor().Get(link.URL("")).Want(http.StatusOK, "linked accounts are unlinked")
	useLink(s, link.URL(""))
	s.WantRows(0, `openid_accounts`)
	s.WantRows(1, `notices WHERE person_id = $1 AND kind = $2`, s.ID("eve"), string(models.NoticePasswordChanged))

	// After an administrator has removed the ways in, an invitation links an account.
	path := "/console/people/" + s.ID("eve")
	ann := s.SignedIn("ann")
	ann.Get(path).Want(http.StatusOK, "Eve Hill signs in with a password.", "Remove ways to sign in…")
	ann.Post(path+"/ways-in", ann.Get(path+"/ways-in").Want(http.StatusOK, "a password").Form()).Want(http.StatusSeeOther)
	s.NewVisitor().Post("/console/sign-in", credentials(s.Email("eve"), "chosen by the clerk")).Want(http.StatusUnauthorized)
	link = linkBy(t, s, "ann", "eve")
	v := s.NewVisitor()
	through(t, v, "/console/openid/start?invite="+link.Token, nil).Want(http.StatusSeeOther)
	v.Get("/console").Want(http.StatusOK)
}

// A link that the person requested leaves linked accounts alone.
func TestARequestedLinkKeepsAccounts(t *testing.T) {
	t.Parallel()
	s := consoletest.On(t, servicetest.New(t, servicetest.Mails))
	s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ('https://login.example.com', 'eve', $1, now())`, s.ID("eve"))
	if err := s.People.ForgotPassword(t.Context(), "form", s.Email("eve"), people.Client{Network: "192.0.2.1"}); err != nil {
		t.Fatal(err)
	}
	useLink(s, s.MailedLinks()[0].URL(""))
	s.WantRows(1, `openid_accounts`)
}

// People see their linked accounts and unlink them, except the last way to sign in.
func TestPeopleUnlinkAccounts(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	for _, subject := range []string{"one", "two"} {
		s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ('https://login.example.com', $2, $1, now())`, s.ID("eve"), subject)
	}
	s.Exec(`UPDATE people SET password_hash = NULL WHERE id = $1`, s.ID("eve"))
	v, other := s.SignedIn("eve"), s.SignedIn("eve")
	v.Get("/console/account").Want(http.StatusOK, "Linked accounts", "https://login.example.com", "<bdi>one</bdi>", "<bdi>two</bdi>")
	unlink := func(subject string) consoletest.Page {
		return v.Post("/console/account/openid/unlink", url.Values{"issuer": {"https://login.example.com"}, "subject": {subject}})
	}
	unlink("one").Want(http.StatusSeeOther)
	other.Get("/console").Want(http.StatusSeeOther)
	unlink("two").Want(http.StatusUnprocessableEntity, "This is your last way to sign in.")
	unlink("three").Want(http.StatusNotFound)
	s.WantRows(1, `notices WHERE person_id = $1 AND kind = $2`, s.ID("eve"), string(models.NoticeSignInRemoved))
}

// Someone who may invite in another organization invites the victim's e-mail address there and
// signs in: that makes no browser known to the victim.
func TestMarksOfKnownBrowsersGuessLittle(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t, func(o *console.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	useLink(s, invite(t, s, "pia", people.Invitation{Email: s.Email("bob"), Name: "Bob"}).URL(""))
	attempt := func(v *consoletest.Visitor, network, password string) consoletest.Page {
		return v.Do(http.MethodPost, "/console/sign-in", credentials(s.Email("bob"), password), "X-Forwarded-For", network)
	}
	const guessed = "198.51.100.1"
	theirs, own := s.NewVisitor(), s.NewVisitor()
	for v, password := range map[*consoletest.Visitor]string{theirs: "chosen by the clerk", own: consoletest.Password} {
		attempt(v, "203.0.113.1", password).Want(http.StatusSeeOther)
	}
	for range 10 {
		attempt(s.NewVisitor(), guessed, "wrong")
	}
	attempt(theirs, guessed, consoletest.Password).Want(http.StatusTooManyRequests)
	attempt(own, guessed, consoletest.Password).Want(http.StatusSeeOther)
}

// A password that is right for one person and wrong for another with the same e-mail address is
// a guess: someone may invite the address, and set what she guesses as that person's password.
func TestAPasswordOfAnotherOrganizationIsAGuess(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	useLink(s, invite(t, s, "pia", people.Invitation{Email: s.Email("bob"), Name: "Bob"}).URL(""))
	guess := func(want int) {
		t.Helper()
		s.NewVisitor().Post("/console/sign-in", credentials(s.Email("bob"), "chosen by the clerk")).Want(want)
	}
	for range 10 {
		guess(http.StatusSeeOther) // the clerk's own password
	}
	guess(http.StatusTooManyRequests)
}

// A change of the e-mail address, in whichever way, is told to the former one.
func TestAFormerEmailAddressIsTold(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann, path := s.SignedIn("ann"), "/console/people/"+s.ID("eve")+"/email"
	ann.Post(path, url.Values{"email": {"BOB@acme.example.com"}}).Want(http.StatusUnprocessableEntity, "Another person of the organization has this e-mail address.")
	ann.Post(path, url.Values{"email": {"eve.two@acme.example.com"}}).Want(http.StatusSeeOther)
	if _, err := s.Imports.Overwrite(t.Context(), []byte(organizationOfFixture+"people: [{key: eve, email: eve.three@acme.example.com}]")); err != nil {
		t.Fatal(err)
	}
	told := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(mail_to ORDER BY id) FROM notices WHERE person_id = $1 AND mail_to IS NOT NULL`, s.ID("eve"))
	if !slices.Equal(told, []string{"eve@acme.example.com", "eve.two@acme.example.com"}) {
		t.Errorf("told: %v", told)
	}
}
