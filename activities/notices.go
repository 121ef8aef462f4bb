package activities

import (
	"context"
	"errors"

	"millwright/mail"
	"millwright/service"
)

// Mailer sends one e-mail; *mail.Client is the real one.
type Mailer interface {
	Send(ctx context.Context, message mail.Message) error
}

// Notices tells people by e-mail what is in their inbox.
type Notices struct {
	Service *service.Service
	// Mailer is nil when there is no mail server: notices stay in the inbox.
	Mailer Mailer
	// AtOnce bounds the messages being sent by the whole worker.
	AtOnce chan struct{}
	// Instrumentation counts the letters; nil does not.
	Instrumentation *Instrumentation
}

// MailResult is how MailNotices ended.
type MailResult struct {
	Sent int
	// Kept were refused for good and stay in the inbox alone.
	Kept int
}

// MailNotices sends what waits to be mailed about the record: one message for
// each change and person, also when it runs twice, since what was sent is
// recorded before the next is. It fails when the mail server does not take all
// of it now, to be tried again later; a letter whose own recipient is the reason
// holds up no other.
func (n *Notices) MailNotices(ctx context.Context, recordID string) (told MailResult, err error) {
	if n.Mailer == nil {
		return told, n.Service.KeepInInbox(ctx, recordID)
	}
	var left []service.NoticeEmail // claimed, so that the next claim finds others
	defer func() {
		for _, l := range left {
			if released := n.Service.RecordNoticeEmail(context.WithoutCancel(ctx), l, service.MailWaiting); err == nil {
				err = released
			}
		}
	}()
	var later error
	for {
		letters, more, err := n.Service.ClaimNoticeEmails(ctx, recordID)
		if err != nil {
			return told, err
		}
		for i, l := range letters {
			mailed, err := n.mail(ctx, l)
			if err != nil {
				n.Instrumentation.mailed(mailPutOff)
				left, later = append(left, l), err
				if !aboutRecipient(err) {
					left = append(left, letters[i+1:]...)
					return told, err
				}
				continue
			}
			if err := n.Service.RecordNoticeEmail(context.WithoutCancel(ctx), l, mailed); err != nil {
				return told, err
			}
			if mailed == service.MailSent {
				told.Sent++
				n.Instrumentation.mailed(mailSent)
			} else {
				told.Kept++
				n.Instrumentation.mailed(mailKept)
			}
		}
		if !more {
			return told, later
		}
	}
}

// aboutRecipient reports whether the mail server answered for this letter alone:
// a full mailbox, a recipient it does not know yet.
func aboutRecipient(err error) bool {
	refused, ok := errors.AsType[*mail.Error](err)
	return ok && refused.Code != 0
}

// mail sends one letter, or keeps one in the inbox that cannot be sent. The error
// says that it has to wait; it names nobody.
func (n *Notices) mail(ctx context.Context, l service.NoticeEmail) (service.Mailed, error) {
	message, err := compose(l)
	if err != nil {
		return service.MailInbox, nil // one that cannot be written
	}
	select {
	case n.AtOnce <- struct{}{}:
		defer func() { <-n.AtOnce }()
	case <-ctx.Done():
		return service.MailWaiting, ctx.Err()
	}
	err = n.Mailer.Send(ctx, message)
	if refused, ok := errors.AsType[*mail.Error](err); ok && refused.Permanent {
		return service.MailInbox, nil
	}
	return service.MailSent, err
}
