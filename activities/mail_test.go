package activities_test

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/activities"
	"millwright/mail/mailtest"
	"millwright/models"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func TestEachPersonGetsOneMessage(t *testing.T) {
	h := newMailHarness(t)
	// bob is assigned directly and through his team; cat consults; ann manages the node.
	id := h.assign(h.Actor("erp"), []string{"crew", "bob"}, []string{"cat"})
	if result := h.mail(); result.Sent != 3 || result.Kept != 0 || result.NextAt != nil {
		t.Errorf("the result is %+v, want three", result)
	}
	h.wantMessages("bob assigned to you", "dan assigned to you", "cat you are its consultant")
	h.mail()
	h.wantMessages("bob assigned to you", "dan assigned to you", "cat you are its consultant")
	h.Clock.Advance(time.Second)
	// All are notified of the cancellation except ann, who cancels.
	h.cancel(h.person("ann"), id, "Ordered twice.")
	h.mail()
	h.wantMessages("bob assigned to you", "dan assigned to you", "cat you are its consultant",
		"bob cancelled", "dan cancelled", "cat cancelled")
	last := h.server.Messages()[3]
	if !strings.Contains(last.Text, "Ann Field cancelled the work order. Ordered twice.") {
		t.Errorf("the message is:\n%s", last.Text)
	}
	h.wantNotices("6 sent")
}

// Ten changes of a record that come before the mail are one message.
func TestChangesAreMailedTogether(t *testing.T) {
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"bob"}, nil)
	h.mail()
	for i := range 10 {
		h.Clock.Advance(time.Second)
		title := "Replace filter " + string(rune('a'+i))
		if _, err := h.Records.UpdateWorkOrder(t.Context(), h.Actor("erp"), store.NoKey, id, records.WorkOrderPatch{Title: records.Sent[string]{Value: title, Set: true}}); err != nil {
			t.Fatal(err)
		}
	}
	h.mail()
	h.wantMessages("bob assigned to you", "bob changed")
	h.wantNotices("11 sent")
	if last := h.server.Messages()[1]; !strings.HasPrefix(last.Subject, "Work order 1, Replace filter j") {
		t.Errorf("the subject is %q, want the present title", last.Subject)
	}
}

func TestPeopleOfAServiceCompanyAreNotifiedIfTheyReceiveItsWork(t *testing.T) {
	h := newMailHarness(t)
	imported, err := h.Imports.Run(t.Context(), []byte(`
organization: {key: polar}
people: [{key: ola, name: Ola Snow, email: ola@polar.example.com}]
`))
	if err != nil {
		t.Fatal(err)
	}
	h.Polar.IDs = imported.IDs
	h.assign(h.Actor("erp"), []string{"polar"}, nil)
	h.mail()
	h.wantMessages("pia assigned to you") // ola has no incoming work orders
}

func TestMailServerOutageLeavesAllNoticesWaiting(t *testing.T) {
	h := newMailHarness(t)
	h.assign(h.Actor("erp"), []string{"crew"}, nil)
	h.server.Down()
	h.Clock.Advance(store.MailDelay + time.Second)
	// The first failure ends a run: others would fail, too.
	result := h.mailTo(h.Acme.OrganizationID)
	if result.PutOff != 1 || !result.ServerFailed || result.Waiting != 2 || result.NextAt == nil || result.NextAt.Time.After(h.Clock.Now()) {
		t.Errorf("the result is %+v, want one that was put off, and one that is due", result)
	}
	if result.Reason == "" || strings.ContainsAny(result.Reason, "@") || strings.Contains(result.Reason, "Bob") {
		t.Errorf("the reason is %q", result.Reason)
	}
	h.wantNotices("2 waiting")
	h.server.Up()
	h.Clock.Advance(15 * time.Second)
	h.mail()
	h.wantMessages("bob assigned to you", "dan assigned to you")
	h.wantNotices("2 sent")
}

