package activities_test

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/activities"
	"millwright/mail/mailtest"
	"millwright/models"
	"millwright/service/people"
	"millwright/service/servicetest"
)

// mailing makes the harness's service mail links.
func mailing(h *harness) *harness {
	h.Service = h.NewInstance(servicetest.MailLinks)
	h.notices.Service = h.Service
	return h
}

// invite invites a person whose invitation is to be mailed.
func (h *harness) invite(name, email string) {
	h.t.Helper()
	_, link, err := h.InvitePerson(h.t.Context(), h.person("ann"), h.Acme.OrganizationID, people.Invitation{Name: name, Email: email})
	if err != nil || link.Token != "" {
		h.t.Fatalf("the link is %q, %v; want none, since it is mailed", link.Token, err)
	}
}

// mailLinks runs MailLinks until nothing is to be sent.
func (h *harness) mailLinks() error {
	for {
		if more, err := h.notices.MailLinks(h.t.Context()); err != nil || !more {
			return err
		}
	}
}

// sealedLinks counts the links whose token can still be read.
func (h *harness) sealedLinks() int {
	h.t.Helper()
	return servicetest.Value[int](h.Fixture, `SELECT count(*) FROM sign_in_links WHERE sealed IS NOT NULL`)
}

var linkInMail = regexp.MustCompile(regexp.QuoteMeta(servicetest.Issuer) + `/console/(invite|reset)/(\S+)`)

// A link arrives once, although the mail server was down when it was made, and no one can read
// it here afterwards.
func TestLinksWaitForTheMailServer(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.server.Down()
	h.invite("Nia", "nia@acme.example.com")
	for range 3 {
		err := h.mailLinks()
		if err == nil || strings.Contains(err.Error(), "nia") || strings.Contains(err.Error(), "Nia") {
			t.Errorf("without a mail server: %v", err)
		}
		h.Clock.Advance(time.Hour)
	}
	if h.sealedLinks() != 1 {
		t.Fatalf("%d links wait", h.sealedLinks())
	}
	h.server.Up()
	if err := h.mailLinks(); err != nil {
		t.Fatal(err)
	}
	h.Clock.Advance(time.Hour)
	if err := h.mailLinks(); err != nil {
		t.Fatal(err)
	}
	messages := h.server.Messages()
	if len(messages) != 1 || messages[0].Recipient != "nia@acme.example.com" || h.sealedLinks() != 0 {
		t.Fatalf("%d messages %+v, %d links wait", len(messages), messages, h.sealedLinks())
	}
	found := linkInMail.FindStringSubmatch(messages[0].Text)
	if found == nil {
		t.Fatalf("the message has no link:\n%s", messages[0].Text)
	}
	if view, err := h.Link(t.Context(), found[2]); err != nil || view.Email != "nia@acme.example.com" {
		t.Errorf("the link is %+v, %v", view, err)
	}
}

// A link that never left is erased when it ends.
func TestALinkThatWasNotMailedIsErased(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.server.Down()
	h.invite("Nia", "nia@acme.example.com")
	h.Clock.Advance(models.InvitationLifetime)
	if err := h.mailLinks(); err != nil || h.sealedLinks() != 0 {
		t.Errorf("%v, %d tokens are kept", err, h.sealedLinks())
	}
	h.invite("Max", "max@acme.example.com")
	h.Exec(`UPDATE people SET deactivated_at = now() WHERE email = 'max@acme.example.com'`)
	if h.sealedLinks() != 0 {
		t.Errorf("%d tokens of a deactivated person are kept", h.sealedLinks())
	}
}

// A recipient that is rejected delays no one. A link that the server never takes ends: no one
// knows it.
func TestARejectedRecipientDelaysNoOtherLinks(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.server.Reject("full@acme.example.com", 452)
	h.server.Reject("gone@acme.example.com", 550)
	for _, name := range []string{"full", "gone", "nia"} {
		h.invite(name, name+"@acme.example.com")
	}
	if err := h.mailLinks(); err != nil {
		t.Fatal(err)
	}
	if n := len(h.server.Messages()); n != 1 {
		t.Errorf("%d messages arrived, want 1", n)
	}
	if waiting := servicetest.Value[string](h.Fixture, `SELECT string_agg(split_part(p.email, '@', 1) || CASE WHEN l.sealed IS NULL THEN ' sent' ELSE ' waits' END, ', ' ORDER BY p.email)
		FROM sign_in_links l JOIN people p ON p.id = l.person_id`); waiting != "full waits, nia sent" {
		t.Errorf("links: %s", waiting)
	}
	h.server.BehaveWell()
	h.Clock.Advance(14 * time.Second)
	if err := h.mailLinks(); err != nil || len(h.server.Messages()) != 1 {
		t.Errorf("it is tried again at once: %v", err)
	}
	h.Clock.Advance(2 * time.Second)
	if err := h.mailLinks(); err != nil || len(h.server.Messages()) != 2 {
		t.Errorf("it is not tried again: %v, %d messages", err, len(h.server.Messages()))
	}
}

