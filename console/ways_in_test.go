package console_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// allowPeople gives a person of the fixture the People permission.
func allowPeople(s *consoletest.Site, key string) {
	s.Exec(`INSERT INTO organization_permission_definitions (id, organization_id, name, grants) VALUES ('def_0000000000000000000000000p', $1, 'Clerk', '{people}')`, s.Acme.OrganizationID)
	s.Exec(`UPDATE people SET organization_definition_id = 'def_0000000000000000000000000p' WHERE id = $1`, s.ID(key))
}

// linkBy returns the path of a link that someone makes for a person.
func linkBy(t *testing.T, s *consoletest.Site, maker, key string) string {
	t.Helper()
	link, err := s.People.NewPersonLink(t.Context(), s.Viewer(maker), store.NoKey, s.ID(key), false)
	if err != nil {
		t.Fatal(err)
	}
	return link.URL("")
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
	page := ann.Post(path, url.Values{"admin": {"yes"}})
	if page.Status == http.StatusOK && servicetest.Value[bool](s.Fixture, `SELECT NOT admin FROM people WHERE id = $1`, s.ID(key)) {
		page.Want(http.StatusOK, "The e-mail address is "+s.Email(key))
		page = ann.Post(path, page.Form())
	}
	if servicetest.Value[bool](s.Fixture, `SELECT NOT admin FROM people WHERE id = $1`, s.ID(key)) {
		t.Fatalf("%s is no administrator: %d\n%s", key, page.Status, page.Body)
	}
	return page
}

const organizationOfFixture = "organization: {key: acme}\n"

// Someone with the People permission keeps no way in to a person who gains permissions, in
// whichever way: not a link, a session, a password or an account that she could have set.
func TestAPromotionEndsWhatOthersMayShare(t *testing.T) {
	t.Parallel()
	for name, gain := range map[string]func(*testing.T, *consoletest.Site){
		"in the console": func(t *testing.T, s *consoletest.Site) { promote(t, s, "eve") },
		"by an import": func(t *testing.T, s *consoletest.Site) {
			if _, err := s.Imports.Run(t.Context(), []byte(organizationOfFixture+"people: [{key: eve, admin: true, phone: '+12025550199'}]")); err != nil {
				t.Fatal(err)
			}
		},
		"by an import of a definition": func(t *testing.T, s *consoletest.Site) {
			s.Exec(`UPDATE people SET organization_definition_id = $2 WHERE id = $1`, s.ID("eve"), s.ID("org_nothing"))
			if _, err := s.Imports.Overwrite(t.Context(), []byte(organizationOfFixture+"organization_permission_definitions: [{key: org_nothing, grants: [integrations]}]\npeople: [{key: eve, phone: '+12025550199'}]")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := consoletest.NewSite(t)
			allowPeople(s, "bob")
			v := useLink(s, linkBy(t, s, "bob", "eve"))
			v.Get("/console").Want(http.StatusOK)
			kept := linkBy(t, s, "bob", "eve")
			s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ('https://login.example.com', 'bob', $1, now())`, s.ID("eve"))

			gain(t, s)
			v.Get("/console").Want(http.StatusSeeOther)
			s.NewVisitor().Get(kept).Want(http.StatusGone)
			s.NewVisitor().Post(kept, url.Values{"password": {"a good long password"}}).Want(http.StatusGone)
			s.NewVisitor().Post("/console/sign-in", credentials(s.Email("eve"), "chosen by the clerk")).Want(http.StatusUnauthorized)
			if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM openid_accounts`); n != 0 {
				t.Errorf("%d accounts stay linked", n)
			}
		})
	}
}

