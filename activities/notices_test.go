package activities_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/activities"
	"millwright/mail"
	"millwright/mail/mailtest"
	"millwright/models"
	"millwright/service/effects"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func TestEachPersonGetsOneMessageForEachChange(t *testing.T) {
	h := newMailHarness(t)
	// bob is assigned directly and through his team; cat consults; ann manages the node.
	id := h.assign(h.Actor("erp"), []string{"crew", "bob"}, []string{"cat"})
	if result := h.mail(id); result.Sent != 3 || result.Kept != 0 {
		t.Errorf("the result is %+v, want three", result)
	}
	h.wantMessages("bob assigned to you", "dan assigned to you", "cat you are its consultant")
	h.mail(id)
	h.wantMessages("bob assigned to you", "dan assigned to you", "cat you are its consultant")
	h.Clock.Advance(time.Second)
	// All are notified of the cancellation except ann, who cancels.
	h.cancel(h.person("ann"), id, "Ordered twice.")
	h.mail(id)
	h.wantMessages("bob assigned to you", "dan assigned to you", "cat you are its consultant",
		"bob cancelled", "dan cancelled", "cat cancelled")
	last := h.server.Messages()[3]
	if !strings.Contains(last.Text, "Ann Field cancelled the work order. Ordered twice.") {
		t.Errorf("the message is:\n%s", last.Text)
	}
	h.wantNotices("6 sent")
}

func TestOneWriteNotifiesAPersonOnce(t *testing.T) {
	h := newMailHarness(t)
	// dan is a worker through the crew and a consultant directly.
	id := h.assign(h.Actor("erp"), []string{"crew"}, []string{"dan"})
	h.mail(id)
	h.wantMessages("bob assigned to you", "dan assigned to you")
	h.wantNotices("2 sent")
}

func TestPeopleAreNotNotifiedOfTheirOwnChanges(t *testing.T) {
	h := newMailHarness(t)
	ann := h.person("ann")
	id := h.assign(ann, []string{"ann", "bob"}, nil)
	h.cancel(ann, id, "")
	h.mail(id)
	h.wantMessages("bob assigned to you", "bob cancelled")
}

func TestPeopleOfAServiceCompanyAreNotifiedIfTheyReceiveItsWork(t *testing.T) {
	h := newMailHarness(t)
	imported, err := h.Import(t.Context(), []byte(`
organization: {key: polar}
people: [{key: ola, name: Ola Snow, email: ola@polar.example.com}]
`))
	if err != nil {
		t.Fatal(err)
	}
	h.Polar.IDs = imported.IDs
	id := h.assign(h.Actor("erp"), []string{"polar"}, nil)
	h.mail(id)
	h.wantMessages("pia assigned to you") // ola has no incoming work orders
}

