package activities_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/activities"
	"millwright/mail"
	"millwright/mail/mailtest"
	"millwright/models"
	"millwright/service"
	"millwright/service/servicetest"
)

// post is a service with a mail server on loopback.
type post struct {
	*servicetest.Fixture
	t       *testing.T
	server  *mailtest.Server
	client  *mail.Client
	notices *activities.Notices
}

func newPost(t *testing.T) *post {
	t.Helper()
	server := mailtest.NewServer(t, mailtest.Options{})
	client, err := mail.New(mail.Options{URL: server.URL(), From: mail.Address{Name: "Millwright", Email: "no-reply@millwright.test"}})
	if err != nil {
		t.Fatal(err)
	}
	f := servicetest.New(t)
	return &post{
		Fixture: f, t: t, server: server, client: client,
		notices: &activities.Notices{Service: f.Service, Mailer: client, AtOnce: make(chan struct{}, 8)},
	}
}

func (p *post) person(key string) service.Actor {
	p.t.Helper()
	actor, err := p.PersonActor(p.t.Context(), p.ID(key))
	if err != nil {
		p.t.Fatal(err)
	}
	return actor
}

// create makes a work order as the actor.
func (p *post) create(actor service.Actor, workers, consultants []string) string {
	p.t.Helper()
	order := service.NewWorkOrder{InventoryID: p.ID("ahu1"), Title: "Replace filter"}
	for _, key := range workers {
		order.Assignees = append(order.Assignees, p.ID(key))
	}
	for _, key := range consultants {
		order.Consultants = append(order.Consultants, p.ID(key))
	}
	answer, err := p.CreateWorkOrder(p.t.Context(), actor, service.Call{}, order)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.RecordID
}

func (p *post) cancel(actor service.Actor, id, reason string) {
	p.t.Helper()
	if _, err := p.CancelWorkOrder(p.t.Context(), actor, service.Call{}, id, &reason); err != nil {
		p.t.Fatal(err)
	}
}

// mail runs MailNotices, as its workflow does.
func (p *post) mail(id string) (activities.MailResult, error) {
	return p.notices.MailNotices(p.t.Context(), id)
}

func (p *post) mailed(id string) activities.MailResult {
	p.t.Helper()
	told, err := p.mail(id)
	if err != nil {
		p.t.Fatal(err)
	}
	return told
}

