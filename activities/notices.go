package activities

import (
	"context"
	"errors"

	"millwright/mail"
	"millwright/service"
	"millwright/service/effects"
	"millwright/service/people"
)

// Mailer sends one e-mail; *mail.Client is the real one.
type Mailer interface {
	Send(ctx context.Context, message mail.Message) error
}

// Notices sends the notices in people's inboxes by e-mail too, and sign-in links.
type Notices struct {
	Service *service.Service
	// Mailer is nil without a mail server: notices stay in the inbox.
	Mailer Mailer
	// SendSlots bounds the messages that the whole worker sends at a time.
	SendSlots chan struct{}
	// Instrumentation counts the messages; it may be nil.
	Instrumentation *Instrumentation
}

// MailResult is the outcome of MailNotices. Histories store it.
type MailResult struct {
	Sent int
	// Kept counts permanently rejected messages; their notices stay in the inbox.
	Kept int
}

// MailNotices sends the waiting notices about the record: one message for each
// change and person, even when the activity runs twice, since each is recorded as
// sent before the next one is sent. It fails, to be retried, if the mail server
// does not accept every message now. A message rejected because of its recipient
// does not delay the others.
func (n *Notices) MailNotices(ctx context.Context, recordID string) (MailResult, error) {
	var run mailRun
	more, err := true, error(nil)
	for more && err == nil {
		more, err = n.mailSome(ctx, recordID, &run)
	}
	// Deferred messages stay claimed until here, so that the next claim finds others.
	for _, email := range run.deferred {
		if released := n.Service.RecordNoticeEmail(context.WithoutCancel(ctx), email, people.MailWaiting); err == nil {
			err = released
		}
	}
	if err == nil {
		err = run.rejected
	}
	return run.result, err
}

// mailRun is what became of the messages about a record.
type mailRun struct {
	result MailResult
	// deferred are those that the mail server did not accept. They are still claimed.
	deferred []effects.NoticeEmail
	// rejected is why one was deferred that did not delay the others.
	rejected error
}

// mailSome claims and sends some of the waiting notices about the record, and reports
// whether others wait.
func (n *Notices) mailSome(ctx context.Context, recordID string, run *mailRun) (more bool, err error) {
	if n.Mailer == nil {
		return false, n.Service.KeepInInbox(ctx, recordID)
	}
	emails, more, err := n.Service.ClaimNoticeEmails(ctx, recordID)
	for i, email := range emails {
		outcome, err := n.send(ctx, email)
		if err != nil {
			n.Instrumentation.countMail(people.MailWaiting)
			run.deferred, run.rejected = append(run.deferred, email), err
			if !aboutRecipient(err) {
				run.deferred = append(run.deferred, emails[i+1:]...)
				return false, err
			}
			continue
		}
		if err := n.Service.RecordNoticeEmail(context.WithoutCancel(ctx), email, outcome); err != nil {
			return false, err
		}
		n.Instrumentation.countMail(outcome)
		if outcome == people.MailSent {
			run.result.Sent++
		} else {
			run.result.Kept++
		}
	}
	return more, err
}

// aboutRecipient reports whether the mail server rejected this message alone, for
// example because the recipient's mailbox is full.
func aboutRecipient(err error) bool {
	rejected, ok := errors.AsType[*mail.Error](err)
	return ok && rejected.Code != 0
}

// send sends one message. The outcome is MailInbox for a message that can never
// be sent; an error means that it must be retried and contains no name or address.
func (n *Notices) send(ctx context.Context, email effects.NoticeEmail) (people.MailStatus, error) {
	message, err := compose(email, n.Service.Issuer)
	if err != nil {
		return people.MailInbox, nil //nolint:nilerr // it can never be sent
	}
	return n.deliver(ctx, message)
}

// deliver is send for a message.
func (n *Notices) deliver(ctx context.Context, message mail.Message) (people.MailStatus, error) {
	select {
	case n.SendSlots <- struct{}{}:
		defer func() { <-n.SendSlots }()
	case <-ctx.Done():
		return people.MailWaiting, ctx.Err()
	}
	err := n.Mailer.Send(ctx, message)
	if rejected, ok := errors.AsType[*mail.Error](err); ok && rejected.Permanent {
		return people.MailInbox, nil
	}
	return people.MailSent, err
}