// What only the person and administrators could see stays, and no one is promoted without a
// look at the e-mail address.
func TestAPromotionKeepsPrivateWaysIn(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	useLink(s, linkBy(t, s, "ann", "eve"))
	promote(t, s, "eve").Want(http.StatusSeeOther)
	s.NewVisitor().Post("/console/sign-in", credentials(s.Email("eve"), "chosen by the clerk")).Want(http.StatusSeeOther)

	// Without a way in, the promoter gets a link.
	allowPeople(s, "bob")
	useLink(s, linkBy(t, s, "bob", "dan"))
	page := promote(t, s, "dan").Want(http.StatusOK, "Pass this link on to", "/console/invite/")
	_, token, _ := strings.Cut(page.Body, "/console/invite/")
	useLink(s, "/console/invite/"+token[:strings.IndexAny(token, `"<& `)])

	// A password that its person changes stays one that the clerk may know.
	useLink(s, linkBy(t, s, "bob", "cat"))
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
	allowPeople(s, "bob")
	linkBy(t, s, "bob", "eve")
	mailed := s.MailedLinks()
	useLink(s, mailed[len(mailed)-1].URL(""))
	promote(t, s, "eve").Want(http.StatusSeeOther)
	s.NewVisitor().Post("/console/sign-in", credentials(s.Email("eve"), "chosen by the clerk")).Want(http.StatusSeeOther)

	s.Exec(`UPDATE people SET password_hash = NULL WHERE id = $1`, s.ID("dan"))
	before := len(s.MailedLinks())
	promote(t, s, "dan").Want(http.StatusSeeOther)
	if mailed := s.MailedLinks(); len(mailed) == before && before > 0 {
		t.Errorf("the promoted person got no link")
	}
}

// A change of the e-mail address, in whichever way, ends links that went to the former one and
// sessions, and the former address is told.
func TestAChangedEmailEndsLinksAndSessions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *consoletest.Site){
		"in the console": func(_ *testing.T, s *consoletest.Site) {
			s.SignedIn("ann").Post("/console/people/"+s.ID("eve")+"/email", url.Values{"email": {"eve.two@acme.example.com"}}).Want(http.StatusSeeOther)
		},
		"by an import": func(t *testing.T, s *consoletest.Site) {
			if _, err := s.Imports.Run(t.Context(), []byte(organizationOfFixture+"people: [{key: eve, email: eve.two@acme.example.com}]")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := consoletest.NewSite(t)
			v, link := s.SignedIn("eve"), linkBy(t, s, "ann", "eve")
			v.Get("/console").Want(http.StatusOK)
			change(t, s)
			v.Get("/console").Want(http.StatusSeeOther)
			s.NewVisitor().Post(link, url.Values{"password": {"a good long password"}}).Want(http.StatusGone)
			if to := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(mail_to) FROM notices WHERE person_id = $1 AND mail_to IS NOT NULL`, s.ID("eve")); !slices.Equal(to, []string{"eve@acme.example.com"}) {
				t.Errorf("told: %v", to)
			}
		})
	}
	s := consoletest.NewSite(t)
	allowPeople(s, "bob")
	s.SignedIn("bob").Post("/console/people/"+s.ID("eve")+"/email", url.Values{"email": {"bob.two@acme.example.com"}}).Want(http.StatusForbidden)
	s.SignedIn("ann").Post("/console/people/"+s.ID("eve")+"/email", url.Values{"email": {"BOB@acme.example.com"}}).Want(http.StatusUnprocessableEntity, "Another person of the organization has this e-mail address.")
}

// One import or command that changes several tells the administrators once.
func TestAnImportTellsAdministratorsOnce(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	if _, err := s.Imports.Run(t.Context(), []byte(organizationOfFixture+"people: [{key: eve, admin: true}, {key: bob, organization_definition: org_nothing}, {key: cat, phone: '+12025550199'}]")); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"ann": 1, "eve": 1, "bob": 1, "cat": 0} {
		if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE person_id = $1 AND kind = $2`, s.ID(key), string(models.NoticeAccessChanged)); n != want {
			t.Errorf("%s has %d notices, want %d", key, n, want)
		}
	}
}

