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
}

// Told is how MailNotices ended.
type Told struct {
	Sent int
	// Kept were refused for good and stay in the inbox alone.
	Kept int
}

// MailNotices sends what waits to be mailed about the record: one message for
// each change and person, also when it runs twice, since what was sent is
// recorded before the next is. It fails when the mail server does not take mail
// now, to be tried again later; then everything not sent still waits.
func (n *Notices) MailNotices(ctx context.Context, recordID string) (Told, error) {
	var told Told
	if n.Mailer == nil {
		return told, n.Service.KeepInInbox(ctx, recordID)
	}
	for {
		letters, more, err := n.Service.ClaimLetters(ctx, recordID)
		if err != nil {
			return told, err
		}
		var later error
		for _, l := range letters {
			mailed := service.MailWaiting
			if later == nil {
				mailed, later = n.mail(ctx, l)
			}
			if err := n.Service.RecordLetter(context.WithoutCancel(ctx), l, mailed); err != nil {
				return told, err
			}
			switch mailed {
			case service.MailSent:
				told.Sent++
			case service.MailInbox:
				told.Kept++
			case service.MailWaiting:
			}
		}
		if later != nil || !more {
			return told, later
		}
	}
}

// mail sends one letter. The error says that it has to wait; it names nobody.
func (n *Notices) mail(ctx context.Context, l service.Letter) (service.Mailed, error) {
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
	if err != nil {
		return service.MailWaiting, err
	}
	return service.MailSent, nil
}