// came checks which messages the server has: to whom and about what, in their
// order, each under an id of its own.
func (p *post) came(want ...string) {
	p.t.Helper()
	var got []string
	ids := map[string]bool{}
	for _, m := range p.server.Messages() {
		name, _, _ := strings.Cut(m.Recipient, "@")
		_, what, _ := strings.Cut(m.Subject, ": ")
		got = append(got, name+" "+what)
		ids[m.MessageID] = true
		if m.To.Address != m.Recipient {
			p.t.Errorf("a message to %s went to %s", m.To.Address, m.Recipient)
		}
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		p.t.Errorf("messages\n\t%s,\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	if len(ids) != len(got) {
		p.t.Errorf("%d messages have %d ids", len(got), len(ids))
	}
}

// left counts the notices by what becomes of them.
func (p *post) left(want string) {
	p.t.Helper()
	got := servicetest.Value[string](p.Fixture, `
		SELECT coalesce(string_agg(format('%s %s', n, mail), ', ' ORDER BY mail), '')
		FROM (SELECT mail, count(*) AS n FROM notices GROUP BY mail) by_mail`)
	if got != want {
		p.t.Errorf("notices: %s, want %s", got, want)
	}
}

func TestEachPersonGetsOneMessageForEachChange(t *testing.T) {
	p := newPost(t)
	// bob is assigned himself and by his team; cat consults; ann manages the node.
	id := p.create(p.Actor("erp"), []string{"crew", "bob"}, []string{"cat"})
	if told := p.mailed(id); told.Sent != 3 || told.Kept != 0 {
		t.Errorf("told %+v, want three", told)
	}
	p.came("bob assigned to you", "dan assigned to you", "cat you are its consultant")
	p.mailed(id)
	p.came("bob assigned to you", "dan assigned to you", "cat you are its consultant")
	p.Clock.Advance(time.Second)
	// bob is both removed alone and stays by his team; all are told of the end, but for ann, who acts.
	p.cancel(p.person("ann"), id, "Ordered twice.")
	p.mailed(id)
	p.came("bob assigned to you", "dan assigned to you", "cat you are its consultant",
		"bob cancelled", "dan cancelled", "cat cancelled")
	last := p.server.Messages()[3]
	if !strings.Contains(last.Text, "Ann Field cancelled the work order. Ordered twice.") {
		t.Errorf("it says:\n%s", last.Text)
	}
	p.left("6 sent")
}

func TestTwoReasonsForOnePersonAreOneMessage(t *testing.T) {
	p := newPost(t)
	// As a member of the crew dan works on it, himself he consults.
	id := p.create(p.Actor("erp"), []string{"crew"}, []string{"dan"})
	p.mailed(id)
	p.came("bob assigned to you", "dan assigned to you")
	for _, m := range p.server.Messages() {
		if both := strings.Contains(m.Text, "its consultant"); both != strings.HasPrefix(m.Recipient, "dan") {
			t.Errorf("%s reads:\n%s", m.Recipient, m.Text)
		}
	}
	p.left("3 sent")
}

func TestWhoActsIsNotTold(t *testing.T) {
	p := newPost(t)
	ann := p.person("ann")
	id := p.create(ann, []string{"ann", "bob"}, nil)
	p.cancel(ann, id, "")
	p.mailed(id)
	p.came("bob assigned to you", "bob cancelled")
}

func TestPeopleOfAServiceCompanyAreToldWhenTheyTakeItsWork(t *testing.T) {
	p := newPost(t)
	imported, err := p.Import(t.Context(), []byte(`
organization: {key: polar}
people: [{key: ola, name: Ola Snow, email: ola@polar.example.com}]
`))
	if err != nil {
		t.Fatal(err)
	}
	p.Polar.IDs = imported.IDs
	id := p.create(p.Actor("erp"), []string{"polar"}, nil)
	p.mailed(id)
	p.came("pia assigned to you") // ola has no incoming work orders
}

// held is a Mailer that waits before it sends.
type held struct {
	activities.Mailer
	began   chan struct{} // a message is about to be sent
	release chan struct{}
}

func (h held) Send(ctx context.Context, m mail.Message) error {
	select {
	case h.began <- struct{}{}:
	default:
	}
	<-h.release
	return h.Mailer.Send(ctx, m)
}

func TestTwoAtTheSameTimeSendEachMessageOnce(t *testing.T) {
	t.Run("one begins while the other sends", func(t *testing.T) {
		p := newPost(t)
		id := p.create(p.Actor("erp"), []string{"crew"}, []string{"cat"})
		slow := held{p.client, make(chan struct{}, 1), make(chan struct{})}
		first := &activities.Notices{Service: p.Service, Mailer: slow, AtOnce: make(chan struct{}, 8)}
		done := make(chan error, 1)
		ctx := context.WithoutCancel(t.Context())
		go func() {
			_, err := first.MailNotices(ctx, id)
			done <- err
		}()
		<-slow.began
		if told := p.mailed(id); told.Sent != 0 {
			t.Errorf("the second sent %d", told.Sent)
		}
		// What comes meanwhile is the second's to send.
		p.Clock.Advance(time.Second)
		p.cancel(p.Actor("erp"), id, "")
		if told := p.mailed(id); told.Sent != 4 {
			t.Errorf("the second sent %d of the cancellation, want 4", told.Sent)
		}
		close(slow.release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		p.came("bob assigned to you", "dan assigned to you", "cat you are its consultant",
			"bob cancelled", "dan cancelled", "cat cancelled", "ann cancelled")
		p.left("7 sent")
	})
	t.Run("many begin at once", func(t *testing.T) {
		p := newPost(t)
		id := p.create(p.Actor("erp"), []string{"crew"}, []string{"cat"})
		want := []string{"bob assigned to you", "dan assigned to you", "cat you are its consultant"}
		for range 20 { // more changes than one claim takes
			p.Clock.Advance(time.Second)
			change(t, p, id)
			want = append(want, "ann assigned to you", "ann no longer yours")
		}
		var all sync.WaitGroup
		ctx := context.WithoutCancel(t.Context())
		for range 6 {
			all.Go(func() {
				if _, err := p.notices.MailNotices(ctx, id); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		p.mailed(id) // one that came too late for its claim may leave what another released
		p.came(want...)
		p.left("43 sent")
	})
}

// change assigns ann and takes the work order from her again.
func change(t *testing.T, p *post, id string) {
	t.Helper()
	ctx := t.Context()
	_, err := p.AssignWorkOrder(ctx, p.Actor("erp"), service.Call{}, id, []string{p.ID("ann")}, nil)
	if err == nil {
		p.Clock.Advance(time.Second)
		_, err = p.UnassignWorkOrder(ctx, p.Actor("erp"), service.Call{}, id, p.ID("ann"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestMailServerThatIsDownLeavesEverythingWaiting(t *testing.T) {
	p := newPost(t)
	id := p.create(p.Actor("erp"), []string{"crew"}, nil)
	p.server.Down()
	for range 3 {
		told, err := p.mail(id)
		if err == nil || told.Sent != 0 {
			t.Fatalf("told %+v, error %v", told, err)
		}
		if strings.Contains(err.Error(), "@") || strings.Contains(err.Error(), "Bob") {
			t.Errorf("the error names someone: %v", err)
		}
	}
	p.left("2 waiting")
	p.server.Up()
	p.mailed(id)
	p.came("bob assigned to you", "dan assigned to you")
	p.left("2 sent")
}

func TestMailThatWaitsTooLongStaysInTheInbox(t *testing.T) {
	p := newPost(t)
	id := p.create(p.Actor("erp"), []string{"crew"}, nil)
	p.server.Down()
	p.Clock.Advance(service.MailFor)
	if _, err := p.mail(id); err == nil {
		t.Fatal("it is not tried")
	}
	p.Clock.Advance(time.Millisecond)
	p.server.Up()
	p.mailed(id)
	p.came()
	p.left("2 inbox")
}

func TestRecipientThatIsRefusedForGoodKeepsNobodyElseFromMail(t *testing.T) {
	p := newPost(t)
	p.server.Refuse("bob@acme.example.com", 550)
	id := p.create(p.Actor("erp"), []string{"crew"}, nil)
	if told := p.mailed(id); told != (activities.MailResult{Sent: 1, Kept: 1}) {
		t.Errorf("told %+v, want one sent and one kept", told)
	}
	p.came("dan assigned to you")
	p.left("1 inbox, 1 sent")
}

func TestRecipientWhoseMailboxIsFullHoldsUpNobodyElse(t *testing.T) {
	p := newPost(t)
	p.server.Refuse("bob@acme.example.com", 451)
	id := p.create(p.Actor("erp"), []string{"bob", "dan"}, []string{"cat"})
	want := []string{"dan assigned to you", "cat you are its consultant"}
	for range 12 { // more changes about bob than one claim takes
		for _, do := range []func() error{
			func() error {
				_, err := p.UnassignWorkOrder(t.Context(), p.Actor("erp"), service.Call{}, id, p.ID("bob"))
				return err
			},
			func() error {
				_, err := p.AssignWorkOrder(t.Context(), p.Actor("erp"), service.Call{}, id, []string{p.ID("bob")}, nil)
				return err
			},
		} {
			p.Clock.Advance(time.Second)
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.Clock.Advance(time.Second)
	change(t, p, id)
	want = append(want, "ann assigned to you", "ann no longer yours")
	for range 2 {
		if _, err := p.mail(id); err == nil || strings.Contains(err.Error(), "bob") {
			t.Fatalf("the error is %v", err)
		}
		p.came(want...)
	}
	p.left("4 sent, 25 waiting")
	p.server.Refuse("bob@acme.example.com", 0)
	if told := p.mailed(id); told.Sent != 25 {
		t.Errorf("told %+v, want bob's 25", told)
	}
	p.left("29 sent")
}

// The server has the message and its answer is lost: it is sent again, as the
// same message.
func TestAnswerThatIsLostMeansTheSameMessageAgain(t *testing.T) {
	p := newPost(t)
	id := p.create(p.Actor("erp"), []string{"bob"}, nil)
	p.server.Once(mailtest.Accept, mailtest.Drop())
	if _, err := p.mail(id); err == nil {
		t.Fatal("a message without an answer counts as sent")
	}
	p.mailed(id)
	messages := p.server.Messages()
	if len(messages) != 2 || messages[0].MessageID != messages[1].MessageID {
		t.Errorf("messages %v, want one twice", messages)
	}
	p.left("1 sent")
}

func TestWhoDiesWhileMailingIsFollowedByAnother(t *testing.T) {
	p := newPost(t)
	id := p.create(p.Actor("erp"), []string{"crew"}, nil)
	letters, more, err := p.ClaimNoticeEmails(t.Context(), id)
	if err != nil || len(letters) != 2 || more {
		t.Fatalf("%d letters, more %v, error %v", len(letters), more, err)
	}
	p.mailed(id)
	p.came() // they are in the dead one's hands
	p.Clock.Advance(3*time.Minute + time.Millisecond)
	p.mailed(id)
	p.came("bob assigned to you", "dan assigned to you")
	// The first comes back to life and says that they are to be tried again.
	for _, l := range letters {
		if err := p.RecordNoticeEmail(t.Context(), l, service.MailWaiting); err != nil {
			t.Fatal(err)
		}
	}
	p.left("2 sent")
}

func TestMailIsNotSentAfterItsTime(t *testing.T) {
	p := newPost(t)
	id := p.create(p.Actor("erp"), []string{"crew"}, nil)
	p.notices.AtOnce = make(chan struct{}) // all places are taken
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if told, err := p.notices.MailNotices(ctx, id); !errors.Is(err, context.Canceled) || told.Sent != 0 {
		t.Errorf("told %+v, error %v", told, err)
	}
	p.left("2 waiting")
}

func TestWithoutAMailServerNoticesStayInTheInbox(t *testing.T) {
	p := newPost(t)
	p.notices.Mailer = nil
	id := p.create(p.Actor("erp"), []string{"crew"}, nil)
	p.mailed(id)
	p.left("2 inbox")
}

func TestReminderIsALetterOfItsOwn(t *testing.T) {
	p := newPost(t)
	id := p.create(p.Actor("erp"), []string{"bob"}, nil)
	target := models.TimeOf(p.Clock.Now().Add(48 * time.Hour))
	if _, err := p.UpdateWorkOrder(t.Context(), p.Actor("erp"), service.Call{}, id, service.WorkOrderPatch{
		TargetDate: service.Sent[*models.Time]{Value: &target, Set: true},
	}); err != nil {
		t.Fatal(err)
	}
	p.Clock.Advance(24 * time.Hour)
	for range 2 {
		if applied, err := p.Remind(t.Context(), id, models.NoticeDueSoon, target); err != nil || !applied {
			t.Fatalf("applied %v, error %v", applied, err)
		}
		p.mailed(id)
	}
	p.came("bob assigned to you", "bob due tomorrow")
	if last := p.server.Messages()[1]; !strings.Contains(last.Text, "Target date: 4 March 2026, 12:15 UTC") {
		t.Errorf("it says:\n%s", last.Text)
	}
}