// An import that changes secrets, owners or the members of a team with permissions tells the
// administrators, and the people concerned.
func TestAnImportOfSecretsTellsAdministrators(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		told []string
	}{
		"a client secret":          {"integrations: [{key: reader, client_secret: another-secret-of-the-reader-integration}]", []string{"ann"}},
		"a signing secret":         {"integrations: [{key: reader, webhooks: [{key: reader_hook, secret: whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTM=}]}]", []string{"ann"}},
		"owners":                   {"integrations: [{key: reader, owners: [ann]}]", []string{"ann"}},
		"organization permissions": {"integrations: [{key: reader, organization_definition: org_incoming}]", []string{"ann"}},
		"a member":                 {"teams: [{key: crew, members: [bob, dan, cat]}]", []string{"ann", "cat"}},
		"a name":                   {"integrations: [{key: reader, name: Other}]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := consoletest.NewSite(t)
			if _, err := s.Imports.Run(t.Context(), []byte(organizationOfFixture+c.file)); err != nil {
				t.Fatal(err)
			}
			told := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(person_id) FROM notices WHERE kind = $1`, string(models.NoticeAccessChanged))
			var want []string
			for _, key := range c.told {
				want = append(want, s.ID(key))
			}
			slices.Sort(told)
			slices.Sort(want)
			if !slices.Equal(told, want) {
				t.Errorf("told: %v, want %v", told, c.told)
			}
		})
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
	p := newProvider(t)
	s := consoletest.NewSite(t, func(o *console.Options) {
		o.OpenID = &console.OpenIDOptions{Issuer: p.URL, ClientID: "console", ClientSecret: "secret", Name: "Acme Login"}
	})
	allowPeople(s, "bob")
	s.Exec(`UPDATE people SET password_hash = NULL WHERE id = $1`, s.ID("eve"))
	s.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at, private) VALUES ($1, 'eve', $2, now(), true)`, p.URL, s.ID("eve"))

	if _, _, err := s.People.InvitePerson(t.Context(), s.Viewer("bob"), store.NoKey, s.Acme.OrganizationID, people.Invitation{Email: s.Email("eve")}); models.CodeOf(err) != models.CodeValidationFailed {
		t.Errorf("inviting someone with an account: %v", err)
	}
	link := linkBy(t, s, "bob", "eve")
	token := link[strings.LastIndex(link, "/")+1:]
	through(t, s.NewVisitor(), "/console/openid/start?invite="+token, nil).Want(http.StatusGone)
	if subjects := servicetest.Value[[]string](s.Fixture, `SELECT array_agg(subject) FROM openid_accounts`); !slices.Equal(subjects, []string{"eve"}) {
		t.Fatalf("the accounts are %v", subjects)
	}

	// Using the link replaces the account, and tells the person.
	s.NewVisitor().Get(link).Want(http.StatusOK, "linked accounts are unlinked")
	useLink(s, link)
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM openid_accounts`); n != 0 {
		t.Errorf("%d accounts stay linked", n)
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE person_id = $1 AND kind = $2`, s.ID("eve"), string(models.NoticePasswordChanged)); n != 1 {
		t.Errorf("eve has %d notices", n)
	}

	// Removing the ways in is for administrators; afterwards an invitation links an account.
	path := "/console/people/" + s.ID("eve")
	s.SignedIn("bob").Post(path+"/ways-in", url.Values{}).Want(http.StatusForbidden)
	ann := s.SignedIn("ann")
	ann.Get(path).Want(http.StatusOK, "Eve Hill signs in with a password.", "Remove ways to sign in…")
	ann.Post(path+"/ways-in", ann.Get(path+"/ways-in").Want(http.StatusOK, "a password").Form()).Want(http.StatusSeeOther)
	s.NewVisitor().Post("/console/sign-in", credentials(s.Email("eve"), "chosen by the clerk")).Want(http.StatusUnauthorized)
	link = linkBy(t, s, "ann", "eve")
	v := s.NewVisitor()
	through(t, v, "/console/openid/start?invite="+link[strings.LastIndex(link, "/")+1:], nil).Want(http.StatusSeeOther)
	v.Get("/console").Want(http.StatusOK)

	// Deactivating unlinks too.
	if _, err := s.People.DeactivatePerson(t.Context(), s.Viewer("ann"), store.NoKey, s.ID("eve"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.People.ActivatePerson(t.Context(), s.Viewer("ann"), store.NoKey, s.ID("eve")); err != nil {
		t.Fatal(err)
	}
	through(t, s.NewVisitor(), "/console/openid/start", nil).Want(http.StatusUnauthorized)
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
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM openid_accounts`); n != 1 {
		t.Errorf("%d accounts are linked", n)
	}
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
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE person_id = $1 AND kind = $2`, s.ID("eve"), string(models.NoticeSignInRemoved)); n != 1 {
		t.Errorf("eve has %d notices", n)
	}
}