// Attempts pause for twice as long each, at most an hour, and end after two days. A list shows what was
// put off, and why.
func TestAttemptsPauseAndEnd(t *testing.T) {
	h := newMailHarness(t)
	h.assign(h.Actor("erp"), []string{"bob"}, nil)
	h.server.Reject("bob@acme.example.com", 451)
	began := h.Clock.Now()
	h.Clock.Advance(store.MailDelay + time.Second)
	var pauses []time.Duration
	for {
		result := h.mailTo(h.Acme.OrganizationID)
		if result.NextAt == nil {
			break
		}
		if result.PutOff != 1 || result.ServerFailed {
			t.Fatalf("the result is %+v", result)
		}
		waiting, err := h.Effects.WaitingMail(t.Context(), "")
		if err != nil || len(waiting) != 1 || waiting[0].Attempts != len(pauses)+1 || waiting[0].PersonID != h.ID("bob") || waiting[0].Count != 1 ||
			waiting[0].Kind != "notices" || waiting[0].Reason == nil || !strings.Contains(*waiting[0].Reason, "451") || strings.Contains(*waiting[0].Reason, "bob") {
			t.Fatalf("waiting are %+v, %v", waiting, err)
		}
		pauses = append(pauses, result.NextAt.Sub(h.Clock.Now()))
		h.Clock.Advance(pauses[len(pauses)-1] - time.Millisecond)
		if early := h.mailTo(h.Acme.OrganizationID); early.PutOff != 0 {
			t.Fatalf("it is tried before %s are over", pauses[len(pauses)-1])
		}
		h.Clock.Advance(time.Millisecond)
	}
	want := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour}
	if len(pauses) < len(want) || !slices.Equal(pauses[:len(want)], want) {
		t.Errorf("the pauses are %s, want %s and so on", pauses, want)
	}
	if took := h.Clock.Now().Sub(began); took < people.MailFor || took > people.MailFor+time.Hour {
		t.Errorf("it ended after %s", took)
	}
	h.wantMessages()
	h.wantNotices("1 inbox")
}