// Organizations take turns: the many invitations of one do not delay the link of another.
func TestOrganizationsTakeTurnsWithLinks(t *testing.T) {
	h := mailing(newMailHarness(t))
	for i := range 40 {
		h.invite("Nia", "nia"+strings.Repeat("i", i)+"@acme.example.com")
	}
	h.Clock.Advance(time.Second)
	if err := h.ForgotPassword(t.Context(), "pia@polar.example.com", people.Client{Network: "192.0.2.1"}); err != nil {
		t.Fatal(err)
	}
	links, err := h.ClaimLinkEmails(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theirs := 0
	for _, link := range links {
		if link.Email == "pia@polar.example.com" {
			theirs++
		}
	}
	if len(links) >= 40 || theirs != 1 {
		t.Errorf("the first claim has %d links, %d of the other organization", len(links), theirs)
	}
}

// Notices about identities have no workflow: the worker mails them, with retries.
func TestSecurityNoticesAreMailed(t *testing.T) {
	h := newMailHarness(t)
	h.Exec(`UPDATE people SET admin = id = $1`, h.ID("ann"))
	h.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at) VALUES ($1, $2, 'person.role_changed', $3, $4), ($1, $3, 'person.role_changed', $3, $4)`,
		h.ID("acme"), h.ID("ann"), h.ID("bob"), h.Clock.Now())
	h.server.Down()
	if _, err := h.notices.MailIdentityNotices(t.Context()); err == nil {
		t.Error("no error without a mail server")
	}
	h.server.Up()
	h.Clock.Advance(4 * time.Minute)
	h.server.Reject("ann@acme.example.com", 452)
	for range 2 {
		if _, err := h.notices.MailIdentityNotices(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	h.wantMessages("bob the role was changed")
	h.server.BehaveWell()
	h.Clock.Advance(4 * time.Minute)
	for range 2 {
		if _, err := h.notices.MailIdentityNotices(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	h.wantMessages("ann the role was changed", "bob the role was changed")
	h.wantNotices("2 sent")
}

// Without a mail server they stay in the inbox.
func TestSecurityNoticesStayInTheInbox(t *testing.T) {
	h := newMailHarness(t)
	h.notices.Mailer = nil
	h.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at) VALUES ($1, $2, 'person.role_changed', $2, $3)`, h.ID("acme"), h.ID("bob"), h.Clock.Now())
	if _, err := h.notices.MailIdentityNotices(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantNotices("1 inbox")
}

// Names cannot make someone click: the only address of a page in an e-mail is the link's.
func TestNamesInMailsAreNoLinks(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.Exec(`UPDATE identities SET name = 'https://evil.example/acme' WHERE id = $1`, h.ID("acme"))
	h.invite("Go to www.evil.example or ann@evil.example", "nia@acme.example.com")
	if err := h.mailLinks(); err != nil {
		t.Fatal(err)
	}
	nia := servicetest.Value[string](h.Fixture, `SELECT id FROM people WHERE email = 'nia@acme.example.com'`)
	h.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at) VALUES ($1, $2, 'person.role_changed', $2, $3)`, h.ID("acme"), nia, h.Clock.Now())
	if _, err := h.notices.MailIdentityNotices(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := h.server.Messages()
	if len(messages) != 2 {
		t.Fatalf("%d messages", len(messages))
	}
	for _, m := range messages {
		for _, text := range []string{m.Subject, m.Text, m.HTML} {
			text = linkInMail.ReplaceAllString(text, "")
			for _, link := range []string{"evil.example", "www.e", "https:/", "@e"} {
				if strings.Contains(text, link) {
					t.Errorf("a mail has %q:\n%s", link, text)
				}
			}
		}
	}
}

// The log shows that mail waits, but neither the recipient nor the link.
func TestMailingLogsNothingPersonal(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.Exec(`UPDATE people SET admin = id = $1`, h.ID("ann"))
	log := &lines{logged: make(chan struct{}, 100)}
	var err error
	if h.notices.Instrumentation, err = activities.NewInstrumentation(prometheus.NewRegistry(), nil, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))); err != nil {
		t.Fatal(err)
	}
	h.invite("Nia Moor", "nia@acme.example.com")
	links, err := h.ClaimLinkEmails(t.Context())
	if err != nil || len(links) != 1 {
		t.Fatal(links, err)
	}
	if err := h.RecordLinkEmail(t.Context(), links[0], people.MailWaiting); err != nil {
		t.Fatal(err)
	}
	h.Clock.Advance(time.Hour)
	h.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at) VALUES ($1, $2, 'person.role_changed', $2, $3)`, h.ID("acme"), h.ID("ann"), h.Clock.Now())
	h.server.At(mailtest.Sender, mailtest.Reply(421, "no mail for nia@acme.example.com"))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { h.notices.Run(ctx) })
	for range 2 { // the link's, and the notice's
		<-log.logged
	}
	stop()
	running.Wait()
	for _, never := range []string{"example.com", "Nia", "Ann", "Acme", "Field", links[0].Token, "no mail for"} {
		if strings.Contains(log.String(), never) {
			t.Errorf("the log has %q:\n%s", never, log.String())
		}
	}
}

// lines is a log that tells of each line.
type lines struct {
	mu     sync.Mutex
	text   strings.Builder
	logged chan struct{}
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logged <- struct{}{}
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// An import may notify thousands: organizations take turns with their notices, too.
func TestOrganizationsTakeTurnsWithNotices(t *testing.T) {
	h := newMailHarness(t)
	h.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
		SELECT $1, $2, 'organization.access_changed', $1, $3::timestamptz + n * interval '1 microsecond' FROM generate_series(1, 450) n`, h.ID("acme"), h.ID("ann"), h.Clock.Now())
	h.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at) VALUES ($1, $2, 'person.role_changed', $2, $3)`,
		h.ID("polar"), h.ID("pia"), h.Clock.Now())
	if more, err := h.notices.MailIdentityNotices(t.Context()); err != nil || !more {
		t.Fatal(more, err)
	}
	if waiting := servicetest.Value[string](h.Fixture, `SELECT string_agg(n.n::text, ' ') FROM (SELECT count(*) AS n FROM notices WHERE mail = 'waiting' GROUP BY organization_id) n`); waiting != "250" {
		t.Errorf("%s notices wait after the first turn, want 250 of one organization", waiting)
	}
	for more := true; more; {
		var err error
		if more, err = h.notices.MailIdentityNotices(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	h.wantNotices("451 sent")
}