// Someone who may invite in another organization invites the victim's e-mail address there and
// signs in: that makes no browser known to the victim. All known browsers share a limit, which
// counts for no other network.
func TestMarksOfKnownBrowsersGuessLittle(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t, func(o *console.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	_, link, err := s.People.InvitePerson(t.Context(), s.Viewer("pia"), store.NoKey, s.Polar.OrganizationID, people.Invitation{Email: s.Email("bob"), Name: "Bob"})
	if err != nil {
		t.Fatal(err)
	}
	useLink(s, link.URL(""))
	const guessed, other = "198.51.100.1", "198.51.100.2"
	attempt := func(v *consoletest.Visitor, network, password string) int {
		return v.Do(http.MethodPost, "/console/sign-in", credentials(s.Email("bob"), password), "X-Forwarded-For", network).Status
	}
	mint := func(password string, n int) (browsers []*consoletest.Visitor) {
		for i := range n {
			v := s.NewVisitor()
			if status := attempt(v, fmt.Sprintf("203.0.113.%d", i), password); status != http.StatusSeeOther {
				t.Fatalf("a correct password in a new browser: %d", status)
			}
			browsers = append(browsers, v)
		}
		return browsers
	}
	theirs, own := mint("chosen by the clerk", 3), mint(consoletest.Password, 12)
	for range 10 {
		if status := attempt(s.NewVisitor(), guessed, "wrong"); status != http.StatusUnauthorized {
			t.Fatalf("a guess: %d", status)
		}
	}
	for _, v := range theirs {
		if status := attempt(v, guessed, consoletest.Password); status != http.StatusTooManyRequests {
			t.Errorf("the correct password in a browser of someone else: %d", status)
		}
	}
	if status := attempt(own[0], guessed, consoletest.Password); status != http.StatusSeeOther {
		t.Errorf("the correct password in the person's browser: %d", status)
	}
	failures := func() int {
		return servicetest.Value[int](s.Fixture, `SELECT sum(calls)::integer FROM rate_counters WHERE subject LIKE 'sign-in %'`)
	}
	before := failures()
	for _, v := range own {
		for range 10 {
			attempt(v, guessed, "wrong")
		}
	}
	if checked := failures() - before; checked != 30 {
		t.Errorf("%d guesses were checked in known browsers, want 30", checked)
	}
	if status := attempt(own[0], guessed, consoletest.Password); status != http.StatusTooManyRequests {
		t.Errorf("the correct password after many guesses in known browsers: %d", status)
	}
	if status := attempt(s.NewVisitor(), other, consoletest.Password); status != http.StatusSeeOther {
		t.Errorf("the correct password from a network without failures: %d", status)
	}
	s.Clock.Advance(time.Hour)
	if status := attempt(own[0], guessed, consoletest.Password); status != http.StatusSeeOther {
		t.Errorf("the correct password an hour later: %d", status)
	}
}

// A password that is right for one person and wrong for another with the same e-mail address is
// a guess: someone may invite the address, and set what she guesses as that person's password.
func TestAPasswordOfAnotherOrganizationIsAGuess(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	_, link, err := s.People.InvitePerson(t.Context(), s.Viewer("pia"), store.NoKey, s.Polar.OrganizationID, people.Invitation{Email: s.Email("bob"), Name: "Bob"})
	if err != nil {
		t.Fatal(err)
	}
	useLink(s, link.URL(""))
	guess := func() int {
		return s.NewVisitor().Post("/console/sign-in", credentials(s.Email("bob"), "chosen by the clerk")).Status
	}
	for range 10 {
		if status := guess(); status != http.StatusSeeOther {
			t.Fatalf("the clerk's own password: %d", status)
		}
	}
	if status := guess(); status != http.StatusTooManyRequests {
		t.Errorf("the eleventh guess in five minutes: %d", status)
	}
}