// New notices of a person join those whose attempt is to come.
func TestTemporarilyRejectedRecipientDelaysNoOneElse(t *testing.T) {
	h := newMailHarness(t)
	h.server.Reject("bob@acme.example.com", 451)
	id := h.assign(h.Actor("erp"), []string{"bob", "dan"}, []string{"cat"})
	h.mail()
	for range 3 {
		h.Clock.Advance(time.Second)
		for _, put := range []bool{false, true} {
			h.Clock.Advance(time.Second)
			var err error
			if put {
				_, err = h.Records.AssignWorkOrder(t.Context(), h.Actor("erp"), store.NoKey, id, []string{h.ID("bob")}, nil)
			} else {
				_, err = h.Records.UnassignWorkOrder(t.Context(), h.Actor("erp"), store.NoKey, id, h.ID("bob"))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if result := h.mailTo(h.Acme.OrganizationID); result.PutOff != 0 || result.NextAt == nil {
			t.Errorf("bob's mailbox is full, and it is tried again at once: %+v", result)
		}
	}
	h.wantMessages("dan assigned to you", "cat you are its consultant")
	h.wantNotices("2 sent, 7 waiting")
	h.server.Reject("bob@acme.example.com", 0)
	if result := h.mail(); result.Sent != 1 {
		t.Errorf("the result is %+v, want one message of all", result)
	}
	h.wantMessages("dan assigned to you", "cat you are its consultant", "bob assigned to you, no longer yours")
	h.wantNotices("9 sent")
}

// If the server's response is lost, the message is sent again with the same id.
func TestLostResponseSendsTheSameMessageAgain(t *testing.T) {
	h := newMailHarness(t)
	h.assign(h.Actor("erp"), []string{"bob"}, nil)
	h.server.Once(mailtest.Accept, mailtest.Drop())
	if result := h.mail(); result.Sent != 0 {
		t.Fatal("a message without a response counts as sent")
	}
	h.Clock.Advance(15 * time.Second)
	h.mail()
	messages := h.server.Messages()
	if len(messages) != 2 || messages[0].MessageID != messages[1].MessageID {
		t.Errorf("messages %v, want one twice", messages)
	}
	h.wantNotices("1 sent")
}

// While notices keep coming, a person gets an e-mail each ten seconds at most.
func TestNoticesThatKeepComingAreMailedEachTenSeconds(t *testing.T) {
	h := newMailHarness(t)
	for range 30 {
		h.assign(h.Actor("erp"), []string{"bob"}, nil)
		h.Clock.Advance(time.Second)
		h.mailTo(h.Acme.OrganizationID)
	}
	if n := len(h.server.Messages()); n != 3 && n != 2 {
		t.Errorf("%d messages in half a minute", n)
	}
}

// Words in a title that the mail server rejects end the mail about records, and no notice about who may
// sign in how.
func TestATitleThatIsRejectedKeepsNoSecurityNoticeBack(t *testing.T) {
	h := newMailHarness(t)
	h.server.Once(mailtest.Accept, mailtest.Reply(554, "5.7.1 spam"))
	h.assign(h.Actor("erp"), []string{"bob"}, nil)
	h.Clock.Advance(time.Millisecond)
	h.notify("acme", "bob", models.NoticePasswordChanged, h.ID("bob"))
	if result := h.mail(); result.Sent != 1 || result.Kept != 1 {
		t.Errorf("the result is %+v", result)
	}
	h.wantMessages("bob the password was changed")
	h.wantNotices("1 inbox, 1 sent")
}

// What a worker had begun to send when it died is sent again after the lease.
func TestDeadWorkersClaimsExpire(t *testing.T) {
	h := newMailHarness(t)
	h.assign(h.Actor("erp"), []string{"crew"}, nil)
	h.Clock.Advance(store.MailDelay + time.Second)
	claimed, err := h.Effects.ClaimMail(t.Context(), h.Acme.OrganizationID)
	if err != nil || len(claimed.Notices) != 1 {
		t.Fatalf("%+v, error %v", claimed, err)
	}
	other := map[string]string{h.Email("bob"): "dan", h.Email("dan"): "bob"}[claimed.PersonEmail]
	h.mail()
	h.wantMessages(other + " assigned to you")
	h.Clock.Advance(people.MailLease)
	h.mail()
	h.wantMessages("bob assigned to you", "dan assigned to you")
	// The first worker was alive after all.
	if err := h.Effects.RecordMail(t.Context(), claimed, people.MailOutcome{Status: people.MailWaiting}); err != nil {
		t.Fatal(err)
	}
	h.wantNotices("2 sent")
}

// Only what is to be mailed at that moment is, and what the mail server rejects for good is kept in the inbox. That
// affects no one else.
func TestNoticesThatEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		end  string
		kept int
	}{
		"a rejected recipient": {`SELECT 1`, 1},
		"a deactivated person": {`UPDATE people SET deactivated_at = now() WHERE email LIKE 'bob@%'`, 0},
		"an old notice": {`UPDATE notices SET created_at = created_at - interval '48 hours 1 ms'
			WHERE person_id = (SELECT id FROM people WHERE email LIKE 'bob@%')`, 0},
	} {
		h := newMailHarness(t)
		h.assign(h.Actor("erp"), []string{"crew"}, nil)
		h.server.Reject("bob@acme.example.com", 550)
		h.Exec(tt.end)
		if result := h.mail(); result.Sent != 1 || result.Kept != tt.kept || result.NextAt != nil {
			t.Errorf("%s: the result is %+v", name, result)
		}
		h.wantMessages("dan assigned to you")
		h.wantNotices("1 inbox, 1 sent")
	}
}

// Each reminder is a separate message. The activity returns whether it applied, and the new state.
func TestReminders(t *testing.T) {
	h := newMailHarness(t)
	activity := &activities.Records{Service: h.Service}
	id := h.assign(h.Actor("erp"), []string{"bob"}, nil)
	target := h.setTarget(id)
	h.mail()
	h.Clock.Advance(24 * time.Hour)
	for range 2 {
		after, err := activity.RemindWorkOrder(t.Context(), id, servicetest.Reminder(models.NoticeDueSoon, target), models.Time{})
		if err != nil || !after.Applied || after.State.ID != id || after.State.TargetDate == nil {
			t.Fatalf("after the reminder: %+v, error %v", after, err)
		}
		h.mail()
	}
	h.wantMessages("bob assigned to you, changed", "bob due tomorrow")
	if last := h.server.Messages()[1]; !strings.Contains(last.Text, "Target date: 4 March 2026, 12:15 UTC") {
		t.Errorf("the message is:\n%s", last.Text)
	}
	h.cancel(h.Actor("erp"), id, "")
	after, err := activity.RemindWorkOrder(t.Context(), id, servicetest.Reminder(models.NoticeDue, target), models.Time{})
	if err != nil || after.Applied || after.State.Status != models.StatusCancelled {
		t.Errorf("of a cancelled work order: %+v, error %v", after, err)
	}
	gone, err := activity.LoadWorkOrder(t.Context(), "wo_00000000000000000000000000", models.Time{})
	if err != nil || gone.ID != "" {
		t.Errorf("of a removed work order: %+v, error %v", gone, err)
	}
}

