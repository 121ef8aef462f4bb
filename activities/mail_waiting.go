package activities

import (
	"cmp"
	"context"
	"sync"
	"time"

	"millwright/service/people"
)

const (
	// mailInterval is the interval at which a worker process looks for mail that no workflow sends.
	mailInterval = 2 * time.Second
	// mailPause is the wait after the mail server or the database failed.
	mailPause = 15 * time.Second
)

// Run mails what belongs to no workflow until the context ends: sign-in links, and notices
// about identities. Several workers may do so at a time, and neither waits for Temporal.
func (n *Notices) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, work := range []func(context.Context) (more bool, err error){n.MailLinks, n.MailIdentityNotices} {
		running.Go(func() {
			for ctx.Err() == nil {
				more, err := work(ctx)
				pause := mailInterval
				switch {
				case err != nil:
					n.Instrumentation.mailFailed(ctx, err)
					pause = mailPause
				case more:
					continue
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	running.Wait()
}

// MailLinks sends sign-in links that wait, and reports whether there may be more. It fails,
// to be called again later, if the mail server does not accept them now. A message that it
// rejects because of its recipient delays no others.
func (n *Notices) MailLinks(ctx context.Context) (more bool, err error) {
	if n.Mailer == nil {
		return false, nil
	}
	links, err := n.Service.ClaimLinkEmails(ctx)
	if err != nil {
		return false, err
	}
	errs := make([]error, len(links))
	var sending sync.WaitGroup
	for i, link := range links {
		sending.Go(func() { errs[i] = n.mailLink(ctx, link) })
	}
	sending.Wait()
	return len(links) > 0, cmp.Or(errs...)
}

// mailLink sends one link and records that.
func (n *Notices) mailLink(ctx context.Context, link people.LinkEmail) error {
	outcome, err := n.deliver(ctx, composeLink(link, n.Service.Issuer))
	if err != nil {
		outcome = people.MailWaiting
	}
	n.Instrumentation.countMail(outcome)
	if recorded := n.Service.RecordLinkEmail(context.WithoutCancel(ctx), link, outcome); recorded != nil {
		return recorded
	}
	return n.unlessAboutRecipient(ctx, err)
}

// unlessAboutRecipient logs an error that concerns one message alone, and returns others.
func (n *Notices) unlessAboutRecipient(ctx context.Context, err error) error {
	if aboutRecipient(err) {
		n.Instrumentation.mailFailed(ctx, err)
		return nil
	}
	return err
}

// MailIdentityNotices sends some waiting notices about one identity of each organization, and
// reports whether there may be more. It fails, to be called again later, if the mail server
// does not accept them now: they stay claimed for minutes, and others come first.
func (n *Notices) MailIdentityNotices(ctx context.Context) (more bool, err error) {
	identities, err := n.Service.IdentitiesToMail(ctx)
	for _, id := range identities {
		if err != nil {
			return false, err
		}
		var run mailRun
		if _, err = n.mailSome(ctx, id, &run); err == nil {
			err = run.rejected
		}
		err = n.unlessAboutRecipient(ctx, err)
	}
	return len(identities) > 0, err
}