// held is a Mailer that waits for release before it sends.
type held struct {
	activities.Mailer
	began   chan struct{} // gets a value before a message is sent
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

func TestConcurrentMailingsSendEachMessageOnce(t *testing.T) {
	t.Run("one starts while the other sends", func(t *testing.T) {
		h := newMailHarness(t)
		id := h.assign(h.Actor("erp"), []string{"crew"}, []string{"cat"})
		slow := held{h.client, make(chan struct{}, 1), make(chan struct{})}
		first := &activities.Notices{Service: h.Service, Mailer: slow, SendSlots: make(chan struct{}, 8)}
		done := make(chan error, 1)
		ctx := context.WithoutCancel(t.Context())
		go func() {
			_, err := first.MailNotices(ctx, id)
			done <- err
		}()
		<-slow.began
		if result := h.mail(id); result.Sent != 0 {
			t.Errorf("the second sent %d", result.Sent)
		}
		// The second sends newer notices.
		h.Clock.Advance(time.Second)
		h.cancel(h.Actor("erp"), id, "")
		if result := h.mail(id); result.Sent != 3 {
			t.Errorf("the second sent %d of the cancellation, want 3", result.Sent)
		}
		close(slow.release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		h.wantMessages("bob assigned to you", "dan assigned to you", "cat you are its consultant",
			"bob cancelled", "dan cancelled", "cat cancelled")
		h.wantNotices("6 sent")
	})
	t.Run("many start at once", func(t *testing.T) {
		h := newMailHarness(t)
		id := h.assign(h.Actor("erp"), []string{"crew"}, []string{"cat"})
		want := []string{"bob assigned to you", "dan assigned to you", "cat you are its consultant"}
		for range 20 { // more changes than one claim takes
			h.Clock.Advance(time.Second)
			change(t, h, id)
			want = append(want, "ann assigned to you", "ann no longer yours")
		}
		var all sync.WaitGroup
		ctx := context.WithoutCancel(t.Context())
		for range 6 {
			all.Go(func() {
				if _, err := h.notices.MailNotices(ctx, id); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		h.mail(id) // notices released after the last claim may be left
		h.wantMessages(want...)
		h.wantNotices("43 sent")
	})
}

// change assigns ann and removes her again.
func change(t *testing.T, h *harness, id string) {
	t.Helper()
	ctx := t.Context()
	_, err := h.AssignWorkOrder(ctx, h.Actor("erp"), store.RequestKey{}, id, []string{h.ID("ann")}, nil)
	if err == nil {
		h.Clock.Advance(time.Second)
		_, err = h.UnassignWorkOrder(ctx, h.Actor("erp"), store.RequestKey{}, id, h.ID("ann"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestMailServerOutageLeavesAllNoticesWaiting(t *testing.T) {
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"crew"}, nil)
	h.server.Down()
	for range 3 {
		result, err := h.tryMail(id)
		if err == nil || result.Sent != 0 {
			t.Fatalf("the result is %+v, error %v", result, err)
		}
		if strings.Contains(err.Error(), "@") || strings.Contains(err.Error(), "Bob") {
			t.Errorf("the error names a person: %v", err)
		}
	}
	h.wantNotices("2 waiting")
	h.server.Up()
	h.mail(id)
	h.wantMessages("bob assigned to you", "dan assigned to you")
	h.wantNotices("2 sent")
}

func TestNoticesThatWaitTooLongStayInTheInbox(t *testing.T) {
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"crew"}, nil)
	h.server.Down()
	h.Clock.Advance(effects.MailFor)
	if _, err := h.tryMail(id); err == nil {
		t.Fatal("no message was sent")
	}
	h.Clock.Advance(time.Millisecond)
	h.server.Up()
	h.mail(id)
	h.wantMessages()
	h.wantNotices("2 inbox")
}

func TestPermanentlyRejectedRecipientDoesNotAffectOthers(t *testing.T) {
	h := newMailHarness(t)
	h.server.Reject("bob@acme.example.com", 550)
	id := h.assign(h.Actor("erp"), []string{"crew"}, nil)
	if result := h.mail(id); result != (activities.MailResult{Sent: 1, Kept: 1}) {
		t.Errorf("the result is %+v, want one sent and one kept", result)
	}
	h.wantMessages("dan assigned to you")
	h.wantNotices("1 inbox, 1 sent")
}

func TestTemporarilyRejectedRecipientDelaysNoOneElse(t *testing.T) {
	h := newMailHarness(t)
	h.server.Reject("bob@acme.example.com", 451)
	id := h.assign(h.Actor("erp"), []string{"bob", "dan"}, []string{"cat"})
	want := []string{"dan assigned to you", "cat you are its consultant"}
	for range 12 { // more changes about bob than one claim takes
		for _, do := range []func() error{
			func() error {
				_, err := h.UnassignWorkOrder(t.Context(), h.Actor("erp"), store.RequestKey{}, id, h.ID("bob"))
				return err
			},
			func() error {
				_, err := h.AssignWorkOrder(t.Context(), h.Actor("erp"), store.RequestKey{}, id, []string{h.ID("bob")}, nil)
				return err
			},
		} {
			h.Clock.Advance(time.Second)
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.Clock.Advance(time.Second)
	change(t, h, id)
	want = append(want, "ann assigned to you", "ann no longer yours")
	for range 2 {
		if _, err := h.tryMail(id); err == nil || strings.Contains(err.Error(), "bob") {
			t.Fatalf("the error is %v", err)
		}
		h.wantMessages(want...)
	}
	h.wantNotices("4 sent, 25 waiting")
	h.server.Reject("bob@acme.example.com", 0)
	if result := h.mail(id); result.Sent != 25 {
		t.Errorf("the result is %+v, want bob's 25", result)
	}
	h.wantNotices("29 sent")
}

// If the server's response is lost, the message is sent again with the same id.
func TestLostResponseSendsTheSameMessageAgain(t *testing.T) {
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"bob"}, nil)
	h.server.Once(mailtest.Accept, mailtest.Drop())
	if _, err := h.tryMail(id); err == nil {
		t.Fatal("a message without a response counts as sent")
	}
	h.mail(id)
	messages := h.server.Messages()
	if len(messages) != 2 || messages[0].MessageID != messages[1].MessageID {
		t.Errorf("messages %v, want one twice", messages)
	}
	h.wantNotices("1 sent")
}

func TestDeadWorkersClaimsExpire(t *testing.T) {
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"crew"}, nil)
	emails, more, err := h.ClaimNoticeEmails(t.Context(), id)
	if err != nil || len(emails) != 2 || more {
		t.Fatalf("%d emails, more %v, error %v", len(emails), more, err)
	}
	h.mail(id)
	h.wantMessages() // the dead worker has claimed them
	h.Clock.Advance(3*time.Minute + time.Millisecond)
	h.mail(id)
	h.wantMessages("bob assigned to you", "dan assigned to you")
	// The first worker was alive after all and defers its messages.
	for _, email := range emails {
		if err := h.RecordNoticeEmail(t.Context(), email, people.MailWaiting); err != nil {
			t.Fatal(err)
		}
	}
	h.wantNotices("2 sent")
}

func TestCancelledMailingSendsNothing(t *testing.T) {
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"crew"}, nil)
	h.notices.SendSlots = make(chan struct{}) // no slot is free
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := h.notices.MailNotices(ctx, id); !errors.Is(err, context.Canceled) || result.Sent != 0 {
		t.Errorf("the result is %+v, error %v", result, err)
	}
	h.wantNotices("2 waiting")
}

func TestWithoutAMailServerNoticesStayInTheInbox(t *testing.T) {
	h := newMailHarness(t)
	h.notices.Mailer = nil
	id := h.assign(h.Actor("erp"), []string{"crew"}, nil)
	h.mail(id)
	h.wantNotices("2 inbox")
}

func TestReminderIsASeparateMessage(t *testing.T) {
	h := newMailHarness(t)
	id := h.assign(h.Actor("erp"), []string{"bob"}, nil)
	target := models.TimeOf(h.Clock.Now().Add(48 * time.Hour))
	if _, err := h.UpdateWorkOrder(t.Context(), h.Actor("erp"), store.RequestKey{}, id, records.WorkOrderPatch{
		TargetDate: records.Sent[*models.Time]{Value: &target, Set: true},
	}); err != nil {
		t.Fatal(err)
	}
	h.Clock.Advance(24 * time.Hour)
	for range 2 {
		if applied, err := h.Remind(t.Context(), id, servicetest.Reminder(models.NoticeDueSoon, target)); err != nil || !applied {
			t.Fatalf("applied %v, error %v", applied, err)
		}
		h.mail(id)
	}
	h.wantMessages("bob assigned to you", "bob changed", "bob due tomorrow")
	if last := h.server.Messages()[2]; !strings.Contains(last.Text, "Target date: 4 March 2026, 12:15 UTC") {
		t.Errorf("the message is:\n%s", last.Text)
	}
}