// A run ends after a minute, so that organizations take turns. The rest is due at once.
func TestAMailRunEndsAfterAMinute(t *testing.T) {
	h := newMailHarness(t)
	h.assign(h.Actor("erp"), []string{"crew"}, nil)
	h.Clock.Advance(store.MailDelay + time.Second)
	looks := 0
	h.mails.Now = func() time.Time {
		looks++
		return h.Clock.Now().Add(time.Duration(looks) * 40 * time.Second)
	}
	result := h.mailTo(h.Acme.OrganizationID)
	if result.Sent != 1 || result.Waiting != 1 || result.NextAt == nil || result.NextAt.Time.After(h.mails.Now()) || result.ServerFailed {
		t.Errorf("the result is %+v, want one sent and one due", result)
	}
}

// mailing makes the harness's service mail links.
func mailing(h *harness) *harness {
	h.Service = h.NewInstance(servicetest.Mails)
	h.mails.Service = h.Service
	return h
}

// invite invites a person whose invitation is to be mailed.
func (h *harness) invite(name, email string) {
	h.t.Helper()
	_, link, err := h.People.InvitePerson(h.t.Context(), h.person("ann"), store.NoKey, h.Acme.OrganizationID, people.Invitation{Name: name, Email: email})
	if err != nil || link.Token != "" {
		h.t.Fatalf("the link is %q, %v; want none, since it is mailed", link.Token, err)
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
		result := h.mail()
		if !result.ServerFailed || result.Reason == "" || strings.Contains(result.Reason, "nia") || strings.Contains(result.Reason, "Nia") {
			t.Errorf("without a mail server: %+v", result)
		}
		h.Clock.Advance(time.Hour)
	}
	waiting, err := h.Effects.WaitingMail(t.Context(), h.Acme.OrganizationID)
	if err != nil || len(waiting) != 1 || waiting[0].Kind != "link" || waiting[0].Attempts != 3 || waiting[0].Reason == nil {
		t.Fatalf("waiting are %+v, %v", waiting, err)
	}
	h.server.Up()
	h.mail()
	h.Clock.Advance(time.Hour)
	h.mail()
	messages := h.server.Messages()
	if len(messages) != 1 || messages[0].Recipient != "nia@acme.example.com" || h.sealedLinks() != 0 {
		t.Fatalf("%d messages %+v, %d links wait", len(messages), messages, h.sealedLinks())
	}
	found := linkInMail.FindStringSubmatch(messages[0].Text)
	if found == nil {
		t.Fatalf("the message has no link:\n%s", messages[0].Text)
	}
	if view, err := h.People.Link(t.Context(), "192.0.2.1", found[2]); err != nil || view.Email != "nia@acme.example.com" {
		t.Errorf("the link is %+v, %v", view, err)
	}
}

// A link that cannot be mailed ends: no one knows it.
func TestALinkThatWasNotMailedEnds(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.server.Down()
	h.invite("Nia", "nia@acme.example.com")
	h.Clock.Advance(people.MailFor)
	if result := h.mail(); result.PutOff != 1 || h.sealedLinks() != 0 {
		t.Errorf("%+v, %d tokens are kept", result, h.sealedLinks())
	}
	h.invite("Max", "max@acme.example.com")
	id := servicetest.Value[string](h.Fixture, `SELECT id FROM people WHERE email = 'max@acme.example.com'`)
	if _, err := h.People.DeactivatePerson(t.Context(), servicetest.Person(t, h.Fixture, "ann"), store.NoKey, id, ""); err != nil {
		t.Fatal(err)
	}
	if h.sealedLinks() != 0 {
		t.Errorf("%d tokens of a deactivated person are kept", h.sealedLinks())
	}
}

