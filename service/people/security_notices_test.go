package people_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// noticed returns who has notices of the kind about the id, by name.
func noticed(s *servicetest.Harness, kind models.NoticeKind, id string) []string {
	return servicetest.Value[[]string](s.Fixture, `SELECT coalesce(array_agg(i.name ORDER BY i.name), '{}') FROM notices n
		JOIN identities i ON i.id = n.person_id WHERE n.kind = $1 AND n.record_id = $2`, string(kind), id)
}

func TestSecurityNotices(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE people SET admin = id IN ($1, $2, $3), deactivated_at = CASE WHEN id = $3 THEN now() END`, s.ID("ann"), s.ID("rita"), s.ID("sol"))
	notify := func(actor store.Actor, kind models.NoticeKind, about string, people ...string) {
		t.Helper()
		servicetest.Must(t, s.People.NotifySecurity(t.Context(), actor, s.ID("acme"), kind, about, "", s.IDs(people...)...))
	}
	acting := func(key string) store.Actor {
		return store.Actor{IdentityID: s.ID(key), OrganizationID: s.ID("acme"), Kind: models.KindPerson}
	}
	notify(acting("ann"), models.NoticeRoleChanged, s.ID("bob"), "bob")
	notify(acting("ann"), models.NoticePasswordChanged, s.ID("ann"), "ann", "ann")
	notify(store.Operator(), models.NoticeAccessChanged, s.ID("acme"), "sol")
	for _, want := range []struct {
		kind  models.NoticeKind
		about string
		names []string
	}{
		{models.NoticeRoleChanged, "bob", []string{"Bob Stone", "Rita Lake"}},
		{models.NoticePasswordChanged, "ann", []string{"Ann Field", "Rita Lake"}},
		{models.NoticeAccessChanged, "acme", []string{"Ann Field", "Rita Lake"}},
	} {
		if got := noticed(s, want.kind, s.ID(want.about)); !slices.Equal(got, want.names) {
			t.Errorf("%s reached %v, want %v", want.kind, got, want.names)
		}
	}
	// The sweep wakes no workflows for identities: they have none.
	s.Clock.Advance(time.Hour)
	unclaimed, err := s.Upkeep.Unclaimed(t.Context(), time.Second)
	servicetest.Must(t, err)
	for _, target := range unclaimed {
		if models.IsID(target.ID, models.PrefixIdentity) {
			t.Errorf("the sweep wakes %v", target)
		}
	}
	inbox, err := s.People.Notices(t.Context(), acting("rita"), people.NoticeFilter{})
	servicetest.Must(t, err)
	var titles []string
	for _, n := range inbox {
		titles = append(titles, n.Title)
		if id, err := s.People.ReadNotice(t.Context(), acting("rita"), n.ID); err != nil || id != n.RecordID {
			t.Errorf("the notice opens %q, %v; want %s", id, err, n.RecordID)
		}
	}
	if want := []string{"Acme Facilities", "Ann Field", "Bob Stone"}; !slices.Equal(titles, want) {
		t.Errorf("the titles are %v, want %v", titles, want)
	}
}

// A changed e-mail address is told to the former one, which is then forgotten.
func TestFormerEmailIsTold(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Exec(`UPDATE people SET admin = id = $1`, s.ID("ann"))
	servicetest.Must(t, s.People.NotifySecurity(t.Context(), store.Operator(), s.ID("acme"), models.NoticeEmailChanged, s.ID("bob"), "old@acme.example.com"))
	to := map[string]string{}
	for _, mail := range s.ClaimMails(s.Acme.OrganizationID) {
		to[mail.PersonName] = mail.PersonEmail
		if len(mail.Notices) != 1 || mail.Notices[0].Identity != "Bob Stone" {
			t.Errorf("the e-mail is about %+v", mail.Notices)
		}
		servicetest.Must(t, s.Effects.RecordMail(t.Context(), mail, people.MailOutcome{Status: people.MailSent}))
	}
	if want := map[string]string{"Ann Field": "ann@acme.example.com", "Bob Stone": "old@acme.example.com"}; !maps.Equal(to, want) {
		t.Errorf("the e-mails go to %v, want %v", to, want)
	}
	servicetest.Expect(t, "former addresses are kept",
		servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE mail_to IS NOT NULL`), 0)
}

// Links are counted within an organization: a stranger's cannot use up another's.
func TestLinksOfAnotherOrganizationAreNotCounted(t *testing.T) {
	s := servicetest.NewHarness(t)
	s.Service = s.NewInstance(servicetest.Mails)
	s.Exec(`UPDATE people SET email = 'BOB@acme.example.com' WHERE id = $1`, s.ID("ola"))
	for range 3 {
		_, err := s.People.NewPersonLink(t.Context(), s.As("pia"), store.NoKey, s.ID("ola"), false)
		servicetest.Must(t, err)
	}
	_, err := s.People.NewPersonLink(t.Context(), s.As("pia"), store.NoKey, s.ID("ola"), false)
	servicetest.WantCode(t, "a fourth link", err, models.CodeRateLimited)
	_, err = s.People.NewPersonLink(t.Context(), store.Operator(), store.NoKey, s.ID("ola"), false)
	servicetest.WantCode(t, "an operator's link", err, "")
	servicetest.Must(t, s.People.ForgotPassword(t.Context(), "form", "bob@acme.example.com", people.Client{Network: "192.0.2.1"}))
	links := map[string]int{}
	for _, link := range s.MailedLinks() {
		links[link.Organization]++
	}
	if want := map[string]int{"Acme Facilities": 1, "Polar Lifts": 4}; !maps.Equal(links, want) { // requested links are counted apart
		t.Errorf("links by organization: %v, want %v", links, want)
	}
}
