package activities

import (
	"context"
	"errors"
	"time"

	"millwright/mail"
	"millwright/models"
	"millwright/service"
	"millwright/service/effects"
	"millwright/service/people"
)

// Mailer sends one e-mail; *mail.Client is the real one.
type Mailer interface {
	Send(ctx context.Context, message mail.Message) error
}

// Mails are the activities of the Mail workflow.
type Mails struct {
	Service *service.Service
	// Mailer is nil without a mail server.
	Mailer Mailer
	Now    func() time.Time
	// Instrumentation counts the messages; it may be nil.
	Instrumentation *Instrumentation
}

const (
	// maxMailRun is the time after which SendMail begins no further e-mail, so that organizations take turns.
	maxMailRun = time.Minute
	// MaxMailRun limits its time: with the last e-mail.
	MaxMailRun = 2 * time.Minute
)

// MailResult is the outcome of SendMail. Histories store it.
type MailResult struct {
	// Sent and PutOff count e-mails; Kept counts those that ended without being sent: their notices stay
	// in the inbox.
	Sent, Kept, PutOff int
	// Waiting counts the people and links whose mail waits, up to effects.MaxWaitingMail. Oldest is since when.
	Waiting int
	Oldest  *models.Time
	// NextAt is when the next may be tried, nil if none waits.
	NextAt *models.Time
	// ServerFailed is true if the mail server failed, not only for one message: others would fail, too.
	ServerFailed bool
	// Reason is why an e-mail was put off last, "" if none was.
	Reason string
}

// SendMail sends what waits to be mailed to the people of the organization, one e-mail after the other:
// sign-in links first. It ends when nothing is due, when the mail server fails, and after a minute. An
// e-mail that the server does not accept for its recipient delays no other.
func (m *Mails) SendMail(ctx context.Context, organizationID string) (result MailResult, err error) {
	if m.Mailer == nil {
		return result, nil // housekeeping ends what waits
	}
	defer heartbeat(ctx, func() int { return 0 })()
	end, more := m.Now().Add(maxMailRun), true
	for more && !result.ServerFailed && m.Now().Before(end) && !stopping(ctx) {
		if more, err = m.sendNext(ctx, organizationID, &result); err != nil {
			return result, err
		}
	}
	waiting, err := m.Service.Effects.WaitingMail(ctx, organizationID)
	if err != nil || len(waiting) == 0 {
		return result, err
	}
	next := effects.NextAttempt(waiting)
	if more && !result.ServerFailed { // its time is up
		next = models.TimeOf(m.Now())
	}
	result.Waiting, result.Oldest, result.NextAt = len(waiting), &waiting[0].Since, &next
	return result, nil
}

// sendNext sends the next e-mail. It reports whether there was one.
func (m *Mails) sendNext(ctx context.Context, organizationID string, result *MailResult) (found bool, err error) {
	link, err := m.Service.People.ClaimLink(ctx, organizationID)
	if err == nil {
		return true, m.attempt(ctx, composeLink(link, m.Service.Store.Issuer), result, func(ctx context.Context, outcome people.MailOutcome) error {
			return m.Service.People.RecordLink(ctx, link, outcome)
		})
	}
	if models.CodeOf(err) != models.CodeNotFound {
		return false, err
	}
	claimed, err := m.Service.Effects.ClaimMail(ctx, organizationID)
	switch {
	case models.CodeOf(err) == models.CodeNotFound:
		return false, nil
	case err != nil || len(claimed.Notices) == 0:
		return true, err
	}
	record := func(ctx context.Context, outcome people.MailOutcome) error {
		return m.Service.Effects.RecordMail(ctx, claimed, outcome)
	}
	message, err := compose(claimed, m.Service.Store.Issuer)
	if err != nil { // it can never be sent
		return true, m.record(ctx, people.MailOutcome{Status: people.MailInbox}, result, record)
	}
	return true, m.attempt(ctx, message, result, record)
}

// attempt sends the message and records the outcome. If the context ends in the meantime, the message is
// tried again after its lease.
func (m *Mails) attempt(ctx context.Context, message mail.Message, result *MailResult, record func(context.Context, people.MailOutcome) error) error {
	outcome := people.MailOutcome{Status: people.MailSent}
	err := m.Mailer.Send(ctx, message)
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	if err != nil {
		m.Instrumentation.mailFailed(ctx, err)
		failed, known := errors.AsType[*mail.Error](err)
		outcome = people.MailOutcome{Status: people.MailWaiting, Reason: "The mail could not be sent."}
		if known {
			outcome.Reason = failed.Detail
		}
		if known && failed.Permanent {
			outcome.Status = people.MailInbox
		} else {
			result.Reason, result.ServerFailed = outcome.Reason, !known || !failed.AboutMessage
		}
	}
	return m.record(ctx, outcome, result, record)
}

func (m *Mails) record(ctx context.Context, outcome people.MailOutcome, result *MailResult, record func(context.Context, people.MailOutcome) error) error {
	m.Instrumentation.countMail(outcome.Status)
	switch outcome.Status {
	case people.MailSent:
		result.Sent++
	case people.MailInbox:
		result.Kept++
	case people.MailWaiting:
		result.PutOff++
	}
	return record(context.WithoutCancel(ctx), outcome)
}