// A recipient that is rejected delays no one. A link that the server never takes ends.
func TestARejectedRecipientDelaysNoOtherLinks(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.server.Reject("full@acme.example.com", 452)
	h.server.Reject("gone@acme.example.com", 550)
	for _, name := range []string{"full", "gone", "nia"} {
		h.invite(name, name+"@acme.example.com")
	}
	if result := h.mailTo(h.Acme.OrganizationID); result.Sent != 1 || result.Kept != 1 || result.PutOff != 1 {
		t.Errorf("the result is %+v", result)
	}
	if waiting := servicetest.Value[string](h.Fixture, `SELECT string_agg(split_part(p.email, '@', 1) || CASE WHEN l.sealed IS NULL THEN ' sent' ELSE ' waits' END, ', ' ORDER BY p.email)
		FROM sign_in_links l JOIN people p ON p.id = l.person_id`); waiting != "full waits, nia sent" {
		t.Errorf("links: %s", waiting)
	}
	h.server.BehaveWell()
	h.Clock.Advance(14 * time.Second)
	if h.mailTo(h.Acme.OrganizationID); len(h.server.Messages()) != 1 {
		t.Error("it is tried again at once")
	}
	h.Clock.Advance(time.Second)
	if h.mailTo(h.Acme.OrganizationID); len(h.server.Messages()) != 2 {
		t.Errorf("it is not tried again: %d messages", len(h.server.Messages()))
	}
}

// The mail of one organization is no other's. Links go first, whenever they were made.
func TestMailOfOneOrganization(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.assign(h.Actor("erp"), []string{"crew"}, nil)
	h.Clock.Advance(time.Second)
	h.invite("Nia", "nia@acme.example.com")
	if err := h.People.ForgotPassword(t.Context(), "form", "pia@polar.example.com", people.Client{Network: "192.0.2.1"}); err != nil {
		t.Fatal(err)
	}
	h.mailTo(h.Polar.OrganizationID)
	if messages := h.server.Messages(); len(messages) != 1 || messages[0].Recipient != "pia@polar.example.com" {
		t.Errorf("the messages are %+v", messages)
	}
	h.mail()
	if messages := h.server.Messages(); len(messages) != 4 || messages[1].Recipient != "nia@acme.example.com" {
		t.Errorf("then the messages are %+v", messages)
	}
}

// Names cannot make someone click: the only address of a page in an e-mail is the link's.
func TestNamesInMailsAreNoLinks(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.Exec(`UPDATE identities SET name = 'https://evil.example/acme' WHERE id = $1`, h.ID("acme"))
	h.invite("Go to www.evil.example or ann@evil.example", "nia@acme.example.com")
	nia := servicetest.Value[string](h.Fixture, `SELECT id FROM people WHERE email = 'nia@acme.example.com'`)
	h.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at) VALUES ($1, $2, 'person.role_changed', $2, $3)`, h.ID("acme"), nia, h.Clock.Now())
	h.mail()
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

// The log and the result, which a history stores, show that mail waits, but neither the recipient nor
// the link nor the server's words.
func TestMailingLogsNothingPersonal(t *testing.T) {
	h := mailing(newMailHarness(t))
	h.Exec(`UPDATE people SET admin = id = $1`, h.ID("ann"))
	log := &strings.Builder{}
	h.mails.Instrumentation = activities.NewInstrumentation(prometheus.NewRegistry(), nil, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	h.invite("Nia Moor", "nia@acme.example.com")
	h.notify("acme", "ann", models.NoticeRoleChanged, h.ID("ann"))
	h.server.At(mailtest.Recipient, mailtest.Reply(451, "no mail for nia@acme.example.com"))
	h.Clock.Advance(store.MailDelay + time.Second)
	result := h.mailTo(h.Acme.OrganizationID)
	if result.PutOff != 2 || strings.Count(log.String(), "an e-mail was not sent") != 2 {
		t.Errorf("the result is %+v, the log\n%s", result, log)
	}
	for _, never := range []string{"example.com", "Nia", "Ann", "Acme", "Field", "/invite/", "no mail for"} {
		if strings.Contains(log.String()+result.Reason, never) {
			t.Errorf("the log or the result has %q:\n%s%s", never, log.String(), result.Reason)
		}
	}
}

// An import may notify a person of thousands of things: the mail is one, and has a bound.
func TestManyNoticesAreFewMails(t *testing.T) {
	h := newMailHarness(t)
	h.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
		SELECT $1, $2, 'organization.access_changed', $1, $3::timestamptz + n * interval '1 microsecond' FROM generate_series(1, 750) n`, h.ID("acme"), h.ID("ann"), h.Clock.Now())
	if result := h.mail(); result.Sent != 2 {
		t.Errorf("the result is %+v, want two messages", result)
	}
	h.wantNotices("750 sent")
}
